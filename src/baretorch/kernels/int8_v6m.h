/* Steps of int8.h on Armv6-M, which has no long multiply: by halfwords. */
#ifndef BT_INT8_V6M_H
#define BT_INT8_V6M_H

#include "bt.h"

BT_INLINE int32_t bt_scale_v6m(int32_t acc, int32_t multiplier, int32_t zero)
{
    const uint32_t low = (uint32_t)multiplier & 0xffff, high = (uint32_t)multiplier >> 16;
    const uint32_t acc_low = (uint32_t)acc & 0xffff;
    const int32_t acc_high = acc >> 16;
    const int32_t middle = acc_high * (int32_t)low + (int32_t)(acc_low * low >> 16);
    const uint32_t rest = ((uint32_t)middle & 0xffff) + acc_low * high + (1u << 15);
    return zero + acc_high * (int32_t)high + (middle >> 16) + (int32_t)(rest >> 16);
}

BT_INLINE int32_t bt_scale_small_v6m(int32_t acc, uint32_t multiplier, int32_t zero)
{
    const uint32_t low = multiplier & 0xffff, high = multiplier >> 16;
    const uint32_t rest = ((uint32_t)acc & 0xffff) * low >> 16;
    const uint32_t scaled = (uint32_t)acc * high + (uint32_t)(acc >> 16) * low + rest + (1u << 15);
    return ((int32_t)scaled >> 16) + zero;
}

#endif
