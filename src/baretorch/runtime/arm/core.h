/* What every core needs before its first ordinary function: these registers belong to a core, not to the chip. */
#ifndef BT_CORE_H
#define BT_CORE_H

#include "bt_reg.h"

#define CPACR 0xe000ed88u

/* Where its stack ends; Armv8-M takes care of that. */
static inline __attribute__((always_inline)) void core_limit_stack(const uint32_t *limit)
{
#if __ARM_ARCH >= 8
    __asm__ volatile("msr msplim, %0" : : "r"(limit));
#else
    (void)limit;
#endif
}

static inline __attribute__((always_inline)) void core_enable_fpu(void)
{
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
    BT_REG(CPACR) |= 0xfu << 20;
#endif
}

/* Lets what was set take effect. */
static inline __attribute__((always_inline)) void core_synchronize(void)
{
    __asm__ volatile("dsb\n\tisb" : : : "memory");
}

#endif
