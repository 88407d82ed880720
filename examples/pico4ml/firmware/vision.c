/* See vision.h. Nothing here knows of cameras or chips: training and tests call the same code on the host. */
#include "vision.h"

#define REACH 12         /* cells in each direction that a cell is compared with */
#define SIDES (2 * REACH + 1)
#define RECIPROCAL 22    /* bits behind the point: 255 << 22 still fits 32 bits */
#define LEAST_DEPTH 24   /* grey levels between paper and ink */
#define LEAST_SIDE 12    /* cells: what is smaller is no digit */
#define MARGIN 3         /* cells at the edge in which nothing is looked for */
#define BOX 20           /* pixels: MNIST's digits fit such a square */
#define MIDDLE 14        /* the pixel with MNIST's centre of mass */
#define INK 128

static uint8_t ink[VIEW * VIEW];

typedef struct {
    int32_t left, right, top, bottom; /* cells, inclusive */
} box;

/* How much darker each cell is than the mean of those around it; gives the most. The sums of columns are kept from row to
 * row, and the sum of a window from cell to cell. */
static uint32_t compare_with_surroundings(const uint8_t *view)
{
    uint16_t column[VIEW] = {0};
    uint32_t reciprocal[SIDES + 1] = {0}; /* by the window's columns, for its rows */
    int32_t rows = 0;
    uint32_t most = 0;
    for (int32_t y = -REACH; y < VIEW; y++) {
        const int32_t enters = y + REACH, leaves = y - REACH - 1;
        const int32_t before = rows;
        if (enters < VIEW) {
            for (int32_t x = 0; x < VIEW; x++) {
                column[x] = (uint16_t)(column[x] + view[enters * VIEW + x]);
            }
            rows++;
        }
        if (leaves >= 0) {
            for (int32_t x = 0; x < VIEW; x++) {
                column[x] = (uint16_t)(column[x] - view[leaves * VIEW + x]);
            }
            rows--;
        }
        if (y < 0) {
            continue;
        }
        if (rows != before || y == 0) {
            for (int32_t n = REACH + 1; n <= SIDES; n++) {
                reciprocal[n] = (1u << RECIPROCAL) / (uint32_t)(n * rows);
            }
        }
        uint32_t sum = 0;
        int32_t columns = 0;
        for (int32_t x = -REACH; x < VIEW; x++) {
            if (x + REACH < VIEW) {
                sum += column[x + REACH];
                columns++;
            }
            if (x - REACH - 1 >= 0) {
                sum -= column[x - REACH - 1];
                columns--;
            }
            if (x < 0) {
                continue;
            }
            const uint32_t mean = (sum * reciprocal[columns]) >> RECIPROCAL;
            const uint32_t grey = view[y * VIEW + x];
            const uint32_t darker = mean > grey ? mean - grey : 0;
            ink[y * VIEW + x] = (uint8_t)darker;
            const int inside = x >= MARGIN && x < VIEW - MARGIN && y >= MARGIN && y < VIEW - MARGIN;
            most = inside && darker > most ? darker : most;
        }
    }
    return most;
}

/* From differences of grey to 0 ... 255, from a quarter of the most to nine sixteenths. */
static void threshold(uint32_t most)
{
    const uint32_t low = most / 4, high = most * 9 / 16;
    const uint32_t gain = (255u << 8) / (high - low);
    for (int32_t i = 0; i < VIEW * VIEW; i++) {
        const uint32_t d = ink[i];
        ink[i] = (uint8_t)(d <= low ? 0 : d >= high ? 255 : ((d - low) * gain) >> 8);
    }
}

/* Whether a row (step 1) or a column (step VIEW) has more ink than a speck. */
static int has_ink(int32_t first, int32_t step)
{
    int cells = 0;
    for (int32_t i = MARGIN; i < VIEW - MARGIN; i++) {
        cells += ink[first + i * step] >= INK;
    }
    return cells >= 2;
}

/* The box around the ink; 0 if there is none, or little. */
static int find_box(box *b)
{
    b->top = b->left = MARGIN;
    b->bottom = b->right = VIEW - MARGIN - 1;
    while (b->top < b->bottom && !has_ink(b->top * VIEW, 1)) {
        b->top++;
    }
    while (b->bottom > b->top && !has_ink(b->bottom * VIEW, 1)) {
        b->bottom--;
    }
    while (b->left < b->right && !has_ink(b->left, VIEW)) {
        b->left++;
    }
    while (b->right > b->left && !has_ink(b->right, VIEW)) {
        b->right--;
    }
    return b->bottom - b->top >= LEAST_SIDE || b->right - b->left >= LEAST_SIDE;
}

/* The ink at a place, in 256ths of a cell, between the four cells around it. */
static uint32_t ink_at(int32_t x, int32_t y)
{
    const int32_t column = x >> 8, row = y >> 8;
    if (column < 0 || row < 0 || column >= VIEW - 1 || row >= VIEW - 1) {
        return 0;
    }
    const uint32_t right = (uint32_t)x & 255u, below = (uint32_t)y & 255u;
    const uint8_t *c = &ink[row * VIEW + column];
    const uint32_t upper = c[0] * (256 - right) + c[1] * right;
    const uint32_t lower = c[VIEW] * (256 - right) + c[VIEW + 1] * right;
    return (upper * (256 - below) + lower * below) >> 16;
}

int vision_read(const uint8_t view[VIEW * VIEW], uint8_t picture[PICTURE * PICTURE])
{
    box b;
    for (int32_t i = 0; i < PICTURE * PICTURE; i++) {
        picture[i] = 0;
    }
    const uint32_t most = compare_with_surroundings(view);
    if (most < LEAST_DEPTH) {
        return 0;
    }
    threshold(most);
    if (!find_box(&b)) {
        return 0;
    }
    uint32_t mass = 0, across = 0, down = 0;
    for (int32_t y = b.top; y <= b.bottom; y++) {
        for (int32_t x = b.left; x <= b.right; x++) {
            const uint32_t m = ink[y * VIEW + x];
            mass += m;
            across += m * (uint32_t)(x - b.left);
            down += m * (uint32_t)(y - b.top);
        }
    }
    mass = (mass >> 8) + 1;
    const int32_t centre_x = b.left * 256 + (int32_t)(across / mass);
    const int32_t centre_y = b.top * 256 + (int32_t)(down / mass);
    const int32_t wide = b.right - b.left + 1, high = b.bottom - b.top + 1;
    const int32_t step = (wide > high ? wide : high) * 256 / BOX; /* of a pixel, in 256ths of a cell */
    const int32_t quarter = step / 4;
    for (int32_t y = 0; y < PICTURE; y++) {
        const int32_t v = centre_y + (y - MIDDLE) * step;
        for (int32_t x = 0; x < PICTURE; x++) {
            const int32_t u = centre_x + (x - MIDDLE) * step;
            const uint32_t sum = ink_at(u - quarter, v - quarter) + ink_at(u + quarter, v - quarter)
                + ink_at(u - quarter, v + quarter) + ink_at(u + quarter, v + quarter);
            picture[y * PICTURE + x] = (uint8_t)(sum / 4);
        }
    }
    return 1;
}
