/* The nRF51's UART. Pins are the chip's business; this is the rest. */
#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"
#include "uart/room.h"

#define TASKS_STARTRX BT_REG(BT_UART_BASE + 0x000u)
#define TASKS_STARTTX BT_REG(BT_UART_BASE + 0x008u)
#define EVENTS_RXDRDY BT_REG(BT_UART_BASE + 0x108u)
#define EVENTS_TXDRDY BT_REG(BT_UART_BASE + 0x11cu)
#define INTENSET BT_REG(BT_UART_BASE + 0x304u)
#define ENABLE BT_REG(BT_UART_BASE + 0x500u)
#define RXD BT_REG(BT_UART_BASE + 0x518u)
#define TXD BT_REG(BT_UART_BASE + 0x51cu)
#define BAUDRATE BT_REG(BT_UART_BASE + 0x524u)

#define ENABLE_UART 4u
#define INT_RXDRDY (1u << 2)

void bt_console_init(void)
{
    /* BAUDRATE is the rate in units of clock / 2^32, to a precision of 2^12 units. */
    const uint64_t rate = ((uint64_t)BT_UART_BAUD << 32) / BT_UART_CLOCK_HZ;
    BAUDRATE = (uint32_t)(rate + 0x800u) & ~0xfffu;
    ENABLE = ENABLE_UART;
    TASKS_STARTRX = 1;
    TASKS_STARTTX = 1;
    INTENSET = INT_RXDRDY;
}

void bt_console_put(uint8_t byte)
{
    TXD = byte;
    RETURN_UNLESS(EVENTS_TXDRDY != 0)
    EVENTS_TXDRDY = 0;
}

int bt_console_ready(void)
{
    return EVENTS_RXDRDY != 0;
}

uint8_t bt_console_take(void)
{
    EVENTS_RXDRDY = 0; /* before the read: reading RXD may bring the next byte's event */
    return (uint8_t)RXD;
}
