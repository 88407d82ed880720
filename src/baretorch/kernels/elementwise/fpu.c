/* add, sub and mul of equal shapes for Arm cores with a single-precision FPU: eight elements at a time. */
#include "elementwise.h"

#include "../fpu.h"

#define BT_STEP(instruction, a, b) instruction " s" #a ", s" #a ", s" #b "\n\t"
#define BT_STEPS(instruction)                                                                                          \
    BT_STEP(instruction, 0, 8)                                                                                         \
    BT_STEP(instruction, 1, 9)                                                                                         \
    BT_STEP(instruction, 2, 10)                                                                                        \
    BT_STEP(instruction, 3, 11)                                                                                        \
    BT_STEP(instruction, 4, 12)                                                                                        \
    BT_STEP(instruction, 5, 13)                                                                                        \
    BT_STEP(instruction, 6, 14)                                                                                        \
    BT_STEP(instruction, 7, 15)

/* A kernel from an instruction and the C operator that means the same. */
#define BT_BINARY_FPU(symbol, instruction, operator)                                                                   \
    BT_KERNEL void symbol(const bt_binary_f32 *p, const float *a, const float *b, float *y)                            \
    {                                                                                                                  \
        int32_t count = p->shape[0] * p->shape[1] * p->shape[2] * p->shape[3];                                         \
        int32_t eights = count / 8;                                                                                    \
        float *to = y;                                                                                                 \
        if (eights > 0)                                                                                                \
            __asm__ volatile("1:\n\t"                                                                                  \
                             "vldmia %[a]!, {s0-s7}\n\t"                                                               \
                             "vldmia %[b]!, {s8-s15}\n\t"                                                              \
                             BT_STEPS(instruction)                                                                     \
                             "vstmia %[y]!, {s0-s7}\n\t"                                                               \
                             "subs %[n], %[n], #1\n\t"                                                                 \
                             "bne 1b"                                                                                  \
                             : [a] "+&r"(a), [b] "+&r"(b), [y] "+&r"(to), [n] "+&r"(eights)                            \
                             :                                                                                         \
                             : BT_SINGLES, "cc", "memory");                                                            \
        for (int32_t i = 0; i < count % 8; i++)                                                                        \
            to[i] = a[i] operator b[i];                                                                                \
        bt_fpu_limit(y, count, p->lo, p->hi);                                                                          \
    }

BT_BINARY_FPU(bt_add_f32_fpu, "vadd.f32", +)
BT_BINARY_FPU(bt_sub_f32_fpu, "vsub.f32", -)
BT_BINARY_FPU(bt_mul_f32_fpu, "vmul.f32", *)

#undef BT_BINARY_FPU
#undef BT_STEPS
#undef BT_STEP
