/* STM32WB55: 64 MHz from the 32 MHz crystal, USART1 on PB6 and PB7. */
#include "bt_reg.h"
#include "bt_runtime.h"

#define RCC_CR BT_REG(0x58000000u)
#define RCC_CFGR BT_REG(0x58000008u)
#define RCC_PLLCFGR BT_REG(0x5800000cu)
#define RCC_AHB2ENR BT_REG(0x5800004cu)
#define RCC_APB2ENR BT_REG(0x58000060u)
#define RCC_EXTCFGR BT_REG(0x58000108u)
#define FLASH_ACR BT_REG(0x58004000u)
#define GPIOB_MODER BT_REG(0x48000400u)
#define GPIOB_PUPDR BT_REG(0x4800040cu)
#define GPIOB_AFRL BT_REG(0x48000420u)

#define CR_HSEON (1u << 16)
#define CR_HSERDY (1u << 17)
#define CR_PLLON (1u << 24)
#define CR_PLLRDY (1u << 25)
#define CFGR_SW_PLL 3u
#define CFGR_SWS_MASK (3u << 2)
#define CFGR_SWS_PLL (3u << 2)
#define EXTCFGR_C2HPRE_HALF (8u << 4)
#define EXTCFGR_C2HPREF (1u << 17)
#define ACR_LATENCY_MASK 7u
#define ACR_CACHES_PREFETCH (7u << 8)
/* HSE / 2 = 16 MHz, x 8 = 128 MHz, / 2 = 64 MHz; the other two outputs stay off. */
#define PLLCFGR_64MHZ (3u | (1u << 4) | (8u << 8) | (1u << 28) | (1u << 29))

static void flash_wait_states(uint32_t n)
{
    FLASH_ACR = ACR_CACHES_PREFETCH | n;
    while ((FLASH_ACR & ACR_LATENCY_MASK) != n) {
    }
}

void bt_chip_init(void)
{
    RCC_CR |= CR_HSEON;
    while ((RCC_CR & CR_HSERDY) == 0) {
    }
    flash_wait_states(3);
    RCC_EXTCFGR |= EXTCFGR_C2HPRE_HALF; /* the radio core must not exceed 32 MHz */
    while ((RCC_EXTCFGR & EXTCFGR_C2HPREF) == 0) {
    }
    RCC_PLLCFGR = PLLCFGR_64MHZ;
    RCC_CR |= CR_PLLON;
    while ((RCC_CR & CR_PLLRDY) == 0) {
    }
    RCC_CFGR |= CFGR_SW_PLL;
    while ((RCC_CFGR & CFGR_SWS_MASK) != CFGR_SWS_PLL) {
    }

    RCC_AHB2ENR |= 1u << 1;  /* GPIOB */
    RCC_APB2ENR |= 1u << 14; /* USART1, from PCLK2 */
    GPIOB_PUPDR = (GPIOB_PUPDR & ~(0xfu << 12)) | (1u << 14); /* pull-up on the input, PB7 */
    GPIOB_AFRL = (GPIOB_AFRL & ~(0xffu << 24)) | (0x77u << 24);
    GPIOB_MODER = (GPIOB_MODER & ~(0xfu << 12)) | (0xau << 12);
}
