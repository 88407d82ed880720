/* Whether numbers are neither NaN nor infinite: those have all bits of the exponent set. By bits, so that no compiler
 * that takes numbers for finite can leave it out. */
#ifndef BT_FINITE_H
#define BT_FINITE_H

#include <stdint.h>

static int bt_all_finite(const float *x, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bits;
        __builtin_memcpy(&bits, &x[i], sizeof bits);
        if ((bits & 0x7f800000u) == 0x7f800000u) {
            return 0;
        }
    }
    return 1;
}

#endif
