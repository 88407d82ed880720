/* Fourier transforms of n = 2^m complex numbers, decimated in time, in passes of radix 8 and 4.
 *
 * The first pass takes the numbers from x in digit-reversed order and leaves groups of 8 or 4 in y; the passes in the
 * middle work in y, radix 8 first; the last, of radix 4, knows how the result is stored: as it is, with real and
 * imaginary parts exchanged (which, if they were exchanged in x as well, is the inverse), or as the spectrum of the 2n
 * real numbers that the n complex ones are: numbers k, n - k and what they need of each other meet in this pass.
 *
 * order: for each group of the first pass, where its first number is in x, in floats
 * roots: for the pass of radix r over spans of s: e^(-2 pi i j k / rs) for k = 1 ... s - 1 and j = 1 ... r - 1;
 *        then those of the last pass
 *
 * 512 real numbers on mps2-an386, three passes over 256 complex ones: 12,910 instructions. */
#include "fft.h"

typedef struct {
    float r, i;
} bt_complex;

BT_INLINE bt_complex bt_c_at(const float *at, int32_t swap)
{
    bt_complex z = {at[swap], at[1 - swap]};
    return z;
}

BT_INLINE void bt_c_to(float *at, bt_complex z, int32_t swap, float scale)
{
    at[swap] = z.r * scale;
    at[1 - swap] = z.i * scale;
}

BT_INLINE bt_complex bt_c_add(bt_complex a, bt_complex b)
{
    bt_complex z = {a.r + b.r, a.i + b.i};
    return z;
}

BT_INLINE bt_complex bt_c_sub(bt_complex a, bt_complex b)
{
    bt_complex z = {a.r - b.r, a.i - b.i};
    return z;
}

BT_INLINE bt_complex bt_c_mul(bt_complex a, float c, float s)
{
    bt_complex z = {a.r * c - a.i * s, a.i * c + a.r * s};
    return z;
}

/* The transform of four numbers, in place. */
BT_INLINE void bt_c_four(bt_complex *a, bt_complex *b, bt_complex *c, bt_complex *d)
{
    bt_complex s = bt_c_add(*a, *c), t = bt_c_sub(*a, *c);
    bt_complex u = bt_c_add(*b, *d), v = bt_c_sub(*b, *d);
    *a = bt_c_add(s, u);
    *c = bt_c_sub(s, u);
    b->r = t.r + v.i;
    b->i = t.i - v.r;
    d->r = t.r - v.i;
    d->i = t.i + v.r;
}

/* The transform of eight numbers, in place. */
BT_INLINE void bt_c_eight(bt_complex *z)
{
    const float h = 0.70710678f;
    bt_c_four(&z[0], &z[2], &z[4], &z[6]);
    bt_c_four(&z[1], &z[3], &z[5], &z[7]);
    bt_complex a = z[1], b = z[3], c = z[5], d = z[7];
    bt_complex e = z[0], f = z[2], g = z[4], k = z[6];
    z[0] = bt_c_add(e, a);
    z[4] = bt_c_sub(e, a);
    float s = b.r + b.i, t = b.i - b.r;
    z[1].r = f.r + h * s;
    z[1].i = f.i + h * t;
    z[5].r = f.r - h * s;
    z[5].i = f.i - h * t;
    z[2].r = g.r + c.i;
    z[2].i = g.i - c.r;
    z[6].r = g.r - c.i;
    z[6].i = g.i + c.r;
    s = d.i - d.r;
    t = d.r + d.i;
    z[3].r = k.r + h * s;
    z[3].i = k.i - h * t;
    z[7].r = k.r - h * s;
    z[7].i = k.i + h * t;
}

BT_INLINE void bt_fft_first(int32_t n, int32_t radix, int32_t swap, const float *x, const BT_FLASH int16_t *order,
                            float *y)
{
    int32_t apart = 2 * (n / radix);
    for (int32_t i = 0; i < n / radix; i++, y += 2 * radix) {
        const float *from = x + order[i];
        bt_complex z[8];
        if (radix == 8) {
            BT_UNROLL_8
            for (int32_t j = 0; j < 8; j++)
                z[j] = bt_c_at(from + j * apart, swap);
            bt_c_eight(z);
            BT_UNROLL_8
            for (int32_t j = 0; j < 8; j++)
                bt_c_to(y + 2 * j, z[j], 0, 1.0f);
        } else {
            BT_UNROLL_8
            for (int32_t j = 0; j < 4; j++)
                z[j] = bt_c_at(from + j * apart, swap);
            bt_c_four(&z[0], &z[1], &z[2], &z[3]);
            BT_UNROLL_8
            for (int32_t j = 0; j < 4; j++)
                bt_c_to(y + 2 * j, z[j], 0, 1.0f);
        }
    }
}

