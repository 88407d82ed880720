/* qconv2d of 3 x 3 with a stride of 1 along rows, one group and channels in sixteens, for Arm cores with Helium.
 *
 * The rows that a row of outputs needs are kept in scratch as [row][channels / 16][column][16], a new one where the
 * oldest was, so that each of the image comes once. Two output channels of four windows are eight sums; the weights of
 * three columns stay in registers while six columns pass: 12 loads for 24 times 16 products. A table has where the
 * windows begin in each row and sixteen of channels; zero ends it. */
#include "../int8_mve.h"
#include "qconv2d.h"

#define BT_THREES_GROUP 4 /* windows together */

#define BT_THREES_COLUMN(at) "vldrb.u8 q6, [%[x], #" at "]\n\t"
#define BT_THREES_WEIGHTS(a, b) "vldrb.u8 " a ", [%[k]], #16\n\tvldrb.u8 " b ", [%[k]], #16\n\t"
#define BT_THREES_WINDOW(mla, first, second, a, b) mla " " first ", q6, " a "\n\t" mla " " second ", q6, " b "\n\t"
#define BT_THREES_0(mla, a, b) BT_THREES_WINDOW(mla, "r0", "r8", a, b)
#define BT_THREES_1(mla, a, b) BT_THREES_WINDOW(mla, "r2", "r10", a, b)
#define BT_THREES_2(mla, a, b) BT_THREES_WINDOW(mla, "r4", "r12", a, b)
#define BT_THREES_3(mla, a, b) BT_THREES_WINDOW(mla, "r6", "lr", a, b)
#define BT_THREES_MORE "vmladava.s8"

/* 16 channels of a row: 36 instructions, and one that found x. mla: how a sum begins */
#define BT_THREES_SIXTEEN(mla)                                                                                         \
    BT_THREES_WEIGHTS("q0", "q1")                                                                                      \
    BT_THREES_WEIGHTS("q2", "q3")                                                                                      \
    BT_THREES_WEIGHTS("q4", "q5")                                                                                      \
    BT_THREES_COLUMN("0")                                                                                              \
    BT_THREES_0(mla, "q0", "q1")                                                                                       \
    BT_THREES_COLUMN("16")                                                                                             \
    BT_THREES_0(BT_THREES_MORE, "q2", "q3")                                                                            \
    BT_THREES_1(mla, "q0", "q1")                                                                                       \
    BT_THREES_COLUMN("32")                                                                                             \
    BT_THREES_0(BT_THREES_MORE, "q4", "q5")                                                                            \
    BT_THREES_1(BT_THREES_MORE, "q2", "q3")                                                                            \
    BT_THREES_2(mla, "q0", "q1")                                                                                       \
    BT_THREES_COLUMN("48")                                                                                             \
    BT_THREES_1(BT_THREES_MORE, "q4", "q5")                                                                            \
    BT_THREES_2(BT_THREES_MORE, "q2", "q3")                                                                            \
    BT_THREES_3(mla, "q0", "q1")                                                                                       \
    BT_THREES_COLUMN("64")                                                                                             \
    BT_THREES_2(BT_THREES_MORE, "q4", "q5")                                                                            \
    BT_THREES_3(BT_THREES_MORE, "q2", "q3")                                                                            \
    BT_THREES_COLUMN("80")                                                                                             \
    BT_THREES_3(BT_THREES_MORE, "q4", "q5")

/* All channels of four windows: 114 instructions for each 16 input channels, and 21, for eight outputs. */
BT_INLINE void bt_threes_group(const bt_qconv2d *p, const int32_t *table, const int32_t *k, int8_t *y)
{
    const struct {
        int32_t table; /* bytes of it */
        const int8_t *end;
        int32_t zero;
    } s = { 4 * (3 * (p->in / 16) + 1), y + p->out, p->zero };
    const uint16x8_t i = vidupq_n_u16(0, 1);
    const uint16x8_t at = vmlaq_n_u16(vandq_u16(i, vdupq_n_u16(1)), vshrq_n_u16(i, 1), (uint16_t)p->out);
    const int8_t *x;
    __asm__ volatile("0:\n\t"
                     "ldr %[x], [%[t]], #4\n\t" /**/
                     BT_THREES_SIXTEEN("vmladav.s8") "1:\n\t"
                     "ldr %[x], [%[t]], #4\n\t" /**/
                     BT_THREES_SIXTEEN(BT_THREES_MORE) "ldr %[x], [%[t]], #4\n\t" /**/
                     BT_THREES_SIXTEEN(BT_THREES_MORE) "ldr %[x], [%[t]], #4\n\t"
                     "cmp %[x], #0\n\t"
                     "beq 2f\n\t" /**/
                     BT_THREES_SIXTEEN(BT_THREES_MORE) "b 1b\n"
                     "2:\n\t" /**/
                     BT_MVE_TOGETHER "ldm %[k]!, {r0, r2, r4, r6}\n\t" /* biases and multipliers */
                     "ldm %[s], {r8, r10, r12}\n\t"
                     "vdup.32 q2, r4\n\t"
                     "vdup.32 q3, r6\n\t"
                     "vadd.i32 q0, q0, r0\n\t"
                     "vadd.i32 q1, q1, r2\n\t"
                     "vrmulh.s32 q0, q0, q2\n\t"
                     "vrmulh.s32 q1, q1, q3\n\t"
                     "sub %[t], %[t], r8\n\t"
                     "vqmovnb.s32 q0, q0\n\t"
                     "vqmovnt.s32 q0, q1\n\t"
                     "vqadd.s16 q0, q0, r12\n\t"
                     "vqmovnb.s16 q0, q0\n\t"
                     "vstrb.16 q0, [%[y], %q[at]]\n\t"
                     "add %[y], %[y], #2\n\t"
                     "cmp %[y], r10\n\t"
                     "bne 0b"
                     : [k] "+&r"(k), [x] "=&r"(x), [t] "+&r"(table), [y] "+&r"(y)
                     : [s] "r"(&s), [at] "w"(at)
                     : BT_MVE_SUMS, "q0", "q1", "q2", "q3", "q4", "q5", "q6", "cc", "memory");
}

