/* Runs the model on its example and checks the answer. */
#include <stdio.h>
#include <time.h>

#include "@NAME@.h"

int main(void)
{
    const clock_t begin = clock();
    @NAME@_example_run();
    const clock_t end = clock();
    for (int i = 0; i < @UP@_EXAMPLE_SHOWN; i++)
        printf("%d: %g\n", i, (double)@NAME@_example_answer(i));
    const int wrong = @NAME@_example_wrong();
    printf("@NAME@: %s, %ld us\n", wrong ? "WRONG" : "right", (long)((double)(end - begin) * 1e6 / CLOCKS_PER_SEC));
    return wrong != 0;
}
