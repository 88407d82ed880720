/* Prints the largest error in ULP of each function of kernels/math/ over every STRIDE-th float,
 * and the argument where it happens. The judge is the host's double-precision libm. */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "math/atan.h"
#include "math/erf.h"
#include "math/hyperbolic.h"
#include "math/log.h"
#include "math/math.h"
#include "math/round.h"
#include "math/trig.h"

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

/* e^(x^2) erfc(x); x^2 of a float is exact. Beyond what erfc can hold, three terms are good to 9 digits. */
static double erfcx(double x)
{
    return x < 25.0 ? exp(x * x) * erfc(x) : (1.0 - (0.5 - 0.75 / (x * x)) / (x * x)) / (x * sqrt(acos(-1.0)));
}

/* Newton's method from Winitzki's formula, on the side where the error function is not next to 1. */
static double erfinv(double x)
{
    double a = fabs(x), slope = 2.0 / sqrt(acos(-1.0));
    if (!(a < 1.0))
        return a == 1.0 ? x * INFINITY : NAN;
    double l = log1p(-a * a), h = 4.3307 + l / 2.0;
    double y = sqrt(sqrt(h * h - l / 0.147) - h);
    for (int i = 0; i < 5; i++)
        y += ((1.0 - a) < 0.5 ? erfc(y) - (1.0 - a) : a - erf(y)) / (slope * exp(-y * y));
    return copysign(y, x);
}

/* One unit in the last place of the float nearest to `exact`; denormals share the smallest. */
static double ulp(double exact)
{
    int exponent;
    frexp(exact, &exponent);
    return ldexp(1.0, (exponent < FLT_MIN_EXP ? FLT_MIN_EXP : exponent) - FLT_MANT_DIG);
}

static double error(float got, double exact)
{
    if (isnan(got) || isnan(exact))
        return isnan(got) && isnan(exact) ? 0.0 : INFINITY;
    if (isinf(got))
        return fabs(exact) > FLT_MAX && !signbit(got) == !signbit(exact) ? 0.0 : INFINITY;
    if (got == 0.0f && fabs(exact) < FLT_MIN)
        return 0.0; /* denormal results may be zero; test_math.py checks where */
    return fabs((double)got - exact) / ulp(exact);
}

typedef struct {
    double error;
    float x, y;
} worst;

static void judge(worst *w, float got, double exact, float x, float y)
{
    double e = error(got, exact);
    if (e > w->error)
        *w = (worst){e, x, y};
}

static void show(const char *name, worst w)
{
    printf("%s %.4f %.9g,%.9g\n", name, w.error, (double)w.x, (double)w.y);
}

#define SWEEP(name, exact)                                                           \
    do {                                                                             \
        worst w = {0.0, 0.0f, 0.0f};                                                 \
        for (uint64_t bits = 0; bits <= UINT32_MAX; bits += STRIDE) {                \
            float x = bt_from_bits_f32((uint32_t)bits);                              \
            judge(&w, bt_##name##_f32(x), exact((double)x), x, 0.0f);                \
        }                                                                            \
        show(#name, w);                                                              \
    } while (0)

/* Every STRIDE-th x with exponents that keep the power a float, and with some that do not. */
static void sweep_pow(void)
{
    static const float some[] = {0.5f, -0.5f, 1.0f / 3, 2.0f, 3.0f, -7.0f, 2.5f, 1e-3f, 40.0f, -1.0f, 1e6f, 1e30f};
    worst w = {0.0, 0.0f, 0.0f};
    uint32_t random = 1;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += STRIDE) {
        float x = bt_from_bits_f32((uint32_t)bits);
        random = random * 1664525u + 1013904223u;
        float full = (float)((double)random / 2147483648.0 * 64.0 - 64.0) * 2.0f / (float)log2(fabs((double)x));
        judge(&w, bt_pow_f32(bt_abs_f32(x), full), pow(fabs((double)x), (double)full), x, full);
        float y = some[(random >> 16) % 12u];
        judge(&w, bt_pow_f32(x, y), pow((double)x, (double)y), x, y);
    }
    /* Bases next to 1, where the logarithm is small and the exponent large. */
    for (int i = -4000; i <= 4000; i++) {
        float x = bt_from_bits_f32(0x3f800000u + (uint32_t)(i * 37));
        float y = (float)(i % 89) / (float)(i == 0 ? 1.0 : log2((double)x));
        judge(&w, bt_pow_f32(x, y), pow((double)x, (double)y), x, y);
    }
    show("pow", w);
}

/* Pairs from all exponents and of all signs: half of them anything, half of them near each other. */
#define SWEEP_PAIRS(name, exact)                                                             \
    do {                                                                                     \
        worst w = {0.0, 0.0f, 0.0f};                                                         \
        uint32_t random = 1;                                                                 \
        for (uint64_t bits = 0; bits <= UINT32_MAX; bits += STRIDE) {                        \
            random = random * 1664525u + 1013904223u;                                        \
            uint32_t other = (random & 256u) != 0u ? random : (uint32_t)bits + (random >> 5); \
            float x = bt_from_bits_f32((uint32_t)bits), y = bt_from_bits_f32(other);         \
            judge(&w, bt_##name##_f32(x, y), exact((double)x, (double)y), x, y);             \
        }                                                                                    \
        show(#name, w);                                                                      \
    } while (0)

int main(void)
{
    SWEEP(exp, exp);
    SWEEP(expm1, expm1);
    SWEEP(tanh, tanh);
    SWEEP(sigmoid, sigmoid);
    SWEEP(log, log);
    SWEEP(log2, log2);
    SWEEP(log1p, log1p);
    SWEEP(sin, sin);
    SWEEP(cos, cos);
    SWEEP(erf, erf);
    SWEEP(erfc, erfc);
    SWEEP(erfcx, erfcx);
    SWEEP(erfinv, erfinv);
    SWEEP(exp2, exp2);
    SWEEP(log10, log10);
    SWEEP(asin, asin);
    SWEEP(acos, acos);
    SWEEP(atan, atan);
    SWEEP(sinh, sinh);
    SWEEP(cosh, cosh);
    SWEEP(asinh, asinh);
    SWEEP(acosh, acosh);
    SWEEP(atanh, atanh);
    SWEEP_PAIRS(atan2, atan2);
    SWEEP_PAIRS(hypot, hypot);
    SWEEP(sqrt_bits, sqrt);
    SWEEP(round, nearbyint);
    SWEEP(floor, floor);
    SWEEP(ceil, ceil);
    SWEEP(trunc, trunc);
    sweep_pow();
    return 0;
}
