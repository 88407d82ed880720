/* Discrete Fourier transforms of rows, X[k] = scale * sum over m of x[m] e^(-2 pi i m k / n). A complex number is two
 * floats, its real and its imaginary part.
 *
 * rfft:  y[count, n / 2 + 1, 2] from x[count, n]; the other half of the spectrum mirrors this one
 * irfft: y[count, n] from such a half, with e^(+2 pi i ...); imaginary parts that should be 0 are taken for 0
 * fft:   y[count, n, 2] from x[count, n, 2], with e^(+2 pi i ...) if `inverse` */
#ifndef BT_FFT_H
#define BT_FFT_H

#include "../bt.h"

typedef struct {
    int32_t count;
    int32_t n;
    int32_t inverse;
    float scale;
} bt_fft_f32;

/* The passes over n complex numbers, a power of 2: n = first * 8^eights * 4^fours * 4. */
typedef struct {
    int32_t count;
    int32_t n;
    int32_t inverse;
    int32_t first; /* 4 or 8 */
    int32_t eights;
    int32_t fours;
    float scale;
} bt_fft_passes_f32;

#ifndef BT_INLINE_KERNELS
/* Any n. roots: e^(-2 pi i k / n) for k < n. scratch: 2 * n complex numbers. */
void bt_rfft_f32_ref(const bt_fft_f32 *p, const float *x, const BT_FLASH float *roots, float *y, void *scratch);
void bt_irfft_f32_ref(const bt_fft_f32 *p, const float *x, const BT_FLASH float *roots, float *y, void *scratch);
void bt_fft_f32_ref(const bt_fft_f32 *p, const float *x, const BT_FLASH float *roots, float *y, void *scratch);
/* Powers of 2; see passes.c for the tables. The transforms of real rows have n / 2 complex numbers. */
void bt_rfft_f32_passes(const bt_fft_passes_f32 *p, const float *x, const BT_FLASH int16_t *order,
                        const BT_FLASH float *roots, float *y);
void bt_irfft_f32_passes(const bt_fft_passes_f32 *p, const float *x, const BT_FLASH int16_t *order,
                         const BT_FLASH float *roots, float *y, void *scratch);
void bt_fft_f32_passes(const bt_fft_passes_f32 *p, const float *x, const BT_FLASH int16_t *order,
                       const BT_FLASH float *roots, float *y);
#endif

#endif
