/* qconv2d, depthwise 3x3, for cores with the DSP extension (Cortex-M4, M7, M33).
 *
 * A row of outputs at a time, four channels of it at a time: the three rows of inputs that they need are brought
 * together in a line buffer, with the zero points around them. Then one channel runs along the line with its weights in
 * registers: of every column the upper two inputs are one halfword pair, and the column is multiplied into the sums of
 * the three outputs that it touches. 15 instructions for 9 products, requantized and stored.
 *
 * The output may lie over the input: with stride 1 the rows that are needed again are kept in scratch. */
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
/* As the left, middle or right column of an output. */
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
                     : [at] "+r"(at), [last] "+r"(last), [pair] "=&r"(pair), [one] "=&r"(one), [sum] "=&r"(sum),       \
                       [next] "=&r"(next)                                                                              \
                     : [left] "r"(bt_even_bytes(channel[2])), [middle] "r"(bt_odd_bytes(channel[2])),                  \
                       [right] "r"(bt_even_bytes(channel[3])), [lower] "r"(bt_odd_bytes(channel[3])),                  \
                       [bias] "r"(channel[0] >> 8), [multiplier] "r"(channel[1]), [zero] "r"(zero)                     \
                     : "cc", "memory")

/* `count` outputs of each of four channels, whose columns begin at `line`. */
BT_SHARED void bt_qconv2d_four_channels(const int32_t *channel, bt_column *line, int32_t count, int32_t stride,
                                        int32_t zero)
{
    for (int32_t c = 0; c < 4; c++, channel += 4) {
        int8_t *at = (int8_t *)line + c;
        int32_t last = ((count - 1) << 16) | (uint16_t)(int8_t)channel[0];
        int32_t pair, one, sum, next;
        if (stride == 1)
            BT_ALONG_LINE(BT_LOAD_COLUMN BT_LEFT("next") BT_LOAD_COLUMN BT_MIDDLE("sum", "next") BT_LEFT("next"),
                          BT_LOAD_COLUMN BT_RIGHT_AND_OUT BT_MIDDLE("sum", "next") BT_LEFT("next"));
        else
            BT_ALONG_LINE(BT_LOAD_COLUMN BT_LEFT("sum"),
                          BT_LOAD_COLUMN BT_MIDDLE("sum", "sum") BT_LOAD_COLUMN BT_RIGHT_AND_OUT BT_LEFT("sum"));
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
            bt_qconv2d_fill_line(p, above ? above + c : NULL, middle + c, below ? below + c : NULL,
                                 first * p->stride_w - p->pad_left, line, (count - 1) * p->stride_w + 3);
            bt_qconv2d_four_channels(channel + 4 * c, line, count, p->stride_w, p->zero);
            int8_t *out = y + first * p->in + c;
            BT_UNROLL_4
            for (int32_t w = 0; w < count; w++, out += p->in) {
                __builtin_memcpy(out, &line[w * p->stride_w + 1].below, 4);
                for (int32_t k = 0; (p->lo > -128 || p->hi < 127) && k < 4; k++)
                    out[k] = (int8_t)bt_clamp_i32(out[k], p->lo, p->hi);
            }
        }
    }
}

/* scratch: 12 bytes for each column of a line, and with stride_h 1 two rows of the input */
BT_KERNEL void bt_qconv2d_depthwise3_dsp(const bt_qconv2d *p, const int8_t *x, const int32_t *channel, int8_t *y,
                                         void *scratch)
{
    const int32_t most = BT_LINE / p->stride_w;
    const int32_t columns = ((p->out_w < most ? p->out_w : most) - 1) * p->stride_w + 3;
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

#undef BT_ALONG_LINE
#undef BT_RIGHT_AND_OUT
#undef BT_MIDDLE
#undef BT_LEFT
#undef BT_LOAD_COLUMN
