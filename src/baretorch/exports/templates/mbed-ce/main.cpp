// Runs the model on its example once a second, and checks the answer.
#include "mbed.h"

#include "@NAME@.h"

int main()
{
    Timer timer;
    for (;;) {
        timer.reset();
        timer.start();
        @NAME@_example_run();
        timer.stop();
        for (int i = 0; i < @UP@_EXAMPLE_SHOWN; i++)
            printf("%d: %f\n", i, static_cast<double>(@NAME@_example_answer(i)));
        printf("@NAME@: %s, %ld us\n", @NAME@_example_wrong() ? "WRONG" : "right",
               static_cast<long>(timer.elapsed_time().count()));
        ThisThread::sleep_for(1s);
    }
}
