/* y[t, n, o] = bias[o] + the sum over k and i of x[t + k - pad, n, i] * weight[o, k, i], with zeros outside of x; in
 * int8, x_zero is outside, and y is requantized. */
#ifndef BT_CONV_TBC_H
#define BT_CONV_TBC_H

#include "../int8.h"

typedef struct {
    int32_t time, batch, in;
    int32_t out_time, out;
    int32_t kernel, pad;
} bt_conv_tbc_f32;

typedef struct {
    int32_t time, batch, in;
    int32_t out_time, out;
    int32_t kernel, pad;
    int32_t shift, x_zero, zero, lo, hi;
} bt_qconv_tbc;

#ifndef BT_INLINE_KERNELS
void bt_conv_tbc_f32_ref(const bt_conv_tbc_f32 *p, const float *x, const BT_FLASH float *weight,
                         const BT_FLASH float *bias, float *y);
void bt_qconv_tbc_ref(const bt_qconv_tbc *p, const int8_t *x, const BT_FLASH int8_t *weight,
                      const BT_FLASH int32_t *bias, const BT_FLASH int32_t *multiplier, int8_t *y);
void bt_qconv_tbc_dsp(const bt_qconv_tbc *p, const int8_t *x, const BT_FLASH int8_t *weight,
                      const BT_FLASH int32_t *bias, const BT_FLASH int32_t *multiplier, int8_t *y);
#endif

#endif
