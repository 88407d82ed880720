/* y[i, j, k] = f(x[i, j, k, l, m, n] for all l, m, n)
 * i, j, k run over the axes that are kept and l, m, n over those that are reduced; steps are in elements of x. */
#ifndef BT_REDUCE_H
#define BT_REDUCE_H

#include "../bt.h"

typedef struct {
    int32_t kept[3];
    int32_t kept_step[3];
    int32_t reduced[3];
    int32_t reduced_step[3];
    float divisor; /* of the sum (mean) or the sum of squared deviations (var, std) */
} bt_reduce;

#ifndef BT_INLINE_KERNELS
void bt_sum_f32_ref(const bt_reduce *p, const float *x, float *y);
void bt_sum_s32_ref(const bt_reduce *p, const int32_t *x, int64_t *y); /* integers wrap around */
void bt_sum_s64_ref(const bt_reduce *p, const int64_t *x, int64_t *y);
void bt_sum_bool_ref(const bt_reduce *p, const uint8_t *x, int64_t *y);
void bt_mean_f32_ref(const bt_reduce *p, const float *x, float *y);
void bt_prod_f32_ref(const bt_reduce *p, const float *x, float *y);

/* The largest and the smallest; NaN if one is NaN. */
void bt_amax_f32_ref(const bt_reduce *p, const float *x, float *y);
void bt_amax_s32_ref(const bt_reduce *p, const int32_t *x, int32_t *y);
void bt_amax_s64_ref(const bt_reduce *p, const int64_t *x, int64_t *y);
void bt_amin_f32_ref(const bt_reduce *p, const float *x, float *y);
void bt_amin_s32_ref(const bt_reduce *p, const int32_t *x, int32_t *y);
void bt_amin_s64_ref(const bt_reduce *p, const int64_t *x, int64_t *y);

/* 1 if any, or all, are not zero. */
void bt_any_f32_ref(const bt_reduce *p, const float *x, uint8_t *y);
void bt_any_s32_ref(const bt_reduce *p, const int32_t *x, uint8_t *y);
void bt_any_s64_ref(const bt_reduce *p, const int64_t *x, uint8_t *y);
void bt_any_bool_ref(const bt_reduce *p, const uint8_t *x, uint8_t *y);
void bt_all_f32_ref(const bt_reduce *p, const float *x, uint8_t *y);
void bt_all_s32_ref(const bt_reduce *p, const int32_t *x, uint8_t *y);
void bt_all_s64_ref(const bt_reduce *p, const int64_t *x, uint8_t *y);
void bt_all_bool_ref(const bt_reduce *p, const uint8_t *x, uint8_t *y);

/* The sum of absolute values, the root of the sum of squares, the largest and the smallest absolute value. */
void bt_norm_1_f32_ref(const bt_reduce *p, const float *x, float *y);
void bt_norm_2_f32_ref(const bt_reduce *p, const float *x, float *y);
void bt_norm_max_f32_ref(const bt_reduce *p, const float *x, float *y);
void bt_norm_min_f32_ref(const bt_reduce *p, const float *x, float *y);

/* Two passes: the mean, then the squared deviations from it. */
void bt_var_f32_ref(const bt_reduce *p, const float *x, float *y);
void bt_std_f32_ref(const bt_reduce *p, const float *x, float *y);

void bt_logsumexp_f32_ref(const bt_reduce *p, const float *x, float *y);
#endif

#endif
