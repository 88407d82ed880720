/* Runs the model on its example once a second, and checks the answer. */
#include <stdio.h>

#include "pico/stdlib.h"

#include "@NAME@.h"

int main(void)
{
    stdio_init_all();
    for (;;) {
        const absolute_time_t begin = get_absolute_time();
        @NAME@_example_run();
        const long us = (long)absolute_time_diff_us(begin, get_absolute_time());
        for (int i = 0; i < @UP@_EXAMPLE_SHOWN; i++)
            printf("%d: %g\n", i, (double)@NAME@_example_answer(i));
        printf("@NAME@: %s, %ld us\n", @NAME@_example_wrong() ? "WRONG" : "right", us);
        sleep_ms(1000);
    }
}
