/* Limits and rounding with the instructions of CV32E40P. */
#ifndef BT_INT8_XCV_H
#define BT_INT8_XCV_H

BT_INLINE int32_t bt_clamp_i32_xcv(int32_t v, int32_t lo, int32_t hi)
{
    __asm__(".insn r 0x2b, 3, 0x2d, %0, %1, %2" : "=r"(v) : "r"(v), "r"(lo)); /* cv.max */
    __asm__(".insn r 0x2b, 3, 0x2b, %0, %1, %2" : "=r"(v) : "r"(v), "r"(hi)); /* cv.min */
    return v;
}

/* The rounding bit is the highest of the product's low word: no carry needs to be found. */
BT_INLINE int32_t bt_scale_xcv(int32_t acc, int32_t multiplier, int32_t zero)
{
    const uint32_t low = (uint32_t)acc * (uint32_t)multiplier;
    return zero + (int32_t)(((int64_t)acc * multiplier) >> 32) + (int32_t)(low >> 31);
}

#endif
