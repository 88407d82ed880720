/* Recurrent layers for cores with the DSP extension (Cortex-M4, M7, M33): four units at a time, all their gates.
 *
 * Input and hidden state are halfwords while a step lasts, so that no row of weights has to extend them again: a pair
 * of words has inputs 0 and 2, 1 and 3. Weights of two rows share a halfword as in dsp_rows.h. 58 instructions for 64
 * products, and 47 for each gate of four units, of what input and hidden state give it to its sigmoid. */
#include "curves.h"

#include "../dsp.h"

/* What rows are multiplied with: pairs of halfwords, 16 of them a turn, of which the first turn skips some fours. */
typedef struct {
    const int32_t *x;
    int32_t turns;
    int32_t skipped;
} bt_wide;

BT_INLINE bt_wide bt_wide_of(const int32_t *x, int32_t count)
{
    const int32_t fours = (count + 3) >> 2;
    const bt_wide made = { x, (fours + 3) >> 2, -fours & 3 };
    return made;
}

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
/* Four rows times the bt_wide at this place of the stack; their multipliers are loaded. */
#define BT_WIDE_ROWS(at)                                                                                               \
    "ldr r4, [sp, #" at "]\n\t"                                                                                        \
    "ldm r4, {r0, r2, r4}\n\t"                                                                                         \
    "ldmia r1!, {r3, r6, r12, lr}\n\t"                                                                                 \
    "tbb [pc, r4]\n"                                                                                                   \
    "2: .byte (3f - 2b) / 2, (4f - 2b) / 2, (5f - 2b) / 2, (6f - 2b) / 2\n"                                            \
    "3:\n\t" BT_WIDE_FOUR "4:\n\t" BT_WIDE_FOUR "5:\n\t" BT_WIDE_FOUR "6:\n\t" BT_WIDE_FOUR "subs r2, r2, #1\n\t"      \
    "bne 3b\n\t"                                                                                                       \
    "ldmia r1!, {r4, r5, r8, r9}\n\t"                                                                                  \
    "sub r6, r6, r3\n\t"                                                                                               \
    "sub lr, lr, r12\n\t"
#define BT_WIDE_SIGMOID(v)                                                                                             \
    "asr r5, " v ", #8\n\t"                                                                                            \
    "ldr r5, [r4, r5, lsl #2]\n\t"                                                                                     \
    "smlabb " v ", " v ", r5, r5\n\t"

/* to[k] = the sigmoid of what input and hidden state give to row k of four, for each gate up to `end`. Without a table:
 * what both give, and behind it what the input gives. w: see qrecurrent.h; gives where the next begin. */
BT_SHARED const int32_t *bt_wide_gates(const bt_wide both[2], const int32_t *w, int32_t *to, const int32_t *end,
                                       const int32_t *middle)
{
    register const bt_wide *r0 __asm__("r0") = both;
    register const int32_t *r1 __asm__("r1") = w;
    register const bt_wide *r2 __asm__("r2") = both + 1;
    register const int32_t *r3 __asm__("r3") = middle;
    register const int32_t *r4 __asm__("r4") = to;
    register const int32_t *r5 __asm__("r5") = end;
    __asm__ volatile("push {r0, r2, r3, r4, r5}\n"
                     "1:\n\t" BT_WIDE_ROWS("0")
                     "smmulr r3, r3, r4\n\t"
                     "smmulr r6, r6, r5\n\t"
                     "smmulr r12, r12, r8\n\t"
                     "smmulr lr, lr, r9\n\t"
                     "push {r3, r6, r12, lr}\n\t" BT_WIDE_ROWS("20")
                     "pop {r0, r2, r10, r11}\n\t"
                     "smmlar r3, r3, r4, r0\n\t"
                     "smmlar r6, r6, r5, r2\n\t"
                     "smmlar r12, r12, r8, r10\n\t"
                     "smmlar lr, lr, r9, r11\n\t"
                     "ldr r4, [sp, #8]\n\t"
                     "cbz r4, 7f\n\t"
                     "ssat r3, #16, r3\n\t"
                     "ssat r6, #16, r6\n\t"
                     "ssat r12, #16, r12\n\t"
                     "ssat lr, #16, lr\n\t" /**/
                     BT_WIDE_SIGMOID("r3") BT_WIDE_SIGMOID("r6") BT_WIDE_SIGMOID("r12") BT_WIDE_SIGMOID("lr")
                     "ldrd r4, r5, [sp, #12]\n\t"
                     "stmia r4!, {r3, r6, r12, lr}\n\t"
                     "str r4, [sp, #12]\n\t"
                     "cmp r4, r5\n\t"
                     "bne 1b\n\t"
                     "b 8f\n"
                     "7:\n\t"
                     "ldr r4, [sp, #12]\n\t"
                     "stmia r4!, {r3, r6, r12, lr}\n\t"
                     "stmia r4!, {r0, r2, r10, r11}\n"
                     "8:\n\t"
                     "add sp, sp, #20\n\t"
                     : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3), "+r"(r4), "+r"(r5)
                     :
                     : "r6", "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory");
    return r1;
}

