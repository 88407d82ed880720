/* RISC-V's platform-level interrupt controller, as on QEMU's virt machine: context 0 is hart 0 in machine mode. */
#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"

#define PRIORITY BT_REG(BT_INTERRUPTS_BASE + 4u * BT_UART_IRQ)
#define ENABLE BT_REG(BT_INTERRUPTS_BASE + 0x2000u + BT_UART_IRQ / 32u * 4u)
#define CLAIM BT_REG(BT_INTERRUPTS_BASE + 0x200004u)
#define CONSOLE (1u << (BT_UART_IRQ % 32u))

#define MSTATUS_MIE 8
#define MIE_MEIE (1u << 11)

void bt_mask_interrupts(void)
{
    __asm__ volatile("csrci mstatus, %0" : : "i"(MSTATUS_MIE) : "memory");
}

void bt_unmask_interrupts(void)
{
    __asm__ volatile("csrsi mstatus, %0" : : "i"(MSTATUS_MIE) : "memory");
}

/* Nobody handles the console's interrupt: it is enabled while the hart sleeps, and no longer pending afterwards. */
void bt_sleep(void)
{
    PRIORITY = 1;
    ENABLE = CONSOLE;
    __asm__ volatile("csrs mie, %0\n\twfi\n\tcsrc mie, %0" : : "r"(MIE_MEIE) : "memory");
    CLAIM = CLAIM; /* taken, and done */
    ENABLE = 0;
}
