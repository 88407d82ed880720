/* The 16550, as on QEMU's virt machine: one byte per register. */
#include "bt_board.h"
#include "bt_runtime.h"
#include "uart/room.h"

#define REG8(offset) (*(volatile uint8_t *)(uintptr_t)(BT_UART_BASE + (offset)))
#define DATA REG8(0u) /* divider's low byte while LCR_DIVIDER is set */
#define IER REG8(1u)  /* divider's high byte while LCR_DIVIDER is set */
#define FCR REG8(2u)
#define LCR REG8(3u)
#define LSR REG8(5u)

#define IER_RX 0x01u
#define FCR_FIFO_ENABLE 0x01u
#define LCR_8BIT 0x03u
#define LCR_DIVIDER 0x80u
#define LSR_RX_READY 0x01u
#define LSR_TX_EMPTY 0x20u

void bt_console_init(void)
{
    const uint32_t divider = BT_UART_CLOCK_HZ / (16u * BT_UART_BAUD);
    IER = 0;
    LCR = LCR_DIVIDER | LCR_8BIT;
    DATA = (uint8_t)divider;
    IER = (uint8_t)(divider >> 8);
    LCR = LCR_8BIT;
    FCR = FCR_FIFO_ENABLE;
    IER = IER_RX;
}

void bt_console_put(uint8_t byte)
{
    RETURN_UNLESS((LSR & LSR_TX_EMPTY) != 0)
    DATA = byte;
}

int bt_console_ready(void)
{
    return (LSR & LSR_RX_READY) != 0;
}

uint8_t bt_console_take(void)
{
    return DATA;
}
