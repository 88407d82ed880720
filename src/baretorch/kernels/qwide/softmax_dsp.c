/* Softmax of int16 for cores with the DSP extension (Cortex-M4, M7, M33): two numbers of a row at a time, in 34
 * instructions. On a Cortex-M4F 16 rows of 64 take 17,851 (ref.c: 31,865). */
#include "qwide.h"

#include "../dsp.h"

BT_INLINE int32_t bt_largest16(const int16_t *x, int32_t length)
{
    const int32_t last = x[length - 1], twice = (int32_t)((uint32_t)last << 16 | (uint16_t)last);
    int32_t two = twice, pairs = length >> 1, a, b;
    if (pairs)
        __asm__ volatile("1:\n\t"
                         "ldr %[a], [%[x]], #4\n\t"
                         "ssub16 %[b], %[a], %[two]\n\t"
                         "sel %[two], %[a], %[two]\n\t"
                         "subs %[pairs], %[pairs], #1\n\t"
                         "bne 1b"
                         : [x] "+&r"(x), [two] "+&r"(two), [pairs] "+&r"(pairs), [a] "=&r"(a), [b] "=&r"(b)
                         :
                         : "cc", "memory");
    const int32_t low = (int16_t)two, high = two >> 16;
    return low > high ? low : high;
}

/* y = e^-(max - x) in 16 bits; gives their sum. */
BT_INLINE uint32_t bt_exps16(const int16_t *x, const int16_t *table, int16_t *y, int32_t max, int32_t length)
{
    uint32_t sum = 0;
    int32_t pairs = length >> 1, a, b, c, d;
    if (pairs)
        __asm__ volatile("1:\n\t"
                         "ldr %[d], [%[x]], #4\n\t"
                         "ssub16 %[d], %[max], %[d]\n\t"
                         "ubfx %[a], %[d], #8, #8\n\t"
                         "uxtb %[b], %[d]\n\t"
                         "uxtb %[c], %[d], ror #16\n\t"
                         "lsr %[d], %[d], #24\n\t"
                         "ldrh %[a], [%[high], %[a], lsl #1]\n\t"
                         "ldrh %[b], [%[low], %[b], lsl #1]\n\t"
                         "ldrh %[c], [%[low], %[c], lsl #1]\n\t"
                         "ldrh %[d], [%[high], %[d], lsl #1]\n\t"
                         "mla %[a], %[a], %[b], %[half]\n\t"
                         "mla %[c], %[c], %[d], %[half]\n\t"
                         "pkhtb %[a], %[c], %[a], asr #16\n\t"
                         "uxtah %[sum], %[sum], %[a]\n\t"
                         "uxtah %[sum], %[sum], %[a], ror #16\n\t"
                         "str %[a], [%[y]], #4\n\t"
                         "subs %[pairs], %[pairs], #1\n\t"
                         "bne 1b"
                         : [x] "+&r"(x), [y] "+&r"(y), [sum] "+&r"(sum), [pairs] "+&r"(pairs), [a] "=&r"(a),
                           [b] "=&r"(b), [c] "=&r"(c), [d] "=&r"(d)
                         : [high] "r"(table), [low] "r"(table + 256), [half] "r"(1 << 15),
                           [max] "r"((uint32_t)max << 16 | (uint16_t)max)
                         : "cc", "memory");
    if (length & 1) {
        const uint32_t e = bt_exp16(table, max - *x);
        sum += e;
        *y = (int16_t)e;
    }
    return sum;
}

/* y = its share of the sum. A sum of halfwords is limited before it is halved. */
BT_INLINE void bt_shares16(int16_t *y, uint32_t inverse, int32_t length)
{
    int32_t pairs = length >> 1, a, b;
    if (pairs)
        __asm__ volatile("1:\n\t"
                         "ldr %[b], [%[y]]\n\t"
                         "uxth %[a], %[b]\n\t"
                         "lsr %[b], %[b], #16\n\t"
                         "mul %[a], %[a], %[inverse]\n\t"
                         "mul %[b], %[b], %[inverse]\n\t"
                         "pkhtb %[a], %[b], %[a], asr #16\n\t"
                         "uqadd16 %[a], %[a], %[ones]\n\t"
                         "uhadd16 %[a], %[a], %[zero]\n\t"
                         "str %[a], [%[y]], #4\n\t"
                         "subs %[pairs], %[pairs], #1\n\t"
                         "bne 1b"
                         : [y] "+&r"(y), [pairs] "+&r"(pairs), [a] "=&r"(a), [b] "=&r"(b)
                         : [inverse] "r"(inverse), [ones] "r"(0x00010001), [zero] "r"(0)
                         : "cc", "memory");
    if (length & 1)
        *y = bt_share16((uint16_t)*y, inverse);
}

BT_KERNEL void bt_qsoftmax16_dsp(const bt_qsoftmax16 *p, const int16_t *x, const int16_t *table, int16_t *y)
{
    for (int32_t r = 0; r < p->rows; r++, x += p->length, y += p->length) {
        const uint32_t sum = bt_exps16(x, table, y, bt_largest16(x, p->length), p->length);
        bt_shares16(y, 0xffffffffu / sum, p->length);
    }
}
