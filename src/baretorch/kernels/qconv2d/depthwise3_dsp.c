/* qconv2d, depthwise 3x3, for cores with the DSP extension (Cortex-M4, M7, M33).
 *
 * A row of outputs at a time, four channels of it at a time: the three rows of inputs that they need are brought
 * together in a line buffer, with the zero points around them. Then one channel runs along the line with its weights in
 * registers: of every column the upper two inputs are one halfword pair, and the column is multiplied into the sums of
 * the three outputs that it touches. 15 instructions for 9 products, requantized and stored.
 * With stride 2 columns come in twos, of which the lower inputs are a pair, too: 13 instructions for 9 products.
 *
 * The output may overlap the input: with stride 1 the rows that are needed again are kept in scratch. */
#include "../dsp.h"
#include "qconv2d.h"

#define BT_LINE 24 /* outputs of a line, with stride 1 */

/* Four channels of a column. An output takes the place of its middle column's `below`. */
typedef struct {
    int32_t below, above, middle;
} bt_column;

/* Loads a column of one channel: %[pair] = above and middle, %[one] = below. */
#define BT_LOAD_COLUMN                                                                                                 \
    "ldrsb %[pair], [%[at], #4]\n\t"                                                                                   \
    "ldrsb %[one], [%[at], #8]\n\t"                                                                                    \
    "pkhbt %[pair], %[pair], %[one], lsl #16\n\t"                                                                      \
    "ldrsb %[one], [%[at]], #12\n\t"
/* The taps of a left, middle or right column of an output. */
#define BT_LEFT(to)                                                                                                    \
    "smlad %[" to "], %[pair], %[left], %[bias]\n\t"                                                                   \
    "smlabb %[" to "], %[one], %[lower], %[" to "]\n\t"
#define BT_MIDDLE(to, from)                                                                                            \
    "smlad %[" to "], %[pair], %[middle], %[" from "]\n\t"                                                             \
    "smlabt %[" to "], %[one], %[lower], %[" to "]\n\t"
#define BT_RIGHT_AND_OUT                                                                                               \
    "smlad %[sum], %[pair], %[right], %[sum]\n\t"                                                                      \
    "smlabb %[sum], %[one], %[last], %[sum]\n\t"                                                                       \
    "smmlar %[sum], %[sum], %[multiplier], %[zero]\n\t"                                                                \
    "ssat %[sum], #8, %[sum]\n\t"                                                                                      \
    "strb %[sum], [%[at], #-24]\n\t"
/* Runs along a line. The count of outputs shares a register with the last weight. */
#define BT_ALONG_LINE(begin, each)                                                                                     \
    __asm__ volatile(begin "1:\n\t" each "subs %[last], %[last], #0x10000\n\t"                                        \
                           "bpl 1b"                                                                                    \
                     : [at] "+&r"(at), [last] "+&r"(last), [pair] "=&r"(pair), [one] "=&r"(one), [sum] "=&r"(sum),     \
                       [next] "=&r"(next)                                                                              \
                     : [left] "r"(bt_even_bytes(channel[2])), [middle] "r"(bt_odd_bytes(channel[2])),                  \
                       [right] "r"(bt_even_bytes(channel[3])), [lower] "r"(bt_odd_bytes(channel[3])),                  \
                       [bias] "r"(channel[0] >> 8), [multiplier] "r"(channel[1]), [zero] "r"(zero)                     \
                     : "cc", "memory")

/* Two channels of two columns: above and middle of the first and of the second, below of both. An output takes the place
 * of its first byte. */
typedef struct {
    int32_t first, second, below;
} bt_qconv2d_two;

/* Loads two columns of one channel to r1-r3. */
#define BT_LOAD_TWO(turn)                                                                                              \
    "ldmia %[at]!, {r1, r2, r3}\n\t"                                                                                   \
    "sxtb16 r1, r1" turn "\n\t"                                                                                        \
    "sxtb16 r3, r3" turn "\n\t"                                                                                        \
    "sxtb16 r2, r2" turn "\n\t"
