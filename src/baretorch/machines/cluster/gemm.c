/* A cluster's GEMM unit: y[h][w][j] = clamp(zero + requantize(bias[j] + sum of x * weight[j] over the window at (h, w),
 * multiplier[j])), where x is x_zero outside of the image, and of a pool's windows the largest counts. All of it is in
 * the scratchpad. A product of matrices is that with windows of one pixel. */
#include <string.h>

#include "cluster.h"

/* As kernels/gemm/gemm.h writes them. */
enum {
    X, WEIGHT, Y, BIAS, MULTIPLIER, IN_H, IN_W, IN, OUT_H, OUT_W, OUT, KERNEL_H, KERNEL_W, STRIDE_H, STRIDE_W,
    PAD_TOP, PAD_LEFT, POOL_H, POOL_W, Y_STEP, X_ZERO, ZERO, LO, HI, SHIFT, START
};

/* A cycle's block of windows and channels, and products of each; cycles before the first. */
enum { ROWS, COLUMNS, DEPTH, START_CYCLES };

static int32_t int32_at(const uint8_t *bytes)
{
    int32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static int32_t output(struct bt_cluster *c, const uint32_t *r, uint32_t h, uint32_t w, uint32_t j)
{
    uint32_t kernel_h = r[KERNEL_H], kernel_w = r[KERNEL_W], in = r[IN], in_w = r[IN_W];
    const int8_t *x = (const int8_t *)bt_bytes_at(c, r[X], 1);
    const int8_t *b = (const int8_t *)bt_bytes_at(c, r[WEIGHT] + j * kernel_h * kernel_w * in, 1);
    uint32_t sum = (uint32_t)int32_at(bt_bytes_at(c, r[BIAS] + 4u * j, 4));
    for (uint32_t i = 0; i < kernel_h; i++) {
        uint32_t at_h = h * r[STRIDE_H] + i - r[PAD_TOP];
        for (uint32_t k = 0; k < kernel_w; k++, b += in) {
            uint32_t at_w = w * r[STRIDE_W] + k - r[PAD_LEFT];
            bool inside = at_h < r[IN_H] && at_w < in_w;
            for (uint32_t channel = 0; channel < in; channel++) {
                int32_t a = inside ? x[(at_h * in_w + at_w) * in + channel] : (int32_t)r[X_ZERO];
                sum += (uint32_t)(a * b[channel]);
            }
        }
    }
    int64_t product =
        (int64_t)(int32_t)(sum << r[SHIFT]) * int32_at(bt_bytes_at(c, r[MULTIPLIER] + 4u * j, 4));
    int32_t value = (int32_t)r[ZERO] + (int32_t)((product + ((int64_t)1 << 31)) >> 32);
    int32_t lo = (int32_t)r[LO], hi = (int32_t)r[HI];
    return value < lo ? lo : value > hi ? hi : value;
}

static void compute(struct bt_cluster *c, const uint32_t *r)
{
    uint32_t pool_h = r[POOL_H], pool_w = r[POOL_W];
    for (uint32_t h = 0; h < r[OUT_H]; h++) {
        for (uint32_t w = 0; w < r[OUT_W]; w++) {
            uint8_t *y = bt_bytes_at(c, r[Y] + (h * r[OUT_W] + w) * r[Y_STEP], 1);
            for (uint32_t j = 0; j < r[OUT]; j++) {
                int32_t most = INT32_MIN;
                for (uint32_t i = 0; i < pool_h * pool_w; i++) {
                    int32_t value = output(c, r, h * pool_h + i / pool_w, w * pool_w + i % pool_w, j);
                    most = value > most ? value : most;
                }
                y[j] = (uint8_t)most;
            }
        }
    }
}

static uint64_t rounds(uint64_t count, uint32_t at_a_time)
{
    return (count + at_a_time - 1u) / at_a_time;
}

static bool request(const struct bt_cluster *c, const struct bt_unit *unit, const uint32_t *r, struct bt_transfer *work)
{
    uint64_t most = c->config.memory[0].size;
    if (r[SHIFT] > 31) {
        return false;
    }
    for (unsigned i = IN_H; i <= POOL_W; i++) { /* so that no product of them leaves 64 bits */
        bool may_be_none = i == PAD_TOP || i == PAD_LEFT;
        if ((r[i] == 0 && !may_be_none) || r[i] > most) {
            return false;
        }
    }
    uint64_t image = (uint64_t)r[IN_H] * r[IN_W], pixels = (uint64_t)r[OUT_H] * r[OUT_W];
    uint64_t taps = (uint64_t)r[KERNEL_H] * r[KERNEL_W], columns = r[OUT];
    if (image > most || pixels > most || taps > most || image * r[IN] > most || pixels * columns > most ||
        taps * r[IN] > most || (r[BIAS] | r[MULTIPLIER] | r[WEIGHT]) % 4u != 0 || !bt_near(c, r[X], image * r[IN]) ||
        !bt_near(c, r[WEIGHT], taps * r[IN] * columns) || !bt_near(c, r[BIAS], 4u * columns) ||
        !bt_near(c, r[MULTIPLIER], 4u * columns) || !bt_near(c, r[Y], (pixels - 1u) * r[Y_STEP] + columns)) {
        return false;
    }
    work->writes = (struct bt_rows){r[Y], r[OUT], (uint32_t)pixels, r[Y_STEP]};
    work->reads[0] = (struct bt_rows){r[X], (uint32_t)(image * r[IN]), 1, 0};
    work->reads[1] = (struct bt_rows){r[WEIGHT], (uint32_t)(taps * r[IN] * columns), 1, 0};
    work->reads[2] = (struct bt_rows){r[BIAS], 4u * r[OUT], 1, 0};
    work->reads[3] = (struct bt_rows){r[MULTIPLIER], 4u * r[OUT], 1, 0};
    /* A block takes `depth` products of each output per cycle, of a row of the kernel at a time; its outputs leave
     * `columns` at a time while the next block is computed. */
    const uint32_t *size = unit->sizes;
    uint64_t block = r[KERNEL_H] * rounds((uint64_t)r[KERNEL_W] * r[IN], size[DEPTH]);
    uint64_t windows = pixels * r[POOL_H] * r[POOL_W];
    block = block > size[ROWS] ? block : size[ROWS];
    work->ends = size[START_CYCLES] + rounds(windows, size[ROWS]) * rounds(columns, size[COLUMNS]) * block;
    return true;
}

const struct bt_unit_kind bt_unit_gemm = {START, request, compute};
