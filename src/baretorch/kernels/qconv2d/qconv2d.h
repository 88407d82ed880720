/* c[n, h, w, o] = bias[o] + sum over kh, kw, i of x[n, h * stride_h - pad_top + kh * dilation_h,
 *                     w * stride_w - pad_left + kw * dilation_w, g * (in / groups) + i] * weight[o, kh, kw, i]
 * where g is the group of o, and x is x_zero outside of its bounds;
 * y[n, h, w, o] = requantize(max of c over the pool_h x pool_w window at (h * pool_h, w * pool_w)) */
#ifndef BT_QCONV2D_H
#define BT_QCONV2D_H

#include "../int8.h"

typedef struct {
    int32_t batch;
    int32_t in_h, in_w, in;
    int32_t out_h, out_w, out; /* of y: after the pool */
    int32_t kernel_h, kernel_w;
    int32_t stride_h, stride_w;
    int32_t pad_top, pad_left;
    int32_t dilation_h, dilation_w;
    int32_t groups;
    int32_t pool_h, pool_w;
    int32_t shift;
    int32_t x_zero;
    int32_t zero;
    int32_t lo;
    int32_t hi;
} bt_qconv2d;

/* Some output channels of a wider tensor: `layer` describes these alone. */
typedef struct {
    bt_qconv2d layer;
    int32_t y_stride; /* from one pixel of y to the next */
} bt_qconv2d_channels;

#ifndef BT_INLINE_KERNELS
/* x: [batch][in_h][in_w][in], weight: [out][kernel_h][kernel_w][in / groups], y: [batch][out_h][out_w][out] */
void bt_qconv2d_ref(const bt_qconv2d *p, const int8_t *x, const BT_FLASH int8_t *weight, const BT_FLASH int32_t *bias,
                    const BT_FLASH int32_t *multiplier, int8_t *y);

void bt_qconv2d_channels_ref(const bt_qconv2d_channels *p, const int8_t *x, const BT_FLASH int8_t *weight,
                             const BT_FLASH int32_t *bias, const BT_FLASH int32_t *multiplier, int8_t *y);

/* One group. weight: [out / 2][taps / 8][4] words, both counts rounded up; a tap is (kh, kw, i). Words 0 to 3 of taps t
 * hold halfwords 256 * weight[o + 1][j] + weight[o][j] for j = t and t + 2, t + 1 and t + 3, t + 4 and t + 6, t + 5 and
 * t + 7. */
void bt_qconv2d_pairs_dsp(const bt_qconv2d *p, const int8_t *x, const int32_t *weight, const int32_t *bias,
                          const int32_t *multiplier, int8_t *y, void *scratch);
void bt_qconv2d_channels_pairs_dsp(const bt_qconv2d_channels *p, const int8_t *x, const int32_t *weight,
                                   const int32_t *bias, const int32_t *multiplier, int8_t *y, void *scratch);

/* One group, no pool, no shift, an even number of outputs, every output's sum with its bias below 2^23.
 * weight: for each two outputs their words as above, with bias[o] and 256 * bias[o + 1] + bias[o] after the first two,
 * and their multipliers. Taps are rounded up to a multiple of four, and in another order: of each row (kw, i) the fours
 * first, then what is left of all rows. */
void bt_qconv2d_dsp(const bt_qconv2d *p, const int8_t *x, const int32_t *weight, int8_t *y, void *scratch);
void bt_qconv2d_channels_dsp(const bt_qconv2d_channels *p, const int8_t *x, const int32_t *weight, int8_t *y,
                             void *scratch);

/* groups == in == out, at least four channels; kernel 3x3, strides 1 or 2, up to one row and column of padding on each
 * side. channel: [in][4] words: 256 * bias + byte [2][2] of the weights; multiplier; bytes [0][0], [0][1], [1][0],
 * [1][1]; bytes [0][2], [2][0], [1][2], [2][1]. The shift is 0. */
void bt_qconv2d_depthwise3_dsp(const bt_qconv2d *p, const int8_t *x, const int32_t *channel, int8_t *y, void *scratch);
/* The same with strides 1. */
void bt_qconv2d_depthwise3_rows_dsp(const bt_qconv2d *p, const int8_t *x, const int32_t *channel, int8_t *y,
                                    void *scratch);

