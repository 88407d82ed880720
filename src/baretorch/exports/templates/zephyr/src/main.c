/* Runs the model on its example and checks the answer. */
#include <zephyr/kernel.h>

#include <stdio.h>

#include "@NAME@.h"

int main(void)
{
    for (int step = 0; step < @UP@_EXAMPLE_STEPS; step++) {
        const uint32_t begin = k_cycle_get_32();
        @NAME@_example_run();
        const unsigned us = (unsigned)k_cyc_to_us_near32(k_cycle_get_32() - begin);
        for (int i = 0; i < @UP@_EXAMPLE_SHOWN; i++)
            printf("%d: %g\n", i, (double)@NAME@_example_answer(i));
        printf("@NAME@: %s, %u us\n", @NAME@_example_wrong() ? "WRONG" : "right", us);
    }
    return 0;
}
