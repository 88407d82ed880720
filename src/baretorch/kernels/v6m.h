/* Assembly that the int8 kernels for Armv6-M share. It names its registers, as compilers have none to spare there. */
#ifndef BT_V6M_H
#define BT_V6M_H

#include "int8.h"

/* bt_requantize_small: the sum in r1 becomes a byte at r0. The multiplier is in r5 (low half) and r6 (high half), hi - lo
 * in r4, and in high registers 2^15 + ((zero - lo) << 16) and lo. Uses r2 and r3. */
#define BT_V6M_OUTPUT(round, lo)                                                                                       \
    "asrs r2, r1, #16\n\t"                                                                                             \
    "uxth r3, r1\n\t"                                                                                                  \
    "muls r1, r6, r1\n\t"                                                                                              \
    "muls r2, r5, r2\n\t"                                                                                              \
    "muls r3, r5, r3\n\t"                                                                                              \
    "lsrs r3, r3, #16\n\t"                                                                                             \
    "adds r1, r1, r2\n\t"                                                                                              \
    "adds r1, r1, r3\n\t"                                                                                              \
    "add r1, " round "\n\t"                                                                                            \
    "asrs r1, r1, #16\n\t"                                                                                             \
    "cmp r1, r4\n\t"                                                                                                   \
    "bls 9f\n\t"                                                                                                       \
    "asrs r2, r1, #31\n\t"                                                                                             \
    "movs r1, r4\n\t"                                                                                                  \
    "bics r1, r2\n"                                                                                                    \
    "9:\n\t"                                                                                                           \
    "add r1, " lo "\n\t"                                                                                               \
    "strb r1, [r0]\n\t"

/* An operand for assembly that reads a field through a pointer. */
#define BT_V6M_FIELD(type, name) [name] "i"(offsetof(type, name))

#endif
