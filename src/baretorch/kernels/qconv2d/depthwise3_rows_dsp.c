/* qconv2d, depthwise 3x3 with stride 1, for cores with the DSP extension (Cortex-M4, M7, M33).
 *
 * Two rows of outputs at a time, four channels of them at a time: the four rows of inputs that they need are brought
 * together in a line buffer. Then one channel runs along the line with its weights in registers: of every column the
 * upper two inputs and the lower two are pairs of halfwords, which are multiplied into the sums of the three outputs
 * that the column touches in each row. 49 instructions for four outputs, requantized and stored.
 *
 * The output may overlap the input: outputs wait in scratch until their rows are complete, those of the upper row where
 * the row of inputs above them was kept. */
#include "../dsp.h"
#include "qconv2d.h"

/* Outputs of a line. */
#define BT_ROWS_LINE(p) ((p)->out_w <= 24 ? (p)->out_w : 16)

/* A column: channels 0 and 1 of the upper two rows and of the lower two, then channels 2 and 3 likewise. An output of
 * the upper row takes the place of its channel's first byte in the middle column's `upper`, the other that in `lower`. */
typedef struct {
    struct {
        int32_t upper, lower;
    } channels[2];
} bt_qconv2d_column;

/* Runs along a line with the weights of one channel. r0 points to columns; r1 and r2 are the upper and lower pair of one;
 * r3 and r4 the sums of the next outputs, r5 and r6 those of the outputs after them; r8-r10 the upper two weights of
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
#define BT_ALONG_LINE(weights, turn, upper, lower)                                                                     \
    {                                                                                                                  \
        register int8_t *r0 __asm__("r0") = along;                                                                     \
        register const int32_t *r1 __asm__("r1") = weights;                                                            \
        register const int8_t *r6 __asm__("r6") = end;                                                                 \
        register int32_t lr __asm__("lr") = rows->zero;                                                                \
        __asm__ volatile("ldmia r1, {r3, r8, r10, r12}\n\t"                                                            \
                         "asr r4, r3, #8\n\t"                                                                          \
                         "lsl r3, r3, #24\n\t"                                                                         \
                         "sxtb16 r9, r10, ror #8\n\t"                                                                  \
                         "sxtb16 r2, r10\n\t"                                                                          \
                         "sxtb16 r5, r12, ror #8\n\t"                                                                  \
                         "sxtb16 r10, r12\n\t"                                                                         \
                         "asr r3, r3, #8\n\t"                                                                          \
                         "pkhtb r12, r3, r10, asr #16\n\t"                                                             \
                         "pkhtb r11, r5, r9, asr #16\n\t"                                                              \
                         "lsl r5, r5, #16\n\t"                                                                         \
                         "pkhtb r5, r5, r2, asr #16\n\t"                                                               \
                         "push {r4-r7}\n\t"                                                                            \
                         "mov r7, r8\n\t"                                                                              \
                         "mov r8, r2\n\t"                                                                              \
                         "sub r3, r6, r0\n\t" /**/                                                                     \
                         BT_LOAD_COLUMN(turn) BT_LEFT BT_LOAD_COLUMN(turn) "lsls r3, r3, #27\n\t"                      \
                         "bmi 2f\n"                                                                                    \
                         "1:\n\t" BT_MIDDLE BT_LEFT BT_LOAD_COLUMN(turn) BT_RIGHT_AND_OUT(upper, lower)                \
                         "2:\n\t" BT_MIDDLE BT_LEFT BT_LOAD_COLUMN(turn) BT_RIGHT_AND_OUT(upper, lower)                \
                         "ldr r3, [sp, #8]\n\t"                                                                        \
                         "cmp r0, r3\n\t"                                                                              \
                         "bne 1b\n\t"                                                                                  \
                         "pop {r4-r7}"                                                                                 \
                         : "+&r"(r0), "+&r"(r1), "+&r"(r6), "+&r"(lr)                                                  \
                         :                                                                                             \
                         : "r2", "r3", "r4", "r5", "r8", "r9", "r10", "r11", "r12", "cc", "memory");                   \
    }

/* Two rows of outputs, which are written to `upper` and `lower`. The first of these may be from[0]. */
typedef struct {
    const int8_t *from[4]; /* rows of inputs; where one is outside of the image, another */
    int8_t *upper, *lower;
    bt_qconv2d_column *line, *begin, *end, *stop; /* the columns from `begin` to `end` are inside of the image */
    int32_t step;                                 /* bytes of a pixel */
    int32_t zero, zeros;                          /* of y; x's, four times */
    int32_t outside; /* bits of rows that are; and 2, if of row 0 the first column was written over */
    int32_t before;  /* what it was */
    int32_t stay;    /* whether outputs stay in their line */
} bt_qconv2d_rows;

