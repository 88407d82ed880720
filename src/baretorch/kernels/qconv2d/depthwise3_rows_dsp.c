/* qconv2d, depthwise 3x3 with stride 1, for cores with the DSP extension (Cortex-M4, M7, M33).
 *
 * Two rows of outputs at a time, four channels of them at a time: the four rows of inputs that they need are brought
 * together in a line buffer. Then one channel runs along the line with its weights in registers: of every column the
 * upper two inputs and the lower two are pairs of halfwords, which are multiplied into the sums of the three outputs
 * that the column touches in each row. 49 instructions for four outputs, requantized and stored.
 *
 * The output may lie over the input: outputs wait in scratch until their rows are complete, those of the upper row where
 * the row of inputs above them was kept. */
#include "../dsp.h"
#include "qconv2d.h"

/* Outputs of a line. */
#define BT_ROWS_LINE(p) ((p)->out_w <= 24 ? (p)->out_w : 16)

/* Of a column, channels 0 and 1 of the upper two rows and of the lower two, then channels 2 and 3 likewise. An output of
 * the upper row takes the place of its channel's first byte in the middle column's `upper`, the other that in `lower`. */
typedef struct {
    struct {
        int32_t upper, lower;
    } channels[2];
} bt_qconv2d_column;

/* Runs along a line with the weights of one channel. r0 points to columns; r1 and r2 are the upper and lower pair of one;
 * r3 and r4 the sums of the next outputs, r5 and r6 those of the outputs behind them; r8-r10 the upper two weights of
 * each column, r11 and r12 the lower two of the middle and right one, r7 the multiplier, lr y's zero point. The stack
 * has the bias, the lower two weights of the left column, and the line's end. */
#define BT_LOAD_COLUMN(turn)                                                                                           \
    "ldrd r1, r2, [r0], #16\n\t"                                                                                       \
    "sxtb16 r1, r1" turn "\n\t"                                                                                        \
    "sxtb16 r2, r2" turn "\n\t"
#define BT_LEFT                                                                                                        \
    "ldr r6, [sp]\n\t"                                                                                                 \
    "smlad r5, r1, r8, r6\n\t"                                                                                         \
    "smlatb r6, r1, r8, r6\n\t"                                                                                        \
    "ldr r1, [sp, #4]\n\t"                                                                                             \
    "smlabt r5, r2, r1, r5\n\t"                                                                                        \
    "smlad r6, r2, r1, r6\n\t"
#define BT_MIDDLE                                                                                                      \
    "smlad r3, r1, r9, r5\n\t"                                                                                         \
    "smlabt r3, r2, r11, r3\n\t"                                                                                       \
    "smlatb r4, r1, r9, r6\n\t"                                                                                        \
    "smlad r4, r2, r11, r4\n\t"
#define BT_RIGHT_AND_OUT(upper, lower)                                                                                 \
    "smlad r3, r1, r10, r3\n\t"                                                                                        \
    "smlabt r3, r2, r12, r3\n\t"                                                                                       \
    "smlatb r4, r1, r10, r4\n\t"                                                                                       \
    "smlad r4, r2, r12, r4\n\t"                                                                                        \
    "smmlar r3, r3, r7, lr\n\t"                                                                                        \
    "smmlar r4, r4, r7, lr\n\t"                                                                                        \
    "ssat r3, #8, r3\n\t"                                                                                              \
    "ssat r4, #8, r4\n\t"                                                                                              \
    "strb r3, [r0, #" upper "]\n\t"                                                                                    \
    "strb r4, [r0, #" lower "]\n\t"
