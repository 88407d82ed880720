#include "special.h"

#include "../elementwise/loops.h"
#include "../math/atan.h"
#include "../math/erf.h"
#include "../math/hyperbolic.h"
#include "../math/log.h"

BT_UNARY_REF(bt_exp2_f32_ref, bt_unary, float, float, bt_exp2_f32(v))
BT_UNARY_REF(bt_log10_f32_ref, bt_unary, float, float, bt_log10_f32(v))
BT_UNARY_REF(bt_asin_f32_ref, bt_unary, float, float, bt_asin_f32(v))
BT_UNARY_REF(bt_acos_f32_ref, bt_unary, float, float, bt_acos_f32(v))
BT_UNARY_REF(bt_atan_f32_ref, bt_unary, float, float, bt_atan_f32(v))
BT_UNARY_REF(bt_sinh_f32_ref, bt_unary, float, float, bt_sinh_f32(v))
BT_UNARY_REF(bt_cosh_f32_ref, bt_unary, float, float, bt_cosh_f32(v))
BT_UNARY_REF(bt_asinh_f32_ref, bt_unary, float, float, bt_asinh_f32(v))
BT_UNARY_REF(bt_acosh_f32_ref, bt_unary, float, float, bt_acosh_f32(v))
BT_UNARY_REF(bt_atanh_f32_ref, bt_unary, float, float, bt_atanh_f32(v))
BT_UNARY_REF(bt_erfc_f32_ref, bt_unary, float, float, bt_erfc_f32(v))
BT_UNARY_REF(bt_erfcx_f32_ref, bt_unary, float, float, bt_erfcx_f32(v))
BT_UNARY_REF(bt_erfinv_f32_ref, bt_unary, float, float, bt_erfinv_f32(v))
BT_BINARY_REF(bt_atan2_f32_ref, bt_binary, float, float, bt_atan2_f32(v, w))
BT_BINARY_REF(bt_hypot_f32_ref, bt_binary, float, float, bt_hypot_f32(v, w))