BT_INLINE void bt_fft_eight(float *y, int32_t span, const BT_FLASH float *w)
{
    bt_complex z[8];
    z[0] = bt_c_at(y, 0);
    BT_UNROLL_8
    for (int32_t j = 1; j < 8; j++) {
        z[j] = bt_c_at(y + 2 * span * j, 0);
        if (w)
            z[j] = bt_c_mul(z[j], w[2 * j - 2], w[2 * j - 1]);
    }
    bt_c_eight(z);
    BT_UNROLL_8
    for (int32_t j = 0; j < 8; j++)
        bt_c_to(y + 2 * span * j, z[j], 0, 1.0f);
}

/* A pass of radix 8 over groups of 8 spans; gives where the next pass's roots are. */
BT_INLINE const BT_FLASH float *bt_fft_eights(int32_t n, int32_t span, const BT_FLASH float *roots, float *y)
{
    for (int32_t g = 0; g < n; g += 8 * span)
        bt_fft_eight(y + 2 * g, span, (const BT_FLASH float *)0);
    for (int32_t k = 1; k < span; k++, roots += 14)
        for (int32_t g = k; g < n; g += 8 * span)
            bt_fft_eight(y + 2 * g, span, roots);
    return roots;
}

BT_INLINE void bt_fft_four(float *y, int32_t span, const BT_FLASH float *w, int32_t swap, float scale)
{
    bt_complex a = bt_c_at(y, 0), b = bt_c_at(y + 2 * span, 0), c = bt_c_at(y + 4 * span, 0),
               d = bt_c_at(y + 6 * span, 0);
    if (w) {
        b = bt_c_mul(b, w[0], w[1]);
        c = bt_c_mul(c, w[2], w[3]);
        d = bt_c_mul(d, w[4], w[5]);
    }
    bt_c_four(&a, &b, &c, &d);
    bt_c_to(y, a, swap, scale);
    bt_c_to(y + 2 * span, b, swap, scale);
    bt_c_to(y + 4 * span, c, swap, scale);
    bt_c_to(y + 6 * span, d, swap, scale);
}

/* The same of radix 4. */
BT_INLINE const BT_FLASH float *bt_fft_fours(int32_t n, int32_t span, const BT_FLASH float *roots, float *y,
                                             int32_t swap, float scale)
{
    for (int32_t g = 0; g < n; g += 4 * span)
        bt_fft_four(y + 2 * g, span, (const BT_FLASH float *)0, swap, scale);
    for (int32_t k = 1; k < span; k++, roots += 6)
        for (int32_t g = k; g < n; g += 4 * span)
            bt_fft_four(y + 2 * g, span, roots, swap, scale);
    return roots;
}

/* All passes but the last. Passes are written out, so that each has its literal span where the kernel is inlined. */
BT_INLINE const BT_FLASH float *bt_fft_but_last(const bt_fft_passes_f32 *p, const float *x,
                                                const BT_FLASH int16_t *order, const BT_FLASH float *roots, float *y,
                                                int32_t swap)
{
    int32_t span = p->first;
    bt_fft_first(p->n, p->first, swap, x, order, y);
    if (p->eights > 0) {
        roots = bt_fft_eights(p->n, span, roots, y);
        span *= 8;
    }
    if (p->eights > 1) {
        roots = bt_fft_eights(p->n, span, roots, y);
        span *= 8;
    }
    if (p->eights > 2) {
        roots = bt_fft_eights(p->n, span, roots, y);
        span *= 8;
    }
    if (p->fours > 0) {
        roots = bt_fft_fours(p->n, span, roots, y, 0, 1.0f);
        span *= 4;
    }
    if (p->fours > 1)
        roots = bt_fft_fours(p->n, span, roots, y, 0, 1.0f);
    return roots;
}

BT_KERNEL void bt_fft_f32_passes(const bt_fft_passes_f32 *p, const float *x, const BT_FLASH int16_t *order,
                                 const BT_FLASH float *roots, float *y)
{
    for (int32_t c = 0; c < p->count; c++, x += 2 * p->n, y += 2 * p->n) {
        const BT_FLASH float *last = bt_fft_but_last(p, x, order, roots, y, p->inverse);
        bt_fft_fours(p->n, p->n / 4, last, y, p->inverse, p->scale);
    }
}

/* The numbers at k and n - k of the spectrum of n complex numbers, halved, become those of 2n real numbers.
 * u: -i e^(-pi i k / n) */
BT_INLINE void bt_fft_real_pair(float *at, float *mirror, bt_complex a, bt_complex b, float ur, float ui)
{
    float er = a.r + b.r, ei = a.i - b.i, dr = a.r - b.r, di = a.i + b.i;
    float tr = ur * dr - ui * di, ti = ur * di + ui * dr;
    at[0] = er + tr;
    at[1] = ei + ti;
    mirror[0] = er - tr;
    mirror[1] = ti - ei;
}

