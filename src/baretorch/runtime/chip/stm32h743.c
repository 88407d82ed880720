/* STM32H743: the internal 64 MHz oscillator it starts from, caches on, USART3 on PD8 and PD9. */
#include "bt_reg.h"
#include "bt_runtime.h"

#define RCC_AHB4ENR BT_REG(0x580244e0u)
#define RCC_APB1LENR BT_REG(0x580244e8u)
#define FLASH_ACR BT_REG(0x52002000u)
#define GPIOD_MODER BT_REG(0x58020c00u)
#define GPIOD_PUPDR BT_REG(0x58020c0cu)
#define GPIOD_AFRH BT_REG(0x58020c24u)

#define SCB_CCR BT_REG(0xe000ed14u)
#define SCB_CCSIDR BT_REG(0xe000ed80u)
#define SCB_CSSELR BT_REG(0xe000ed84u)
#define SCB_ICIALLU BT_REG(0xe000ef50u)
#define SCB_DCISW BT_REG(0xe000ef60u)
#define CCR_DC (1u << 16)
#define CCR_IC (1u << 17)

#define ACR_ONE_WAIT_STATE 0x11u /* enough for 90 MHz at the lowest core voltage, VOS3 */

static void barrier(void)
{
    __asm__ volatile("dsb\n\tisb" : : : "memory");
}

/* Caches hold anything after reset: both are emptied before they are switched on. No DMA runs beside us. */
static void enable_caches(void)
{
    SCB_CSSELR = 0; /* the data cache */
    barrier();
    const uint32_t shape = SCB_CCSIDR;
    const uint32_t last_set = (shape >> 13) & 0x7fffu;
    const uint32_t last_way = (shape >> 3) & 0x3ffu;
    for (uint32_t set = 0; set <= last_set; set++) {
        for (uint32_t way = 0; way <= last_way; way++) {
            SCB_DCISW = (way << 30) | (set << 5); /* four ways, lines of 32 bytes */
        }
    }
    SCB_ICIALLU = 0;
    barrier();
    SCB_CCR |= CCR_DC | CCR_IC;
    barrier();
}

void bt_chip_init(void)
{
    FLASH_ACR = ACR_ONE_WAIT_STATE;
    while (FLASH_ACR != ACR_ONE_WAIT_STATE) {
    }
    enable_caches();

    RCC_AHB4ENR |= 1u << 3;   /* GPIOD */
    RCC_APB1LENR |= 1u << 18; /* USART3, from PCLK1 */
    (void)RCC_APB1LENR;       /* the clock runs once this read is done */
    GPIOD_PUPDR = (GPIOD_PUPDR & ~(0xfu << 16)) | (1u << 18); /* pull-up on the input, PD9 */
    GPIOD_AFRH = (GPIOD_AFRH & ~0xffu) | 0x77u;
    GPIOD_MODER = (GPIOD_MODER & ~(0xfu << 16)) | (0xau << 16);
}
