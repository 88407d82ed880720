/* One output element from one element of each input: parameters, and arithmetic. */
#ifndef BT_ELEMENTWISE_H
#define BT_ELEMENTWISE_H

#include "../bt.h"

/* y[i] = f(x[i]) */
typedef struct {
    int32_t count;
} bt_unary;

/* y[i] = clamp(x[i], lo, hi) */
typedef struct {
    int32_t count;
    float lo;
    float hi;
} bt_limit_f32;

/* y[i, j, k, l] = f(a[i, j, k, l], b[i, j, k, l])
 * over steps in elements; a step of 0 repeats the element (broadcasting). */
typedef struct {
    int32_t shape[4];
    int32_t a_step[4];
    int32_t b_step[4];
} bt_binary;

/* The same, limited to [lo, hi]. */
typedef struct {
    int32_t shape[4];
    int32_t a_step[4];
    int32_t b_step[4];
    float lo;
    float hi;
} bt_binary_f32;

#ifndef BT_INLINE_KERNELS
void bt_clamp_f32_ref(const bt_limit_f32 *p, const float *x, float *y);
void bt_add_f32_ref(const bt_binary_f32 *p, const float *a, const float *b, float *y);
void bt_sub_f32_ref(const bt_binary_f32 *p, const float *a, const float *b, float *y);
void bt_mul_f32_ref(const bt_binary_f32 *p, const float *a, const float *b, float *y);
void bt_div_f32_ref(const bt_binary_f32 *p, const float *a, const float *b, float *y);
void bt_floor_divide_f32_ref(const bt_binary *p, const float *a, const float *b, float *y);
void bt_trunc_divide_f32_ref(const bt_binary *p, const float *a, const float *b, float *y);
void bt_remainder_f32_ref(const bt_binary *p, const float *a, const float *b, float *y);
void bt_fmod_f32_ref(const bt_binary *p, const float *a, const float *b, float *y);
void bt_minimum_f32_ref(const bt_binary *p, const float *a, const float *b, float *y);
void bt_maximum_f32_ref(const bt_binary *p, const float *a, const float *b, float *y);
void bt_minimum_s8_ref(const bt_binary *p, const int8_t *a, const int8_t *b, int8_t *y);
void bt_maximum_s8_ref(const bt_binary *p, const int8_t *a, const int8_t *b, int8_t *y);
void bt_pow_f32_ref(const bt_binary *p, const float *a, const float *b, float *y);

/* Both inputs have the output's shape. */
void bt_add_f32_fpu(const bt_binary_f32 *p, const float *a, const float *b, float *y);
void bt_sub_f32_fpu(const bt_binary_f32 *p, const float *a, const float *b, float *y);
void bt_mul_f32_fpu(const bt_binary_f32 *p, const float *a, const float *b, float *y);

/* Integers wrap. A quotient by 0 is 0, and its remainder the dividend. */
#define BT_INTEGER_DECLARATIONS(type, T)                                                      \
    void bt_add_##type##_ref(const bt_binary *p, const T *a, const T *b, T *y);               \
    void bt_sub_##type##_ref(const bt_binary *p, const T *a, const T *b, T *y);               \
    void bt_mul_##type##_ref(const bt_binary *p, const T *a, const T *b, T *y);               \
    void bt_floor_divide_##type##_ref(const bt_binary *p, const T *a, const T *b, T *y);      \
    void bt_trunc_divide_##type##_ref(const bt_binary *p, const T *a, const T *b, T *y);      \
    void bt_remainder_##type##_ref(const bt_binary *p, const T *a, const T *b, T *y);         \
    void bt_fmod_##type##_ref(const bt_binary *p, const T *a, const T *b, T *y);              \
    void bt_minimum_##type##_ref(const bt_binary *p, const T *a, const T *b, T *y);           \
    void bt_maximum_##type##_ref(const bt_binary *p, const T *a, const T *b, T *y);

BT_INTEGER_DECLARATIONS(s32, int32_t)
BT_INTEGER_DECLARATIONS(s64, int64_t)
#undef BT_INTEGER_DECLARATIONS
#endif

#endif
