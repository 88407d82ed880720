/* Runs the model on its example and checks the answer. */
#include <stdio.h>
#include <time.h>

#include "@NAME@.h"

int main(void)
{
    int wrong = 0;
    for (int step = 0; step < @UP@_EXAMPLE_STEPS; step++) {
        const clock_t begin = clock();
        @NAME@_example_run();
        const clock_t end = clock();
        const long us = (long)((double)(end - begin) * 1e6 / CLOCKS_PER_SEC);
        for (int i = 0; i < @UP@_EXAMPLE_SHOWN; i++)
            printf("%d: %g\n", i, (double)@NAME@_example_answer(i));
        const int differ = @NAME@_example_wrong();
        printf("@NAME@: %s, %ld us\n", differ ? "WRONG" : "right", us);
        wrong += differ;
    }
    return wrong != 0;
}
