/* y[b, o] = requantize(bias[o] + sum over i of x[b, i] * weight[o, i]), with multiplier[o] */
#ifndef BT_QLINEAR_H
#define BT_QLINEAR_H

#include "../int8.h"

typedef struct {
    int32_t batch;
    int32_t in;
    int32_t out;
    int32_t shift;
    int32_t zero;
    int32_t lo;
    int32_t hi;
} bt_qlinear;

#ifndef BT_INLINE_KERNELS
/* weight: [out][in] */
void bt_qlinear_ref(const bt_qlinear *p, const int8_t *x, const BT_FLASH int8_t *weight, const BT_FLASH int32_t *bias,
                    const BT_FLASH int32_t *multiplier, int8_t *y);

/* weight: [out / 4][in / 4][2][2] words, both counts rounded up. Word [a][b] of rows r and inputs i holds two
 * halfwords, 256 * weight[r + 2b + 1][j] + weight[r + 2b][j], for j = i + a and j = i + a + 2. Reads up to three bytes
 * after x. */
void bt_qlinear_dsp(const bt_qlinear *p, const int8_t *x, const int32_t *weight, const int32_t *bias,
                    const int32_t *multiplier, int8_t *y);

/* batch == 1, out >= 4. weight: [out][in] */
void bt_qlinear_mve(const bt_qlinear *p, const int8_t *x, const int8_t *weight, const int32_t *bias,
                    const int32_t *multiplier, int8_t *y);

/* Weights of 4 bits, with 8 added: bytes [out / 2][in], the first count rounded up, 16 * weight[o + 1] + weight[o]. */
void bt_qlinear4_ref(const bt_qlinear *p, const int8_t *x, const BT_FLASH uint8_t *weight, const BT_FLASH int32_t *bias,
                     const BT_FLASH int32_t *multiplier, int8_t *y);
void bt_qlinear4_mve(const bt_qlinear *p, const int8_t *x, const uint8_t *weight, const int32_t *bias,
                     const int32_t *multiplier, int8_t *y);

/* Twos of inputs. Weights as the words of int4_pairs.h, [out / 4][in / 2], the first count rounded up. */
void bt_qlinear4_pairs(const bt_qlinear *p, const int8_t *x, const int32_t *weight, const int32_t *bias,
                       const int32_t *multiplier, int8_t *y);

/* Fours of inputs, at most 8188. Weights as those of bt_qlinear_dsp, two words in one: rows 0 and 1 + 16 * rows 2 and 3,
 * with 8 added to each but those of row 3, which have their sign. */
void bt_qlinear4_dsp(const bt_qlinear *p, const int8_t *x, const int32_t *weight, const int32_t *bias,
                     const int32_t *multiplier, int8_t *y);

/* The same weights in groups of 32 inputs: factors[out / n][in / 32][n], both counts rounded up, has the number that the
 * sum of a group is multiplied by, for n rows together: 2, or 4 where words have four rows. scratch: a word a group of
 * those that have one; of rows_dsp 4 * in bytes. */
void bt_qlinear4_groups_ref(const bt_qlinear *p, const int8_t *x, const BT_FLASH uint8_t *weight,
                            const BT_FLASH uint8_t *factors, const BT_FLASH int32_t *bias,
                            const BT_FLASH int32_t *multiplier, int8_t *y);
void bt_qlinear4_groups_pairs(const bt_qlinear *p, const int8_t *x, const int32_t *weight, const uint8_t *factors,
                              const int32_t *bias, const int32_t *multiplier, int8_t *y, void *scratch);
void bt_qlinear4_groups_dsp(const bt_qlinear *p, const int8_t *x, const int32_t *weight, const uint8_t *factors,
                            const int32_t *bias, const int32_t *multiplier, int8_t *y, void *scratch);
void bt_qlinear4_groups_rows_dsp(const bt_qlinear *p, const int8_t *x, const int32_t *weight, const uint8_t *factors,
                                 const int32_t *bias, const int32_t *multiplier, int8_t *y, void *scratch);

/* in <= 8188. factors: for four rows together. weight: bytes [out / 4][2][in], the first count rounded up,
 * 16 * weight[o + 1] + weight[o], both of 4 bits with their sign. */
void bt_qlinear4_groups_mve(const bt_qlinear *p, const int8_t *x, const uint8_t *weight, const uint8_t *factors,
                            const int32_t *bias, const int32_t *multiplier, int8_t *y);

/* The same without shift and for in > 16. scratch: 4 * in + 32 bytes */
void bt_qlinear4_groups_rows_mve(const bt_qlinear *p, const int8_t *x, const uint8_t *weight, const uint8_t *factors,
                                 const int32_t *bias, const int32_t *multiplier, int8_t *y, void *scratch);

/* Fours of inputs. Only the fours of weights of a row that are not all zero are stored, one after the other in
 * `weight`; `steps` is the number of fours from the one before, or from the row's start, `counts` the number of fours
 * in a row. Fours of zeros may be among them, where a step would not fit. */
void bt_qlinear_sparse_ref(const bt_qlinear *p, const int8_t *x, const BT_FLASH int8_t *weight,
                           const BT_FLASH uint8_t *steps, const BT_FLASH int16_t *counts, const BT_FLASH int32_t *bias,
                           const BT_FLASH int32_t *multiplier, int8_t *y);
void bt_qlinear_sparse_dsp(const bt_qlinear *p, const int8_t *x, const int8_t *weight, const uint8_t *steps,
                           const int16_t *counts, const int32_t *bias, const int32_t *multiplier, int8_t *y);

/* No shift. constants: as in int8_mve.h */
void bt_qlinear_rows_mve(const bt_qlinear *p, const int8_t *x, const int32_t *constants, int8_t *y, void *scratch);

/* constants: as in xcv.h. Of the narrow one, `shift` is to the right. */
void bt_qlinear_xcv(const bt_qlinear *p, const int8_t *x, const int32_t *constants, int8_t *y, void *scratch);
void bt_qlinear_narrow_xcv(const bt_qlinear *p, const int8_t *x, const int32_t *constants, int8_t *y, void *scratch);

/* Outputs stay below 2^15 before the limits, sums below 2^23; out <= 255. weight: as in fours_avr.h */
void bt_qlinear_avr(const bt_qlinear *p, const int8_t *x, const BT_FLASH uint8_t *weight, int8_t *y);

/* weight: [out / 4][in][4] with 128 added, the first count rounded up. terms: [out][2], bias and multiplier << shift.
 * Outputs stay below 2^15 before the limits. */
void bt_qlinear_fours(const bt_qlinear *p, const int8_t *x, const uint8_t *weight, const int32_t *terms, int8_t *y);
#endif

#endif
