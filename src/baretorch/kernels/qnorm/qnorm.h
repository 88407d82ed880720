/* x[n, p, g, k] normalised over p and k together, then times weight[g, k], plus bias[g, k]; docs/arithmetic.md has the
 * formula. A layer_norm is one place p and one group g. */
#ifndef BT_QNORM_H
#define BT_QNORM_H

#include "../int8.h"

typedef struct {
    int32_t batch;
    int32_t places;
    int32_t groups;
    int32_t depth;    /* numbers of a group at a place */
    int32_t x_zero;
    int32_t centred;  /* 0: the mean is taken to be 0 */
    uint32_t eps_low; /* of 64 bits, 16 of them after the point */
    uint32_t eps_high;
} bt_qnorm;

#ifndef BT_INLINE_KERNELS
/* places * depth <= 32768. weight: in the output's scale, times 2^18; bias: that, zero point and one half, times 2^8 */
void bt_qnorm_ref(const bt_qnorm *p, const int8_t *x, const BT_FLASH int32_t *weight, const BT_FLASH int32_t *bias,
                  int8_t *y);

/* One place and one group, of at most 4096 numbers. */
void bt_qnorm_dsp(const bt_qnorm *p, const int8_t *x, const int32_t *weight, const int32_t *bias, int8_t *y);
void bt_qnorm_mve(const bt_qnorm *p, const int8_t *x, const int32_t *weight, const int32_t *bias, int8_t *y);
#endif

#endif
