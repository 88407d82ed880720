/* Nanoseconds of the operating system's monotonic clock. */
#define _POSIX_C_SOURCE 199309L
#include <time.h>

#include "bt_runtime.h"

void bt_counter_init(void)
{
}

uint32_t bt_counter_read(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
}
