#include "integer.h"

#include "../elementwise/loops.h"

BT_INLINE int32_t bt_int_divide_one(const bt_int_divide *p, int32_t v, int32_t w)
{
    const int64_t divisor = (int64_t)p->slope * w + p->offset, numerator = (int64_t)p->factor * p->slope * v;
    const int64_t y = (numerator + (numerator < 0 ? -(divisor >> 1) : divisor >> 1)) / divisor;
    return (int32_t)(y < INT32_MIN ? INT32_MIN : y > INT32_MAX ? INT32_MAX : y);
}

BT_BINARY_REF(bt_int_divide_ref, bt_int_divide, int32_t, int32_t, bt_int_divide_one(p, v, w))

BT_KERNEL void bt_int_table_ref(const bt_int_table *p, const int8_t *x, const BT_FLASH int32_t *table, int32_t *y)
{
    for (int32_t i = 0; i < p->count; i++)
        y[i] = table[(uint8_t)x[i]];
}

BT_INLINE int8_t bt_requant_shift_one(const bt_requant_shift *p, int32_t v, int32_t factor, int32_t offset)
{
    const int64_t y = (((int64_t)v * factor + offset + p->round) >> p->shift) + p->zero;
    return (int8_t)(y < p->lo ? p->lo : y > p->hi ? p->hi : y);
}

BT_KERNEL void bt_requant_shift_ref(const bt_requant_shift *p, const int32_t *a, const int32_t *b, const int32_t *c,
                                    int8_t *y)
{
    const int32_t a_next = p->a_step[3], b_next = p->b_step[3], c_next = p->c_step[3];
    for (int32_t i = 0; i < p->shape[0]; i++)
        for (int32_t j = 0; j < p->shape[1]; j++)
            for (int32_t k = 0; k < p->shape[2]; k++) {
                const int32_t *a_row = a + i * p->a_step[0] + j * p->a_step[1] + k * p->a_step[2];
                const int32_t *b_row = b + i * p->b_step[0] + j * p->b_step[1] + k * p->b_step[2];
                const int32_t *c_row = c + i * p->c_step[0] + j * p->c_step[1] + k * p->c_step[2];
                const int32_t a_first = *a_row, b_first = *b_row, c_first = *c_row;
                for (int32_t rest = p->shape[3]; rest > 0; rest--) {
                    *y++ = bt_requant_shift_one(p, BT_ELEMENT(a), BT_ELEMENT(b), BT_ELEMENT(c));
                    a_row += a_next;
                    b_row += b_next;
                    c_row += c_next;
                }
            }
}
