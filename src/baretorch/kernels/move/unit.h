/* Elements as bits, whatever they mean: moves need not know their type. Tensors are aligned to 4 bytes,
 * so elements of 8 bytes are moved as pairs of words. */
#ifndef BT_UNIT_H
#define BT_UNIT_H

#include "../bt.h"

typedef uint8_t bt_u8;
typedef uint16_t __attribute__((may_alias)) bt_u16;
typedef uint32_t __attribute__((may_alias)) bt_u32;

/* Copies `count` units, which may overlap; a literal few of them by loads and stores. */
#define BT_COPY(unit, to, from, count)                                                \
    do {                                                                              \
        if ((count) == 1) {                                                           \
            *(to) = *(from);                                                          \
        } else if (__builtin_constant_p(count) && (count) <= 8) {                     \
            unit units[8];                                                            \
            BT_UNROLL_8                                                               \
            for (int32_t u = 0; u < (count); u++)                                     \
                units[u] = (from)[u];                                                 \
            BT_UNROLL_8                                                               \
            for (int32_t u = 0; u < (count); u++)                                     \
                (to)[u] = units[u];                                                   \
        } else {                                                                      \
            __builtin_memmove(__builtin_assume_aligned((to), sizeof(unit)),           \
                              __builtin_assume_aligned((from), sizeof(unit)),         \
                              (size_t)(count) * sizeof(unit));                        \
        }                                                                             \
    } while (0)

#endif
