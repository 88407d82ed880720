/* What every Baretorch kernel shares.
 *
 * A kernel is written once as BT_KERNEL. Compiled on its own it is an ordinary function; included by a model.c
 * that defines BT_INLINE_KERNELS it is inlined into one instance per layer, with all its parameters literal. */
#ifndef BT_H
#define BT_H

#include <stddef.h>
#include <stdint.h>

#ifdef BT_INLINE_KERNELS
#define BT_KERNEL static inline __attribute__((always_inline, unused))
#else
#define BT_KERNEL
#endif

#define BT_INLINE static inline __attribute__((always_inline, unused))

/* Infinity without <math.h>, which a freestanding compiler need not have. */
#define BT_INF (__builtin_inff())

/* Limits a value to [lo, hi] and lets NaN through, as torch.clamp does. */
BT_INLINE float bt_clamp_f32(float v, float lo, float hi)
{
    v = v < lo ? lo : v;
    return v > hi ? hi : v;
}

/* The larger of two, NaN if either is, as torch.max_pool2d sees it. */
BT_INLINE float bt_max_f32(float a, float b)
{
    return (b > a || b != b) ? b : a;
}

#endif