/* `count` bytes as pairs of halfwords, shifted. Reads up to three bytes behind them. */
BT_INLINE void bt_widen(int32_t *to, const int8_t *from, int32_t count, int32_t shift)
{
    if (shift) {
        int16_t *halves = (int16_t *)to;
        for (int32_t j = 0; j < ((count + 3) & ~3); j++)
            halves[(j & ~3) + ((j & 1) << 1) + ((j >> 1) & 1)] = (int16_t)(from[j] * (1 << shift));
        return;
    }
    for (int32_t i = 0; i < count; i += 4, to += 2) {
        const int32_t four = bt_load4(from + i);
        to[0] = bt_even_bytes(four);
        to[1] = bt_odd_bytes(four);
    }
}

/* A layer over all times; only lstm has c. scratch: input and hidden state as halfwords */
BT_INLINE void bt_units(bt_kind kind, const bt_qrecurrent *p, const int8_t *x, const int32_t *weights,
                        const int32_t *sigmoid, int8_t *y, int16_t *h, int16_t *c, int32_t *scratch)
{
    const int32_t n = p->hidden, count = kind == BT_QLSTM ? 4 : kind == BT_QGRU ? 2 : 1;
    const int32_t *middle = sigmoid + 128;
    int32_t *hidden = scratch + 2 * ((p->in + 3) >> 2);
    int32_t gates[16];
    const bt_wide both[2] = { bt_wide_of(scratch, p->in), bt_wide_of(hidden, n) };
    for (int32_t b = 0; b < p->batch; b++, h += n, c += kind == BT_QLSTM ? n : 0) {
        for (int32_t i = 0; i < p->time; i++) {
            const int32_t t = bt_qrecurrent_time(p, i);
            const int32_t *w = weights;
            int8_t *now = y + b * p->y_batch + t * p->y_time;
            if (i == 0) {
                for (int32_t j = 0; j < n; j++)
                    now[j] = bt_hidden_i8(p, h[j]);
                bt_widen(hidden, now, n, p->shift_hh);
            }
            bt_widen(scratch, x + b * p->x_batch + t * p->x_time, p->in, p->shift_ih);
            for (int32_t j = 0; j < n; j += 4) {
                w = bt_wide_gates(both, w, gates, gates + 4 * count, kind == BT_QRNN ? NULL : middle);
                if (kind == BT_QGRU)
                    w = bt_wide_gates(both, w, gates + 8, gates + 16, NULL);
                for (int32_t k = 0; k < 4 && j + k < n; k++) {
                    const int32_t v0 = gates[k], v1 = gates[4 + k], v2 = gates[8 + k], v3 = gates[12 + k];
                    int32_t next;
                    if (kind == BT_QLSTM)
                        next = bt_lstm_unit(middle, v0, v1, v2, v3, c + j + k);
                    else if (kind == BT_QGRU)
                        next = bt_gru_unit(middle, v0, v1, v3, bt_sat16(v2 - v3), h[j + k]);
                    else
                        next = bt_tanh_q13(middle, bt_sat16(v0));
                    h[j + k] = (int16_t)next;
                    now[j + k] = bt_hidden_i8(p, next);
                }
            }
            bt_widen(hidden, now, n, p->shift_hh);
        }
    }
}

