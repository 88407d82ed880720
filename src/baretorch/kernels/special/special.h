/* Functions of one or two numbers that few models need. */
#ifndef BT_SPECIAL_H
#define BT_SPECIAL_H

#include "../elementwise/elementwise.h"

#ifndef BT_INLINE_KERNELS
void bt_exp2_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_log10_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_asin_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_acos_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_atan_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_sinh_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_cosh_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_asinh_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_acosh_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_atanh_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_erfc_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_erfcx_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_erfinv_f32_ref(const bt_unary *p, const float *x, float *y);
void bt_atan2_f32_ref(const bt_binary *p, const float *a, const float *b, float *y);
void bt_hypot_f32_ref(const bt_binary *p, const float *a, const float *b, float *y);
#endif

#endif