/* groups == in == out, at least four channels. weight: [kernel_h][kernel_w][in] */
void bt_qconv2d_depthwise_dsp(const bt_qconv2d *p, const int8_t *x, const int8_t *weight, const int32_t *bias,
                              const int32_t *multiplier, int8_t *y, void *scratch);

/* Weights of 4 bits, with 8 added: bytes [out / 2][taps], the first count rounded up, 16 * weight[o + 1] + weight[o]; a
 * tap is (kh, kw, i). */
void bt_qconv2d4_ref(const bt_qconv2d *p, const int8_t *x, const BT_FLASH uint8_t *weight, const BT_FLASH int32_t *bias,
                     const BT_FLASH int32_t *multiplier, int8_t *y);

/* The same of one group without pool. scratch: a byte a tap */
void bt_qconv2d4_windows_ref(const bt_qconv2d *p, const int8_t *x, const BT_FLASH uint8_t *weight,
                             const BT_FLASH int32_t *bias, const BT_FLASH int32_t *multiplier, int8_t *y,
                             void *scratch);
void bt_qconv2d4_windows_mve(const bt_qconv2d *p, const int8_t *x, const uint8_t *weight, const int32_t *bias,
                             const int32_t *multiplier, int8_t *y, void *scratch);

/* The same with an even number of taps; weights as those of bt_qlinear4_pairs, a tap for an input. */
void bt_qconv2d4_pairs(const bt_qconv2d *p, const int8_t *x, const int32_t *weight, const int32_t *bias,
                       const int32_t *multiplier, int8_t *y, void *scratch);

/* As bt_qconv2d_dsp, with weights of 4 bits, 8 added to each and to those that are not there: two of its words in one,
 * first + 16 * second, all after the biases. Needs 24 bytes of scratch more. */
void bt_qconv2d4_dsp(const bt_qconv2d *p, const int8_t *x, const int32_t *weight, int8_t *y, void *scratch);

/* As bt_qconv2d_depthwise_dsp; weight: [in / 4][kernel_h][kernel_w] halfwords of four channels, 8 added to each. Of the
 * last four, some may be those of the four before. */
void bt_qconv2d_depthwise4_dsp(const bt_qconv2d *p, const int8_t *x, const int16_t *weight, const int32_t *bias,
                               const int32_t *multiplier, int8_t *y, void *scratch);

/* One group. weight: [out][taps] with 128 added, taps rounded up to an even number with 128; a tap is (kh, kw, i).
 * terms: [out][2], bias and multiplier << shift. Sums of 64 taps stay below 2^20, outputs below 2^15 before the limits. */
void bt_qconv2d_triples(const bt_qconv2d *p, const int8_t *x, const uint8_t *weight, const int32_t *terms, int8_t *y,
                        void *scratch);
void bt_qconv2d_back_triples(const bt_qconv2d *p, const int8_t *x, const uint8_t *weight, const int32_t *terms,
                             int8_t *y, void *scratch);
void bt_qconv2d_channels_triples(const bt_qconv2d_channels *p, const int8_t *x, const uint8_t *weight,
                                 const int32_t *terms, int8_t *y, void *scratch); /* without pool */

/* groups == in == out, dilation_w == 1, 64 taps at most; the last window of a row reaches the image.
 * weight: [in][kernel_w][kernel_h]. terms and bounds as above. */
void bt_qconv2d_depthwise_triples(const bt_qconv2d *p, const int8_t *x, const int8_t *weight, const int32_t *terms,
                                  int8_t *y, void *scratch);

/* The same weights with 4 bits and 8 added, the first of two in the low bits of a byte; in scratch they come first, as
 * bytes, rounded up to fours. */
void bt_qconv2d_depthwise4_triples(const bt_qconv2d *p, const int8_t *x, const uint8_t *weight, const int32_t *terms,
                                   int8_t *y, void *scratch);

/* One group, no pool; outputs stay below 2^15 before the limits, sums below 2^23; out <= 255. weight: as in fours_avr.h, a
 * tap is (kh, kw, i). scratch: a window. */
void bt_qconv2d_avr(const bt_qconv2d *p, const int8_t *x, const BT_FLASH uint8_t *weight, int8_t *y, void *scratch);

