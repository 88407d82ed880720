/* STM32WB55: 64 MHz from the 32 MHz crystal, USART1 on PB6 and PB7. */
#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"

#define RCC 0x58000000u
#define RCC_CR BT_REG(RCC)
#define RCC_CFGR BT_REG(RCC + 0x08u)
#define RCC_PLLCFGR BT_REG(RCC + 0x0cu)
#define RCC_AHB2ENR BT_REG(RCC + 0x4cu)
#define RCC_APB2ENR BT_REG(RCC + 0x60u)
#define RCC_EXTCFGR BT_REG(RCC + 0x108u)
#define FLASH 0x58004000u
#define FLASH_ACR BT_REG(FLASH)
#define GPIOB_MODER BT_REG(0x48000400u)
#define GPIOB_PUPDR BT_REG(0x4800040cu)
#define GPIOB_AFRL BT_REG(0x48000420u)

#define CR_HSEON (1u << 16)
#define CR_HSERDY (1u << 17)
#define CR_PLLON (1u << 24)
#define CFGR_SW_PLL 3u
#define CFGR_SWS_PLL (3u << 2)
#define EXTCFGR_C2HPRE_HALF (8u << 4)
#define EXTCFGR_C2HPREF (1u << 17)
#define ACR_LATENCY_MASK 7u
#define ACR_CACHES_PREFETCH (7u << 8)
#define WAIT_STATES 3u /* what 64 MHz takes in voltage range 1 */
/* HSE / 2 = 16 MHz, x 8 = 128 MHz, / 2 = 64 MHz; the other two outputs stay off. */
#define PLLCFGR_64MHZ (3u | (1u << 4) | (8u << 8) | (1u << 28) | (1u << 29))

/* Without crystal or PLL the core stays on the internal oscillator, MSI, at 4 MHz. */
static void start_clocks(void)
{
    RCC_CR |= CR_HSEON;
    if (!bt_wait(RCC, CR_HSERDY, CR_HSERDY)) {
        return;
    }
    FLASH_ACR = ACR_CACHES_PREFETCH | WAIT_STATES;
    bt_wait(FLASH, ACR_LATENCY_MASK, WAIT_STATES);
    RCC_EXTCFGR |= EXTCFGR_C2HPRE_HALF; /* the radio core must not exceed 32 MHz */
    bt_wait(RCC + 0x108u, EXTCFGR_C2HPREF, EXTCFGR_C2HPREF);
    RCC_PLLCFGR = PLLCFGR_64MHZ;
    RCC_CR |= CR_PLLON;
    RCC_CFGR |= CFGR_SW_PLL; /* the switch is done once the PLL is ready */
    bt_wait(RCC + 0x08u, CFGR_SWS_PLL, CFGR_SWS_PLL);
}

void bt_chip_init(void)
{
    start_clocks();
    RCC_AHB2ENR |= 1u << 1;  /* GPIOB */
    RCC_APB2ENR |= 1u << 14; /* USART1, from PCLK2 */
    (void)RCC_AHB2ENR;       /* clocks run once these reads are done */
    (void)RCC_APB2ENR;
    GPIOB_PUPDR = (GPIOB_PUPDR & ~(0xfu << 12)) | (1u << 14); /* pull-up on the input, PB7 */
    GPIOB_AFRL = (GPIOB_AFRL & ~(0xffu << 24)) | (0x77u << 24);
    GPIOB_MODER = (GPIOB_MODER & ~(0xfu << 12)) | (0xau << 12);
}

const char *bt_chip_missing(void)
{
    if ((RCC_CR & CR_HSERDY) == 0) {
        return "the crystal";
    }
    return (RCC_CFGR & CFGR_SWS_PLL) != CFGR_SWS_PLL ? "the PLL" : 0;
}
