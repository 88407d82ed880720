/* qconv2d, one group, for cores with the DSP extension (Cortex-M4, M7, M33): layers that dsp.c does not take, with
 * pools above all.
 *
 * The windows of two positions are expanded to halfwords once, side by side; then two output channels at a time run
 * over them. Weights of two channels share a halfword, 256 * second + first, as in qlinear/dsp.c: one extension feeds
 * four dual multiplies. 28 instructions for 32 products.
 *
 * The windows of two positions, or of a pool's, are read before their outputs are written. */
#include "windows_dsp.h"

#define BT_QCONV2D_PART 63 /* eights of taps whose sum cannot reach 2^23 */

typedef struct {
    int32_t first[2]; /* of two output channels, for each position */
    int32_t second[2];
} bt_qconv2d_sums;

BT_INLINE bt_qconv2d_sums bt_qconv2d_dot_part(const int32_t *w, const int32_t *x, int32_t eights)
{
    int32_t low_a = 0, both_a = 0, low_b = 0, both_b = 0;
    int32_t w0, w1, part, xa, xb;
#define BT_FOUR_TAPS                                                                                                   \
    "ldrd %[w0], %[w1], [%[w]], #8\n\t"                                                                                \
    "ldrd %[xa], %[xb], [%[x]], #8\n\t"                                                                                \
    "sxtb16 %[part], %[w0]\n\t"                                                                                        \
    "smlad %[low_a], %[part], %[xa], %[low_a]\n\t"                                                                     \
    "smlad %[low_b], %[part], %[xb], %[low_b]\n\t"                                                                     \
    "smlad %[both_a], %[w0], %[xa], %[both_a]\n\t"                                                                     \
    "smlad %[both_b], %[w0], %[xb], %[both_b]\n\t"                                                                     \
    "ldrd %[xa], %[xb], [%[x]], #8\n\t"                                                                                \
    "sxtb16 %[part], %[w1]\n\t"                                                                                        \
    "smlad %[low_a], %[part], %[xa], %[low_a]\n\t"                                                                     \
    "smlad %[low_b], %[part], %[xb], %[low_b]\n\t"                                                                     \
    "smlad %[both_a], %[w1], %[xa], %[both_a]\n\t"                                                                     \
    "smlad %[both_b], %[w1], %[xb], %[both_b]\n\t"
    __asm__ volatile("1:\n\t" BT_FOUR_TAPS BT_FOUR_TAPS "subs %[n], %[n], #1\n\t"
                     "bne 1b"
                     : [low_a] "+&r"(low_a), [both_a] "+&r"(both_a), [low_b] "+&r"(low_b), [both_b] "+&r"(both_b),
                       [x] "+&r"(x), [w] "+&r"(w), [n] "+&r"(eights), [w0] "=&r"(w0), [w1] "=&r"(w1),
                       [part] "=&r"(part), [xa] "=&r"(xa), [xb] "=&r"(xb)
                     :
                     : "cc", "memory");
#undef BT_FOUR_TAPS
    bt_qconv2d_sums sums = { { low_a, low_b }, { (both_a - low_a) >> 8, (both_b - low_b) >> 8 } };
    return sums;
}

BT_INLINE bt_qconv2d_sums bt_qconv2d_dot(const int32_t *w, const int32_t *x, int32_t eights)
{
    bt_qconv2d_sums sums = { { 0, 0 }, { 0, 0 } };
    for (int32_t at = 0; at < eights; at += BT_QCONV2D_PART) {
        const int32_t part = eights - at < BT_QCONV2D_PART ? eights - at : BT_QCONV2D_PART;
        const bt_qconv2d_sums more = bt_qconv2d_dot_part(w + 4 * at, x + 8 * at, part);
        for (int32_t i = 0; i < 2; i++) {
            sums.first[i] += more.first[i];
            sums.second[i] += more.second[i];
        }
    }
    return sums;
}

