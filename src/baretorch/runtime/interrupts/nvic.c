/* The interrupt controller of Cortex-M. */
#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"

#define WORD (BT_INTERRUPTS_BASE + BT_UART_IRQ / 32u * 4u)
#define ISER BT_REG(WORD)
#define ICER BT_REG(WORD + 0x80u)
#define ICPR BT_REG(WORD + 0x180u)
#define CONSOLE (1u << (BT_UART_IRQ % 32u))

void bt_mask_interrupts(void)
{
    __asm__ volatile("cpsid i" : : : "memory");
}

void bt_unmask_interrupts(void)
{
    __asm__ volatile("cpsie i" : : : "memory");
}

/* Nobody handles the console's interrupt: it is enabled while the core sleeps, and no longer pending when others are
 * let in. If it is still raised, clearing it does nothing. */
void bt_sleep(void)
{
    ISER = CONSOLE;
    __asm__ volatile("dsb\n\twfi" : : : "memory");
    ICER = CONSOLE;
    __asm__ volatile("dsb\n\tisb" : : : "memory");
    ICPR = CONSOLE;
    __asm__ volatile("cpsie i\n\tisb\n\tcpsid i" : : : "memory");
}
