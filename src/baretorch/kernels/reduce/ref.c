#include "reduce.h"

#include "../math/log.h"
#include "../math/round.h"
#include "fold.h"

#define BT_LARGER (b > a || b != b ? b : a)
#define BT_SMALLER (b < a || b != b ? b : a)

BT_FOLD(bt_fold_sum_s32, int32_t, uint64_t, 0u, (uint64_t)(int64_t)v, a + b)
BT_FOLD(bt_fold_sum_s64, int64_t, uint64_t, 0u, (uint64_t)v, a + b)
BT_FOLD(bt_fold_sum_bool, uint8_t, uint64_t, 0u, v, a + b)
BT_FOLD(bt_fold_prod_f32, float, float, 1.0f, v, a * b)
BT_FOLD(bt_fold_max_f32, float, float, -BT_INF, v, BT_LARGER)
BT_FOLD(bt_fold_max_s32, int32_t, int32_t, INT32_MIN, v, b > a ? b : a)
BT_FOLD(bt_fold_max_s64, int64_t, int64_t, INT64_MIN, v, b > a ? b : a)
BT_FOLD(bt_fold_min_f32, float, float, BT_INF, v, BT_SMALLER)
BT_FOLD(bt_fold_min_s32, int32_t, int32_t, INT32_MAX, v, b < a ? b : a)
BT_FOLD(bt_fold_min_s64, int64_t, int64_t, INT64_MAX, v, b < a ? b : a)
BT_FOLD(bt_fold_sizes_f32, float, float, 0.0f, bt_abs_f32(v), a + b)
BT_FOLD(bt_fold_max_size_f32, float, float, 0.0f, bt_abs_f32(v), BT_LARGER)
BT_FOLD(bt_fold_min_size_f32, float, float, BT_INF, bt_abs_f32(v), BT_SMALLER)
BT_FOLD(bt_fold_exp_f32, float, float, 0.0f, bt_exp_f32(v - c), a + b)

BT_FOLD(bt_fold_true_f32, float, uint32_t, 0u, v != 0.0f, a | b)
BT_FOLD(bt_fold_true_s32, int32_t, uint32_t, 0u, v != 0, a | b)
BT_FOLD(bt_fold_true_s64, int64_t, uint32_t, 0u, v != 0, a | b)
BT_FOLD(bt_fold_true_bool, uint8_t, uint32_t, 0u, v != 0, a | b)
BT_FOLD(bt_fold_false_f32, float, uint32_t, 0u, v == 0.0f, a | b)
BT_FOLD(bt_fold_false_s32, int32_t, uint32_t, 0u, v == 0, a | b)
BT_FOLD(bt_fold_false_s64, int64_t, uint32_t, 0u, v == 0, a | b)
BT_FOLD(bt_fold_false_bool, uint8_t, uint32_t, 0u, v == 0, a | b)

BT_INLINE float bt_deviations_f32(const bt_reduce *p, const float *x)
{
    float mean;
    return bt_variance_f32(p->reduced, p->reduced_step, x, p->divisor, &mean);
}

/* The largest is taken out first so that nothing overflows; an infinite one stays where it is, as inf - inf is NaN. */
BT_INLINE float bt_logsumexp_f32(const bt_reduce *p, const float *x)
{
    float max = bt_fold_max_f32(p->reduced, p->reduced_step, x, 0.0f);
    if (max == BT_INF || max == -BT_INF)
        max = 0.0f;
    return bt_log_f32(bt_fold_exp_f32(p->reduced, p->reduced_step, x, max)) + max;
}

/* A kernel from an expression of `from`, where the elements begin that become one. */
#define BT_REDUCE_REF(symbol, T, R, expression)                                                                     \
    BT_KERNEL void symbol(const bt_reduce *p, const T *x, R *y)                                                     \
    {                                                                                                               \
        for (int32_t i = 0; i < p->kept[0]; i++)                                                                    \
            for (int32_t j = 0; j < p->kept[1]; j++)                                                                \
                for (int32_t k = 0; k < p->kept[2]; k++) {                                                          \
                    const T *from = x + i * p->kept_step[0] + j * p->kept_step[1] + k * p->kept_step[2];            \
                    *y++ = (R)(expression);                                                                         \
                }                                                                                                   \
    }