/* Positions of y are *y_stride apart, which is p->out itself where nothing is cut. */
BT_INLINE void bt_qconv2d_twos(const bt_qconv2d *p, const int32_t *y_stride, const int8_t *x, const int32_t *weight,
                               const int32_t *bias, const int32_t *multiplier, int8_t *y, void *scratch)
{
    const int32_t eights = (p->kernel_h * p->kernel_w * p->in + 7) >> 3;
    const int32_t window = p->pool_h * p->pool_w;
    const int32_t pairs = window == 1 ? 1 : (window + 1) >> 1;
    int32_t *const expanded = (int32_t *)scratch;
    int8_t *const bytes = (int8_t *)(expanded + 8 * eights * pairs);
    const int32_t outputs = p->out_h * p->out_w;
    const int32_t step = window == 1 ? 2 : 1; /* outputs made at a time */
    for (int32_t n = 0; n < p->batch; n++) {
        for (int32_t at = 0; at < outputs; at += step) {
            for (int32_t k = 0; k < 2 * pairs; k++) {
                /* Without pool the positions are two outputs; the last may be alone. With pool a window of odd size
                 * takes its last position twice. */
                const int32_t output = window == 1 && at + k < outputs ? at + k : at;
                const int32_t place = window == 1 ? 0 : (k < window ? k : window - 1);
                const int32_t h = output / p->out_w * p->pool_h + place / p->pool_w;
                const int32_t w = output % p->out_w * p->pool_w + place % p->pool_w;
                bt_qconv2d_window(p, x, h * p->stride_h - p->pad_top, w * p->stride_w - p->pad_left,
                                  expanded + 8 * eights * (k >> 1) + (k & 1), 2, bytes);
            }
            const int32_t *filter = weight;
            for (int32_t o = 0; o < p->out; o += 2) {
                bt_qconv2d_sums sums = bt_qconv2d_dot(filter, expanded, eights);
                for (int32_t k = 1; k < pairs; k++) {
                    const bt_qconv2d_sums more = bt_qconv2d_dot(filter, expanded + 8 * eights * k, eights);
                    for (int32_t i = 0; i < 2; i++) {
                        sums.first[i] = sums.first[i] > more.first[i] ? sums.first[i] : more.first[i];
                        sums.second[i] = sums.second[i] > more.second[i] ? sums.second[i] : more.second[i];
                    }
                }
                filter += 4 * eights;
                if (window > 1) {
                    sums.first[0] = sums.first[0] > sums.first[1] ? sums.first[0] : sums.first[1];
                    sums.second[0] = sums.second[0] > sums.second[1] ? sums.second[0] : sums.second[1];
                }
                const int second = p->out % 2 == 0 || o + 1 < p->out;
                y[o] = bt_requantize(sums.first[0] + bias[o], multiplier[o], p->shift, p->zero, p->lo, p->hi);
                if (second)
                    y[o + 1] =
                        bt_requantize(sums.second[0] + bias[o + 1], multiplier[o + 1], p->shift, p->zero, p->lo, p->hi);
                if (window == 1 && at + 1 < outputs) {
                    y[*y_stride + o] =
                        bt_requantize(sums.first[1] + bias[o], multiplier[o], p->shift, p->zero, p->lo, p->hi);
                    if (second)
                        y[*y_stride + o + 1] = bt_requantize(sums.second[1] + bias[o + 1], multiplier[o + 1], p->shift,
                                                            p->zero, p->lo, p->hi);
                }
            }
            y += *y_stride * (window == 1 && at + 1 < outputs ? 2 : 1);
        }
        x += p->in_h * p->in_w * p->in;
    }
}

/* scratch: for each pair of positions of a pool window (one pair without pool) 4 bytes a tap, taps rounded up to a
 * multiple of eight; then the bytes of a window, see windows_dsp.h */
BT_KERNEL void bt_qconv2d_pairs_dsp(const bt_qconv2d *p, const int8_t *x, const int32_t *weight, const int32_t *bias,
                                    const int32_t *multiplier, int8_t *y, void *scratch)
{
    bt_qconv2d_twos(p, &p->out, x, weight, bias, multiplier, y, scratch);
}

BT_KERNEL void bt_qconv2d_channels_pairs_dsp(const bt_qconv2d_channels *p, const int8_t *x, const int32_t *weight,
                                             const int32_t *bias, const int32_t *multiplier, int8_t *y, void *scratch)
{
    bt_qconv2d_twos(&p->layer, &p->y_stride, x, weight, bias, multiplier, y, scratch);
}