/* Fills a line from byte `at` of the rows on. 22 instructions for two columns. */
BT_INLINE void bt_qconv2d_fill_columns(const bt_qconv2d_rows *rows, int32_t at)
{
    register bt_qconv2d_column *r0 __asm__("r0") = rows->begin;
    register const bt_qconv2d_column *r1 __asm__("r1") = rows->end;
    register const int8_t *const *r2 __asm__("r2") = rows->from;
    register int32_t r3 __asm__("r3") = at;
    register int32_t lr __asm__("lr") = rows->step;
#define BT_FILL_COLUMN                                                                                                 \
    "ldr r10, [r4, r3]\n\t"                                                                                            \
    "ldr r9, [r5, r3]\n\t"                                                                                             \
    "ldr r11, [r6, r3]\n\t"                                                                                            \
    "ldr r12, [r2, r3]\n\t"                                                                                            \
    "pkhbt r8, r10, r9, lsl #16\n\t"                                                                                   \
    "pkhtb r10, r9, r10, asr #16\n\t"                                                                                  \
    "pkhbt r9, r11, r12, lsl #16\n\t"                                                                                  \
    "pkhtb r11, r12, r11, asr #16\n\t"                                                                                 \
    "add r3, r3, lr\n\t"                                                                                               \
    "stmia r0!, {r8-r11}\n\t"
    __asm__ volatile("ldrd r4, r5, [r2]\n\t"
                     "ldrd r6, r2, [r2, #8]\n\t"
                     "sub r8, r1, r0\n\t"
                     "lsls r8, r8, #27\n\t"
                     "bmi 2f\n"
                     "1:\n\t" BT_FILL_COLUMN "2:\n\t" BT_FILL_COLUMN "cmp r0, r1\n\t"
                     "bne 1b"
                     : "+&r"(r0), "+&r"(r1), "+&r"(r2), "+&r"(r3), "+&r"(lr)
                     :
                     : "r4", "r5", "r6", "r8", "r9", "r10", "r11", "r12", "cc", "memory");
#undef BT_FILL_COLUMN
}

/* The outputs of a line to byte `at` of their rows. 14 instructions for two columns. */
BT_INLINE void bt_qconv2d_empty_columns(const bt_qconv2d_rows *rows, int32_t at)
{
    register const bt_qconv2d_column *r0 __asm__("r0") = rows->line + 1;
    register const bt_qconv2d_column *r1 __asm__("r1") = rows->stop - 1;
    register int8_t *r2 __asm__("r2") = rows->upper + at;
    register int8_t *r3 __asm__("r3") = rows->lower + at;
    register int32_t r12 __asm__("r12") = rows->step;
#define BT_EMPTY_COLUMN                                                                                                \
    "ldmia r0!, {r4, r5, r6, r8}\n\t"                                                                                  \
    "pkhbt r4, r4, r6, lsl #16\n\t"                                                                                    \
    "pkhbt r5, r5, r8, lsl #16\n\t"                                                                                    \
    "str r4, [r2, lr]\n\t"                                                                                             \
    "str r5, [r3, lr]\n\t"                                                                                             \
    "add lr, lr, r12\n\t"
    __asm__ volatile("mov lr, #0\n\t"
                     "sub r4, r1, r0\n\t"
                     "lsls r4, r4, #27\n\t"
                     "bmi 2f\n"
                     "1:\n\t" BT_EMPTY_COLUMN "2:\n\t" BT_EMPTY_COLUMN "cmp r0, r1\n\t"
                     "bne 1b"
                     : "+&r"(r0), "+&r"(r1), "+&r"(r2), "+&r"(r3), "+&r"(r12)
                     :
                     : "r4", "r5", "r6", "r8", "lr", "cc", "memory");
#undef BT_EMPTY_COLUMN
}

/* Runs along a line with four channels. */
BT_INLINE void bt_qconv2d_four_in_rows(const bt_qconv2d_rows *rows, const int32_t *channel)
{
    int8_t *along = (int8_t *)rows->line;
    const int8_t *end = (const int8_t *)rows->stop;
    for (int32_t pair = 0; pair < 2; pair++, along += 8, end += 8, channel += 8) {
        BT_ALONG_LINE(channel, "", "-32", "-28")
        BT_ALONG_LINE(channel + 4, ", ror #8", "-31", "-27")
    }
}

/* The columns that fill_columns did not find in the image. */
BT_INLINE void bt_qconv2d_fill_outside(const bt_qconv2d_rows *rows)
{
    bt_qconv2d_column *const begin = rows->begin, *const end = rows->end;
    const int32_t outside = rows->outside;
    const int16_t zeros = (int16_t)rows->zeros;
    for (int32_t k = 0; outside & 2 && k < 2; k++)
        __builtin_memcpy(&rows->line[0].channels[k].upper, (const int8_t *)&rows->before + 2 * k, 2);
    for (int32_t half = 0; half < 4; half++) { /* of a column's words: row 0, row 1, row 2, row 3 */
        for (bt_qconv2d_column *to = begin; outside & 13 & 1 << half && to != end; to++) {
            __builtin_memcpy((int8_t *)&to->channels[0] + 2 * half, &zeros, 2);
            __builtin_memcpy((int8_t *)&to->channels[1] + 2 * half, &zeros, 2);
        }
    }
}

