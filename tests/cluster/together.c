/* Cores of a cluster together: what cluster.h offers, used. Core 0 copies an operand in by DMA, all multiply rows of it,
 * core 0 has the GEMM unit do the same, and all compare. */
#include "cluster/cluster.h"
#include "gemm/gemm.h"

enum { ROWS = 16, DEPTH = 32, COLUMNS = 8 };

static const int8_t far_a[ROWS][DEPTH + 8] = {{1, 2, 3}, {4, 5, 6}, {-7, -8, -9, 100}}; /* in L2, with gaps */
static int8_t a[ROWS][DEPTH], b[COLUMNS][DEPTH];
static int32_t bias[COLUMNS], multiplier[COLUMNS];
static int8_t by_cores[ROWS][COLUMNS], by_unit[ROWS][COLUMNS];
static uint32_t wrong[BT_CLUSTER_CORES];

#define UART (*(volatile uint8_t *)(uintptr_t)BT_UART_BASE)

static void prepare(void)
{
    bt_dma_start(2, a, DEPTH, far_a, DEPTH + 8, DEPTH, ROWS);
    for (int i = 0; i < COLUMNS; i++) {
        for (int k = 0; k < DEPTH; k++) {
            b[i][k] = (int8_t)(i * 37 + k * 11);
        }
        bias[i] = i * 100 - 300;
        multiplier[i] = (i + 1) << 24;
    }
#ifndef FORGET_DMA
    bt_dma_wait(2);
#endif
}

static int8_t product(const int8_t *x, int j)
{
    int32_t sum = bias[j];
    for (int k = 0; k < DEPTH; k++) {
        sum += x[k] * b[j][k];
    }
    int32_t y = 5 + (int32_t)(((int64_t)sum * multiplier[j] + (1ll << 31)) >> 32);
    return (int8_t)(y < -100 ? -100 : y > 100 ? 100 : y);
}

void bt_start(void);
void bt_start(void)
{
    uint32_t core = bt_core_number();
    if (core == 0) {
        prepare();
    }
    bt_barrier();
    const bt_gemm g = {.unit = BT_GEMM_BASE, .in_h = 1, .in_w = ROWS, .in = DEPTH, .out_h = 1, .out_w = ROWS,
                       .out = COLUMNS, .kernel_h = 1, .kernel_w = 1, .stride_h = 1, .stride_w = 1, .pool_h = 1, .pool_w = 1,
                       .y_step = COLUMNS, .zero = 5, .lo = -100, .hi = 100};
    if (core == 0) {
        bt_gemm_start(&g, a[0], b[0], bias, multiplier, by_unit[0]);
    }
    for (uint32_t i = core; i < ROWS; i += BT_CLUSTER_CORES) {
        for (int j = 0; j < COLUMNS; j++) {
            by_cores[i][j] = product(a[i], j);
        }
    }
    if (core == 0) {
#ifndef FORGET_GEMM
        bt_gemm_wait(g.unit);
#endif
    }
    bt_barrier();
    for (uint32_t i = core; i < ROWS; i += BT_CLUSTER_CORES) {
        for (int j = 0; j < COLUMNS; j++) {
            wrong[core] += by_cores[i][j] != by_unit[i][j];
        }
    }
#ifndef FORGET_BARRIER
    bt_barrier();
#endif
    if (core == 0) {
        uint32_t all = 0, seen = 0;
        for (uint32_t i = 0; i < BT_CLUSTER_CORES; i++) {
            all += wrong[i];
        }
        for (int j = 0; j < COLUMNS; j++) {
            seen += by_unit[2][j] != by_unit[0][j];
        }
        UART = all == 0 && seen != 0 ? 'y' : 'n';
    }
    for (;;) {
        __asm__ volatile("wfi");
    }
}
