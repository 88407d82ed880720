#include "signal.h"

BT_KERNEL void bt_signal_window_ref(const bt_signal_window *p, const int16_t *x, const BT_FLASH int16_t *window,
                                    int16_t *y)
{
    for (int32_t done = 0; done < p->count; done += p->n)
        for (int32_t i = 0; i < p->n; i++) {
            const int32_t v = ((int32_t)*x++ * window[i]) >> p->shift;
            *y++ = (int16_t)(v < -32768 ? -32768 : v > 32767 ? 32767 : v);
        }
}

BT_KERNEL void bt_signal_auto_scale_ref(const bt_signal_auto_scale *p, const int16_t *x, int16_t *y, int32_t *bits)
{
    int32_t largest = 0, shift = 0;
    for (int32_t i = 0; i < p->count; i++) {
        const int32_t v = x[i];
        if (v > largest)
            largest = v;
        else if (-v > largest)
            largest = v == -32768 ? v : -v; /* which wraps in 16 bits */
    }
    if (largest > 0)
        while (largest < 16384) {
            largest *= 2;
            shift++;
        }
    for (int32_t i = 0; i < p->count; i++)
        y[i] = (int16_t)((uint32_t)x[i] << shift);
    *bits = shift;
}

/* A product with 15 fractional bits, which wraps. */
BT_INLINE int16_t bt_signal_round(int32_t v)
{
    return (int16_t)((v + 16384) >> 15);
}

BT_INLINE int16_t bt_signal_times(int16_t v, int16_t factor)
{
    return bt_signal_round((int32_t)v * factor);
}

typedef struct {
    int16_t re, im;
} bt_signal_complex;

BT_INLINE bt_signal_complex bt_signal_scaled(const int16_t *v, int16_t factor)
{
    const bt_signal_complex z = {bt_signal_times(v[0], factor), bt_signal_times(v[1], factor)};
    return z;
}

BT_INLINE bt_signal_complex bt_signal_turned(bt_signal_complex v, int16_t c, int16_t s)
{
    const bt_signal_complex z = {bt_signal_round((int32_t)v.re * c - (int32_t)v.im * s),
                                 bt_signal_round((int32_t)v.re * s + (int32_t)v.im * c)};
    return z;
}

/* The pass of radix 2, which is always the first. */
BT_INLINE void bt_signal_twos(int32_t n, const BT_FLASH int16_t *roots, int16_t *y)
{
    for (int32_t i = 0; i < 2 * n; i += 4) {
        const bt_signal_complex a = bt_signal_scaled(y + i, 16383);
        const bt_signal_complex b = bt_signal_turned(bt_signal_scaled(y + i + 2, 16383), roots[0], roots[1]);
        y[i] = (int16_t)(a.re + b.re);
        y[i + 1] = (int16_t)(a.im + b.im);
        y[i + 2] = (int16_t)(a.re - b.re);
        y[i + 3] = (int16_t)(a.im - b.im);
    }
}

/* A pass of radix 4, which makes transforms of 4 * span numbers from those of span numbers. */
BT_INLINE void bt_signal_fours(int32_t n, int32_t span, const BT_FLASH int16_t *roots, int16_t *y)
{
    const int32_t stride = n / (4 * span), apart = 2 * span;
    for (int32_t k = 0; k < span; k++) {
        const BT_FLASH int16_t *r = roots + 2 * k * stride, *r2 = roots + 4 * k * stride, *r3 = roots + 6 * k * stride;
        const int16_t c1 = r[0], s1 = r[1], c2 = r2[0], s2 = r2[1], c3 = r3[0], s3 = r3[1];
        int16_t *v = y + 2 * k;
        for (int32_t i = 0; i < stride; i++, v += 4 * apart) {
            const bt_signal_complex a = bt_signal_scaled(v, 8191);
            const bt_signal_complex b = bt_signal_turned(bt_signal_scaled(v + apart, 8191), c1, s1);
            const bt_signal_complex c = bt_signal_turned(bt_signal_scaled(v + 2 * apart, 8191), c2, s2);
            const bt_signal_complex d = bt_signal_turned(bt_signal_scaled(v + 3 * apart, 8191), c3, s3);
            v[0] = (int16_t)((int32_t)a.re + c.re + b.re + d.re);
            v[1] = (int16_t)((int32_t)a.im + c.im + b.im + d.im);
            v[apart] = (int16_t)((int32_t)a.re - c.re + b.im - d.im);
            v[apart + 1] = (int16_t)((int32_t)a.im - c.im - b.re + d.re);
            v[2 * apart] = (int16_t)((int32_t)a.re + c.re - b.re - d.re);
            v[2 * apart + 1] = (int16_t)((int32_t)a.im + c.im - b.im - d.im);
            v[3 * apart] = (int16_t)((int32_t)a.re - c.re - b.im + d.im);
            v[3 * apart + 1] = (int16_t)((int32_t)a.im - c.im + b.re - d.re);
        }
    }
}

