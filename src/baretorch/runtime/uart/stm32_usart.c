/* The USART of newer STM32 families (separate RDR and TDR): F0, F3, F7, G0, G4, H7, L0, L4, U5, WB. */
#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"
#include "uart/room.h"

#define CR1 BT_REG(BT_UART_BASE + 0x00u)
#define BRR BT_REG(BT_UART_BASE + 0x0cu)
#define ISR BT_REG(BT_UART_BASE + 0x1cu)
#define ICR BT_REG(BT_UART_BASE + 0x20u)
#define RDR BT_REG(BT_UART_BASE + 0x24u)
#define TDR BT_REG(BT_UART_BASE + 0x28u)

#define CR1_UE_RE_TE 0x0du
#define CR1_RXNEIE (1u << 5) /* overruns interrupt too */
#define ISR_ORE (1u << 3)
#define ISR_RXNE (1u << 5)
#define ISR_TXE (1u << 7)
#define DIVIDER(hz) (((hz) + BT_UART_BAUD / 2u) / BT_UART_BAUD)

void bt_console_init(void)
{
    BRR = bt_chip_missing() ? DIVIDER(BT_FALLBACK_UART_HZ) : DIVIDER(BT_UART_CLOCK_HZ);
    CR1 = CR1_UE_RE_TE | CR1_RXNEIE;
}

void bt_console_put(uint8_t byte)
{
    RETURN_UNLESS((ISR & ISR_TXE) != 0)
    TDR = byte;
}

int bt_console_ready(void)
{
    ICR = ISR_ORE; /* after an overrun nothing more is received until the flag is cleared */
    return (ISR & ISR_RXNE) != 0;
}

uint8_t bt_console_take(void)
{
    return (uint8_t)RDR;
}
