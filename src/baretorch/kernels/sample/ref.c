#include "sample.h"

#include "../math/round.h"

BT_KERNEL void bt_upsample_bicubic2d_f32_ref(const bt_upsample_bicubic2d_f32 *p, const float *x,
                                             const BT_FLASH int16_t *rows, const BT_FLASH float *down,
                                             const BT_FLASH int16_t *columns, const BT_FLASH float *across, float *y)
{
    const int32_t line = p->in_w * p->channels;
    for (int32_t n = 0; n < p->batch; n++, x += p->in_h * line)
        for (int32_t h = 0; h < p->out_h; h++)
            for (int32_t w = 0; w < p->out_w; w++) {
                const BT_FLASH int16_t *column = columns + 4 * w;
                const float a0 = across[4 * w], a1 = across[4 * w + 1], a2 = across[4 * w + 2], a3 = across[4 * w + 3];
                const int32_t at0 = column[0] * p->channels, at1 = column[1] * p->channels;
                const int32_t at2 = column[2] * p->channels, at3 = column[3] * p->channels;
                for (int32_t c = 0; c < p->channels; c++) {
                    float sum = 0.0f;
                    for (int32_t i = 4 * h; i < 4 * h + 4; i++) {
                        const float *v = x + rows[i] * line + c;
                        sum += down[i] * (a0 * v[at0] + a1 * v[at1] + a2 * v[at2] + a3 * v[at3]);
                    }
                    *y++ = sum;
                }
            }
}

/* A place from -1 to 1 in pixels. */
BT_INLINE float bt_grid_at_f32(float v, int32_t size, int32_t corners)
{
    return corners ? (v + 1.0f) * 0.5f * (float)(size - 1) : ((v + 1.0f) * (float)size - 1.0f) * 0.5f;
}

/* A place brought inside: to the border, or by mirrors there. Without padding, far outside is near outside: a float
 * that no integer can hold must not become one. NaN is outside. */
BT_INLINE float bt_grid_inside_f32(float v, int32_t size, int32_t padding, int32_t corners)
{
    float last = (float)(size - 1);
    if (padding == 0)
        return v > -4.0f ? (v < last + 4.0f ? v : last + 4.0f) : -4.0f;
    if (padding == 2) {
        float low = corners ? 0.0f : -0.5f, span = corners ? last : (float)size;
        if (span == 0.0f)
            return 0.0f;
        float past = bt_abs_f32(v - low), rest = bt_fmod_f32(past, span);
        float turns = bt_floor_f32(past / span);
        v = bt_fmod_f32(turns, 2.0f) == 0.0f ? rest + low : span - rest + low;
    }
    return v > 0.0f ? (v < last ? v : last) : 0.0f;
}

/* A pixel's number, or -1 if it is outside. */
BT_INLINE int32_t bt_grid_pixel(int32_t at, int32_t size)
{
    return at < size ? at : -1;
}

/* The weights of four neighbours for the place t after the second. */
BT_INLINE void bt_cubic_weights_f32(float t, float weight[4])
{
    const float a = -0.75f;
    float u = 1.0f - t;
    weight[0] = ((a * (t + 1.0f) - 5.0f * a) * (t + 1.0f) + 8.0f * a) * (t + 1.0f) - 4.0f * a;
    weight[1] = ((a + 2.0f) * t - (a + 3.0f)) * t * t + 1.0f;
    weight[2] = ((a + 2.0f) * u - (a + 3.0f)) * u * u + 1.0f;
    weight[3] = ((a * (u + 1.0f) - 5.0f * a) * (u + 1.0f) + 8.0f * a) * (u + 1.0f) - 4.0f * a;
}

/* A kernel, from its work for a pixel y and its place, `across` and `down`, in pixels of the image x. */
#define BT_GRID_REF(symbol, statement)                                                                          \
    BT_KERNEL void symbol(const bt_grid_sample2d_f32 *p, const float *x, const float *grid, float *y)           \
    {                                                                                                           \
        for (int32_t n = 0; n < p->batch; n++, x += p->in_h * p->in_w * p->channels)                            \
            for (int32_t i = 0; i < p->out_h * p->out_w; i++, grid += 2, y += p->channels) {                    \
                float across = bt_grid_at_f32(grid[0], p->in_w, p->corners);                                    \
                float down = bt_grid_at_f32(grid[1], p->in_h, p->corners);                                      \
                statement;                                                                                      \
            }                                                                                                   \
    }

