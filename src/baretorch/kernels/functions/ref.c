#include "functions.h"

#include "../elementwise/loops.h"
#include "../math/erf.h"
#include "../math/log.h"
#include "../math/trig.h"

#define BT_FUNCTION_REF(symbol, expression) BT_UNARY_REF(symbol, bt_unary, float, float, expression)
#define BT_INTEGER_REF(symbol, T, expression) BT_UNARY_REF(symbol, bt_unary, T, T, expression)

BT_FUNCTION_REF(bt_neg_f32_ref, -v)
BT_INTEGER_REF(bt_neg_s32_ref, int32_t, 0u - (uint32_t)v)
BT_INTEGER_REF(bt_neg_s64_ref, int64_t, 0u - (uint64_t)v)
BT_FUNCTION_REF(bt_abs_f32_ref, bt_abs_f32(v))
BT_INTEGER_REF(bt_abs_s32_ref, int32_t, v < 0 ? 0u - (uint32_t)v : (uint32_t)v)
BT_INTEGER_REF(bt_abs_s64_ref, int64_t, v < 0 ? 0u - (uint64_t)v : (uint64_t)v)
BT_FUNCTION_REF(bt_sign_f32_ref, (v > 0.0f) - (v < 0.0f))
BT_INTEGER_REF(bt_sign_s32_ref, int32_t, (v > 0) - (v < 0))
BT_INTEGER_REF(bt_sign_s64_ref, int64_t, (v > 0) - (v < 0))
BT_FUNCTION_REF(bt_floor_f32_ref, bt_floor_f32(v))
BT_FUNCTION_REF(bt_ceil_f32_ref, bt_ceil_f32(v))
BT_FUNCTION_REF(bt_round_f32_ref, bt_round_f32(v))
BT_FUNCTION_REF(bt_trunc_f32_ref, bt_trunc_f32(v))
BT_FUNCTION_REF(bt_sqrt_f32_ref, bt_sqrt_f32(v))
BT_FUNCTION_REF(bt_rsqrt_f32_ref, 1.0f / bt_sqrt_f32(v))
BT_FUNCTION_REF(bt_reciprocal_f32_ref, 1.0f / v)
BT_FUNCTION_REF(bt_exp_f32_ref, bt_exp_f32(v))
BT_FUNCTION_REF(bt_expm1_f32_ref, bt_expm1_f32(v))
BT_FUNCTION_REF(bt_log_f32_ref, bt_log_f32(v))
BT_FUNCTION_REF(bt_log1p_f32_ref, bt_log1p_f32(v))
BT_FUNCTION_REF(bt_log2_f32_ref, bt_log2_f32(v))
BT_FUNCTION_REF(bt_sin_f32_ref, bt_sin_f32(v))
BT_FUNCTION_REF(bt_cos_f32_ref, bt_cos_f32(v))
BT_FUNCTION_REF(bt_tanh_f32_ref, bt_tanh_f32(v))
BT_FUNCTION_REF(bt_sigmoid_f32_ref, bt_sigmoid_f32(v))
BT_FUNCTION_REF(bt_erf_f32_ref, bt_erf_f32(v))

#undef BT_FUNCTION_REF
#undef BT_INTEGER_REF
