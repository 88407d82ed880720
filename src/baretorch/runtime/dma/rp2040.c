/* RP2040. */
#define RESETS_BASE 0x4000c000u
#define CTRL_INCR_WRITE (1u << 5)
#define CTRL_TREQ 15
#define CTRL_BUSY (1u << 24)
#include "rp.h"