/* An output of these and the next. */
#define BT_OUT_OF_TWOS(turn, out)                                                                                      \
    "smlad %[sum], r1, %[left], %[bias]\n\t"                                                                           \
    "smlad %[sum], r2, %[middle], %[sum]\n\t"                                                                          \
    "smlad %[sum], r3, %[lower], %[sum]\n\t" /**/                                                                      \
    BT_LOAD_TWO(turn) "smlad %[sum], r1, %[right], %[sum]\n\t"                                                         \
                      "smlabb %[sum], r3, %[last], %[sum]\n\t"                                                         \
                      "smmlar %[sum], %[sum], %[multiplier], %[zero]\n\t"                                              \
                      "ssat %[sum], #8, %[sum]\n\t"                                                                    \
                      "strb %[sum], [%[at], #" out "]\n\t"
/* Two outputs per iteration; the first of an odd number is alone. */
#define BT_ALONG_TWOS(channel, turn, out)                                                                              \
    {                                                                                                                  \
        int8_t *at = (int8_t *)line;                                                                                   \
        int32_t last = ((count - 1) << 16) | (uint16_t)(int8_t)(channel)[0], sum;                                      \
        __asm__ volatile(BT_LOAD_TWO(turn) "lsls %[sum], %[last], #15\n\t"                                             \
                                           "bpl 2f\n"                                                                  \
                                           "1:\n\t" BT_OUT_OF_TWOS(turn, out) "2:\n\t" BT_OUT_OF_TWOS(turn, out)      \
                                           "subs %[last], %[last], #0x20000\n\t"                                       \
                                           "bpl 1b"                                                                    \
                         : [at] "+&r"(at), [last] "+&r"(last), [sum] "=&r"(sum)                                        \
                         : [left] "r"(bt_even_bytes((channel)[2])), [middle] "r"(bt_odd_bytes((channel)[2])),          \
                           [right] "r"(bt_even_bytes((channel)[3])), [lower] "r"(bt_odd_bytes((channel)[3])),          \
                           [bias] "r"((channel)[0] >> 8), [multiplier] "r"((channel)[1]), [zero] "r"(zero)             \
                         : "r1", "r2", "r3", "cc", "memory");                                                          \
    }

/* `count` outputs of each of four channels with stride 2. The second two channels have a line of their own after that of
 * the first. */
BT_SHARED void bt_qconv2d_four_by_twos(const int32_t *channel, bt_qconv2d_two *line, int32_t count, int32_t zero)
{
    for (int32_t pair = 0; pair < 2; pair++, line += count + 1, channel += 8) {
        BT_ALONG_TWOS(channel, "", "-24")
        BT_ALONG_TWOS(channel + 4, ", ror #8", "-23")
    }
}

/* One column of four channels, of twos in two lines. */
BT_INLINE void bt_qconv2d_put_column(bt_qconv2d_two *two, bt_qconv2d_two *other, int32_t second, int32_t above,
                                     int32_t middle, int32_t below)
{
    *(second ? &two->second : &two->first) = bt_low_pair(above, middle);
    *(second ? &other->second : &other->first) = bt_high_pair(above, middle);
    __builtin_memcpy((int8_t *)&two->below + 2 * second, (int8_t *)&below, 2);
    __builtin_memcpy((int8_t *)&other->below + 2 * second, (int8_t *)&below + 2, 2);
}

