/* The UART of Arm's Cortex-M System Design Kit, as on MPS2 and MPS3 boards. */
#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"
#include "uart/room.h"

#define DATA BT_REG(BT_UART_BASE + 0x00u)
#define STATE BT_REG(BT_UART_BASE + 0x04u)
#define CTRL BT_REG(BT_UART_BASE + 0x08u)
#define INT BT_REG(BT_UART_BASE + 0x0cu) /* writing a bit clears it */
#define BAUDDIV BT_REG(BT_UART_BASE + 0x10u)

#define STATE_TX_FULL (1u << 0)
#define STATE_RX_FULL (1u << 1)
#define CTRL_TX_RX_ENABLE 3u
#define CTRL_RX_INT (1u << 3)
#define INT_RX (1u << 1)

void bt_console_init(void)
{
    BAUDDIV = BT_UART_CLOCK_HZ / BT_UART_BAUD;
    CTRL = CTRL_TX_RX_ENABLE | CTRL_RX_INT;
}

void bt_console_put(uint8_t byte)
{
    RETURN_UNLESS((STATE & STATE_TX_FULL) == 0)
    DATA = byte;
}

/* The interrupt stays until it is cleared. Clear it before reading the state: a byte may arrive in between. */
int bt_console_ready(void)
{
    INT = INT_RX;
    return (STATE & STATE_RX_FULL) != 0;
}

uint8_t bt_console_take(void)
{
    return (uint8_t)DATA;
}
