/* 16 inputs and 16 outputs on arduino-uno: 13,465 cycles with ref.c, 4,818 with this. */
#include "qlinear.h"

#include "../fours_avr.h"

BT_KERNEL void bt_qlinear_avr(const bt_qlinear *p, const int8_t *x, const BT_FLASH uint8_t *weight, int8_t *y)
{
    for (int16_t b = 0; b < (int16_t)p->batch; b++, x += p->in, y += p->out) {
        bt_fours_avr s = {
            .x = x,
            .y = y,
            .inputs = (uint16_t)p->in,
            .outputs = (uint8_t)p->out,
            .zero = (uint8_t)(p->zero + 128),
            .lo = (uint8_t)(p->lo + 128),
            .hi = (uint8_t)(p->hi + 128),
        };
        bt_fours_avr_run(&s, weight);
    }
}
