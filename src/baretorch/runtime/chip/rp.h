/* What the RP2040 and the RP2350 share: the including file names the blocks' addresses, and the
 * form of a clock's divider.
 * Both boards have a 12 MHz crystal; the system PLL makes 1500 MHz of it, and two dividers the core's clock. */
#ifndef BT_RP_H
#define BT_RP_H

#include "bt_reg.h"

#define SET 0x2000u   /* alias of a register: sets the bits that are written as 1 */
#define CLEAR 0x3000u /* clears them */

#define RESETS_SET BT_REG(RESETS_BASE + SET)
#define RESETS_CLEAR BT_REG(RESETS_BASE + CLEAR)
#define RESETS_DONE (RESETS_BASE + 0x08u)
#define RESET_DMA (1u << 2)

#define XOSC_CTRL BT_REG(XOSC_BASE + 0x00u)
#define XOSC_STATUS (XOSC_BASE + 0x04u)
#define XOSC_ENABLE_1_15MHZ 0x00fabaa0u
#define XOSC_STABLE (1u << 31)

#define CLK_REF_CTRL BT_REG(CLOCKS_BASE + 0x30u)
#define CLK_REF_DIV BT_REG(CLOCKS_BASE + 0x34u)
#define CLK_SYS_CTRL BT_REG(CLOCKS_BASE + 0x3cu)
#define CLK_SYS_DIV BT_REG(CLOCKS_BASE + 0x40u)
#define CLK_SYS_CTRL_CLEAR BT_REG(CLOCKS_BASE + 0x3cu + CLEAR)
#define CLK_SYS_SELECTED (CLOCKS_BASE + 0x44u)
#define CLK_PERI_CTRL BT_REG(CLOCKS_BASE + 0x48u)
#define CLK_REF_XOSC 2u
#define CLK_SYS_SRC 1u         /* 0: the reference clock, 1: that of AUXSRC */
#define CLK_SYS_AUXSRC_PLL 0u
#define CLK_PERI_ENABLE_SYS (1u << 11)
#define CLK_USB_ENABLE_PLL (1u << 11)

#define PLL_CS(pll) BT_REG((pll) + 0x0u)
#define PLL_PWR(pll) BT_REG((pll) + 0x4u)
#define PLL_FBDIV(pll) BT_REG((pll) + 0x8u)
#define PLL_PRIM(pll) BT_REG((pll) + 0xcu)
#define PLL_LOCK (1u << 31)
#define PLL_PWR_OFF 0x2du        /* everything down */
#define PLL_PWR_VCO 0x0cu        /* the VCO runs, its output divider is down */
#define PLL_PWR_RUN 0x04u        /* only the unused fractional part is down */

#define GPIO_CTRL(pin) BT_REG(IO_BANK0_BASE + 8u * (pin) + 4u)
#define PAD(pin) BT_REG(PADS_BANK0_BASE + 4u * (pin) + 4u)
#define FUNCTION_UART 2u
#define PAD_PULL_DOWN 0x56u /* input enabled, 4 mA, Schmitt trigger; on the RP2350 not isolated */
#define PAD_PULL_UP 0x5au

/* A debugger resets the core only: DMA that another program has started continues. */
void bt_chip_quiet(void)
{
    RESETS_SET = RESET_DMA;
}

static inline void rp_out_of_reset(uint32_t blocks)
{
    RESETS_CLEAR = blocks;
    bt_wait(RESETS_DONE, blocks, blocks);
}

/* The crystal's 12 MHz * times / divider1 / divider2; false if the PLL does not lock. Nothing may run from it. */
static inline int rp_start_pll(uint32_t pll, uint32_t times, uint32_t divider1, uint32_t divider2)
{
    PLL_PWR(pll) = PLL_PWR_OFF;
    PLL_CS(pll) = 1; /* reference divider */
    PLL_FBDIV(pll) = times;
    PLL_PWR(pll) = PLL_PWR_VCO;
    if (!bt_wait(pll, PLL_LOCK, PLL_LOCK)) {
        return 0;
    }
    PLL_PRIM(pll) = (divider1 << 16) | (divider2 << 12);
    PLL_PWR(pll) = PLL_PWR_RUN;
    return 1;
}

/* Core clock = 1500 MHz / divider1 / divider2. Without crystal or PLL it stays that of the ring oscillator. */
static inline void rp_start_clocks(uint32_t divider1, uint32_t divider2)
{
    CLK_SYS_CTRL_CLEAR = CLK_SYS_SRC; /* AUXSRC may change and the PLL stop only while the core uses neither */
    bt_wait(CLK_SYS_SELECTED, 1u, 1u);
    XOSC_CTRL = XOSC_ENABLE_1_15MHZ;
    if (!bt_wait(XOSC_STATUS, XOSC_STABLE, XOSC_STABLE)) {
        return;
    }
    if (!rp_start_pll(PLL_SYS_BASE, 125, divider1, divider2)) {
        return;
    }
    CLK_REF_CTRL = CLK_REF_XOSC;
    CLK_REF_DIV = DIVIDE_BY_1; /* the boot ROM of later RP2350s leaves another */
    CLK_SYS_DIV = DIVIDE_BY_1; /* another program may have */
    CLK_SYS_CTRL = CLK_SYS_AUXSRC_PLL;
    CLK_SYS_CTRL = CLK_SYS_AUXSRC_PLL | CLK_SYS_SRC; /* done some cycles later, and nothing here depends on when */
}

#ifdef BT_USB_BASE
#define rp_start_uart(reset) ((void)(reset)) /* its pins are free */

/* 48 MHz for USB from the other PLL, and its controller out of reset; false if the PLL does not lock. */
static inline int rp_start_usb(uint32_t pll_reset, uint32_t usb_reset)
{
    RESETS_SET = usb_reset; /* another program may have used it */
    rp_out_of_reset(pll_reset);
    if (!rp_start_pll(PLL_USB_BASE, 100, 5, 5)) {
        return 0;
    }
    CLK_USB_CTRL = CLK_USB_ENABLE_PLL;
    CLK_USB_DIV = DIVIDE_BY_1;
    rp_out_of_reset(usb_reset);
    return 1;
}
#else
/* UART0 from clk_sys, on GP0 and GP1; an unconnected input idles high. */
static inline void rp_start_uart(uint32_t reset)
{
    RESETS_SET = reset; /* its clock may have been another until now, and changes with a glitch */
    CLK_PERI_CTRL = CLK_PERI_ENABLE_SYS;
    rp_undivide_peri();
    rp_out_of_reset(reset);
    PAD(0u) = PAD_PULL_DOWN;
    PAD(1u) = PAD_PULL_UP;
    GPIO_CTRL(0u) = FUNCTION_UART;
    GPIO_CTRL(1u) = FUNCTION_UART;
}
#endif

const char *bt_chip_missing(void)
{
    if ((BT_REG(XOSC_STATUS) & XOSC_STABLE) == 0) {
        return "the crystal";
    }
    return (PLL_CS(PLL_SYS_BASE) & PLL_LOCK) == 0 ? "the PLL" : 0;
}

/* Cycles of the reference clock, rather exactly, in a microsecond. */
static inline uint32_t rp_microsecond(void)
{
    return bt_chip_missing() ? BT_FALLBACK_UART_HZ / 1000000u : 12u;
}

#endif
