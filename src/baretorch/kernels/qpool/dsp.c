/* int8 pools for cores with the DSP extension (Cortex-M4, M7, M33): four channels at a time. */
#include "walk.h"

#include "../dsp.h"

/* The larger of each of four bytes: SSUB8 notes where a - b >= 0, and SEL takes those of a. */
BT_INLINE int32_t bt_larger_bytes(int32_t a, int32_t b)
{
    int32_t result;
    __asm__("ssub8 %0, %1, %2\n\t"
            "sel %0, %1, %2"
            : "=&r"(result)
            : "r"(a), "r"(b)
            : "cc");
    return result;
}

BT_INLINE void bt_qmax_each_dsp(const bt_qmax_pool2d *p, const bt_qwindow *w, int8_t *y)
{
    (void)p;
    int32_t c = 0;
    for (; c < (w->channels & ~3); c += 4) {
        int32_t max = (int32_t)0x80808080u;
        const int8_t *row = w->x + c;
        for (int32_t i = 0; i < w->rows; i++, row += w->row_step) {
            const int8_t *at = row;
            for (int32_t j = 0; j < w->columns; j++, at += w->channels)
                max = bt_larger_bytes(max, bt_load4(at));
        }
        __builtin_memcpy(y + c, &max, 4);
    }
    for (; c < w->channels; c++)
        bt_qmax_channel(w, c, y);
}

/* Adds bytes 0 and 2 to the halfwords of a sum; bytes 1 and 3. */
BT_INLINE void bt_add_even(int32_t *sum, int32_t word)
{
    __asm__("sxtab16 %0, %0, %1" : "+r"(*sum) : "r"(word));
}

BT_INLINE void bt_add_odd(int32_t *sum, int32_t word)
{
    __asm__("sxtab16 %0, %0, %1, ror #8" : "+r"(*sum) : "r"(word));
}

BT_INLINE void bt_qavg_each_dsp(const bt_qavg_pool2d *p, const bt_qwindow *w, int8_t *y)
{
    const int32_t start = -w->rows * w->columns * p->x_zero;
    int32_t c = 0;
    for (; c < (w->channels & ~3); c += 4) {
        int32_t even = 0, odd = 0;
        const int8_t *row = w->x + c;
        for (int32_t i = 0; i < w->rows; i++, row += w->row_step) {
            const int8_t *at = row;
            for (int32_t j = 0; j < w->columns; j++, at += w->channels) {
                const int32_t word = bt_load4(at);
                bt_add_even(&even, word);
                bt_add_odd(&odd, word);
            }
        }
        y[c] = bt_requantize(start + (int16_t)even, p->multiplier, p->shift, p->zero, -128, 127);
        y[c + 1] = bt_requantize(start + (int16_t)odd, p->multiplier, p->shift, p->zero, -128, 127);
        y[c + 2] = bt_requantize(start + (even >> 16), p->multiplier, p->shift, p->zero, -128, 127);
        y[c + 3] = bt_requantize(start + (odd >> 16), p->multiplier, p->shift, p->zero, -128, 127);
    }
    for (; c < w->channels; c++)
        bt_qavg_channel(p, w, c, y);
}

BT_QPOOL(bt_qavg_pool2d_dsp, bt_qavg_pool2d, bt_qavg_each_dsp)
BT_QPOOL(bt_qmax_pool2d_dsp, bt_qmax_pool2d, bt_qmax_each_dsp)
