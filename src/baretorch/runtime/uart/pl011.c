/* Arm PL011, as in the RP2040 and RP2350. */
#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"
#include "uart/room.h"

#define DR BT_REG(BT_UART_BASE + 0x00u)
#define FR BT_REG(BT_UART_BASE + 0x18u)
#define IBRD BT_REG(BT_UART_BASE + 0x24u)
#define FBRD BT_REG(BT_UART_BASE + 0x28u)
#define LCR_H BT_REG(BT_UART_BASE + 0x2cu)
#define CR BT_REG(BT_UART_BASE + 0x30u)
#define IMSC BT_REG(BT_UART_BASE + 0x38u)

#define FR_RXFE (1u << 4)
#define FR_TXFF (1u << 5)
#define LCR_H_FIFO_8BIT 0x70u
#define CR_RX_TX_ENABLE 0x301u
#define IMSC_HALF_FULL_OR_PAUSE 0x50u /* of the line, for as long as 32 bits take, with bytes in the FIFO */
/* Of the clock, in 1/64. */
#define DIVIDER(hz) ((4u * (hz) + BT_UART_BAUD / 2u) / BT_UART_BAUD)

void bt_console_init(void)
{
    const uint32_t divider = bt_chip_missing() ? DIVIDER(BT_FALLBACK_UART_HZ) : DIVIDER(BT_UART_CLOCK_HZ);
    CR = 0;
    IBRD = divider >> 6;
    FBRD = divider & 63u;
    LCR_H = LCR_H_FIFO_8BIT; /* also latches the divider */
    CR = CR_RX_TX_ENABLE;
    IMSC = IMSC_HALF_FULL_OR_PAUSE;
}

void bt_console_put(uint8_t byte)
{
    RETURN_UNLESS((FR & FR_TXFF) == 0)
    DR = byte;
}

int bt_console_ready(void)
{
    return (FR & FR_RXFE) == 0;
}

uint8_t bt_console_take(void)
{
    return (uint8_t)DR;
}
