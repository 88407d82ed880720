/* TensorFlow Lite Micro's audio front end, bit for bit. ops/signal.py defines what each operator computes. Numbers
 * without sign are passed as int32_t and int64_t with the same bits. */
#ifndef BT_SIGNAL_H
#define BT_SIGNAL_H

#include "../bt.h"

typedef struct {
    int32_t count;
    int32_t n; /* of the window, which repeats */
    int32_t shift;
} bt_signal_window;

typedef struct {
    int32_t count;
} bt_signal_auto_scale;

typedef struct {
    int32_t count;  /* rows */
    int32_t length; /* of a row of x; zeros follow */
    int32_t n;      /* complex numbers: half of the transform's length */
    int32_t first;  /* radix of the first pass: 2 or 4, as all others */
} bt_signal_rfft;

typedef struct {
    int32_t count;
    int32_t start_index; /* the others are 0 */
    int32_t end_index;
} bt_signal_energy;

typedef struct {
    int32_t count; /* channels: one less than bands */
} bt_signal_filter_bank;

typedef struct {
    int32_t count;
} bt_signal_square_root;

typedef struct {
    int32_t count;
    int32_t smoothing; /* these five are without sign, and have spectral_subtraction_bits fractional bits */
    int32_t one_minus_smoothing;
    int32_t alternate_smoothing;
    int32_t alternate_one_minus_smoothing;
    int32_t min_signal_remaining;
    int32_t smoothing_bits;
    int32_t spectral_subtraction_bits;
    int32_t clamping;
} bt_signal_spectral_subtraction;

typedef struct {
    int32_t count;
    int32_t snr_shift;
} bt_signal_pcan;

typedef struct {
    int32_t count;
    int32_t output_scale;
    int32_t input_correction_bits;
} bt_signal_log;

#ifndef BT_INLINE_KERNELS
void bt_signal_window_ref(const bt_signal_window *p, const int16_t *x, const BT_FLASH int16_t *window, int16_t *y);
void bt_signal_auto_scale_ref(const bt_signal_auto_scale *p, const int16_t *x, int16_t *y, int32_t *bits);
/* order: which complex number of x is where before the first pass; roots: e^(-2 pi i k / n) for k < n;
 * turns: e^(-pi i (k / n + 1 / 2)) for k from 1 to n / 2 */
void bt_signal_rfft_ref(const bt_signal_rfft *p, const int16_t *x, const BT_FLASH int16_t *order,
                        const BT_FLASH int16_t *roots, const BT_FLASH int16_t *turns, int16_t *y);
void bt_signal_energy_ref(const bt_signal_energy *p, const int16_t *x, int32_t *y);
/* weights: for each number of a band its weight in the band's own channel and in the next one;
 * bands: the first number of x, and how many */
void bt_signal_filter_bank_ref(const bt_signal_filter_bank *p, const int32_t *x, const BT_FLASH int16_t *weights,
                               const BT_FLASH int16_t *bands, int64_t *y);
void bt_signal_square_root_ref(const bt_signal_square_root *p, const int64_t *x, const int32_t *bits, int32_t *y);
void bt_signal_spectral_subtraction_ref(const bt_signal_spectral_subtraction *p, const int32_t *x,
                                        const int32_t *noise, int32_t *y, int32_t *next);
void bt_signal_pcan_ref(const bt_signal_pcan *p, const int32_t *x, const int32_t *noise, const BT_FLASH int16_t *gains,
                        int32_t *y);
void bt_signal_log_ref(const bt_signal_log *p, const int32_t *x, const BT_FLASH int16_t *table, int16_t *y);
#endif

#endif
