/* One output element from one element of each input. */
#ifndef BT_ELEMENTWISE_H
#define BT_ELEMENTWISE_H

#include "../bt.h"

/* y[i] = f(x[i]) */
typedef struct {
    int32_t count;
} bt_unary_f32;

/* y[i] = clamp(x[i], lo, hi) */
typedef struct {
    int32_t count;
    float lo;
    float hi;
} bt_limit_f32;

/* y[i, j, k, l] = clamp(f(a[i, j, k, l], b[i, j, k, l]), lo, hi)
 * over steps in elements; a step of 0 repeats the element (broadcasting). */
typedef struct {
    int32_t shape[4];
    int32_t a_step[4];
    int32_t b_step[4];
    float lo;
    float hi;
} bt_binary_f32;

#ifndef BT_INLINE_KERNELS
void bt_clamp_f32_ref(const bt_limit_f32 *p, const float *x, float *y);
void bt_tanh_f32_ref(const bt_unary_f32 *p, const float *x, float *y);
void bt_sigmoid_f32_ref(const bt_unary_f32 *p, const float *x, float *y);
void bt_add_f32_ref(const bt_binary_f32 *p, const float *a, const float *b, float *y);
void bt_mul_f32_ref(const bt_binary_f32 *p, const float *a, const float *b, float *y);
#endif

#endif
