/* STM32WB55. */
#define IWDG_BASE 0x40003000u
#define CAUSE BT_REG(0x58000094u) /* RCC_CSR */
#define CAUSE_FORGET (1u << 23)
#define CAUSE_IWDG (1u << 29)
#include "stm32.h"
