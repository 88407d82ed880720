/* Activation functions. */
#ifndef BT_ACTIVATIONS_H
#define BT_ACTIVATIONS_H

#include "../elementwise/elementwise.h"

typedef struct {
    int32_t count;
    float slope;
} bt_leaky_relu_f32;

/* y = x > 0 ? positive * x : negative * (e^(rate * x) - 1) */
typedef struct {
    int32_t count;
    float negative;
    float positive;
    float rate;
} bt_elu_f32;

typedef struct {
    int32_t count;
    float beta;
    float threshold;
} bt_softplus_f32;

typedef struct {
    int32_t count;
    float limit;
} bt_shrink_f32;

/* y = x <= threshold ? replacement : x */
typedef struct {
    int32_t count;
    float threshold;
    float replacement;
} bt_threshold_f32;

#ifndef BT_INLINE_KERNELS
void bt_leaky_relu_f32_ref(const bt_leaky_relu_f32 *p, const float *x, float *y);
void bt_prelu_f32_ref(const bt_binary *p, const float *a, const float *b, float *y);
void bt_elu_f32_ref(const bt_elu_f32 *p, const float *x, float *y);
void bt_gelu_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_gelu_tanh_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_silu_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_mish_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_hardsigmoid_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_hardswish_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_softplus_f32_ref(const bt_softplus_f32 *p, const float *x, float *y);
void bt_log_sigmoid_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_hardshrink_f32_ref(const bt_shrink_f32 *p, const float *x, float *y);
void bt_softshrink_f32_ref(const bt_shrink_f32 *p, const float *x, float *y);
void bt_threshold_f32_ref(const bt_threshold_f32 *p, const float *x, float *y);
#endif

#endif
