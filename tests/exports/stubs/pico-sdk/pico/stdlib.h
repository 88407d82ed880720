/* As much of the pico-sdk as a program needs that prints and measures time; the fifth time that it sleeps ends it. */
#include <stdint.h>
#include <stdlib.h>

typedef uint64_t absolute_time_t;

static inline void stdio_init_all(void) {}

static inline absolute_time_t get_absolute_time(void)
{
    return 0;
}

static inline int64_t absolute_time_diff_us(absolute_time_t from, absolute_time_t to)
{
    return (int64_t)(to - from);
}

static inline void sleep_ms(uint32_t ms)
{
    static int slept;
    if (++slept == 5)
        exit(ms == 0);
}
