#include "model.h"

#include <stdint.h>

float dummy_arena[64] __attribute__((section(".bss.bt_arena_dummy")));

static uint32_t calls;
static const float table[4] = {1.5f, 2.5f, 3.5f, 4.5f};

__attribute__((noinline)) static float helper(float a, int i)
{
    return a * dummy_weights[i & 3] + table[i & 3];
}

void dummy_run(const float *x, float *y, int n)
{
    float reversed[8];
    calls++;
    for (int i = 0; i < 8; i++) {
        reversed[7 - i] = helper(x[i], i);
    }
    for (int i = 0; i < 8; i++) {
        y[i] = reversed[i] / (float)n;
    }
}

int dummy_unrelated(int a)
{
    return a * 3;
}
