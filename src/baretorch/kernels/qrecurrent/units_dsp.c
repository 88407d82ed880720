/* Recurrent layers for cores with the DSP extension (Cortex-M4, M7, M33): four units at a time, all their gates.
 *
 * Input and hidden state are halfwords while a step lasts, so that no row of weights has to extend them again: a pair
 * of words has inputs 0 and 2, 1 and 3. Weights of two rows share a halfword as in dsp_rows.h. 15 instructions for 16
 * products. */
#include "curves.h"

#include "../dsp.h"

/* What rows are multiplied with: pairs of halfwords; how accumulators are shifted; and what is added to four rows. */
typedef struct {
    const int32_t *x;
    int32_t fours;
    int32_t shift;
    const int32_t *plus;
} bt_wide;

/* Two rows: their halfwords give 256 times the second plus the first, the low bytes the first. */
#define BT_WIDE_TWO(w, x, first, both)                                                                                 \
    "smlad " both ", " w ", " x ", " both "\n\t"                                                                       \
    "sxtb16 " w ", " w "\n\t"                                                                                          \
    "smlad " first ", " w ", " x ", " first "\n\t"
#define BT_WIDE_FOUR                                                                                                   \
    "ldmia r0!, {r4, r5}\n\t"                                                                                          \
    "ldmia r1!, {r8, r9, r10, r11}\n\t" /**/                                                                           \
    BT_WIDE_TWO("r8", "r4", "r3", "r6") BT_WIDE_TWO("r9", "r4", "r12", "lr")                                           \
    BT_WIDE_TWO("r10", "r5", "r3", "r6") BT_WIDE_TWO("r11", "r5", "r12", "lr")
#define BT_WIDE_OUTPUTS(at, v0, v1, m0, m1)                                                                            \
    "ldrd r0, r12, [lr, #" at "]\n\t"                                                                                  \
    "smmlar r0, " v0 ", " m0 ", r0\n\t"                                                                                \
    "smmlar r12, " v1 ", " m1 ", r12\n\t"                                                                              \
    "ssat r0, #16, r0\n\t"                                                                                             \
    "ssat r12, #16, r12\n\t"                                                                                           \
    "strd r0, r12, [r2, #" at "]\n\t"

/* to[k] = what row k of four gives to its gate, and what is added, as 16 bits. w: the weights of bt_qlinear_dsp,
 * four biases, four multipliers; gives where the next begin. 33 instructions beside those of the products. */
BT_SHARED const int32_t *bt_wide_rows(const bt_wide *s, const int32_t *w, int32_t to[4])
{
    register const bt_wide *r0 __asm__("r0") = s;
    register const int32_t *r1 __asm__("r1") = w;
    register int32_t *r2 __asm__("r2") = to;
    __asm__ volatile("push {r0, r2}\n\t"
                     "ldrd r0, r2, [r0]\n\t"
                     "movs r3, #0\n\t"
                     "movs r6, #0\n\t"
                     "mov r12, r3\n\t"
                     "mov lr, r3\n\t"
                     "lsrs r4, r2, #1\n\t"
                     "bcs 2f\n"
                     "1:\n\t" BT_WIDE_FOUR "2:\n\t" BT_WIDE_FOUR "subs r2, r2, #2\n\t"
                     "bgt 1b\n\t"
                     "pop {r0, r2}\n\t"
                     "ldmia r1!, {r4, r5, r8, r9}\n\t"
                     "sub r6, r6, r3\n\t"
                     "sub lr, lr, r12\n\t"
                     "add r4, r4, r3\n\t"
                     "add r5, r5, r6, asr #8\n\t"
                     "add r8, r8, r12\n\t"
                     "add r9, r9, lr, asr #8\n\t"
                     "ldrd r0, lr, [r0, #8]\n\t"
                     "lsl r4, r4, r0\n\t"
                     "lsl r5, r5, r0\n\t"
                     "lsl r8, r8, r0\n\t"
                     "lsl r9, r9, r0\n\t"
                     "ldmia r1!, {r3, r6, r10, r11}\n\t" /**/
                     BT_WIDE_OUTPUTS("0", "r4", "r5", "r3", "r6") BT_WIDE_OUTPUTS("8", "r8", "r9", "r10", "r11")
                     : "+r"(r0), "+r"(r1), "+r"(r2)
                     :
                     : "r3", "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory");
    return r1;
}

/* `count` bytes as pairs of halfwords. Reads up to three bytes behind them. */
BT_INLINE void bt_widen(int32_t *to, const int8_t *from, int32_t count)
{
    for (int32_t i = 0; i < count; i += 4, to += 2) {
        const int32_t four = bt_load4(from + i);
        to[0] = bt_even_bytes(four);
        to[1] = bt_odd_bytes(four);
    }
}

