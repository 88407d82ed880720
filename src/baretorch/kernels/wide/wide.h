/* Between float32, int8 and int16; int16 has the zero point 0. */
#ifndef BT_WIDE_H
#define BT_WIDE_H

#include "../int8.h"

typedef struct {
    int32_t count;
    int32_t zero; /* of int8 */
    float factor; /* quantize: 1 / scale; dequantize: scale */
} bt_wide_form;

#ifndef BT_INLINE_KERNELS
/* y = 128 * (x - zero), which is exact */
void bt_widen_ref(const bt_wide_form *p, const int8_t *x, int16_t *y);
/* y = clamp(zero + x / 128, half up) */
void bt_narrow_ref(const bt_wide_form *p, const int16_t *x, int8_t *y);
/* y = clamp(x * factor, half to even); NaN gives 0 */
void bt_quantize16_ref(const bt_wide_form *p, const float *x, int16_t *y);
/* y = x * factor */
void bt_dequantize16_ref(const bt_wide_form *p, const int16_t *x, float *y);
#endif

#endif