/* As bt_qconv2d_fill_line below, for `count` outputs with stride 2. */
BT_INLINE void bt_qconv2d_fill_twos(const bt_qconv2d *p, const int8_t *above, const int8_t *middle, const int8_t *below,
                                    int32_t start, bt_qconv2d_two *line, int32_t count)
{
    const int32_t zeros = (int32_t)((uint32_t)(p->x_zero & 0xff) * 0x01010101u);
    const int32_t whole = (p->in_w - start) >> 1; /* twos before that are whole, but the first if it begins outside */
    const int32_t end = whole < count + 1 ? whole : count + 1;
    const int32_t begin = start < 0 ? 1 : 0;
    const int8_t *a = above ? above : middle, *m = middle, *b = below ? below : middle;
    bt_qconv2d_two *const other = line + count + 1;
    if (begin > 0) {
        bt_qconv2d_put_column(line, other, 0, zeros, zeros, zeros);
        bt_qconv2d_put_column(line, other, 1, bt_load4(a), bt_load4(m), bt_load4(b));
    }
    for (int32_t w = begin, at = (start + 2 * begin) * p->in; w < end; w++, at += 2 * p->in) {
        const int32_t a0 = bt_load4(a + at), a1 = bt_load4(a + at + p->in);
        const int32_t m0 = bt_load4(m + at), m1 = bt_load4(m + at + p->in);
        const int32_t b0 = bt_load4(b + at), b1 = bt_load4(b + at + p->in);
        line[w].first = bt_low_pair(a0, m0);
        line[w].second = bt_low_pair(a1, m1);
        line[w].below = bt_low_pair(b0, b1);
        other[w].first = bt_high_pair(a0, m0);
        other[w].second = bt_high_pair(a1, m1);
        other[w].below = bt_high_pair(b0, b1);
    }
    if (end <= count) { /* of the last two only the first is needed */
        const int32_t at = (start + 2 * count) * p->in;
        if (start + 2 * count < p->in_w)
            bt_qconv2d_put_column(line + count, other + count, 0, bt_load4(a + at), bt_load4(m + at), bt_load4(b + at));
        else
            bt_qconv2d_put_column(line + count, other + count, 0, zeros, zeros, zeros);
    }
    for (int32_t w = 0; !above && w < 2 * (count + 1); w++) {
        __builtin_memcpy(&line[w].first, &zeros, 2);
        __builtin_memcpy(&line[w].second, &zeros, 2);
    }
    for (int32_t w = 0; !below && w < 2 * (count + 1); w++)
        line[w].below = zeros;
}

/* `count` outputs of each of four channels, whose columns begin at `line`. */
BT_SHARED void bt_qconv2d_four_channels(const int32_t *channel, bt_column *line, int32_t count, int32_t zero)
{
    for (int32_t c = 0; c < 4; c++, channel += 4) {
        int8_t *at = (int8_t *)line + c;
        int32_t last = ((count - 1) << 16) | (uint16_t)(int8_t)channel[0];
        int32_t pair, one, sum, next;
        BT_ALONG_LINE(BT_LOAD_COLUMN BT_LEFT("next") BT_LOAD_COLUMN BT_MIDDLE("sum", "next") BT_LEFT("next"),
                      BT_LOAD_COLUMN BT_RIGHT_AND_OUT BT_MIDDLE("sum", "next") BT_LEFT("next"));
    }
}

/* Brings three rows of four channels together, from column `start` of the image on, which may be the one before the
 * first. A row outside of the image is NULL. */
BT_INLINE void bt_qconv2d_fill_line(const bt_qconv2d *p, const int8_t *above, const int8_t *middle, const int8_t *below,
                                    int32_t start, bt_column *line, int32_t columns)
{
    const int32_t zeros = (int32_t)((uint32_t)(p->x_zero & 0xff) * 0x01010101u);
    const bt_column outside = { zeros, zeros, zeros };
    const int32_t first = start < 0 ? 1 : 0;
    const int32_t end = p->in_w - start < columns ? p->in_w - start : columns;
    const int32_t at = start * p->in;
    const int8_t *a = (above ? above : middle) + at, *m = middle + at, *b = (below ? below : middle) + at;
    if (first > 0)
        line[0] = outside;
    if (end < columns)
        line[columns - 1] = outside;
    BT_UNROLL_4
    for (int32_t w = first; w < end; w++) {
        line[w].below = bt_load4(b + w * p->in);
        line[w].above = bt_load4(a + w * p->in);
        line[w].middle = bt_load4(m + w * p->in);
    }
    for (int32_t w = first; !above && w < end; w++)
        line[w].above = zeros;
    for (int32_t w = first; !below && w < end; w++)
        line[w].below = zeros;
}

