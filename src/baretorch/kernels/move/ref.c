#include "move.h"

#include "unit.h"

/* Where the loop is made for one layer, its count is known and four turns at once save half the instructions. */
#ifdef BT_INLINE_KERNELS
#define BT_MOVE_UNROLL BT_UNROLL_4
#else
#define BT_MOVE_UNROLL
#endif

#define BT_MOVE_REF(symbol, unit)                                                                           \
    BT_KERNEL void symbol(const bt_move *p, const void *x, void *y)                                         \
    {                                                                                                       \
        const int32_t *n = p->shape;                                                                        \
        const int32_t *s = p->x_step;                                                                       \
        const int32_t *t = p->y_step;                                                                       \
        const int32_t x_step = s[5], y_step = t[5], run = p->run;                                           \
        for (int32_t i = 0; i < n[0]; i++)                                                                  \
            for (int32_t j = 0; j < n[1]; j++)                                                              \
                for (int32_t k = 0; k < n[2]; k++)                                                          \
                    for (int32_t l = 0; l < n[3]; l++)                                                      \
                        for (int32_t m = 0; m < n[4]; m++) {                                                \
                            int32_t a = p->x_start + i * s[0] + j * s[1] + k * s[2] + l * s[3] + m * s[4];  \
                            int32_t b = p->y_start + i * t[0] + j * t[1] + k * t[2] + l * t[3] + m * t[4];  \
                            const unit *from = (const unit *)x + a;                                         \
                            unit *to = (unit *)y + b;                                                       \
                            if (run == 1) {                                                                 \
                                BT_MOVE_UNROLL                                                              \
                                for (int32_t o = n[5]; o > 0; o--, from += x_step, to += y_step)            \
                                    *to = *from;                                                            \
                                continue;                                                                   \
                            }                                                                               \
                            for (int32_t o = n[5]; o > 0; o--, from += x_step, to += y_step)                \
                                BT_COPY(unit, to, from, run);                                               \
                        }                                                                                   \
    }

BT_MOVE_REF(bt_move_8_ref, bt_u8)
BT_MOVE_REF(bt_move_16_ref, bt_u16)
BT_MOVE_REF(bt_move_32_ref, bt_u32)

#undef BT_MOVE_REF
#undef BT_MOVE_UNROLL
