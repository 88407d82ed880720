/* lerp:  y = a + weight * (b - a)
 * qlerp: y = clamp((a * a_factor + b * b_factor + offset) >> shift) */
#ifndef BT_LERP_H
#define BT_LERP_H

#include "../int8.h"

typedef struct {
    int32_t count;
    float weight;
} bt_lerp_f32;

typedef struct {
    int32_t count;
    int32_t a_factor, b_factor;
    int32_t offset;
    int32_t shift;
} bt_qlerp;

#ifndef BT_INLINE_KERNELS
void bt_lerp_f32_ref(const bt_lerp_f32 *p, const float *a, const float *b, float *y);
void bt_qlerp_ref(const bt_qlerp *p, const int8_t *a, const int8_t *b, int8_t *y);
void bt_qlerp_dsp(const bt_qlerp *p, const int8_t *a, const int8_t *b, int8_t *y);
#endif

#endif