/* The hidden state before the first step, as the rows read it. */
BT_INLINE void bt_widen_hidden(const bt_qrecurrent *p, int32_t *to, const int16_t *h)
{
    int16_t *halves = (int16_t *)to;
    for (int32_t j = 0; j < p->hidden; j++)
        halves[(j & ~3) + ((j & 1) << 1) + ((j >> 1) & 1)] = bt_hidden_i8(p, h[j]);
}

/* A layer over all times; gru has no c. scratch: input and hidden state as halfwords */
BT_INLINE void bt_units(int32_t lstm, const bt_qrecurrent *p, const int8_t *x, const int32_t *weights,
                        const int16_t *sigmoid, int8_t *y, int16_t *h, int16_t *c, int32_t *scratch)
{
    const int32_t n = p->hidden, fours = (p->in + 3) >> 2;
    const int16_t *middle = sigmoid + 128;
    int32_t *hidden = scratch + 2 * fours;
    int32_t gates[4][4], half[4];
    const int32_t none[4] = { 0, 0, 0, 0 };
    const bt_wide from_x = { scratch, fours, p->shift_ih, none };
    const bt_wide from_h = { hidden, (n + 3) >> 2, p->shift_hh, half };
    const bt_wide from_h_alone = { hidden, (n + 3) >> 2, p->shift_hh, none };
    for (int32_t b = 0; b < p->batch; b++, h += n, c += lstm ? n : 0) {
        bt_widen_hidden(p, hidden, h);
        for (int32_t i = 0; i < p->time; i++) {
            const int32_t t = bt_qrecurrent_time(p, i);
            const int32_t *w = weights;
            int8_t *now = y + b * p->y_batch + t * p->y_time;
            bt_widen(scratch, x + b * p->x_batch + t * p->x_time, p->in);
            for (int32_t j = 0; j < n; j += 4) {
                for (int32_t g = 0; g < (lstm ? 4 : 2); g++) {
                    w = bt_wide_rows(&from_x, w, half);
                    w = bt_wide_rows(&from_h, w, gates[g]);
                }
                if (!lstm) {
                    w = bt_wide_rows(&from_x, w, gates[2]);
                    w = bt_wide_rows(&from_h_alone, w, gates[3]);
                }
                for (int32_t k = 0; k < 4 && j + k < n; k++) {
                    const int32_t v0 = gates[0][k], v1 = gates[1][k], v2 = gates[2][k], v3 = gates[3][k];
                    const int32_t next = lstm ? bt_lstm_unit(middle, v0, v1, v2, v3, c + j + k)
                                              : bt_gru_unit(middle, v0, v1, v2, v3, h[j + k]);
                    h[j + k] = (int16_t)next;
                    now[j + k] = bt_hidden_i8(p, next);
                }
            }
            bt_widen(hidden, now, n);
        }
    }
}

BT_SHARED void bt_lstm_units(const bt_qrecurrent *p, const int8_t *x, const int32_t *weights, const int16_t *sigmoid,
                             int8_t *y, int16_t *h, int16_t *c, int32_t *scratch)
{
    bt_units(1, p, x, weights, sigmoid, y, h, c, scratch);
}

BT_SHARED void bt_gru_units(const bt_qrecurrent *p, const int8_t *x, const int32_t *weights, const int16_t *sigmoid,
                            int8_t *y, int16_t *h, int32_t *scratch)
{
    bt_units(0, p, x, weights, sigmoid, y, h, h, scratch);
}

BT_KERNEL void bt_qlstm_dsp(const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const int16_t *c0,
                            const int32_t *weights, const int16_t *sigmoid, int8_t *y, int16_t *h, int16_t *c,
                            void *scratch)
{
    bt_begin(h0, h, p->batch * p->hidden);
    bt_begin(c0, c, p->batch * p->hidden);
    bt_lstm_units(p, x, weights, sigmoid, y, h, c, (int32_t *)scratch);
}

BT_KERNEL void bt_qlstm_zero_dsp(const bt_qrecurrent *p, const int8_t *x, const int32_t *weights,
                                 const int16_t *sigmoid, int8_t *y, int16_t *h, int16_t *c, void *scratch)
{
    bt_begin(NULL, h, p->batch * p->hidden);
    bt_begin(NULL, c, p->batch * p->hidden);
    bt_lstm_units(p, x, weights, sigmoid, y, h, c, (int32_t *)scratch);
}

BT_KERNEL void bt_qgru_dsp(const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const int32_t *weights,
                           const int16_t *sigmoid, int8_t *y, int16_t *h, void *scratch)
{
    bt_begin(h0, h, p->batch * p->hidden);
    bt_gru_units(p, x, weights, sigmoid, y, h, (int32_t *)scratch);
}

BT_KERNEL void bt_qgru_zero_dsp(const bt_qrecurrent *p, const int8_t *x, const int32_t *weights,
                                const int16_t *sigmoid, int8_t *y, int16_t *h, void *scratch)
{
    bt_begin(NULL, h, p->batch * p->hidden);
    bt_gru_units(p, x, weights, sigmoid, y, h, (int32_t *)scratch);
}
