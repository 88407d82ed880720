/* Comparisons, truth values, choices and casts. A truth value is a byte that is 0 or 1. */
#ifndef BT_LOGIC_H
#define BT_LOGIC_H

#include "../elementwise/elementwise.h"

/* y[i, j, k, l] = a[i, j, k, l] ? b[i, j, k, l] : c[i, j, k, l] */
typedef struct {
    int32_t shape[4];
    int32_t a_step[4];
    int32_t b_step[4];
    int32_t c_step[4];
} bt_where;

#ifndef BT_INLINE_KERNELS
void bt_logical_and_bool_ref(const bt_binary *p, const uint8_t *a, const uint8_t *b, uint8_t *y);
void bt_logical_or_bool_ref(const bt_binary *p, const uint8_t *a, const uint8_t *b, uint8_t *y);
void bt_logical_not_bool_ref(const bt_unary *p, const uint8_t *x, uint8_t *y);

#define BT_DECLARATIONS(type, T)                                                                        \
    void bt_eq_##type##_ref(const bt_binary *p, const T *a, const T *b, uint8_t *y);                    \
    void bt_ne_##type##_ref(const bt_binary *p, const T *a, const T *b, uint8_t *y);                    \
    void bt_lt_##type##_ref(const bt_binary *p, const T *a, const T *b, uint8_t *y);                    \
    void bt_le_##type##_ref(const bt_binary *p, const T *a, const T *b, uint8_t *y);                    \
    void bt_where_##type##_ref(const bt_where *p, const uint8_t *a, const T *b, const T *c, T *y);

BT_DECLARATIONS(f32, float)
BT_DECLARATIONS(s8, int8_t)
BT_DECLARATIONS(s32, int32_t)
BT_DECLARATIONS(s64, int64_t)
BT_DECLARATIONS(bool, uint8_t)
#undef BT_DECLARATIONS

#define BT_DECLARATION(from, X, to, Y) void bt_cast_##from##_##to##_ref(const bt_unary *p, const X *x, Y *y);

BT_DECLARATION(f32, float, s8, int8_t)
BT_DECLARATION(f32, float, u8, uint8_t)
BT_DECLARATION(f32, float, s16, int16_t)
BT_DECLARATION(f32, float, s32, int32_t)
BT_DECLARATION(f32, float, s64, int64_t)
BT_DECLARATION(f32, float, bool, uint8_t)
BT_DECLARATION(s8, int8_t, f32, float)
BT_DECLARATION(s8, int8_t, u8, uint8_t)
BT_DECLARATION(s8, int8_t, s16, int16_t)
BT_DECLARATION(s8, int8_t, s32, int32_t)
BT_DECLARATION(s8, int8_t, s64, int64_t)
BT_DECLARATION(s8, int8_t, bool, uint8_t)
BT_DECLARATION(u8, uint8_t, f32, float)
BT_DECLARATION(u8, uint8_t, s8, int8_t)
BT_DECLARATION(u8, uint8_t, s16, int16_t)
BT_DECLARATION(u8, uint8_t, s32, int32_t)
BT_DECLARATION(u8, uint8_t, s64, int64_t)
BT_DECLARATION(u8, uint8_t, bool, uint8_t)
BT_DECLARATION(s16, int16_t, f32, float)
BT_DECLARATION(s16, int16_t, s8, int8_t)
BT_DECLARATION(s16, int16_t, u8, uint8_t)
BT_DECLARATION(s16, int16_t, s32, int32_t)
BT_DECLARATION(s16, int16_t, s64, int64_t)
BT_DECLARATION(s16, int16_t, bool, uint8_t)
BT_DECLARATION(s32, int32_t, f32, float)
BT_DECLARATION(s32, int32_t, s8, int8_t)
BT_DECLARATION(s32, int32_t, u8, uint8_t)
BT_DECLARATION(s32, int32_t, s16, int16_t)
BT_DECLARATION(s32, int32_t, s64, int64_t)
BT_DECLARATION(s32, int32_t, bool, uint8_t)
BT_DECLARATION(s64, int64_t, f32, float)
BT_DECLARATION(s64, int64_t, s8, int8_t)
BT_DECLARATION(s64, int64_t, u8, uint8_t)
BT_DECLARATION(s64, int64_t, s16, int16_t)
BT_DECLARATION(s64, int64_t, s32, int32_t)
BT_DECLARATION(s64, int64_t, bool, uint8_t)
BT_DECLARATION(bool, uint8_t, f32, float)
BT_DECLARATION(bool, uint8_t, s8, int8_t)
BT_DECLARATION(bool, uint8_t, u8, uint8_t)
BT_DECLARATION(bool, uint8_t, s16, int16_t)
BT_DECLARATION(bool, uint8_t, s32, int32_t)
BT_DECLARATION(bool, uint8_t, s64, int64_t)
#undef BT_DECLARATION
#endif

#endif
