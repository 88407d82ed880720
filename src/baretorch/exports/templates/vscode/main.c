/* Runs the model on its example, prints answer and time, and checks the answer; again for each byte that comes.
 * board/ calls bt_serve when clocks, console and counter are up. */
#include "bt_board.h"
#include "bt_runtime.h"

#include "@NAME@.h"

static void print_decimal(uint32_t value, int digits)
{
    char text[11] = { 0 };
    int at = 10;
    do {
        text[--at] = (char)('0' + value % 10u);
        value /= 10u;
        digits--;
    } while (value > 0 || digits > 0);
    bt_print(text + at);
}

static void print_number(float value)
{
    if (value < 0) {
        bt_print("-");
        value = -value;
    }
    if (!(value < 4e9f)) {
        bt_print("large");
        return;
    }
    const uint32_t whole = (uint32_t)value;
    print_decimal(whole, 1);
    bt_print(".");
    print_decimal((uint32_t)((value - (float)whole) * 1e6f), 6);
}

static void run_example(void)
{
    const uint32_t begin = bt_counter_read();
    @NAME@_example_run();
    const uint32_t ticks = bt_counter_read() - begin;
    for (int i = 0; i < @UP@_EXAMPLE_SHOWN; i++) {
        print_decimal((uint32_t)i, 1);
        bt_print(": ");
        print_number(@NAME@_example_answer(i));
        bt_print("\n");
    }
    bt_print(@NAME@_example_wrong() ? "@NAME@: WRONG, " : "@NAME@: right, ");
    print_decimal((uint32_t)((uint64_t)ticks * 1000000u / BT_COUNTER_HZ), 1);
    bt_print(" us\n");
}

void bt_serve(void)
{
    for (;;) {
        for (int step = 0; step < @UP@_EXAMPLE_STEPS; step++)
            run_example();
        (void)bt_console_get();
    }
}
