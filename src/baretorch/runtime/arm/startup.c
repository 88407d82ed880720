/* Cortex-M from reset: the vector table, and what must happen before the first ordinary function. */
#include "core.h"
#include "bt_board.h"
#include "bt_image.h"

#define VTOR 0xe000ed08u

typedef union {
    void (*handler)(void);
    uint32_t *stack;
} vector;

void bt_reset(void);
void bt_fault_entry(void);

void bt_usb_interrupt(void);

#ifdef BT_USB_IRQ
#define VECTORS (16 + BT_USB_IRQ + 1)
#else
#define VECTORS 16
#endif

/* Only the interrupt of USB is ever taken, so the table ends there, or after the core's own sixteen entries. All others
 * except reset are faults. */
__attribute__((section(".vectors"), used)) static const vector vectors[VECTORS] = {
    {.stack = bt_stack_top},
    {.handler = bt_reset},
    {.handler = bt_fault_entry}, /* NMI */
    {.handler = bt_fault_entry}, /* HardFault */
    {.handler = bt_fault_entry}, /* MemManage */
    {.handler = bt_fault_entry}, /* BusFault */
    {.handler = bt_fault_entry}, /* UsageFault */
    {.handler = bt_fault_entry}, /* SecureFault */
    {.handler = 0},
    {.handler = 0},
    {.handler = 0},
    {.handler = bt_fault_entry}, /* SVCall */
    {.handler = bt_fault_entry}, /* DebugMonitor */
    {.handler = 0},
    {.handler = bt_fault_entry}, /* PendSV */
    {.handler = bt_fault_entry}, /* SysTick */
#ifdef BT_USB_IRQ
    [16 + BT_USB_IRQ] = {.handler = bt_usb_interrupt},
#endif
};

#ifdef BT_RAM_NEEDS_POWER
#define FIRST bt_powered
void bt_powered(void);

/* Compilers like to begin a function by saving registers on the stack. */
__attribute__((naked)) void bt_reset(void)
{
    __asm__ volatile("bl bt_chip_power\n\tb bt_powered");
}
#else
#define FIRST bt_reset
#endif

/* Nothing here may need the FPU: compilers vectorise even plain copy loops, so these live in bt_start. */
void FIRST(void)
{
    core_limit_stack(bt_stack_limit);
    BT_REG(VTOR) = (uint32_t)(uintptr_t)vectors;
    core_enable_fpu();
    core_synchronize();
    bt_start();
}
