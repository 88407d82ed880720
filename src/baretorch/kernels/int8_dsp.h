/* A step of int8.h on cores with the DSP extension. */
#ifndef BT_INT8_DSP_H
#define BT_INT8_DSP_H

#include "bt.h"

/* bt_scale in one instruction. */
BT_INLINE int32_t bt_scale_dsp(int32_t acc, int32_t multiplier, int32_t zero)
{
    int32_t result;
    __asm__("smmlar %0, %1, %2, %3" : "=r"(result) : "r"(acc), "r"(multiplier), "r"(zero));
    return result;
}

#endif
