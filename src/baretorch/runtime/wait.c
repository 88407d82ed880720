/* Waiting for hardware that may be broken. */
#include "bt_board.h"
#include "bt_reg.h"
#include "bt_runtime.h"

/* Looks, each of some ten cycles: 50 ms or more on the oscillators that chips start with. */
#define PATIENCE (1u << 17)

int bt_wait(uint32_t address, uint32_t mask, uint32_t value)
{
    for (uint32_t looks = PATIENCE; looks > 0; looks--) {
        if ((BT_REG(address) & mask) == value) {
            return 1;
        }
    }
    return 0;
}

void bt_report_missing(void)
{
    bt_print("baretorch: ");
    bt_print(bt_chip_missing());
    bt_print(" does not start, this is slow\n");
}
