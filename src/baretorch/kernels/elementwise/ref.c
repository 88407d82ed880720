#include "elementwise.h"

#include "../math/log.h"
#include "../math/round.h"
#include "loops.h"

BT_UNARY_REF(bt_clamp_f32_ref, bt_limit_f32, float, float, bt_clamp_f32(v, p->lo, p->hi))

#define BT_LIMITED_REF(symbol, expression) \
    BT_BINARY_REF(symbol, bt_binary_f32, float, float, bt_clamp_f32(expression, p->lo, p->hi))

BT_LIMITED_REF(bt_add_f32_ref, v + w)
BT_LIMITED_REF(bt_sub_f32_ref, v - w)
BT_LIMITED_REF(bt_mul_f32_ref, v *w)
BT_LIMITED_REF(bt_div_f32_ref, v / w)

BT_BINARY_REF(bt_floor_divide_f32_ref, bt_binary, float, float, bt_floor_div_f32(v, w))
BT_BINARY_REF(bt_trunc_divide_f32_ref, bt_binary, float, float, bt_trunc_f32(v / w))
BT_BINARY_REF(bt_remainder_f32_ref, bt_binary, float, float, bt_remainder_f32(v, w))
BT_BINARY_REF(bt_fmod_f32_ref, bt_binary, float, float, bt_fmod_f32(v, w))
BT_BINARY_REF(bt_minimum_f32_ref, bt_binary, float, float, -bt_max_f32(-v, -w))
BT_BINARY_REF(bt_maximum_f32_ref, bt_binary, float, float, bt_max_f32(v, w))
BT_BINARY_REF(bt_pow_f32_ref, bt_binary, float, float, bt_pow_f32(v, w))

/* Signed integers T through the unsigned ones U, which may overflow. */
#define BT_INTEGER_REFS(type, T, U)                                                                    \
    BT_INLINE T bt_quotient_##type(T v, T w)                                                           \
    {                                                                                                  \
        return w == 0 ? 0 : w == -1 ? (T)(0u - (U)v) : v / w;                                          \
    }                                                                                                  \
    BT_INLINE T bt_rest_##type(T v, T w)                                                               \
    {                                                                                                  \
        return (T)((U)v - (U)bt_quotient_##type(v, w) * (U)w);                                         \
    }                                                                                                  \
    /* A quotient rounded toward zero is one too large, and its rest belongs to that. */               \
    BT_INLINE int bt_above_##type(T v, T w)                                                            \
    {                                                                                                  \
        return w != 0 && bt_rest_##type(v, w) != 0 && (v < 0) != (w < 0);                              \
    }                                                                                                  \
    BT_BINARY_REF(bt_add_##type##_ref, bt_binary, T, T, (U)v + (U)w)                                   \
    BT_BINARY_REF(bt_sub_##type##_ref, bt_binary, T, T, (U)v - (U)w)                                   \
    BT_BINARY_REF(bt_mul_##type##_ref, bt_binary, T, T, (U)v *(U)w)                                    \
    BT_BINARY_REF(bt_floor_divide_##type##_ref, bt_binary, T, T, bt_quotient_##type(v, w) - bt_above_##type(v, w)) \
    BT_BINARY_REF(bt_trunc_divide_##type##_ref, bt_binary, T, T, bt_quotient_##type(v, w))             \
    BT_BINARY_REF(bt_remainder_##type##_ref, bt_binary, T, T, bt_rest_##type(v, w) + (bt_above_##type(v, w) ? w : 0)) \
    BT_BINARY_REF(bt_fmod_##type##_ref, bt_binary, T, T, bt_rest_##type(v, w))                         \
    BT_BINARY_REF(bt_minimum_##type##_ref, bt_binary, T, T, v < w ? v : w)                             \
    BT_BINARY_REF(bt_maximum_##type##_ref, bt_binary, T, T, v > w ? v : w)

BT_INTEGER_REFS(s32, int32_t, uint32_t)
BT_INTEGER_REFS(s64, int64_t, uint64_t)

/* int8 of one scale. */
BT_BINARY_REF(bt_minimum_s8_ref, bt_binary, int8_t, int8_t, v < w ? v : w)
BT_BINARY_REF(bt_maximum_s8_ref, bt_binary, int8_t, int8_t, v > w ? v : w)

#undef BT_LIMITED_REF
#undef BT_INTEGER_REFS
