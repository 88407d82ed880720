/* As much of Zephyr as a program needs that prints and measures time. */
#include <stdint.h>

static inline uint32_t k_cycle_get_32(void)
{
    return 0;
}

static inline uint32_t k_cyc_to_us_near32(uint32_t cycles)
{
    return cycles;
}
