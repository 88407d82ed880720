/* Three positions of qconv2d at a time, around a function that computes their outputs, for cores with the DSP
 * extension. */
#ifndef BT_QCONV2D_THREES_DSP_H
#define BT_QCONV2D_THREES_DSP_H

#include "windows_dsp.h"

/* Stands right behind the windows, so that the pointer that ran through them finds it. */
typedef struct {
    int8_t *y;           /* the first position's next output */
    int32_t zero;        /* of y */
    int32_t second;      /* from the first position's outputs to the second's */
    int32_t third;       /* and to the third's */
    const int8_t *end;   /* of the first position's outputs */
    int32_t eights;      /* of taps, plus 1 */
    const int32_t *taps; /* [taps / 2][3] pairs of halfwords */
    const void *frame;   /* place for r7, which compilers may use as frame pointer and then do not let go */
} bt_qconv2d_state;

/* All outputs of three positions. */
typedef void bt_qconv2d_run(bt_qconv2d_state *state, const int32_t *weight);

/* Positions of y are *y_stride apart; `dense`: that is p->out itself, nothing is cut. `more`: bytes behind the state that
 * `three` has for itself. */
BT_INLINE void bt_qconv2d_threes(bt_qconv2d_run *three, int32_t more, const bt_qconv2d *p, const int32_t *y_stride,
                                 int dense, const int8_t *x, const int32_t *weight, int8_t *y, void *scratch)
{
    const int32_t eights = (p->kernel_h * p->kernel_w * p->in + 7) >> 3;
    int32_t *const windows = (int32_t *)scratch;
    bt_qconv2d_state *const state = (bt_qconv2d_state *)(windows + 12 * eights);
    int8_t *const bytes = (int8_t *)(state + 1) + more;
    state->zero = p->zero;
    state->eights = eights + 1;
    state->taps = windows;
    for (int32_t n = 0; n < p->batch; n++) {
        int32_t top = -p->pad_top, left = -p->pad_left;
        for (int32_t outputs = p->out_h * p->out_w; outputs > 0; outputs -= 3) {
            for (int32_t k = 0; k < 3; k++) {
                bt_qconv2d_window(p, x, top, left, windows + k, 3, bytes);
                if (k + 1 < outputs) { /* else the last position stands there twice or three times */
                    left += p->stride_w;
                    if (left == p->out_w * p->stride_w - p->pad_left) {
                        left = -p->pad_left;
                        top += p->stride_h;
                    }
                }
            }
            state->y = y;
            state->end = y + p->out;
            state->second = outputs > 1 ? *y_stride : 0;
            state->third = outputs > 2 ? 2 * *y_stride : state->second;
            three(state, weight);
            const int32_t made = state->third + p->out;
            for (int32_t i = 0; (p->lo > -128 || p->hi < 127) && i < made; i++)
                if (dense || i % *y_stride < p->out)
                    y[i] = (int8_t)bt_clamp_i32(y[i], p->lo, p->hi);
            y += dense ? made : state->third + *y_stride;
        }
        x += p->in_h * p->in_w * p->in;
    }
}

#endif
