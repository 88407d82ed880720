/* Runs the model on its example and checks the answer. */
#include <stdio.h>

#include "esp_timer.h"

#include "@NAME@.h"

void app_main(void)
{
    for (int step = 0; step < @UP@_EXAMPLE_STEPS; step++) {
        const int64_t begin = esp_timer_get_time();
        @NAME@_example_run();
        const long us = (long)(esp_timer_get_time() - begin);
        for (int i = 0; i < @UP@_EXAMPLE_SHOWN; i++)
            printf("%d: %g\n", i, (double)@NAME@_example_answer(i));
        printf("@NAME@: %s, %ld us\n", @NAME@_example_wrong() ? "WRONG" : "right", us);
    }
}
