/* Memory-mapped registers. */
#ifndef BT_REG_H
#define BT_REG_H

#include <stdint.h>

#define BT_REG(address) (*(volatile uint32_t *)(uintptr_t)(address))

#endif
