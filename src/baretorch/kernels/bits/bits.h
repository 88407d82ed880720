/* Bits of integers. A shift by a negative number, or by as many bits as there are or more, shifts all bits out. */
#ifndef BT_BITS_H
#define BT_BITS_H

#include "../elementwise/elementwise.h"

#ifndef BT_INLINE_KERNELS
#define BT_DECLARATIONS(type, T)                                                         \
    void bt_bit_and_##type##_ref(const bt_binary *p, const T *a, const T *b, T *y);      \
    void bt_bit_or_##type##_ref(const bt_binary *p, const T *a, const T *b, T *y);       \
    void bt_bit_xor_##type##_ref(const bt_binary *p, const T *a, const T *b, T *y);      \
    void bt_shift_left_##type##_ref(const bt_binary *p, const T *a, const T *b, T *y);   \
    void bt_shift_right_##type##_ref(const bt_binary *p, const T *a, const T *b, T *y);

BT_DECLARATIONS(s8, int8_t)
BT_DECLARATIONS(u8, uint8_t)
BT_DECLARATIONS(s32, int32_t)
BT_DECLARATIONS(s64, int64_t)
#undef BT_DECLARATIONS
#endif

#endif