BT_INLINE void bt_grid_nearest_f32(const bt_grid_sample2d_f32 *p, const float *x, float across, float down, float *y)
{
    across = bt_grid_inside_f32(across, p->in_w, p->padding, p->corners);
    down = bt_grid_inside_f32(down, p->in_h, p->padding, p->corners);
    int32_t column = bt_grid_pixel((int32_t)bt_round_f32(across), p->in_w);
    int32_t row = bt_grid_pixel((int32_t)bt_round_f32(down), p->in_h);
    for (int32_t c = 0; c < p->channels; c++)
        y[c] = row < 0 || column < 0 ? 0.0f : x[(row * p->in_w + column) * p->channels + c];
}

BT_INLINE void bt_grid_bilinear_f32(const bt_grid_sample2d_f32 *p, const float *x, float across, float down, float *y)
{
    across = bt_grid_inside_f32(across, p->in_w, p->padding, p->corners);
    down = bt_grid_inside_f32(down, p->in_h, p->padding, p->corners);
    int32_t left = (int32_t)bt_floor_f32(across), top = (int32_t)bt_floor_f32(down);
    float r = across - (float)left, b = down - (float)top;
    const float share[4] = {(1.0f - b) * (1.0f - r), (1.0f - b) * r, b * (1.0f - r), b * r};
    for (int32_t c = 0; c < p->channels; c++)
        y[c] = 0.0f;
    for (int32_t i = 0; i < 4; i++) {
        int32_t row = bt_grid_pixel(top + i / 2, p->in_h), column = bt_grid_pixel(left + i % 2, p->in_w);
        if (row < 0 || column < 0)
            continue;
        for (int32_t c = 0; c < p->channels; c++)
            y[c] += share[i] * x[(row * p->in_w + column) * p->channels + c];
    }
}

/* Four pixels of one axis: which, and how much of each. Each is brought inside by itself. */
BT_INLINE void bt_grid_cubic_f32(float at, int32_t size, int32_t padding, int32_t corners, int32_t pixel[4],
                                 float weight[4])
{
    const float far = 8388608.0f; /* 2^23: beyond it all places are pixels */
    at = at > -far ? (at < far ? at : far) : -far;
    float first = bt_floor_f32(at);
    bt_cubic_weights_f32(at - first, weight);
    for (int32_t i = 0; i < 4; i++)
        pixel[i] = bt_grid_pixel((int32_t)bt_grid_inside_f32(first + (float)(i - 1), size, padding, corners), size);
}

BT_INLINE void bt_grid_bicubic_f32(const bt_grid_sample2d_f32 *p, const float *x, float across, float down, float *y)
{
    int32_t row[4], column[4];
    float vertical[4], horizontal[4];
    bt_grid_cubic_f32(down, p->in_h, p->padding, p->corners, row, vertical);
    bt_grid_cubic_f32(across, p->in_w, p->padding, p->corners, column, horizontal);
    for (int32_t c = 0; c < p->channels; c++) {
        float sum = 0.0f;
        for (int32_t i = 0; i < 4; i++) {
            float line = 0.0f;
            for (int32_t j = 0; j < 4; j++)
                if (row[i] >= 0 && column[j] >= 0)
                    line += horizontal[j] * x[(row[i] * p->in_w + column[j]) * p->channels + c];
            sum += vertical[i] * line;
        }
        y[c] = sum;
    }
}

BT_GRID_REF(bt_grid_sample2d_bilinear_f32_ref, bt_grid_bilinear_f32(p, x, across, down, y))
BT_GRID_REF(bt_grid_sample2d_nearest_f32_ref, bt_grid_nearest_f32(p, x, across, down, y))
BT_GRID_REF(bt_grid_sample2d_bicubic_f32_ref, bt_grid_bicubic_f32(p, x, across, down, y))

#undef BT_GRID_REF