#define BT_ALL(fold) fold(p->reduced, p->reduced_step, from, 0)

BT_REDUCE_REF(bt_sum_f32_ref, float, float, BT_ALL(bt_fold_sum_f32))
BT_REDUCE_REF(bt_sum_s32_ref, int32_t, int64_t, BT_ALL(bt_fold_sum_s32))
BT_REDUCE_REF(bt_sum_s64_ref, int64_t, int64_t, BT_ALL(bt_fold_sum_s64))
BT_REDUCE_REF(bt_sum_bool_ref, uint8_t, int64_t, BT_ALL(bt_fold_sum_bool))
BT_REDUCE_REF(bt_mean_f32_ref, float, float, BT_ALL(bt_fold_sum_f32) / p->divisor)
BT_REDUCE_REF(bt_prod_f32_ref, float, float, BT_ALL(bt_fold_prod_f32))
BT_REDUCE_REF(bt_amax_f32_ref, float, float, BT_ALL(bt_fold_max_f32))
BT_REDUCE_REF(bt_amax_s32_ref, int32_t, int32_t, BT_ALL(bt_fold_max_s32))
BT_REDUCE_REF(bt_amax_s64_ref, int64_t, int64_t, BT_ALL(bt_fold_max_s64))
BT_REDUCE_REF(bt_amin_f32_ref, float, float, BT_ALL(bt_fold_min_f32))
BT_REDUCE_REF(bt_amin_s32_ref, int32_t, int32_t, BT_ALL(bt_fold_min_s32))
BT_REDUCE_REF(bt_amin_s64_ref, int64_t, int64_t, BT_ALL(bt_fold_min_s64))
BT_REDUCE_REF(bt_any_f32_ref, float, uint8_t, BT_ALL(bt_fold_true_f32))
BT_REDUCE_REF(bt_any_s32_ref, int32_t, uint8_t, BT_ALL(bt_fold_true_s32))
BT_REDUCE_REF(bt_any_s64_ref, int64_t, uint8_t, BT_ALL(bt_fold_true_s64))
BT_REDUCE_REF(bt_any_bool_ref, uint8_t, uint8_t, BT_ALL(bt_fold_true_bool))
BT_REDUCE_REF(bt_all_f32_ref, float, uint8_t, !BT_ALL(bt_fold_false_f32))
BT_REDUCE_REF(bt_all_s32_ref, int32_t, uint8_t, !BT_ALL(bt_fold_false_s32))
BT_REDUCE_REF(bt_all_s64_ref, int64_t, uint8_t, !BT_ALL(bt_fold_false_s64))
BT_REDUCE_REF(bt_all_bool_ref, uint8_t, uint8_t, !BT_ALL(bt_fold_false_bool))
BT_REDUCE_REF(bt_norm_1_f32_ref, float, float, BT_ALL(bt_fold_sizes_f32))
BT_REDUCE_REF(bt_norm_2_f32_ref, float, float, bt_sqrt_f32(BT_ALL(bt_fold_squares_f32)))
BT_REDUCE_REF(bt_norm_max_f32_ref, float, float, BT_ALL(bt_fold_max_size_f32))
BT_REDUCE_REF(bt_norm_min_f32_ref, float, float, BT_ALL(bt_fold_min_size_f32))
BT_REDUCE_REF(bt_var_f32_ref, float, float, bt_deviations_f32(p, from))
BT_REDUCE_REF(bt_std_f32_ref, float, float, bt_sqrt_f32(bt_deviations_f32(p, from)))
BT_REDUCE_REF(bt_logsumexp_f32_ref, float, float, bt_logsumexp_f32(p, from))

#undef BT_LARGER
#undef BT_SMALLER
#undef BT_REDUCE_REF
#undef BT_ALL
