/* The shared header of all Baretorch kernels.
 *
 * A kernel is written once as BT_KERNEL. Compiled on its own it is a function of which a program with several models
 * keeps one; included by a model.c that defines BT_INLINE_KERNELS it is inlined into one instance per layer, with all
 * its parameters literal. */
#ifndef BT_H
#define BT_H

#include <stddef.h>
#include <stdint.h>

/* Without optimization, as debug builds of some SDKs are, gcc keeps registers for itself that assembly for chips takes. */
#if (defined(__arm__) || defined(__riscv) || defined(__AVR__)) && !defined(__clang__) && !defined(__OPTIMIZE__)
#pragma GCC optimize("O1")
#endif

#ifdef BT_INLINE_KERNELS
#define BT_KERNEL static inline __attribute__((always_inline, unused))
#else
#define BT_KERNEL __attribute__((weak))
#endif

#define BT_INLINE static inline __attribute__((always_inline, unused))

/* A function that is given to another one, which is inlined, and so is this: but not with -Og, where it is called. */
#define BT_GIVEN static inline __attribute__((unused))

/* Infinity without <math.h>, which a freestanding compiler need not have. */
#define BT_INF (__builtin_inff())

/* Unroll the loop that follows, so that the arrays it indexes are in registers. */
#if defined(__clang__) || __GNUC__ >= 8
#define BT_UNROLL_8 _Pragma("GCC unroll 8")
#define BT_UNROLL_4 _Pragma("GCC unroll 4")
#else
#define BT_UNROLL_8
#define BT_UNROLL_4
#endif

/* A layer of a model: a function of its own under its own name, so that a profile names it. */
#if defined(__clang__)
#define BT_LAYER static __attribute__((noinline))
#else
#define BT_LAYER static __attribute__((noinline, noclone))
#endif

/* A function that all layers of a model share: its work is too large for a call to matter. Where kernels are compiled
 * one by one, several have the function and the linker keeps one of them. */
#if !defined(BT_INLINE_KERNELS)
#define BT_SHARED __attribute__((weak, noinline))
#elif defined(__clang__)
#define BT_SHARED static __attribute__((noinline, unused))
#else
#define BT_SHARED static __attribute__((noinline, noclone, unused))
#endif

#define BT_NAN __builtin_nanf("")

/* Where constants are that were packed for their kernel: in flash, which AVR reads with instructions of its own, so
 * that a pointer must have that type. Other CPUs have one memory, and this is empty. Constants that a kernel takes
 * where it might as well be given activations are in RAM on AVR, as those are. */
#if defined(__AVR__) && !defined(__STRICT_ANSI__) && !defined(__cplusplus) /* which do not have gcc's word for it */
#define BT_FLASH __flash
#else
#define BT_FLASH
#endif

/* The alignment of an arena. */
#if defined(__AVR__)
#define BT_ALIGNMENT 1
#else
#define BT_ALIGNMENT 8
#endif

/* Sections by which the size report separates weights and arena from the rest. */
#if defined(__ELF__)
#define BT_WEIGHTS(name) __attribute__((section(".rodata.bt_weights." #name)))
#define BT_WEIGHTS_IN(bank, name) __attribute__((section(".data.bt_weights." #bank "." #name)))
#define BT_ARENA(name) __attribute__((aligned(BT_ALIGNMENT), section(".bss.bt_arena." #name)))
#else
#define BT_WEIGHTS(name)
#define BT_WEIGHTS_IN(bank, name)
#define BT_ARENA(name) __attribute__((aligned(BT_ALIGNMENT)))
#endif

/* Limits a value to [lo, hi] and lets NaN through, as torch.clamp does. */
BT_INLINE float bt_clamp_f32(float v, float lo, float hi)
{
    /* A literal infinity does not limit; compilers that keep floating-point traps would compare all the same. */
    if (!(__builtin_constant_p(lo) && lo == -BT_INF))
        v = v < lo ? lo : v;
    if (!(__builtin_constant_p(hi) && hi == BT_INF))
        v = v > hi ? hi : v;
    return v;
}

/* The larger of two, NaN if either is, as torch.max_pool2d sees it. */
BT_INLINE float bt_max_f32(float a, float b)
{
    return (b > a || b != b) ? b : a;
}

#endif
