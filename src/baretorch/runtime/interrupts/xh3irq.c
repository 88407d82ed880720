/* Hazard3's own interrupt controller, as in the RP2350: registers of the core that hold sixteen interrupts each. */
#include "bt_board.h"
#include "bt_runtime.h"

#define MSTATUS_MIE 8
#define MIE_MEIE (1u << 11)
#define MEIEA "0xbe0" /* which are enabled: a window of bits above the number of the window */
#define CONSOLE ((1u << (16u + BT_UART_IRQ % 16u)) | BT_UART_IRQ / 16u)

void bt_mask_interrupts(void)
{
    __asm__ volatile("csrci mstatus, %0" : : "i"(MSTATUS_MIE) : "memory");
}

void bt_unmask_interrupts(void)
{
    __asm__ volatile("csrsi mstatus, %0" : : "i"(MSTATUS_MIE) : "memory");
}

/* Nobody handles the console's interrupt: it is enabled while the hart sleeps. It lasts as long as its cause. */
void bt_sleep(void)
{
    __asm__ volatile("csrs " MEIEA ", %0\n\t"
                     "csrs mie, %1\n\t"
                     "wfi\n\t"
                     "csrc mie, %1\n\t"
                     "csrc " MEIEA ", %0"
                     :
                     : "r"(CONSOLE), "r"(MIE_MEIE)
                     : "memory");
}