/* One group, no shift; dilation_w or stride_w is 1. constants: as in int8_mve.h, a tap is (kw, kh, i). Without pool;
 * with pool; and a kernel of 1 x 1 that meets every pixel, without pool. */
void bt_qconv2d_mve(const bt_qconv2d *p, const int8_t *x, const int32_t *constants, int8_t *y, void *scratch);
void bt_qconv2d_pool_mve(const bt_qconv2d *p, const int8_t *x, const int32_t *constants, int8_t *y, void *scratch);
void bt_qconv2d_pixels_mve(const bt_qconv2d *p, const int8_t *x, const int32_t *constants, int8_t *y, void *scratch);

/* One group, no shift, dilation or pool; a kernel of 3 x 3, stride_w of 1, 4 columns of outputs at least, input channels
 * in sixteens, output channels in twos. constants: for each two channels weights as [kh][in / 16][kw][2][16], biases and
 * multipliers. */
void bt_qconv2d_threes_mve(const bt_qconv2d *p, const int8_t *x, const int32_t *constants, int8_t *y, void *scratch);

/* One group. constants: as in xcv.h, a tap is (kh, kw, i). Of narrow ones, `shift` is to the right. */
void bt_qconv2d_xcv(const bt_qconv2d *p, const int8_t *x, const int32_t *constants, int8_t *y, void *scratch);
void bt_qconv2d_narrow_xcv(const bt_qconv2d *p, const int8_t *x, const int32_t *constants, int8_t *y, void *scratch);
void bt_qconv2d_channels_xcv(const bt_qconv2d_channels *p, const int8_t *x, const int32_t *constants, int8_t *y,
                             void *scratch);
void bt_qconv2d_channels_narrow_xcv(const bt_qconv2d_channels *p, const int8_t *x, const int32_t *constants, int8_t *y,
                                    void *scratch);

/* The same for windows of one pixel that are inside, words of channels, and no pool. */
void bt_qconv2d_pixels_xcv(const bt_qconv2d *p, const int8_t *x, const int32_t *constants, int8_t *y);
void bt_qconv2d_pixels_narrow_xcv(const bt_qconv2d *p, const int8_t *x, const int32_t *constants, int8_t *y);
void bt_qconv2d_pixels_channels_xcv(const bt_qconv2d_channels *p, const int8_t *x, const int32_t *constants, int8_t *y);
void bt_qconv2d_pixels_channels_narrow_xcv(const bt_qconv2d_channels *p, const int8_t *x, const int32_t *constants,
                                           int8_t *y);

/* groups == in == out, a multiple of four; no pool, kernel_h 4 at most. weight: [in][kernel_w] words, of which byte kh is
 * weight[kh]. factor: as in xcv.h. */
void bt_qconv2d_depthwise_xcv(const bt_qconv2d *p, const int8_t *x, const int32_t *weight, const int32_t *bias,
                              const int32_t *factor, int8_t *y, void *scratch);
void bt_qconv2d_depthwise_narrow_xcv(const bt_qconv2d *p, const int8_t *x, const int32_t *weight, const int32_t *bias,
                                     const int32_t *factor, int8_t *y, void *scratch);

/* Some channels of a wider x, too. */
void bt_qconv2d_channels_depthwise_xcv(const bt_qconv2d_channels *p, const int8_t *x, const int32_t *weight,
                                       const int32_t *bias, const int32_t *factor, int8_t *y, void *scratch);
void bt_qconv2d_channels_depthwise_narrow_xcv(const bt_qconv2d_channels *p, const int8_t *x, const int32_t *weight,
                                              const int32_t *bias, const int32_t *factor, int8_t *y, void *scratch);

/* groups == in == out, at least four channels, no dilation, pool or shift, 16 taps at most. constants: for each four
 * channels, of which the last may repeat some, weights as bytes [4][kernel_w][kernel_h], biases and multipliers. */
void bt_qconv2d_depthwise_mve(const bt_qconv2d *p, const int8_t *x, const int32_t *constants, int8_t *y, void *scratch);

/* The same with weights of 4 bits and 8 added, the first of two in the low bits of a byte; terms: for each four channels
 * biases and multipliers. In scratch the constants come first. */
void bt_qconv2d_depthwise4_mve(const bt_qconv2d *p, const int8_t *x, const uint8_t *weight, const int32_t *terms,
                               int8_t *y, void *scratch);
#endif

#endif