/* A line of `fours` fours of channels, from byte `from` of rows of inputs to byte `to` of rows of outputs. */
BT_SHARED void bt_qconv2d_line_of_rows(const bt_qconv2d_rows *rows, const int32_t *channel, int32_t from, int32_t to,
                                       int32_t fours)
{
    do {
        bt_qconv2d_fill_columns(rows, from);
        if (rows->outside)
            bt_qconv2d_fill_outside(rows);
        bt_qconv2d_four_in_rows(rows, channel);
        if (!rows->stay)
            bt_qconv2d_empty_columns(rows, to);
        channel += 16;
        from += 4;
        to += 4;
    } while (--fours > 0);
}

/* Has a line begin with output `first`; gives how many it has. */
BT_INLINE int32_t bt_qconv2d_begin_line(const bt_qconv2d *p, int32_t first, bt_qconv2d_rows *rows)
{
    const bt_qconv2d_column outside = { { { rows->zeros, rows->zeros }, { rows->zeros, rows->zeros } } };
    const int32_t count = p->out_w - first < BT_ROWS_LINE(p) ? p->out_w - first : BT_ROWS_LINE(p);
    const int32_t left = p->in_w + p->pad_left - first; /* columns */
    rows->begin = rows->line + (first < p->pad_left ? 1 : 0);
    rows->end = rows->line + (left < count + 2 ? left : count + 2);
    rows->stop = rows->line + count + 2;
    if (first < p->pad_left)
        rows->line[0] = outside;
    if (left < count + 2)
        rows->line[count + 1] = outside;
    return count;
}

/* Two rows of outputs, of `count` channels from c on, in fours. Outputs of the first `known` channels are there already. */
BT_INLINE void bt_qconv2d_channels_of_rows(const bt_qconv2d *p, int32_t c, int32_t count, int32_t known,
                                           const int32_t *channel, bt_qconv2d_rows *rows)
{
    const int whole = BT_ROWS_LINE(p) == p->out_w; /* lines are rows */
    const int stay = known > 0 || p->lo > -128 || p->hi < 127;
    const int32_t step = whole && !stay ? count : 4;
    rows->stay = stay;
    for (const int32_t end = c + count; c < end; c += step) {
        for (int32_t first = 0; first < p->out_w; first += BT_ROWS_LINE(p)) {
            const int32_t outputs = whole ? p->out_w : bt_qconv2d_begin_line(p, first, rows);
            const int32_t from = (first < p->pad_left ? 0 : first - p->pad_left) * p->in + c;
            int32_t kept = 0; /* four channels of row 0 where this line's last outputs will be */
            if (!whole) {
                rows->outside = (rows->outside & ~2) | (first > 0 && p->pad_left > 0 ? 2 : 0);
                if (first + outputs < p->out_w)
                    kept = bt_load4(rows->from[0] + (first - p->pad_left + outputs) * p->in + c);
            }
            bt_qconv2d_line_of_rows(rows, channel + 4 * c, from, first * p->in + c, step / 4);
            if (!whole)
                rows->before = kept;
            int8_t *upper = rows->upper + first * p->in + c, *lower = rows->lower + first * p->in + c;
            for (int32_t w = 1; stay && w <= outputs; w++, upper += p->in, lower += p->in) {
                const bt_qconv2d_column *const made = rows->line + w;
                for (int32_t k = known; k < 4; k++) {
                    const int8_t *const at = (const int8_t *)&made->channels[k >> 1] + (k & 1);
                    upper[k] = (int8_t)bt_clamp_i32(at[0], p->lo, p->hi);
                    lower[k] = (int8_t)bt_clamp_i32(at[4], p->lo, p->hi);
                }
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
    bt_qconv2d_rows four;
    four.upper = upper;
    four.lower = lower;
    four.line = line;
    four.step = p->in;
    four.zero = p->zero;
    four.zeros = (int32_t)((uint32_t)(p->x_zero & 0xff) * 0x01010101u);
    if (BT_ROWS_LINE(p) == p->out_w)
        bt_qconv2d_begin_line(p, 0, &four);
    for (int32_t n = 0; n < p->batch; n++) {
        if (p->pad_top == 0)
            bt_copy_row(upper, x, row);
        for (int32_t h = 0; h < p->out_h; h += 2) {
            const int32_t top = h - p->pad_top;
            const int8_t *const below = x + (top + 2) * row;
            four.outside = (top < 0 ? 1 : 0) | (top + 2 < p->in_h ? 0 : 4) | (top + 3 < p->in_h ? 0 : 8);
            four.from[0] = top < 0 ? below - row : upper;
            four.from[1] = below - row;
            four.from[2] = top + 2 < p->in_h ? below : below - row;
            four.from[3] = top + 3 < p->in_h ? below + row : below - row;
            bt_qconv2d_channels_of_rows(p, 0, p->in & ~3, 0, channel, &four);
            if (p->in % 4 > 0) /* the last four overlap those before */
                bt_qconv2d_channels_of_rows(p, p->in - 4, 4, 4 - p->in % 4, channel, &four);
            bt_copy_row(y, upper, made);
            if (h + 1 < p->out_h) {
                bt_copy_row(upper, below, row); /* before it is written over */
                bt_copy_row(y + made, lower, made);
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
