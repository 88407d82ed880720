/* Halves in eights: as in windows.h, [out / 8][weights][8], then [out % 8][weights], but of eight weights for one input
 * each word has those of outputs k and k + 4. */
#ifndef BT_HALF_EIGHTS_H
#define BT_HALF_EIGHTS_H

#include "windows.h"

typedef int16_t bt_halves __attribute__((may_alias)); /* where words are stored */

/* A half on cores that convert it in one instruction. */
BT_INLINE float bt_half_fpu(int16_t half)
{
    union {
        int32_t bits;
        float value;
    } is = { half };
    __asm__("vcvtb.f32.f16 %0, %0" : "+t"(is.value));
    return is.value;
}

/* y[0..rest) of one window: outputs that fill no eight. `w`: [rest][weights], from the first weight used. */
BT_SHARED void bt_half_rest(const bt_windows *s, const float *x, const bt_halves *w, const float *bias, float *y,
                            int32_t rest)
{
    for (int32_t o = 0; o < rest; o++, w += s->weights) {
        const float *at = x;
        const bt_halves *row = w;
        float sum = bias[o];
        for (int32_t r = 0; r < s->rows; r++, at += s->x_step, row += s->w_step)
            for (int32_t i = 0; i < s->inputs; i++)
                sum += *at++ * bt_half_fpu(*row++);
        y[o] = sum;
    }
}

/* The same of a depthwise convolution; `inputs` counts the pixels in a row of the window. */
BT_SHARED void bt_half_depthwise_rest(const bt_windows *s, const float *x, const bt_halves *w, const float *bias,
                                      float *y, int32_t rest)
{
    for (int32_t o = 0; o < rest; o++, w += s->weights) {
        const float *at = x + o;
        const bt_halves *row = w;
        float sum = bias[o];
        for (int32_t r = 0; r < s->rows; r++, at += s->x_step, row += s->w_step)
            for (int32_t i = 0; i < s->inputs; i++, at += s->out)
                sum += *at * bt_half_fpu(*row++);
        y[o] = sum;
    }
}

#endif
