/* y[.., i, e] = requantize(sum over j of w[j] * (v[.., j, e] - v_zero)), where w is the softmax over j of
 *     scale * (sum over e of (q[.., i, e] - q_zero) * (k[.., j, e] - k_zero)) + mask[.., i, j]
 * in steps of 1/256 of a power of two, its sum being 2^14; docs/arithmetic.md has the formula. Steps through memory are
 * in elements, so that heads may be in any order. Only j <= i takes part if causal. */
#ifndef BT_QATTENTION_H
#define BT_QATTENTION_H

#include "../int8.h"

/* Steps per dimension: three nested loops over heads and batches, then row and column. */
typedef struct {
    int32_t batch[3];
    int32_t queries;
    int32_t keys;
    int32_t width;   /* of q and k */
    int32_t v_width; /* of v and y */
    int32_t q_step[5];
    int32_t k_step[5];
    int32_t v_step[5];
    int32_t y_step[5];
    int32_t mask_step[5];
    int32_t causal;
    int32_t q_zero, k_zero, v_zero;
    int32_t score_multiplier, score_shift;
    int32_t multiplier, shift, zero;
} bt_qattention;

#ifndef BT_INLINE_KERNELS
/* table[i] = 32767 * 2^(-i / 256). scratch: `keys` words.
 * mask: steps to add, -32768 where a key takes no part; or true where it does. */
void bt_qattention_ref(const bt_qattention *p, const int8_t *q, const int8_t *k, const int8_t *v,
                       const BT_FLASH int16_t *table, int8_t *y, void *scratch);
void bt_qattention_masked_ref(const bt_qattention *p, const int8_t *q, const int8_t *k, const int8_t *v,
                              const int16_t *mask, const BT_FLASH int16_t *table, int8_t *y, void *scratch);
void bt_qattention_chosen_ref(const bt_qattention *p, const int8_t *q, const int8_t *k, const int8_t *v,
                              const uint8_t *mask, const BT_FLASH int16_t *table, int8_t *y, void *scratch);

/* The last step of q, k, v and y is 1. */
void bt_qattention_dsp(const bt_qattention *p, const int8_t *q, const int8_t *k, const int8_t *v,
                       const BT_FLASH int16_t *table, int8_t *y, void *scratch);
void bt_qattention_masked_dsp(const bt_qattention *p, const int8_t *q, const int8_t *k, const int8_t *v,
                              const int16_t *mask, const BT_FLASH int16_t *table, int8_t *y, void *scratch);
void bt_qattention_chosen_dsp(const bt_qattention *p, const int8_t *q, const int8_t *k, const int8_t *v,
                              const uint8_t *mask, const BT_FLASH int16_t *table, int8_t *y, void *scratch);
void bt_qattention_mve(const bt_qattention *p, const int8_t *q, const int8_t *k, const int8_t *v,
                       const int16_t *table, int8_t *y, void *scratch);
void bt_qattention_masked_mve(const bt_qattention *p, const int8_t *q, const int8_t *k, const int8_t *v,
                              const int16_t *mask, const int16_t *table, int8_t *y, void *scratch);
void bt_qattention_chosen_mve(const bt_qattention *p, const int8_t *q, const int8_t *k, const int8_t *v,
                              const uint8_t *mask, const int16_t *table, int8_t *y, void *scratch);
#endif

#endif
