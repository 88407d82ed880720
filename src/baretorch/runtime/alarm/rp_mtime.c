/* The RP2350's timer for RISC-V harts, at the rate of the core. */
#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"

#define MTIME_CTRL BT_REG(BT_ALARM_BASE + 0x1a4u)
#define MTIME BT_REG(BT_ALARM_BASE + 0x1b0u)
#define MTIMEH BT_REG(BT_ALARM_BASE + 0x1b4u)
#define MTIMECMP BT_REG(BT_ALARM_BASE + 0x1b8u)
#define MTIMECMPH BT_REG(BT_ALARM_BASE + 0x1bcu)
#define MTIME_START() (MTIME_CTRL = 3u) /* on, at full speed */
#include "riscv/mtime.h"
