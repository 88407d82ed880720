/* STM32H743: the internal 64 MHz oscillator it starts from, caches on, USART3 on PD8 and PD9. */
#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"

#define RCC_AHB4ENR BT_REG(0x580244e0u)
#define RCC_APB1LENR BT_REG(0x580244e8u)
#define PWR_CSR1 BT_REG(0x58024804u)
#define PWR_CR3 BT_REG(0x5802480cu)
#define DBGMCU_IDC BT_REG(0x5c001000u)
#define AXI_TARG7_FN_MOD BT_REG(0x51008108u)
#define FLASH 0x52002000u
#define FLASH_ACR BT_REG(FLASH)
#define GPIOD_MODER BT_REG(0x58020c00u)
#define GPIOD_PUPDR BT_REG(0x58020c0cu)
#define GPIOD_AFRH BT_REG(0x58020c24u)

#define SCB_CCR BT_REG(0xe000ed14u)
#define SCB_CCSIDR BT_REG(0xe000ed80u)
#define SCB_CSSELR BT_REG(0xe000ed84u)
#define SCB_ICIALLU BT_REG(0xe000ef50u)
#define SCB_DCISW BT_REG(0xe000ef60u)
#define MPU_CTRL BT_REG(0xe000ed94u)
#define MPU_RNR BT_REG(0xe000ed98u)
#define MPU_RBAR BT_REG(0xe000ed9cu)
#define MPU_RASR BT_REG(0xe000eda0u)
#define CCR_DC (1u << 16)
#define CCR_IC (1u << 17)

#define CR3_LDOEN (1u << 1)
#define CSR1_ACTVOSRDY (1u << 13)
#define SUPPLY_LOOKS 100000u
#define REVISION_V 0x2000u
#define READ_ISS_OVERRIDE 1u
/* No access to, and no code in, four eighths of all addresses: 0x60000000 to 0xdfffffff. */
#define RASR_CLOSED ((1u << 28) | (0x87u << 8) | (31u << 1) | 1u)
#define CTRL_PRIVDEFENA_ENABLE 5u

#define ACR_ONE_WAIT_STATE 0x11u /* enough for 90 MHz at the lowest core voltage, VOS3 */

/* Called before the first word is written to RAM, which the chip does not permit earlier: so this uses no stack. The
 * supply can be set once after power-up; later writes do nothing. */
void bt_chip_power(void)
{
    PWR_CR3 = CR3_LDOEN;
    for (uint32_t looks = SUPPLY_LOOKS; looks > 0 && (PWR_CSR1 & CSR1_ACTVOSRDY) == 0; looks--) {
    }
    if (DBGMCU_IDC >> 16 < REVISION_V) { /* Y and earlier: without it, reads from AXI SRAM may be corrupted */
        AXI_TARG7_FN_MOD = READ_ISS_OVERRIDE;
    }
}

static void barrier(void)
{
    __asm__ volatile("dsb\n\tisb" : : : "memory");
}

/* The core reads ahead, also where no memory is connected, and would wait there for ever. */
static void close_external_memory(void)
{
    MPU_RNR = 0;
    MPU_RBAR = 0;
    MPU_RASR = RASR_CLOSED;
    MPU_CTRL = CTRL_PRIVDEFENA_ENABLE;
    barrier();
}

/* Caches have random contents after reset: both are invalidated before they are enabled. No DMA runs meanwhile. */
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
    bt_wait(FLASH, 0xffu, ACR_ONE_WAIT_STATE);
    close_external_memory();
    enable_caches();

    RCC_AHB4ENR |= 1u << 3;   /* GPIOD */
    RCC_APB1LENR |= 1u << 18; /* USART3, from PCLK1 */
    (void)RCC_AHB4ENR;        /* clocks run once these reads are done */
    (void)RCC_APB1LENR;
    GPIOD_PUPDR = (GPIOD_PUPDR & ~(0xfu << 16)) | (1u << 18); /* pull-up on the input, PD9 */
    GPIOD_AFRH = (GPIOD_AFRH & ~0xffu) | 0x77u;
    GPIOD_MODER = (GPIOD_MODER & ~(0xfu << 16)) | (0xau << 16);
}

const char *bt_chip_missing(void)
{
    return (PWR_CSR1 & CSR1_ACTVOSRDY) == 0 ? "the core's supply" : 0;
}
