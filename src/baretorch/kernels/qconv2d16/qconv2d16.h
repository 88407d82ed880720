/* As qconv2d, of int16 with zero points of 0: x is 0 outside of its bounds, and lo and hi are int16. */
#ifndef BT_QCONV2D16_H
#define BT_QCONV2D16_H

#include "../qconv2d/qconv2d.h"

#ifndef BT_INLINE_KERNELS
/* weight: [out][kernel_h][kernel_w][in / groups] */
void bt_qconv2d16_ref(const bt_qconv2d *p, const int16_t *x, const BT_FLASH int8_t *weight,
                      const BT_FLASH int32_t *bias, const BT_FLASH int32_t *multiplier, int16_t *y);

/* One group, no pool, no shift, an even number of outputs. weight: for each two outputs their biases, bytes [taps][2] and
 * their multipliers; the first count is rounded up to a multiple of four. A tap is (kh, kw, i). scratch: 6 bytes a tap,
 * taps rounded up likewise, and 28. */
void bt_qconv2d16_dsp(const bt_qconv2d *p, const int16_t *x, const int32_t *weight, int16_t *y, void *scratch);

/* A kernel of 1 x 1 that meets every pixel, one group, fours of inputs. weight: [out / 4][in / 4][4] words, the first
 * count rounded up; a word has the bytes of inputs i, i + 2, i + 1 and i + 3. */
void bt_qconv2d16_rows_dsp(const bt_qconv2d *p, const int16_t *x, const int32_t *weight, const int32_t *bias,
                           const int32_t *multiplier, int16_t *y);

/* One group, at least four channels. constants: for each four channels, of which the last may repeat some, biases, bytes
 * [taps / 8][4][8], the first count rounded up, and multipliers. scratch: 2 bytes a tap, rounded up likewise, of one
 * window, and of a second if there are several. */
void bt_qconv2d16_mve(const bt_qconv2d *p, const int16_t *x, const int32_t *constants, int16_t *y, void *scratch);

/* groups == in == out, at least four channels, and eight. constants: as in depthwise.h. A block is four channels, whose
 * weights come in the order 0, 2, 1, 3; eight, whose biases come in the order 0, 2, 4, 6, 1, 3, 5, 7, and so do
 * multipliers. */
void bt_qconv2d16_depthwise_dsp(const bt_qconv2d *p, const int16_t *x, const int32_t *constants, int16_t *y);
void bt_qconv2d16_depthwise_mve(const bt_qconv2d *p, const int16_t *x, const int32_t *constants, int16_t *y);
#endif

#endif