#define BT_ALONG_LINE(weights, turn, upper, lower)                                                                              \
    {                                                                                                                  \
        register int8_t *r0 __asm__("r0") = along;                                                                     \
        register const int32_t *r1 __asm__("r1") = weights;                                                            \
        register const int8_t *r2 __asm__("r2") = end;                                                                  \
        register int32_t r3 __asm__("r3") = zero;                                                                      \
        __asm__ volatile("push {r2, r7}\n\t"                                                                           \
                         "sub sp, #8\n\t"                                                                              \
                         "mov lr, r3\n\t"                                                                              \
                         "ldmia r1, {r3, r7, r8, r10}\n\t"                                                             \
                         "asr r4, r3, #8\n\t"                                                                          \
                         "lsl r3, r3, #24\n\t"                                                                         \
                         "asr r3, r3, #8\n\t"                                                                          \
                         "sxtb16 r9, r8, ror #8\n\t"                                                                   \
                         "sxtb16 r8, r8\n\t"                                                                           \
                         "sxtb16 r5, r10, ror #8\n\t"                                                                  \
                         "sxtb16 r10, r10\n\t"                                                                         \
                         "pkhtb r12, r3, r10, asr #16\n\t"                                                             \
                         "pkhtb r11, r5, r9, asr #16\n\t"                                                              \
                         "lsl r5, r5, #16\n\t"                                                                         \
                         "pkhtb r5, r5, r8, asr #16\n\t"                                                               \
                         "strd r4, r5, [sp]\n\t" /**/                                                                  \
                         BT_LOAD_COLUMN(turn) BT_LEFT BT_LOAD_COLUMN(turn) "ldr r3, [sp, #8]\n\t"                      \
                         "sub r3, r3, r0\n\t"                                                                         \
                         "lsls r3, r3, #27\n\t"                                                                        \
                         "bmi 2f\n"                                                                                    \
                         "1:\n\t" BT_MIDDLE BT_LEFT BT_LOAD_COLUMN(turn) BT_RIGHT_AND_OUT(upper, lower)                \
                         "2:\n\t" BT_MIDDLE BT_LEFT BT_LOAD_COLUMN(turn) BT_RIGHT_AND_OUT(upper, lower)                \
                         "ldr r3, [sp, #8]\n\t"                                                                        \
                         "cmp r0, r3\n\t"                                                                              \
                         "bne 1b\n\t"                                                                                  \
                         "add sp, #8\n\t"                                                                              \
                         "pop {r2, r7}"                                                                                \
                         : "+r"(r0), "+r"(r1), "+r"(r2), "+r"(r3)                                                      \
                         :                                                                                             \
                         : "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "lr", "cc", "memory");                   \
    }

/* `count` outputs of each of four channels in two rows. */
BT_SHARED void bt_qconv2d_four_in_rows(const int32_t *channel, bt_qconv2d_column *line, int32_t count, int32_t zero)
{
    int8_t *along = (int8_t *)line;
    const int8_t *end = along + 16 * (count + 2);
    for (int32_t pair = 0; pair < 2; pair++, along += 8, end += 8, channel += 8) {
        BT_ALONG_LINE(channel, "", "-32", "-28")
        BT_ALONG_LINE(channel + 4, ", ror #8", "-31", "-27")
    }
}

/* Two rows of outputs, of four channels of inputs in four rows. Rows outside of the image are NULL, which the second is
 * not. Outputs are written to `upper` and `lower`, the first of which may be rows[0]; those of the first `known` channels
 * are there already. */
BT_INLINE void bt_qconv2d_four_of_rows(const bt_qconv2d *p, const int8_t *const rows[4], int32_t c, int32_t known,
                                       const int32_t *channel, int8_t *upper, int8_t *lower, bt_qconv2d_column *line)
{
    const int32_t zeros = (int32_t)((uint32_t)(p->x_zero & 0xff) * 0x01010101u);
    const bt_qconv2d_column outside = { { { zeros, zeros }, { zeros, zeros } } };
    const int8_t *const from[4] = { rows[0] ? rows[0] : rows[1], rows[1], rows[2] ? rows[2] : rows[1],
                                    rows[3] ? rows[3] : rows[1] };
    int32_t before = 0; /* four channels of rows[0] where the last line's last outputs are now */
    for (int32_t first = 0; first < p->out_w; first += BT_ROWS_LINE(p)) {
        const int32_t count = p->out_w - first < BT_ROWS_LINE(p) ? p->out_w - first : BT_ROWS_LINE(p);
        const int32_t start = first - p->pad_left;
        const int32_t end = p->in_w - start < count + 2 ? p->in_w - start : count + 2;
        const int32_t begin = start < 0 ? 1 : 0;
        if (begin > 0)
            line[0] = outside;
        if (end < count + 2)
            line[count + 1] = outside;
        BT_UNROLL_4
        for (int32_t w = begin, at = (start + begin) * p->in + c; w < end; w++, at += p->in) {
            const int32_t a = bt_load4(from[0] + at), b = bt_load4(from[1] + at);
            const int32_t d = bt_load4(from[2] + at), e = bt_load4(from[3] + at);
            line[w].channels[0].upper = bt_low_pair(a, b);
            line[w].channels[0].lower = bt_low_pair(d, e);
            line[w].channels[1].upper = bt_high_pair(a, b);
            line[w].channels[1].lower = bt_high_pair(d, e);
        }
        if (first > 0 && p->pad_left > 0) {
            __builtin_memcpy(&line[0].channels[0].upper, (int8_t *)&before, 2);
            __builtin_memcpy(&line[0].channels[1].upper, (int8_t *)&before + 2, 2);
        }
        if (first + count < p->out_w)
            before = bt_load4(from[0] + (start + count) * p->in + c);
        for (int32_t w = begin; !rows[0] && w < end; w++)
            for (int32_t k = 0; k < 2; k++)
                __builtin_memcpy(&line[w].channels[k].upper, &zeros, 2);
        for (int32_t w = begin; !rows[2] && w < end; w++)
            for (int32_t k = 0; k < 2; k++)
                __builtin_memcpy(&line[w].channels[k].lower, &zeros, 2);
        for (int32_t w = begin; !rows[3] && w < end; w++)
            for (int32_t k = 0; k < 2; k++)
                __builtin_memcpy((int8_t *)&line[w].channels[k].lower + 2, &zeros, 2);
        bt_qconv2d_four_in_rows(channel + 4 * c, line, count, p->zero);
        int32_t at = first * p->in + c;
        BT_UNROLL_4
        for (int32_t w = 1; w <= count; w++, at += p->in) {
            int32_t made[2] = { bt_low_pair(line[w].channels[0].upper, line[w].channels[1].upper),
                                bt_low_pair(line[w].channels[0].lower, line[w].channels[1].lower) };
            for (int32_t k = 0; (p->lo > -128 || p->hi < 127) && k < 8; k++)
                ((int8_t *)made)[k] = (int8_t)bt_clamp_i32(((int8_t *)made)[k], p->lo, p->hi);
            if (known == 0) {
                __builtin_memcpy(upper + at, &made[0], 4);
                __builtin_memcpy(lower + at, &made[1], 4);
            }
            for (int32_t k = known; known > 0 && k < 4; k++) {
                upper[at + k] = ((int8_t *)made)[k];
                lower[at + k] = ((int8_t *)made)[4 + k];
            }
        }
    }
}

/* scratch: 16 bytes for each column of a line, a row of the input and a row of the output */
BT_KERNEL void bt_qconv2d_depthwise3_rows_dsp(const bt_qconv2d *p, const int8_t *x, const int32_t *channel, int8_t *y,
                                              void *scratch)
{
    const int32_t row = p->in_w * p->in, made = p->out_w * p->in;
    bt_qconv2d_column *const line = (bt_qconv2d_column *)scratch;
    int8_t *const upper = (int8_t *)(line + BT_ROWS_LINE(p) + 2);
    int8_t *const lower = upper + row;
    for (int32_t n = 0; n < p->batch; n++) {
        if (p->pad_top == 0)
            bt_copy_bytes(upper, x, row);
        for (int32_t h = 0; h < p->out_h; h += 2) {
            const int32_t top = h - p->pad_top;
            const int8_t *const below = x + (top + 2) * row;
            const int8_t *const rows[4] = { top < 0 ? NULL : upper, below - row, top + 2 < p->in_h ? below : NULL,
                                            top + 3 < p->in_h ? below + row : NULL };
            for (int32_t c = 0; c + 4 <= p->in; c += 4)
                bt_qconv2d_four_of_rows(p, rows, c, 0, channel, upper, lower, line);
            if (p->in % 4 > 0) /* the last four overlap those before */
                bt_qconv2d_four_of_rows(p, rows, p->in - 4, 4 - p->in % 4, channel, upper, lower, line);
            bt_copy_bytes(y, upper, made);
            if (h + 1 < p->out_h) {
                bt_copy_bytes(upper, below, row); /* before it is written over */
                bt_copy_bytes(y + made, lower, made);
            }
            y += 2 * made;
        }
        y -= p->out_h % 2 * made;
        x += p->in_h * row;
    }
}

#undef BT_ALONG_LINE
#undef BT_RIGHT_AND_OUT
#undef BT_MIDDLE
#undef BT_LEFT
#undef BT_LOAD_COLUMN
