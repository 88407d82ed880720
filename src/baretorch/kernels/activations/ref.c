#include "activations.h"

#include "../elementwise/loops.h"
#include "../math/erf.h"
#include "../math/log.h"

BT_INLINE float bt_elu_of_f32(float x, float negative, float positive, float rate)
{
    return x > 0.0f ? x * positive : bt_expm1_f32(x * rate) * negative;
}

BT_INLINE float bt_gelu_f32(float x)
{
    return 0.5f * x * (1.0f + bt_erf_f32(x * 0.707106781f));
}

BT_INLINE float bt_gelu_tanh_f32(float x)
{
    return 0.5f * x * (1.0f + bt_tanh_f32(0.797884561f * (x + 0.044715f * x * x * x)));
}

/* tanh(log(1 + e)) = n / (n + 2) with n = e (e + 2) */
BT_INLINE float bt_mish_f32(float x)
{
    if (x > 20.0f)
        return x;
    float e = bt_exp_f32(x);
    float n = e * (e + 2.0f);
    return x * (n / (n + 2.0f));
}

BT_INLINE float bt_hardsigmoid_f32(float x)
{
    return bt_clamp_f32(x + 3.0f, 0.0f, 6.0f) * 0.166666667f;
}

BT_INLINE float bt_softplus_of_f32(float x, float beta, float threshold)
{
    return x * beta > threshold ? x : bt_log1p_f32(bt_exp_f32(x * beta)) / beta;
}

BT_INLINE float bt_log_sigmoid_f32(float x)
{
    return (x < 0.0f ? x : 0.0f) - bt_log1p_f32(bt_exp_f32(-bt_abs_f32(x)));
}

#define BT_ACTIVATION_REF(symbol, params, expression) BT_UNARY_REF(symbol, params, float, float, expression)

BT_ACTIVATION_REF(bt_leaky_relu_f32_ref, bt_leaky_relu_f32, v > 0.0f ? v : v * p->slope)
BT_BINARY_REF(bt_prelu_f32_ref, bt_binary, float, float, v > 0.0f ? v : v * w)
BT_ACTIVATION_REF(bt_elu_f32_ref, bt_elu_f32, bt_elu_of_f32(v, p->negative, p->positive, p->rate))
BT_ACTIVATION_REF(bt_gelu_f32_ref, bt_unary, bt_gelu_f32(v))
BT_ACTIVATION_REF(bt_gelu_tanh_f32_ref, bt_unary, bt_gelu_tanh_f32(v))
BT_ACTIVATION_REF(bt_silu_f32_ref, bt_unary, v / (1.0f + bt_exp_f32(-v)))
BT_ACTIVATION_REF(bt_mish_f32_ref, bt_unary, bt_mish_f32(v))
BT_ACTIVATION_REF(bt_hardsigmoid_f32_ref, bt_unary, bt_hardsigmoid_f32(v))
BT_ACTIVATION_REF(bt_hardswish_f32_ref, bt_unary, v * bt_hardsigmoid_f32(v))
BT_ACTIVATION_REF(bt_softplus_f32_ref, bt_softplus_f32, bt_softplus_of_f32(v, p->beta, p->threshold))
BT_ACTIVATION_REF(bt_log_sigmoid_f32_ref, bt_unary, bt_log_sigmoid_f32(v))
BT_ACTIVATION_REF(bt_hardshrink_f32_ref, bt_shrink_f32, bt_abs_f32(v) <= p->limit ? 0.0f : v)
BT_ACTIVATION_REF(bt_softshrink_f32_ref, bt_shrink_f32, v - bt_clamp_f32(v, -p->limit, p->limit))
BT_ACTIVATION_REF(bt_threshold_f32_ref, bt_threshold_f32, v <= p->threshold ? p->replacement : v)

#undef BT_ACTIVATION_REF
