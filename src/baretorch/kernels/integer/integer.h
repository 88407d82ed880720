/* Operators of integer networks: whole numbers without scales. A byte holds a number less its `zero`. */
#ifndef BT_INTEGER_H
#define BT_INTEGER_H

#include "../elementwise/elementwise.h"
#include "../int8.h"
#include "../matrices.h"

/* y[n, h, w, o] = bias[o] + sum over kh, kw and i of (x - x_zero) * weight[o, kh, kw, i]; the bias has the x_zero */
typedef struct {
    int32_t batch;
    int32_t in_h, in_w, in;
    int32_t out_h, out_w, out;
    int32_t kernel_h, kernel_w;
    int32_t stride_h, stride_w;
    int32_t pad_top, pad_left;
    int32_t dilation_h, dilation_w;
    int32_t groups;
    int32_t x_zero;
} bt_int_conv2d;

/* y[.., i, j] = sum over l of (a[.., i, l] - a_zero) * (b[.., l, j] - b_zero), with steps as those of bt_qmatmul */
typedef struct {
    int32_t batch[3];
    int32_t m;
    int32_t k;
    int32_t n;
    int32_t a_step[5];
    int32_t b_step[5];
    int32_t y_step[5];
    int32_t a_zero, b_zero;
} bt_int_matmul;

/* y = clamp(zero + ((a * b + c + round) >> shift), lo, hi), round = 2^(shift - 1) or 0 */
typedef struct {
    int32_t shape[4];
    int32_t a_step[4];
    int32_t b_step[4];
    int32_t c_step[4];
    int32_t shift;
    int32_t round;
    int32_t zero;
    int32_t lo, hi;
} bt_requant_shift;

/* y[i] = table[x[i]], x taken as an unsigned byte */
typedef struct {
    int32_t count;
} bt_int_table;

/* y = a * factor * slope / (b * slope + offset), half away from 0, limited to 32 bits; the divisor is above 0 */
typedef struct {
    int32_t shape[4];
    int32_t a_step[4];
    int32_t b_step[4];
    int32_t factor;
    int32_t slope;
    int32_t offset;
} bt_int_divide;

/* y = zero + weight of x times most / sum of all weights, rounded down. weights: by the distance from the largest x */
typedef struct {
    int32_t rows;
    int32_t length;
    int32_t most;
    int32_t zero;
} bt_int_softmax;

/* y = zero + ((most * 256 / sum of 2^(8 - s)) >> s), where s is a 32nd of the distance from the largest x. With groups of
 * `group` numbers, the largest is that of the groups so far, and the sum is shifted where a group has a larger one. */
typedef struct {
    int32_t rows;
    int32_t length;
    int32_t group;
    int32_t most;
    int32_t zero;
} bt_ita_softmax;

/* y = clamp(((d * weight / root(mean of d^2 + 1)) + bias) >> shift, lo, hi) with d = x - x_zero, and, if centred, less its
 * mean. Quotients and the mean are rounded toward 0, mean and root of the squares down. */
typedef struct {
    int32_t rows;
    int32_t length;
    int32_t x_zero;
    int32_t centred;
    int32_t shift;
    int32_t lo, hi;
} bt_int_norm;

#ifndef BT_INLINE_KERNELS
void bt_int_conv2d_ref(const bt_int_conv2d *p, const int8_t *x, const BT_FLASH int8_t *weight,
                       const BT_FLASH int32_t *bias, int32_t *y);
void bt_int_matmul_ref(const bt_int_matmul *p, const int8_t *a, const int8_t *b, int32_t *y);
void bt_requant_shift_ref(const bt_requant_shift *p, const int32_t *a, const int32_t *b, const int32_t *c, int8_t *y);
void bt_int_table_ref(const bt_int_table *p, const int8_t *x, const BT_FLASH int32_t *table, int32_t *y);
void bt_int_divide_ref(const bt_int_divide *p, const int32_t *a, const int32_t *b, int32_t *y);
void bt_int_softmax_ref(const bt_int_softmax *p, const int8_t *x, const BT_FLASH int32_t *weights, int8_t *y);
void bt_ita_softmax_ref(const bt_ita_softmax *p, const int8_t *x, int8_t *y);
void bt_int_norm_ref(const bt_int_norm *p, const int8_t *x, const BT_FLASH int32_t *weight,
                     const BT_FLASH int32_t *bias, int8_t *y);

/* |d * weight| + |bias| are below 2^31. */
void bt_int_norm_short_ref(const bt_int_norm *p, const int8_t *x, const BT_FLASH int32_t *weight,
                           const BT_FLASH int32_t *bias, int8_t *y);
#endif

#endif
