/* RP2350. */
#define RESETS_BASE 0x40020000u
#define CTRL_INCR_WRITE (1u << 6)
#define CTRL_TREQ 17
#define CTRL_BUSY (1u << 26)
#include "rp.h"