/* roots: for k = 1 ... n / 8 scale / 2 times e^(-2 pi i j k / n) for j = 1, 2, 3, then u at k and at k + n / 4 */
BT_INLINE void bt_fft_last_real(int32_t n, float scale, const BT_FLASH float *w, float *y)
{
    const int32_t q = n / 2; /* floats in a quarter */
    bt_complex a = bt_c_at(y, 0), b = bt_c_at(y + q, 0), c = bt_c_at(y + 2 * q, 0), d = bt_c_at(y + 3 * q, 0);
    bt_c_four(&a, &b, &c, &d);
    y[0] = scale * (a.r + a.i);
    y[1] = 0.0f;
    y[4 * q] = scale * (a.r - a.i);
    y[4 * q + 1] = 0.0f;
    y[2 * q] = scale * c.r;
    y[2 * q + 1] = -(scale * c.i);
    float h = 0.5f * scale, diagonal = -0.70710678f;
    b.r *= h;
    b.i *= h;
    d.r *= h;
    d.i *= h;
    bt_fft_real_pair(y + q, y + 3 * q, b, d, diagonal, diagonal);
    float *up = y + 2, *down = y + q - 2;
    for (; up < down; up += 2, down -= 2, w += 10) {
        a = bt_c_at(up, 0);
        a.r *= h;
        a.i *= h;
        b = bt_c_mul(bt_c_at(up + q, 0), w[0], w[1]);
        c = bt_c_mul(bt_c_at(up + 2 * q, 0), w[2], w[3]);
        d = bt_c_mul(bt_c_at(up + 3 * q, 0), w[4], w[5]);
        bt_c_four(&a, &b, &c, &d);
        bt_complex e = bt_c_at(down, 0);
        e.r *= h;
        e.i *= h;
        bt_complex f = bt_c_mul(bt_c_at(down + q, 0), -w[1], -w[0]);
        bt_complex g = bt_c_mul(bt_c_at(down + 2 * q, 0), -w[2], w[3]);
        bt_complex k = bt_c_mul(bt_c_at(down + 3 * q, 0), w[5], w[4]);
        bt_c_four(&e, &f, &g, &k);
        float ur = w[6], ui = w[7], vr = w[8], vi = w[9];
        bt_fft_real_pair(up, down + 3 * q, a, k, ur, ui);
        bt_fft_real_pair(up + q, down + 2 * q, b, g, vr, vi);
        bt_fft_real_pair(up + 2 * q, down + q, c, f, ui, -ur);
        bt_fft_real_pair(up + 3 * q, down, d, e, vi, -vr);
    }
    a = bt_c_at(up, 0);
    a.r *= h;
    a.i *= h;
    b = bt_c_mul(bt_c_at(up + q, 0), w[0], w[1]);
    c = bt_c_mul(bt_c_at(up + 2 * q, 0), w[2], w[3]);
    d = bt_c_mul(bt_c_at(up + 3 * q, 0), w[4], w[5]);
    bt_c_four(&a, &b, &c, &d);
    bt_fft_real_pair(up, up + 3 * q, a, d, w[6], w[7]);
    bt_fft_real_pair(up + q, up + 2 * q, b, c, w[8], w[9]);
}

BT_KERNEL void bt_rfft_f32_passes(const bt_fft_passes_f32 *p, const float *x, const BT_FLASH int16_t *order,
                                  const BT_FLASH float *roots, float *y)
{
    for (int32_t c = 0; c < p->count; c++, x += 2 * p->n, y += 2 * p->n + 2) {
        const BT_FLASH float *last = bt_fft_but_last(p, x, order, roots, y, 0);
        bt_fft_last_real(p->n, p->scale, last, y);
    }
}

/* The inverse of bt_fft_last_real for k and n - k, into scratch with parts exchanged; roots end with
 * e^(-pi i k / n) for k = 1 ... n / 2 - 1. */
BT_KERNEL void bt_irfft_f32_passes(const bt_fft_passes_f32 *p, const float *x, const BT_FLASH int16_t *order,
                                   const BT_FLASH float *roots, float *y, void *scratch)
{
    float *z = (float *)scratch;
    const int32_t n = p->n;
    for (int32_t c = 0; c < p->count; c++, x += 2 * n + 2, y += 2 * n) {
        const BT_FLASH float *w = roots;
        z[0] = x[0] - x[2 * n];
        z[1] = x[0] + x[2 * n];
        z[n] = -2.0f * x[n + 1];
        z[n + 1] = 2.0f * x[n];
        for (int32_t k = 2; k < n; k += 2, w += 2) {
            const float *a = x + k, *b = x + 2 * n - k;
            float er = a[0] + b[0], ei = a[1] - b[1], dr = a[0] - b[0], di = a[1] + b[1];
            float tr = w[0] * di - w[1] * dr, ti = w[0] * dr + w[1] * di;
            z[k] = ei + ti;
            z[k + 1] = er - tr;
            z[2 * n - k] = ti - ei;
            z[2 * n - k + 1] = er + tr;
        }
        const BT_FLASH float *last = bt_fft_but_last(p, z, order, w, y, 0);
        bt_fft_fours(n, n / 4, last, y, 1, p->scale);
    }
}
