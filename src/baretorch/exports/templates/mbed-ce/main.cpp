// Runs the model on its example once a second, checks the answer, and prints what Mbed counts of memory.
#include "mbed.h"

#include "@NAME@.h"

static Timer timer;

static void run_model()
{
    timer.reset();
    timer.start();
    @NAME@_example_run();
    timer.stop();
}

#if defined(MBED_CONF_RTOS_PRESENT)

// The model has a thread of its own. @STACK_WHY@
// The RTOS adds its own: @STACK_MORE@ bytes are for the registers of a thread that waits and for the calls that let it wait.
static const uint32_t STACK_BYTES = @STACK@ + @STACK_MORE@;
alignas(8) static unsigned char stack[STACK_BYTES];
static Thread worker(osPriorityNormal, STACK_BYTES, stack, "@NAME@");
static Semaphore asked(0), done(0);

static void work()
{
    for (;;) {
        asked.acquire();
        run_model();
        done.release();
    }
}

static void start()
{
    worker.start(work);
}

static void ask()
{
    asked.release();
    done.acquire();
}

static void print_stack()
{
    printf("stack of its thread: %lu of %lu bytes\n", static_cast<unsigned long>(worker.max_stack()),
           static_cast<unsigned long>(worker.stack_size()));
}

#else

static void start() {}

static void ask()
{
    run_model();
}

static void print_stack()
{
    mbed_stats_stack_t stats;
    mbed_stats_stack_get(&stats);
    printf("stack: %lu of %lu bytes\n", static_cast<unsigned long>(stats.max_size),
           static_cast<unsigned long>(stats.reserved_size));
}

#endif

int main()
{
    start();
    for (;;) {
        ask();
        for (int i = 0; i < @UP@_EXAMPLE_SHOWN; i++)
            printf("%d: %f\n", i, static_cast<double>(@NAME@_example_answer(i)));
        mbed_stats_heap_t heap;
        mbed_stats_heap_get(&heap);
        printf("heap: %lu of %lu bytes\n", static_cast<unsigned long>(heap.max_size),
               static_cast<unsigned long>(heap.reserved_size));
        print_stack();
        printf("@NAME@: %s, %ld us\n", @NAME@_example_wrong() ? "WRONG" : "right",
               static_cast<long>(timer.elapsed_time().count()));
        ThisThread::sleep_for(1s);
    }
}
