/* A matrix product, the work of a 1x1 convolution with its requantization, shared by all cores: each takes a share of the
 * rows, and makes it as kernels/xcv.h does. */
#include "cluster/cluster.h"
#include "xcv.h"

#ifndef ROWS
#define ROWS 64
#endif

enum { COLUMNS = 32, DEPTH = 256, SHARE = ROWS / BT_CLUSTER_CORES };

static int8_t a[ROWS][DEPTH + 4] __attribute__((aligned(4))); /* so that rows begin in different banks */
static int32_t b[COLUMNS / 4][1 + DEPTH / 4 + 1][4]; /* biases, weights, factors */
static int8_t y[ROWS][COLUMNS] __attribute__((aligned(4)));
static uint32_t wrong[BT_CLUSTER_CORES];
uint32_t bt_product_cycles; /* of core 0, from barrier to barrier */

#define UART (*(volatile uint8_t *)(uintptr_t)BT_UART_BASE)

static int8_t weight(uint32_t column, uint32_t k)
{
    return (int8_t)((uint32_t)b[column / 4][1 + k / 4][column % 4] >> (8u * (k % 4)));
}

static void fill(uint32_t core)
{
    for (uint32_t i = core * SHARE; i < (core + 1) * SHARE; i++) {
        for (uint32_t k = 0; k < DEPTH; k++) {
            a[i][k] = (int8_t)(i * 37 + k * k);
        }
    }
    if (core == 0) {
        for (uint32_t j = 0; j < sizeof b / sizeof(int32_t); j++) {
            (&b[0][0][0])[j] = (int32_t)(j * 2654435761u);
        }
        for (uint32_t j = 0; j < COLUMNS; j++) {
            b[j / 4][0][j % 4] = (int32_t)(j * 1000u);
            b[j / 4][1 + DEPTH / 4][j % 4] = (int32_t)((j + 20u) << 16);
        }
    }
}

static void multiply(uint32_t core)
{
    const bt_xcv_layer layer = { DEPTH / 4, COLUMNS, bt_xcv_rule_of(0, 0, 3, -100, 110), &b[0][0][0] };
    bt_xcv_windows windows = { .count = 0 };
    for (uint32_t i = core * SHARE; i < (core + 1) * SHARE; i++) {
        bt_xcv_add(&layer, &windows, a[i], y[i]);
    }
}

static void check(uint32_t core)
{
    for (uint32_t i = core * SHARE; i < (core + 1) * SHARE; i += 3) {
        for (uint32_t j = 0; j < COLUMNS; j += 5) {
            int32_t sum = b[j / 4][0][j % 4];
            for (uint32_t k = 0; k < DEPTH; k++) {
                sum += a[i][k] * weight(j, k);
            }
            wrong[core] += y[i][j] != bt_requantize(sum, b[j / 4][1 + DEPTH / 4][j % 4] / 2, 0, 3, -100, 110);
        }
    }
}

void bt_start(void);
void bt_start(void)
{
    uint32_t core = bt_core_number();
    fill(core);
    bt_barrier();
    uint32_t begin = bt_cycles();
    multiply(core);
    bt_barrier();
    if (core == 0) {
        bt_product_cycles = bt_cycles() - begin;
    }
    check(core);
    bt_barrier();
    if (core == 0) {
        uint32_t all = 0;
        for (uint32_t i = 0; i < BT_CLUSTER_CORES; i++) {
            all += wrong[i];
        }
        UART = all == 0 ? 'y' : 'n';
    }
    for (;;) {
        __asm__ volatile("wfi");
    }
}