/* A row of outputs from three rows of inputs. */
BT_INLINE void bt_qconv2d_depthwise3_row(const bt_qconv2d *p, const int8_t *above, const int8_t *middle,
                                         const int8_t *below, const int32_t *channel, int8_t *y, bt_column *line)
{
    const int32_t most = BT_LINE / p->stride_w;
    for (int32_t block = 0; block < p->in; block += 4) {
        const int32_t c = block + 4 <= p->in ? block : p->in - 4; /* the last four may overlap those before */
        for (int32_t first = 0; first < p->out_w; first += most) {
            const int32_t count = p->out_w - first < most ? p->out_w - first : most;
            int8_t *out = y + first * p->in + c;
            if (p->stride_w == 2) {
                bt_qconv2d_two *const twos = (bt_qconv2d_two *)line;
                bt_qconv2d_fill_twos(p, above ? above + c : NULL, middle + c, below ? below + c : NULL,
                                     2 * first - p->pad_left, twos, count);
                bt_qconv2d_four_by_twos(channel + 4 * c, twos, count, p->zero);
                for (int32_t w = 0; w < count; w++, out += p->in) {
                    const int32_t made = bt_low_pair(twos[w].first, twos[count + 1 + w].first);
                    __builtin_memcpy(out, &made, 4);
                    for (int32_t k = 0; (p->lo > -128 || p->hi < 127) && k < 4; k++)
                        out[k] = (int8_t)bt_clamp_i32(out[k], p->lo, p->hi);
                }
                continue;
            }
            bt_qconv2d_fill_line(p, above ? above + c : NULL, middle + c, below ? below + c : NULL,
                                 first - p->pad_left, line, count + 2);
            bt_qconv2d_four_channels(channel + 4 * c, line, count, p->zero);
            BT_UNROLL_4
            for (int32_t w = 0; w < count; w++, out += p->in) {
                __builtin_memcpy(out, &line[w + 1].below, 4);
                for (int32_t k = 0; (p->lo > -128 || p->hi < 127) && k < 4; k++)
                    out[k] = (int8_t)bt_clamp_i32(out[k], p->lo, p->hi);
            }
        }
    }
}

/* scratch: 12 bytes for each column of a line, of which there is an even number with stride_w 2, and with stride_h 1 two
 * rows of the input */
BT_KERNEL void bt_qconv2d_depthwise3_dsp(const bt_qconv2d *p, const int8_t *x, const int32_t *channel, int8_t *y,
                                         void *scratch)
{
    const int32_t most = BT_LINE / p->stride_w;
    const int32_t outputs = p->out_w < most ? p->out_w : most;
    const int32_t columns = p->stride_w == 1 ? outputs + 2 : 2 * outputs + 2;
    const int32_t row = p->in_w * p->in;
    bt_column *const line = (bt_column *)scratch;
    for (int32_t n = 0; n < p->batch; n++) {
        int8_t *above = (int8_t *)(line + columns), *middle = above + row;
        if (p->stride_h == 1) {
            if (p->pad_top == 0)
                bt_copy_bytes(above, x, row);
            bt_copy_bytes(middle, x + (1 - p->pad_top) * row, row);
        }
        for (int32_t h = 0; h < p->out_h; h++) {
            const int32_t top = h * p->stride_h - p->pad_top;
            const int8_t *const rows = x + top * row;
            const int8_t *const below = top + 2 < p->in_h ? rows + 2 * row : NULL;
            if (p->stride_h != 1) {
                bt_qconv2d_depthwise3_row(p, top < 0 ? NULL : rows, rows + row, below, channel, y, line);
            } else {
                bt_qconv2d_depthwise3_row(p, top < 0 ? NULL : above, middle, below, channel, y, line);
                int8_t *const kept = middle;
                middle = above;
                above = kept;
                if (below)
                    bt_copy_bytes(middle, below, row);
            }
            y += p->out_w * p->out;
        }
        x += p->in_h * row;
    }
}

#undef BT_ALONG_TWOS
#undef BT_OUT_OF_TWOS
#undef BT_LOAD_TWO
#undef BT_ALONG_LINE
#undef BT_RIGHT_AND_OUT
#undef BT_MIDDLE
#undef BT_LEFT
#undef BT_LOAD_COLUMN