/* Makes the spectrum of 2 n real numbers, in place, from that of the n complex numbers that pairs of them are. */
BT_INLINE void bt_signal_real(int32_t n, const BT_FLASH int16_t *turns, int16_t *y)
{
    const bt_signal_complex zero = bt_signal_scaled(y, 16383);
    y[0] = (int16_t)(zero.re + zero.im);
    y[2 * n] = (int16_t)(zero.re - zero.im);
    y[1] = y[2 * n + 1] = 0;
    for (int32_t k = 1; k <= n / 2; k++, turns += 2) {
        int16_t *v = y + 2 * k, *w = y + 2 * (n - k);
        const int16_t mirror[2] = {w[0], (int16_t)-w[1]};
        const bt_signal_complex a = bt_signal_scaled(v, 16383), b = bt_signal_scaled(mirror, 16383);
        const int16_t re = (int16_t)(a.re + b.re), im = (int16_t)(a.im + b.im);
        const bt_signal_complex difference = {(int16_t)(a.re - b.re), (int16_t)(a.im - b.im)};
        const bt_signal_complex t = bt_signal_turned(difference, turns[0], turns[1]);
        v[0] = (int16_t)(((int32_t)re + t.re) >> 1);
        v[1] = (int16_t)(((int32_t)im + t.im) >> 1);
        w[0] = (int16_t)(((int32_t)re - t.re) >> 1);
        w[1] = (int16_t)(((int32_t)t.im - im) >> 1);
    }
}

BT_KERNEL void bt_signal_rfft_ref(const bt_signal_rfft *p, const int16_t *x, const BT_FLASH int16_t *order,
                                  const BT_FLASH int16_t *roots, const BT_FLASH int16_t *turns, int16_t *y)
{
    for (int32_t c = 0; c < p->count; c++, x += p->length, y += 2 * p->n + 2) {
        for (int32_t i = 0; i < p->n; i++) {
            const int32_t at = 2 * (int32_t)order[i];
            y[2 * i] = at < p->length ? x[at] : 0;
            y[2 * i + 1] = at + 1 < p->length ? x[at + 1] : 0;
        }
        if (p->first == 2)
            bt_signal_twos(p->n, roots, y);
        for (int32_t span = p->first == 2 ? 2 : 1; span < p->n; span *= 4)
            bt_signal_fours(p->n, span, roots, y);
        bt_signal_real(p->n, turns, y);
    }
}

BT_KERNEL void bt_signal_energy_ref(const bt_signal_energy *p, const int16_t *x, int32_t *y)
{
    for (int32_t i = 0; i < p->count; i++, x += 2)
        y[i] = i < p->start_index || i >= p->end_index
                   ? 0
                   : (int32_t)((uint32_t)((int32_t)x[0] * x[0]) + (uint32_t)((int32_t)x[1] * x[1]));
}

BT_KERNEL void bt_signal_filter_bank_ref(const bt_signal_filter_bank *p, const int32_t *x,
                                         const BT_FLASH int16_t *weights, const BT_FLASH int16_t *bands, int64_t *y)
{
    uint64_t sum = 0;
    for (int32_t c = -1; c < p->count; c++) {
        const int32_t *band = x + *bands++;
        const int32_t width = *bands++;
        uint64_t next = 0;
        for (int32_t i = 0; i < width; i++, weights += 2) {
            sum += (uint64_t)(uint32_t)weights[0] * (uint32_t)band[i];
            next += (uint64_t)(uint32_t)weights[1] * (uint32_t)band[i];
        }
        if (c >= 0)
            y[c] = (int64_t)sum;
        sum = next;
    }
}

/* The root of a number of 32 bits, rounded, to at most 65535. */
BT_INLINE uint32_t bt_signal_root32(uint32_t v)
{
    uint32_t root = 0, bit = (uint32_t)1 << 30;
    while (bit > v)
        bit >>= 2;
    for (; bit; bit >>= 2) {
        const uint32_t next = root + bit;
        root >>= 1;
        if (v >= next) {
            v -= next;
            root += bit;
        }
    }
    return root + (v > root && root != 0xFFFF);
}

