#include "logic.h"

#include "../elementwise/loops.h"

BT_UNARY_REF(bt_logical_not_bool_ref, bt_unary, uint8_t, uint8_t, v == 0u)
BT_BINARY_REF(bt_logical_and_bool_ref, bt_binary, uint8_t, uint8_t, v & w)
BT_BINARY_REF(bt_logical_or_bool_ref, bt_binary, uint8_t, uint8_t, v | w)

#define BT_WHERE_REF(symbol, T)                                                                                \
    BT_KERNEL void symbol(const bt_where *p, const uint8_t *a, const T *b, const T *c, T *y)                   \
    {                                                                                                          \
        const int32_t a_next = p->a_step[3], b_next = p->b_step[3], c_next = p->c_step[3];                     \
        for (int32_t i = 0; i < p->shape[0]; i++)                                                              \
            for (int32_t j = 0; j < p->shape[1]; j++)                                                          \
                for (int32_t k = 0; k < p->shape[2]; k++) {                                                    \
                    const uint8_t *a_row = a + i * p->a_step[0] + j * p->a_step[1] + k * p->a_step[2];         \
                    const T *b_row = b + i * p->b_step[0] + j * p->b_step[1] + k * p->b_step[2];               \
                    const T *c_row = c + i * p->c_step[0] + j * p->c_step[1] + k * p->c_step[2];               \
                    const uint8_t a_first = *a_row;                                                            \
                    const T b_first = *b_row, c_first = *c_row;                                                \
                    for (int32_t rest = p->shape[3]; rest > 0; rest--) {                                       \
                        *y++ = BT_ELEMENT(a) != 0u ? BT_ELEMENT(b) : BT_ELEMENT(c);                            \
                        a_row += a_next;                                                                       \
                        b_row += b_next;                                                                       \
                        c_row += c_next;                                                                       \
                    }                                                                                          \
                }                                                                                              \
    }

#define BT_LOGIC_REFS(type, T)                                        \
    BT_BINARY_REF(bt_eq_##type##_ref, bt_binary, T, uint8_t, v == w)  \
    BT_BINARY_REF(bt_ne_##type##_ref, bt_binary, T, uint8_t, v != w)  \
    BT_BINARY_REF(bt_lt_##type##_ref, bt_binary, T, uint8_t, v < w)   \
    BT_BINARY_REF(bt_le_##type##_ref, bt_binary, T, uint8_t, v <= w)  \
    BT_WHERE_REF(bt_where_##type##_ref, T)

BT_LOGIC_REFS(f32, float)
BT_LOGIC_REFS(s8, int8_t)
BT_LOGIC_REFS(s32, int32_t)
BT_LOGIC_REFS(s64, int64_t)
BT_LOGIC_REFS(bool, uint8_t)

/* A float as the nearest integer toward zero within the type, NaN as 0. `above` is the first float too large. */
#define BT_WHOLE(T, v, least, above, greatest) \
    ((v) >= (above) ? (greatest) : (v) <= (float)(least) ? (least) : (v) == (v) ? (T)(v) : 0)

#define BT_CAST_REF(from, X, to, Y, expression) \
    BT_UNARY_REF(bt_cast_##from##_##to##_ref, bt_unary, X, Y, expression)

BT_CAST_REF(f32, float, s8, int8_t, BT_WHOLE(int8_t, v, INT8_MIN, 128.0f, INT8_MAX))
BT_CAST_REF(f32, float, u8, uint8_t, BT_WHOLE(uint8_t, v, 0, 256.0f, UINT8_MAX))
BT_CAST_REF(f32, float, s16, int16_t, BT_WHOLE(int16_t, v, INT16_MIN, 32768.0f, INT16_MAX))
BT_CAST_REF(f32, float, s32, int32_t, BT_WHOLE(int32_t, v, INT32_MIN, 2147483648.0f, INT32_MAX))
BT_CAST_REF(f32, float, s64, int64_t, BT_WHOLE(int64_t, v, INT64_MIN, 9223372036854775808.0f, INT64_MAX))
BT_CAST_REF(f32, float, bool, uint8_t, v != 0.0f)
BT_CAST_REF(s8, int8_t, f32, float, v)
BT_CAST_REF(s8, int8_t, u8, uint8_t, v)
BT_CAST_REF(s8, int8_t, s16, int16_t, v)
BT_CAST_REF(s8, int8_t, s32, int32_t, v)
BT_CAST_REF(s8, int8_t, s64, int64_t, v)
BT_CAST_REF(s8, int8_t, bool, uint8_t, v != 0)
BT_CAST_REF(u8, uint8_t, f32, float, v)
BT_CAST_REF(u8, uint8_t, s8, int8_t, v)
BT_CAST_REF(u8, uint8_t, s16, int16_t, v)
BT_CAST_REF(u8, uint8_t, s32, int32_t, v)
BT_CAST_REF(u8, uint8_t, s64, int64_t, v)
BT_CAST_REF(u8, uint8_t, bool, uint8_t, v != 0)
BT_CAST_REF(s16, int16_t, f32, float, v)
BT_CAST_REF(s16, int16_t, s8, int8_t, v)
BT_CAST_REF(s16, int16_t, u8, uint8_t, v)
BT_CAST_REF(s16, int16_t, s32, int32_t, v)
BT_CAST_REF(s16, int16_t, s64, int64_t, v)
BT_CAST_REF(s16, int16_t, bool, uint8_t, v != 0)
BT_CAST_REF(s32, int32_t, f32, float, v)
BT_CAST_REF(s32, int32_t, s8, int8_t, v)
BT_CAST_REF(s32, int32_t, u8, uint8_t, v)
BT_CAST_REF(s32, int32_t, s16, int16_t, v)
BT_CAST_REF(s32, int32_t, s64, int64_t, v)
BT_CAST_REF(s32, int32_t, bool, uint8_t, v != 0)
BT_CAST_REF(s64, int64_t, f32, float, v)
BT_CAST_REF(s64, int64_t, s8, int8_t, v)
BT_CAST_REF(s64, int64_t, u8, uint8_t, v)
BT_CAST_REF(s64, int64_t, s16, int16_t, v)
BT_CAST_REF(s64, int64_t, s32, int32_t, v)
BT_CAST_REF(s64, int64_t, bool, uint8_t, v != 0)
BT_CAST_REF(bool, uint8_t, f32, float, v)
BT_CAST_REF(bool, uint8_t, s8, int8_t, v)
BT_CAST_REF(bool, uint8_t, u8, uint8_t, v)
BT_CAST_REF(bool, uint8_t, s16, int16_t, v)
BT_CAST_REF(bool, uint8_t, s32, int32_t, v)
BT_CAST_REF(bool, uint8_t, s64, int64_t, v)

#undef BT_WHERE_REF
#undef BT_LOGIC_REFS
#undef BT_WHOLE
#undef BT_CAST_REF
