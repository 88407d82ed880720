/* Timer 1 of ATmega chips, which counts clock cycles in 16 bits. Its interrupt counts how often that was too few. */
#include "bt_board.h"
#include "bt_runtime.h"

#define REG8(address) (*(volatile uint8_t *)(uintptr_t)(address))
#define TCCRB REG8(BT_COUNTER_BASE + 1u)
#define TCNTL REG8(BT_COUNTER_BASE + 4u) /* reading it keeps the upper half for the next read */
#define TCNTH REG8(BT_COUNTER_BASE + 5u)
#define TIMSK REG8(0x6fu)
#define TIFR REG8(0x36u)

#define TCCRB_EVERY_CYCLE 1u
#define OVERFLOW 1u /* in TIMSK and TIFR */

extern volatile uint16_t bt_counter_overflows;
volatile uint16_t bt_counter_overflows;

/* In 28 cycles and three bytes of the stack, the return address not counted. */
__asm__(".pushsection .text.bt_counter_interrupt, \"ax\", @progbits\n"
        ".globl bt_counter_interrupt\n"
        ".type bt_counter_interrupt, @function\n"
        "bt_counter_interrupt:\n"
        "push r24\n"
        "in r24, 0x3f\n"
        "push r24\n"
        "push r25\n"
        "lds r24, bt_counter_overflows\n"
        "lds r25, bt_counter_overflows + 1\n"
        "adiw r24, 1\n"
        "sts bt_counter_overflows + 1, r25\n"
        "sts bt_counter_overflows, r24\n"
        "pop r25\n"
        "pop r24\n"
        "out 0x3f, r24\n"
        "pop r24\n"
        "reti\n"
        ".size bt_counter_interrupt, . - bt_counter_interrupt\n"
        ".popsection\n");

void bt_counter_init(void)
{
    TCCRB = TCCRB_EVERY_CYCLE;
    TIMSK = OVERFLOW;
    __asm__ volatile("sei" ::: "memory");
}

uint32_t bt_counter_read(void)
{
    __asm__ volatile("cli" ::: "memory");
    const uint8_t low = TCNTL, high = TCNTH;
    uint16_t upper = bt_counter_overflows;
    if ((TIFR & OVERFLOW) != 0 && high < 0x80u) { /* just now, and not counted yet */
        upper++;
    }
    __asm__ volatile("sei" ::: "memory");
    return (uint32_t)upper << 16 | (uint16_t)((uint16_t)high << 8 | low);
}
