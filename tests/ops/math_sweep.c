/* Prints the largest error in ULP of each function of kernels/math/math.h over every STRIDE-th float,
 * and the argument where it happens. The judge is the host's double-precision libm. */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "math/math.h"

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
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
        return exact > FLT_MAX ? 0.0 : INFINITY;
    if (got == 0.0f && fabs(exact) < FLT_MIN)
        return 0.0; /* denormal results may be zero; test_math.py checks where */
    return fabs((double)got - exact) / ulp(exact);
}

#define SWEEP(name, exact)                                                 \
    do {                                                                   \
        double worst = 0.0;                                                \
        float at = 0.0f;                                                   \
        for (uint64_t bits = 0; bits <= UINT32_MAX; bits += STRIDE) {      \
            float x = bt_from_bits_f32((uint32_t)bits);                    \
            double e = error(bt_##name##_f32(x), exact((double)x));        \
            if (e > worst) {                                               \
                worst = e;                                                 \
                at = x;                                                    \
            }                                                              \
        }                                                                  \
        printf(#name " %.4f %.9g\n", worst, (double)at);                   \
    } while (0)

int main(void)
{
    SWEEP(exp, exp);
    SWEEP(tanh, tanh);
    SWEEP(sigmoid, sigmoid);
    return 0;
}
