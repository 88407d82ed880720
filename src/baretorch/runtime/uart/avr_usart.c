/* The USART of ATmega chips, at double speed: 115,200 baud of 16 MHz are 117,647 then, 2.1 % too fast, which is still
 * well; at the usual speed they would be 111,111. */
#include "bt_board.h"
#include "bt_runtime.h"

#define REG8(offset) (*(volatile uint8_t *)(uintptr_t)(BT_UART_BASE + (offset)))
#define UCSRA REG8(0u)
#define UCSRB REG8(1u)
#define UCSRC REG8(2u)
#define UBRRL REG8(4u)
#define UBRRH REG8(5u)
#define UDR REG8(6u)

#define UCSRA_RX_COMPLETE 0x80u
#define UCSRA_TX_EMPTY 0x20u
#define UCSRA_DOUBLE 0x02u
#define UCSRB_RX_ENABLE 0x10u
#define UCSRB_TX_ENABLE 0x08u
#define UCSRC_8BIT 0x06u

#define DIVIDER ((BT_UART_CLOCK_HZ + 4u * BT_UART_BAUD) / (8u * BT_UART_BAUD) - 1u)

void bt_console_init(void)
{
    UCSRA = UCSRA_DOUBLE;
    UBRRH = (uint8_t)(DIVIDER >> 8);
    UBRRL = (uint8_t)DIVIDER;
    UCSRC = UCSRC_8BIT;
    UCSRB = UCSRB_RX_ENABLE | UCSRB_TX_ENABLE;
}

void bt_console_put(uint8_t byte)
{
    while ((UCSRA & UCSRA_TX_EMPTY) == 0) {
    }
    UDR = byte;
}

int bt_console_ready(void)
{
    return (UCSRA & UCSRA_RX_COMPLETE) != 0;
}

uint8_t bt_console_take(void)
{
    return UDR;
}
