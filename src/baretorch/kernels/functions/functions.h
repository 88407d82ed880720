/* Functions of one number. */
#ifndef BT_FUNCTIONS_H
#define BT_FUNCTIONS_H

#include "../elementwise/elementwise.h"

#ifndef BT_INLINE_KERNELS
void bt_neg_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_neg_s32_ref(const bt_unary *p, const int32_t *x, int32_t *y);
void bt_neg_s64_ref(const bt_unary *p, const int64_t *x, int64_t *y);
void bt_abs_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_abs_s32_ref(const bt_unary *p, const int32_t *x, int32_t *y);
void bt_abs_s64_ref(const bt_unary *p, const int64_t *x, int64_t *y);
void bt_sign_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_sign_s32_ref(const bt_unary *p, const int32_t *x, int32_t *y);
void bt_sign_s64_ref(const bt_unary *p, const int64_t *x, int64_t *y);
void bt_floor_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_ceil_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_round_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_trunc_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_sqrt_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_rsqrt_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_reciprocal_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_exp_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_expm1_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_log_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_log1p_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_log2_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_sin_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_cos_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_tanh_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_sigmoid_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_erf_f32_ref(const bt_unary *p, const float *x, float *y);
#endif

#endif