BT_INLINE uint32_t bt_signal_root64(uint64_t v)
{
    uint64_t root = 0, bit = (uint64_t)1 << 62;
    while (bit > v)
        bit >>= 2;
    for (; bit; bit >>= 2) {
        const uint64_t next = root + bit;
        root >>= 1;
        if (v >= next) {
            v -= next;
            root += bit;
        }
    }
    return (uint32_t)root + (v > root && root != 0xFFFFFFFF);
}

BT_KERNEL void bt_signal_square_root_ref(const bt_signal_square_root *p, const int64_t *x, const int32_t *bits,
                                         int32_t *y)
{
    const uint32_t shift = (uint32_t)*bits & 31;
    for (int32_t i = 0; i < p->count; i++) {
        const uint64_t v = (uint64_t)x[i];
        y[i] = (int32_t)((v >> 32 ? bt_signal_root64(v) : bt_signal_root32((uint32_t)v)) >> shift);
    }
}

BT_KERNEL void bt_signal_spectral_subtraction_ref(const bt_signal_spectral_subtraction *p, const int32_t *x,
                                                  const int32_t *noise, int32_t *y, int32_t *next)
{
    for (int32_t i = 0; i < p->count; i++) {
        const uint32_t fresh = (uint32_t)(i & 1 ? p->alternate_smoothing : p->smoothing);
        const uint32_t kept = (uint32_t)(i & 1 ? p->alternate_one_minus_smoothing : p->one_minus_smoothing);
        const uint32_t v = (uint32_t)x[i], scaled = v << p->smoothing_bits;
        const uint64_t both = (uint64_t)scaled * fresh + (uint64_t)(uint32_t)noise[i] * kept;
        const uint32_t estimate = (uint32_t)(both >> p->spectral_subtraction_bits), taken = estimate > scaled ? scaled : estimate;
        const uint32_t least = (uint32_t)(((uint64_t)v * (uint32_t)p->min_signal_remaining) >> p->spectral_subtraction_bits);
        const uint32_t left = (scaled - taken) >> p->smoothing_bits;
        next[i] = (int32_t)(p->clamping ? taken : estimate);
        y[i] = (int32_t)(left > least ? left : least);
    }
}

/* The number of bits up to the highest one. */
BT_INLINE int32_t bt_signal_length(uint32_t v)
{
    int32_t length = 0;
    for (int32_t step = 16; step; step >>= 1)
        if (v >> step) {
            v >>= step;
            length += step;
        }
    return length + (v != 0);
}

/* A curve in pieces of second degree, one for each power of two. */
BT_INLINE int16_t bt_signal_gain(uint32_t v, const BT_FLASH int16_t *gains)
{
    if (v <= 2)
        return gains[v];
    const int32_t length = bt_signal_length(v);
    const int32_t part = (int32_t)((length < 11 ? v << (11 - length) : v >> (length - 11)) & 1023);
    gains += 4 * length - 6;
    const int32_t slope = (((int32_t)gains[2] * part) >> 5) + (int32_t)gains[1] * 32;
    return (int16_t)(((slope * part + 16384) >> 15) + gains[0]);
}

BT_KERNEL void bt_signal_pcan_ref(const bt_signal_pcan *p, const int32_t *x, const int32_t *noise,
                                  const BT_FLASH int16_t *gains, int32_t *y)
{
    for (int32_t i = 0; i < p->count; i++) {
        const uint32_t gain = (uint32_t)(int32_t)bt_signal_gain((uint32_t)noise[i], gains);
        const uint32_t v = (uint32_t)(((uint64_t)(uint32_t)x[i] * gain) >> p->snr_shift);
        y[i] = (int32_t)(v < 8192 ? (v * v) >> 20 : (v >> 6) - 64);
    }
}

BT_KERNEL void bt_signal_log_ref(const bt_signal_log *p, const int32_t *x, const BT_FLASH int16_t *table, int16_t *y)
{
    for (int32_t i = 0; i < p->count; i++) {
        const uint32_t v = (uint32_t)x[i] << p->input_correction_bits;
        if (v <= 1) {
            y[i] = 0;
            continue;
        }
        const int32_t whole = bt_signal_length(v) - 1;
        const uint32_t part = (whole < 16 ? v << (16 - whole) : v >> (whole - 16)) & 0xFFFF;
        const int32_t low = table[part >> 9], high = table[(part >> 9) + 1];
        const int32_t bend = low + (((high - low) * (int32_t)(part & 511)) >> 16);
        const uint32_t log2 = ((uint32_t)whole << 16) + part + (uint32_t)bend;
        const uint32_t log = (uint32_t)(((uint64_t)log2 * 45426 + 32768) >> 16);
        const uint32_t scaled = (log * (uint32_t)p->output_scale + 32768) >> 16;
        y[i] = (int16_t)(scaled < 32767 ? scaled : 32767);
    }
}
