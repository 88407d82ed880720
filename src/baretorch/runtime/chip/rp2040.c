/* RP2040: 125 MHz from the crystal, UART0 on GP0 and GP1, a microsecond tick for the timer. */
#include "bt_board.h"
#include "bt_runtime.h"

#define CLOCKS_BASE 0x40008000u
#define RESETS_BASE 0x4000c000u
#define IO_BANK0_BASE 0x40014000u
#define PADS_BANK0_BASE 0x4001c000u
#define XOSC_BASE 0x40024000u
#define PLL_SYS_BASE 0x40028000u
#define DIVIDE_BY_1 0x100u
#include "rp.h"

#define WATCHDOG_TICK BT_REG(0x4005802cu)
#define WATCHDOG_TICK_ENABLE (1u << 9)

#define RESET_IO_BANK0 (1u << 5)
#define RESET_PADS_BANK0 (1u << 8)
#define RESET_PLL_SYS (1u << 12)
#define RESET_TIMER (1u << 21)
#define RESET_UART0 (1u << 22)

void bt_chip_init(void)
{
    rp_out_of_reset(RESET_IO_BANK0 | RESET_PADS_BANK0 | RESET_PLL_SYS | RESET_TIMER);
    rp_start_clocks(6, 2);
    WATCHDOG_TICK = WATCHDOG_TICK_ENABLE | rp_microsecond();
    rp_start_uart(RESET_UART0);
}