BT_SHARED void bt_lstm_units(const bt_qrecurrent *p, const int8_t *x, const int32_t *weights, const int32_t *sigmoid,
                             int8_t *y, int16_t *h, int16_t *c, int32_t *scratch)
{
    bt_units(BT_QLSTM, p, x, weights, sigmoid, y, h, c, scratch);
}

BT_SHARED void bt_gru_units(const bt_qrecurrent *p, const int8_t *x, const int32_t *weights, const int32_t *sigmoid,
                             int8_t *y, int16_t *h, int32_t *scratch)
{
    bt_units(BT_QGRU, p, x, weights, sigmoid, y, h, h, scratch);
}

BT_SHARED void bt_rnn_units(const bt_qrecurrent *p, const int8_t *x, const int32_t *weights, const int32_t *sigmoid,
                             int8_t *y, int16_t *h, int32_t *scratch)
{
    bt_units(BT_QRNN, p, x, weights, sigmoid, y, h, h, scratch);
}

BT_KERNEL void bt_qlstm_dsp(const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const int16_t *c0,
                            const int32_t *weights, const int32_t *sigmoid, int8_t *y, int16_t *h, int16_t *c,
                            void *scratch)
{
    bt_begin(h0, h, p->batch * p->hidden);
    bt_begin(c0, c, p->batch * p->hidden);
    bt_lstm_units(p, x, weights, sigmoid, y, h, c, (int32_t *)scratch);
}

BT_KERNEL void bt_qlstm_zero_dsp(const bt_qrecurrent *p, const int8_t *x, const int32_t *weights,
                                 const int32_t *sigmoid, int8_t *y, int16_t *h, int16_t *c, void *scratch)
{
    bt_begin(NULL, h, p->batch * p->hidden);
    bt_begin(NULL, c, p->batch * p->hidden);
    bt_lstm_units(p, x, weights, sigmoid, y, h, c, (int32_t *)scratch);
}

BT_KERNEL void bt_qgru_dsp(const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const int32_t *weights,
                           const int32_t *sigmoid, int8_t *y, int16_t *h, void *scratch)
{
    bt_begin(h0, h, p->batch * p->hidden);
    bt_gru_units(p, x, weights, sigmoid, y, h, (int32_t *)scratch);
}

BT_KERNEL void bt_qgru_zero_dsp(const bt_qrecurrent *p, const int8_t *x, const int32_t *weights,
                                const int32_t *sigmoid, int8_t *y, int16_t *h, void *scratch)
{
    bt_begin(NULL, h, p->batch * p->hidden);
    bt_gru_units(p, x, weights, sigmoid, y, h, (int32_t *)scratch);
}

BT_KERNEL void bt_qrnn_dsp(const bt_qrecurrent *p, const int8_t *x, const int16_t *h0, const int32_t *weights,
                           const int32_t *sigmoid, int8_t *y, int16_t *h, void *scratch)
{
    bt_begin(h0, h, p->batch * p->hidden);
    bt_rnn_units(p, x, weights, sigmoid, y, h, (int32_t *)scratch);
}

BT_KERNEL void bt_qrnn_zero_dsp(const bt_qrecurrent *p, const int8_t *x, const int32_t *weights,
                                const int32_t *sigmoid, int8_t *y, int16_t *h, void *scratch)
{
    bt_begin(NULL, h, p->batch * p->hidden);
    bt_rnn_units(p, x, weights, sigmoid, y, h, (int32_t *)scratch);
}
