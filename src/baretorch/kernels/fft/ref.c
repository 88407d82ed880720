#include "fft.h"

/* The transform of n complex numbers in a: one pass per prime factor of n, from a to b and back, each of which leaves
 * the numbers in the order that the next one wants. The result is where this points. `sign`: -1 for the inverse. */
static inline float *bt_dft_f32(int32_t n, float sign, const BT_FLASH float *roots, float *a, float *b)
{
    int32_t done = 1;
    for (int32_t left = n; left > 1;) {
        int32_t radix = 2;
        while (left % radix)
            radix++;
        left /= radix;
        int32_t apart = left * done;
        for (int32_t i = 0; i < left; i++)
            for (int32_t k = 0; k < radix; k++)
                for (int32_t q = 0; q < done; q++) {
                    float re = 0.0f, im = 0.0f;
                    int32_t root = i * k * done;
                    for (int32_t j = 0; j < radix; j++) {
                        const float *v = a + 2 * (q + done * i + apart * j);
                        float c = roots[2 * root], s = sign * roots[2 * root + 1];
                        re += c * v[0] - s * v[1];
                        im += c * v[1] + s * v[0];
                        root += k * apart;
                        root -= root < n ? 0 : n;
                    }
                    float *to = b + 2 * (q + done * (radix * i + k));
                    to[0] = re;
                    to[1] = im;
                }
        done *= radix;
        float *other = a;
        a = b;
        b = other;
    }
    return a;
}

BT_KERNEL void bt_rfft_f32_ref(const bt_fft_f32 *p, const float *x, const BT_FLASH float *roots, float *y,
                               void *scratch)
{
    float *a = (float *)scratch;
    for (int32_t c = 0; c < p->count; c++) {
        for (int32_t i = 0; i < p->n; i++) {
            a[2 * i] = *x++;
            a[2 * i + 1] = 0.0f;
        }
        const float *z = bt_dft_f32(p->n, 1.0f, roots, a, a + 2 * p->n);
        for (int32_t i = 0; i < 2 * (p->n / 2 + 1); i++)
            *y++ = p->scale * z[i];
    }
}

BT_KERNEL void bt_irfft_f32_ref(const bt_fft_f32 *p, const float *x, const BT_FLASH float *roots, float *y,
                                void *scratch)
{
    float *a = (float *)scratch;
    for (int32_t c = 0; c < p->count; c++, x += 2 * (p->n / 2 + 1)) {
        a[0] = x[0];
        a[1] = 0.0f;
        for (int32_t k = 1; k <= p->n / 2; k++) {
            a[2 * k] = a[2 * (p->n - k)] = x[2 * k];
            a[2 * (p->n - k) + 1] = -x[2 * k + 1];
            a[2 * k + 1] = 2 * k == p->n ? 0.0f : x[2 * k + 1];
        }
        const float *z = bt_dft_f32(p->n, -1.0f, roots, a, a + 2 * p->n);
        for (int32_t i = 0; i < p->n; i++)
            *y++ = p->scale * z[2 * i];
    }
}

BT_KERNEL void bt_fft_f32_ref(const bt_fft_f32 *p, const float *x, const BT_FLASH float *roots, float *y, void *scratch)
{
    float *a = (float *)scratch;
    for (int32_t c = 0; c < p->count; c++) {
        for (int32_t i = 0; i < 2 * p->n; i++)
            a[i] = *x++;
        const float *z = bt_dft_f32(p->n, p->inverse ? -1.0f : 1.0f, roots, a, a + 2 * p->n);
        for (int32_t i = 0; i < 2 * p->n; i++)
            *y++ = p->scale * z[i];
    }
}
