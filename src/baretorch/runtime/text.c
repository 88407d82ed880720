/* Text for people, outside the frames. */
#include "bt_runtime.h"

void bt_print(const BT_FLASH char *text)
{
    while (*text != '\0') {
        bt_console_put((uint8_t)*text++);
    }
}

void bt_print_hex(uint32_t value)
{
    bt_print(BT_TEXT("0x"));
    for (int shift = 28; shift >= 0; shift -= 4) {
        bt_console_put((uint8_t)"0123456789abcdef"[(value >> shift) & 15u]);
    }
}
