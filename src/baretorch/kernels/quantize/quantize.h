/* Between float32 and int8. */
#ifndef BT_QUANTIZE_H
#define BT_QUANTIZE_H

#include "../int8.h"

typedef struct {
    int32_t count;
    int32_t zero;
    float factor; /* quantize: 1 / scale; dequantize: scale */
} bt_quantize;

#ifndef BT_INLINE_KERNELS
/* y = clamp(x * factor rounded half to even + zero); NaN gives zero */
void bt_quantize_ref(const bt_quantize *p, const float *x, int8_t *y);
/* y = (x - zero) * factor */
void bt_dequantize_ref(const bt_quantize *p, const int8_t *x, float *y);

/* The same without float arithmetic; 2^-100 < factor < 2^100. */
void bt_quantize_soft(const bt_quantize *p, const float *x, int8_t *y);
void bt_dequantize_soft(const bt_quantize *p, const int8_t *x, float *y);

void bt_quantize_fpu(const bt_quantize *p, const float *x, int8_t *y);
void bt_dequantize_fpu(const bt_quantize *p, const int8_t *x, float *y);

void bt_quantize_mve(const bt_quantize *p, const float *x, int8_t *y);
void bt_dequantize_mve(const bt_quantize *p, const int8_t *x, float *y);
#endif

#endif
