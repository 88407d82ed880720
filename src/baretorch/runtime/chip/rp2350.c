/* RP2350: 150 MHz from the crystal, fast flash, UART0 on GP0 and GP1, a microsecond tick for TIMER0. */
#include "bt_board.h"
#include "bt_runtime.h"

#define CLOCKS_BASE 0x40010000u
#define RESETS_BASE 0x40020000u
#define IO_BANK0_BASE 0x40028000u
#define PADS_BANK0_BASE 0x40038000u
#define XOSC_BASE 0x40048000u
#define PLL_SYS_BASE 0x40050000u
#define PLL_USB_BASE 0x40058000u
#define CLK_USB_CTRL BT_REG(CLOCKS_BASE + 0x60u)
#define CLK_USB_DIV BT_REG(CLOCKS_BASE + 0x64u)
#define rp_undivide_peri() (BT_REG(CLOCKS_BASE + 0x4cu) = DIVIDE_BY_1)
#define DIVIDE_BY_1 0x10000u
#include "rp.h"

#define TICKS_TIMER0_CTRL BT_REG(0x40108018u)
#define TICKS_TIMER0_CYCLES BT_REG(0x4010801cu)
#define TICKS_ENABLE 1u

#define RESET_IO_BANK0 (1u << 6)
#define RESET_PADS_BANK0 (1u << 9)
#define RESET_PLL_SYS (1u << 14)
#define RESET_PLL_USB (1u << 15)
#define RESET_TIMER0 (1u << 23)
#define RESET_UART0 (1u << 26)
#define RESET_USBCTRL (1u << 28)

void bt_chip_init(void)
{
    rp_out_of_reset(RESET_IO_BANK0 | RESET_PADS_BANK0 | RESET_PLL_SYS | RESET_TIMER0);
    rp_start_clocks(5, 2);
    bt_flash_fast();
    TICKS_TIMER0_CYCLES = rp_microsecond();
    TICKS_TIMER0_CTRL = TICKS_ENABLE;
    rp_start_uart(RESET_UART0);
}

#ifdef BT_USB_BASE
#define CHIPID_LOW 0x40130000u
#define CHIPID_HIGH 0x40130004u

int bt_usb_start(void)
{
    return rp_start_usb(RESET_PLL_USB, RESET_USBCTRL);
}

int bt_usb_can_abort(void)
{
    return 1;
}

int bt_usb_sends_early(void)
{
    return 0;
}

/* CHIPID in OTP, which has 16 bits in a row and begins with the lowest. That page cannot be locked. */
uint32_t bt_usb_digit(uint32_t n)
{
    return BT_REG(n < 8 ? CHIPID_HIGH : CHIPID_LOW) >> (28u - 4u * (n % 8u)) & 0xfu;
}

void bt_usb_after_reset(void)
{
}

/* The boot ROM's function `RB`: restart into its USB loader, in 10 ms. It needs nothing of the image. */
__attribute__((naked, noreturn)) void bt_usb_boot_loader(void)
{
    __asm__ volatile("ldr r0, =0x4252\n\t"
                     "movs r1, #4\n\t" /* for secure code */
                     "movs r2, #0x16\n\t" /* what finds a function */
                     "ldrh r2, [r2]\n\t"
                     "ldr r3, =1f + 1\n\t"
                     "mov lr, r3\n\t"
                     "bx r2\n"
                     "1:\n\t"
                     "mov r12, r0\n\t"
                     "ldr r0, =0x102\n\t"
                     "movs r1, #10\n\t"
                     "movs r2, #0\n\t"
                     "movs r3, #0\n\t"
                     "bx r12\n\t"
                     ".ltorg");
}
#endif