/* n vectors from pixels that are `step` apart */
BT_INLINE void bt_threes_put(int8_t *to, const int8_t *from, int32_t step, int32_t n)
{
    int8x16_t v;
    __asm__ volatile("wls lr, %[n], 2f\n"
                     "1:\n\t"
                     "vldrb.u8 %q[v], [%[from]]\n\t"
                     "add %[from], %[from], %[step]\n\t"
                     "vstrb.8 %q[v], [%[to]], #16\n\t"
                     "le lr, 1b\n"
                     "2:"
                     : [to] "+&r"(to), [from] "+&r"(from), [v] "=&w"(v)
                     : [step] "r"(step), [n] "r"(n)
                     : "lr", "cc", "memory");
}

BT_SHARED void bt_qconv2d_threes_shared_mve(const bt_qconv2d *p, const int8_t *x, const int32_t *constants, int8_t *y,
                                            int32_t *scratch)
{
    const int32_t sixteens = p->in / 16, entries = 3 * sixteens;
    const int32_t plane = 16 * (p->out_w + 2), place_bytes = plane * sixteens;
    const int32_t used = bt_clamp_i32(p->out_w + 2 - p->pad_left, 0, p->in_w); /* columns of the image */
    int32_t *const table = scratch;
    int8_t *const rows = (int8_t *)(scratch + entries + 1);
    table[entries] = 0;
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->in) {
        int32_t row = -p->pad_top; /* the next that goes to scratch, */
        int32_t place = 0;         /* here */
        bt_mve_fill(rows, p->x_zero, 3 * place_bytes);
        for (int32_t h = 0; h < p->out_h; h++, y += p->out_w * p->out) {
            for (; row < h * p->stride_h - p->pad_top + 3; row++) {
                int8_t *to = rows + place * place_bytes + 16 * p->pad_left;
                for (int32_t c = 0; c < sixteens; c++, to += plane) {
                    if (row >= 0 && row < p->in_h)
                        bt_threes_put(to, x + row * p->in_w * p->in + 16 * c, p->in, used);
                    else
                        bt_mve_fill(to, p->x_zero, 16 * used);
                }
                place = place < 2 ? place + 1 : 0;
            }
            int32_t at = (int32_t)(intptr_t)rows;
            int32_t *entry = table + (place ? entries - place * sixteens : 0); /* the oldest row is in `place` */
            for (int32_t i = 0; i < entries; i++, at += plane) {
                if (i == place * sixteens)
                    entry = table;
                *entry++ = at;
            }
            for (int32_t w = 0, next; w < p->out_w; w = next) {
                bt_threes_group(p, table, constants, y + w * p->out);
                next = w + BT_THREES_GROUP; /* the last windows overlap those before */
                if (next < p->out_w && next > p->out_w - BT_THREES_GROUP)
                    next = p->out_w - BT_THREES_GROUP;
                for (int32_t i = 0; i < entries; i += 4) {
                    const mve_pred16_t inside = vctp32q((uint32_t)(entries - i));
                    const int32x4_t begin = vldrwq_z_s32(table + i, inside);
                    vstrwq_p_s32(table + i, vaddq_n_s32(begin, 16 * (next - w)), inside);
                }
            }
            bt_mve_limit_i8(y, p->out_w * p->out, p->lo, p->hi);
        }
    }
}

/* scratch: a table of 3 * in / 16 + 1 words, and three rows of the image with its padding */
BT_KERNEL void bt_qconv2d_threes_mve(const bt_qconv2d *p, const int8_t *x, const int32_t *constants, int8_t *y,
                                     void *scratch)
{
    bt_qconv2d_threes_shared_mve(p, x, constants, y, (int32_t *)scratch);
}
