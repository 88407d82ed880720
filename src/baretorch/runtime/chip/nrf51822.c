/* nRF51822: 16 MHz from the crystal, UART on the micro:bit's pins P0.24 (out) and P0.25 (in). */
#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"

#define TASKS_HFCLKSTART BT_REG(0x40000000u)
#define EVENTS_HFCLKSTARTED 0x40000100u
#define HFCLKSTAT BT_REG(0x4000040cu)
#define GPIO_OUTSET BT_REG(0x50000508u)
#define GPIO_PIN_CNF(pin) BT_REG(0x50000700u + 4u * (pin))
#define UART_PSELTXD BT_REG(BT_UART_BASE + 0x50cu)
#define UART_PSELRXD BT_REG(BT_UART_BASE + 0x514u)

#define HFCLKSTAT_SRC_XTAL 1u
#define PIN_CNF_OUTPUT 3u
#define PIN_CNF_INPUT_PULL_UP (3u << 2)
#define TX_PIN 24u
#define RX_PIN 25u

void bt_chip_init(void)
{
    TASKS_HFCLKSTART = 1;
    bt_wait(EVENTS_HFCLKSTARTED, 1u, 1u); /* meanwhile, or without it, the internal oscillator runs at the same rate */
    GPIO_OUTSET = 1u << TX_PIN; /* a quiet line is high */
    GPIO_PIN_CNF(TX_PIN) = PIN_CNF_OUTPUT;
    GPIO_PIN_CNF(RX_PIN) = PIN_CNF_INPUT_PULL_UP;
    UART_PSELTXD = TX_PIN;
    UART_PSELRXD = RX_PIN;
}

const char *bt_chip_missing(void)
{
    return (HFCLKSTAT & HFCLKSTAT_SRC_XTAL) == 0 ? "the crystal" : 0;
}
