/* Room for a byte in a UART. If there is none for so long that its line is dead, bytes are lost, and the image goes on. */
#ifndef BT_UART_ROOM_H
#define BT_UART_ROOM_H

#include "bt_board.h"

/* Looks, each of four cycles or more: the time of a few bytes at least, however slow the core's clock. */
#define ROOM_LOOKS (16u * (BT_CLOCK_HZ / BT_UART_BAUD) + 1000u)

#define RETURN_UNLESS(has_room) \
    for (uint32_t looks = ROOM_LOOKS; !(has_room);) { \
        if (--looks == 0) { \
            return; \
        } \
    }

#endif
