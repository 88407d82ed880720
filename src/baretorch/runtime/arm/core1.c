/* Where core 1 begins: its vector table and stack pointer are set, nothing else is. */
#include "core.h"
#include "bt_board.h"
#include "bt_image.h"
#include "bt_runtime.h"

#ifdef BT_APP
__attribute__((weak)) void bt_core1_main(void)
{
}
#endif

void bt_core1_entry(void)
{
    core_limit_stack(bt_core1_stack_limit);
    core_enable_fpu();
    core_synchronize();
    bt_core1_main();
    for (;;) {
        __asm__ volatile("wfi");
    }
}
