/* STM32H743: its first watchdog. */
#define IWDG_BASE 0x58004800u
#define CAUSE BT_REG(0x580244d0u) /* RCC_RSR */
#define CAUSE_FORGET (1u << 16)
#define CAUSE_IWDG (1u << 26)
#include "stm32.h"
