/* y[b, o] = clamp(bias[o] + sum over i of x[b, i] * weight[o, i], lo, hi) */
#ifndef BT_LINEAR_H
#define BT_LINEAR_H

#include "../bt.h"

typedef struct {
    int32_t batch;
    int32_t in;
    int32_t out;
    float lo;
    float hi;
} bt_linear_f32;

#ifndef BT_INLINE_KERNELS
/* weight: [out][in] */
void bt_linear_f32_ref(const bt_linear_f32 *p, const float *x, const BT_FLASH float *weight,
                       const BT_FLASH float *bias, float *y);

/* weight: of each row the band that is not 0, in fours; bands: where it begins, and how many fours it has. The rest
 * is not read, not even to make NaN of 0 times infinity. */
void bt_linear_f32_banded(const bt_linear_f32 *p, const float *x, const BT_FLASH float *weight,
                          const BT_FLASH float *bias, const BT_FLASH int16_t *bands, float *y);

/* weight: packed in eights, see windows.h */
void bt_linear_f32_vectors(const bt_linear_f32 *p, const float *x, const float *weight, const float *bias, float *y);
void bt_linear_f32_fpu(const bt_linear_f32 *p, const float *x, const float *weight, const float *bias, float *y);
void bt_linear_f32_mve(const bt_linear_f32 *p, const float *x, const float *weight, const float *bias, float *y);

/* weight: halves, [out][in]; then halves in eights, see half_eights.h */
void bt_linear_half_f32_ref(const bt_linear_f32 *p, const float *x, const BT_FLASH int16_t *weight,
                            const BT_FLASH float *bias, float *y);
void bt_linear_half_f32_fpu(const bt_linear_f32 *p, const float *x, const int32_t *weight, const float *bias, float *y);
void bt_linear_half_f32_mve(const bt_linear_f32 *p, const float *x, const int32_t *weight, const float *bias, float *y);
#endif

#endif
