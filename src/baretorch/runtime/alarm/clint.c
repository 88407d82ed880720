/* The timer of RISC-V harts, at the addresses of SiFive's core-local interruptor. */
#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"

#define MTIMECMP BT_REG(BT_ALARM_BASE + 0x4000u)
#define MTIMECMPH BT_REG(BT_ALARM_BASE + 0x4004u)
#define MTIME BT_REG(BT_ALARM_BASE + 0xbff8u)
#define MTIMEH BT_REG(BT_ALARM_BASE + 0xbffcu)
#define MTIME_START() ((void)0) /* it always runs */
#include "riscv/mtime.h"
