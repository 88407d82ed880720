/* RP2040: 125 MHz from the crystal, UART0 on GP0 and GP1, a microsecond tick for the timer. */
#include "bt_board.h"
#include "bt_runtime.h"

#define CLOCKS_BASE 0x40008000u
#define RESETS_BASE 0x4000c000u
#define IO_BANK0_BASE 0x40014000u
#define PADS_BANK0_BASE 0x4001c000u
#define XOSC_BASE 0x40024000u
#define PLL_SYS_BASE 0x40028000u
#define PLL_USB_BASE 0x4002c000u
#define CLK_USB_CTRL BT_REG(CLOCKS_BASE + 0x54u)
#define CLK_USB_DIV BT_REG(CLOCKS_BASE + 0x58u)
#define rp_undivide_peri() ((void)0) /* it has no divider */
#define DIVIDE_BY_1 0x100u
#include "rp.h"

#define WATCHDOG_TICK BT_REG(0x4005802cu)
#define WATCHDOG_TICK_ENABLE (1u << 9)

#define RESET_IO_BANK0 (1u << 5)
#define RESET_PADS_BANK0 (1u << 8)
#define RESET_PLL_SYS (1u << 12)
#define RESET_PLL_USB (1u << 13)
#define RESET_SYSINFO (1u << 19) /* the chip's version */
#define RESET_TIMER (1u << 21)
#define RESET_UART0 (1u << 22)
#define RESET_USBCTRL (1u << 24)

void bt_chip_init(void)
{
    rp_out_of_reset(RESET_IO_BANK0 | RESET_PADS_BANK0 | RESET_PLL_SYS | RESET_TIMER);
    rp_start_clocks(6, 2);
    WATCHDOG_TICK = WATCHDOG_TICK_ENABLE | rp_microsecond();
    rp_start_uart(RESET_UART0);
}

#ifdef BT_USB_BASE
#define CHIP_VERSION (BT_REG(0x40000000u) >> 28) /* 1 is B0 and B1, 2 is B2 */

int bt_usb_start(void)
{
    return rp_start_usb(RESET_PLL_USB | RESET_SYSINFO, RESET_USBCTRL);
}

int bt_usb_can_abort(void)
{
    return CHIP_VERSION > 1; /* RP2040-E2 */
}

int bt_usb_sends_early(void)
{
    return 1; /* RP2040-E15, of all versions */
}

/* boot/boot2.S has read it from the board's flash chip: bytes 5 to 12 of a reply that is kept with the last byte first. */
extern const uint8_t bt_flash_answer[16];

uint32_t bt_usb_digit(uint32_t n)
{
    return bt_flash_answer[10u - n / 2u] >> (n % 2u != 0 ? 0 : 4) & 0xfu;
}

#define USB_REGISTER(offset) BT_REG(BT_USB_BASE + 0x10000u + (offset))
#define USB_STATUS USB_REGISTER(0x50u)
#define USB_MUXING USB_REGISTER(0x74u)
#define USB_PHY_DIRECT_SET USB_REGISTER(0x7cu + SET)
#define USB_PHY_OVERRIDE_SET USB_REGISTER(0x80u + SET)
#define USB_PHY_OVERRIDE_CLEAR USB_REGISTER(0x80u + CLEAR)
#define STATUS_CONNECTED (1u << 16)
#define STATUS_LINES (3u << 2) /* both low is a reset */
#define MUXING_TO_PHY 9u
#define MUXING_TO_PADS 0xcu
#define DP_PULL_UP (1u << 1)
#define DP_PULL_UP_OVERRIDE (1u << 2)
#define DP_PIN 15u /* what the pads' debug function takes for D+ */
#define FUNCTION_USB_DEBUG 8u
#define OUTPUT_OFF (2u << 12)
#define INPUT_HIGH (3u << 16)
#define PAD_KEEP 0x5eu /* both pulls: it stays as it is */
#define RESET_US 50000u /* no host's takes longer */
#define FORCED_US 1000u

/* RP2040-E5: first chips must see an idle line for 800 us after a reset, which traffic of other devices may prevent. So
 * the line is forced, by way of a pin that is restored afterwards. */
void bt_usb_after_reset(void)
{
    if (CHIP_VERSION > 1) {
        return;
    }
    const uint32_t began = bt_counter_read();
    while ((USB_STATUS & STATUS_LINES) == 0 && bt_counter_read() - began < RESET_US) {
    }
    if ((USB_STATUS & STATUS_CONNECTED) != 0) {
        return;
    }
    const uint32_t function = GPIO_CTRL(DP_PIN), pad = PAD(DP_PIN);
    PAD(DP_PIN) = PAD_KEEP;
    GPIO_CTRL(DP_PIN) = INPUT_HIGH | OUTPUT_OFF | FUNCTION_USB_DEBUG;
    USB_PHY_DIRECT_SET = DP_PULL_UP;
    USB_PHY_OVERRIDE_SET = DP_PULL_UP_OVERRIDE;
    USB_MUXING = MUXING_TO_PADS;
    for (const uint32_t forced = bt_counter_read(); bt_counter_read() - forced < FORCED_US;) {
    }
    USB_MUXING = MUXING_TO_PHY;
    USB_PHY_OVERRIDE_CLEAR = DP_PULL_UP_OVERRIDE;
    GPIO_CTRL(DP_PIN) = function;
    PAD(DP_PIN) = pad;
}

/* The boot ROM's function `UB`. It needs nothing of the image, not even the stack. */
__attribute__((naked, noreturn)) void bt_usb_boot_loader(void)
{
    __asm__ volatile("movs r0, #0x14\n\t" /* the table of functions */
                     "ldrh r0, [r0]\n\t"
                     "ldr r1, =0x4255\n\t"
                     "movs r2, #0x18\n\t" /* what finds one there */
                     "ldrh r2, [r2]\n\t"
                     "ldr r3, =1f + 1\n\t"
                     "mov lr, r3\n\t"
                     "bx r2\n"
                     "1:\n\t"
                     "mov r3, r0\n\t"
                     "movs r0, #0\n\t"
                     "movs r1, #0\n\t"
                     "bx r3\n\t"
                     ".ltorg");
}
#endif
