#include "bits.h"

#include "../elementwise/loops.h"

/* An integer type T of `bits` bits, through U, an unsigned type that is at least as wide. A right shift of a negative
 * number keeps its sign, as every compiler for these chips does it. */
#define BT_BITS_REFS(type, T, U, bits)                                                                        \
    BT_BINARY_REF(bt_bit_and_##type##_ref, bt_binary, T, T, v & w)                                            \
    BT_BINARY_REF(bt_bit_or_##type##_ref, bt_binary, T, T, v | w)                                             \
    BT_BINARY_REF(bt_bit_xor_##type##_ref, bt_binary, T, T, v ^ w)                                            \
    BT_BINARY_REF(bt_shift_left_##type##_ref, bt_binary, T, T, (U)w < (bits) ? (U)v << ((U)w & ((bits) - 1u)) : 0) \
    BT_BINARY_REF(bt_shift_right_##type##_ref, bt_binary, T, T,                                               \
                  (U)w < (bits) ? v >> ((U)w & ((bits) - 1u)) : v >> ((bits) - 1u) >> 1)

BT_BITS_REFS(s8, int8_t, uint32_t, 8u)
BT_BITS_REFS(u8, uint8_t, uint32_t, 8u)
BT_BITS_REFS(s32, int32_t, uint32_t, 32u)
BT_BITS_REFS(s64, int64_t, uint64_t, 64u)

#undef BT_BITS_REFS
