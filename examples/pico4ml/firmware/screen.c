/* See screen.h. All of it is one picture in RAM, which DMA sends. */
#include "screen.h"
#include "font.h"

#define WHITE 0xffffu
#define GREY 0x8410u
#define BLACK 0x0000u
#define GREEN 0x3fe7u
#define YELLOW 0xffe0u
#define RED 0xf9a6u

#define INPUT_X 6
#define INPUT_Y 92
#define DIGIT_X 44
#define DIGIT_Y 86
#define DIGIT_SCALE 6
#define PERCENT_Y 131
#define RATES_Y 142
#define SURE 80 /* percent */

static uint16_t pixels[DISPLAY_WIDE * DISPLAY_HIGH];

static uint16_t grey(uint32_t level)
{
    return (uint16_t)((level >> 3) << 11 | (level >> 2) << 5 | level >> 3);
}

static void fill(int32_t x, int32_t y, int32_t wide, int32_t high, uint16_t colour)
{
    for (int32_t row = y; row < y + high; row++) {
        for (int32_t column = x; column < x + wide; column++) {
            pixels[row * DISPLAY_WIDE + column] = colour;
        }
    }
}

static void letter(int32_t x, int32_t y, char which, int32_t scale, uint16_t colour)
{
    const uint8_t *rows = font_rows(which);
    for (int32_t row = 0; row < FONT_HIGH; row++) {
        for (int32_t column = 0; column < FONT_WIDE; column++) {
            const int on = rows[row] >> (FONT_WIDE - 1 - column) & 1;
            fill(x + column * scale, y + row * scale, scale, scale, on ? colour : BLACK);
        }
    }
}

static int32_t text(int32_t x, int32_t y, const char *letters, uint16_t colour)
{
    for (; *letters && x + FONT_WIDE <= DISPLAY_WIDE; letters++, x += FONT_WIDE + 1) {
        letter(x, y, *letters, 1, colour);
    }
    return x;
}

static int32_t number(int32_t x, int32_t y, uint32_t value, uint16_t colour)
{
    char digits[11];
    char *first = digits + sizeof digits - 1;
    *first = '\0';
    do {
        *--first = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    return text(x, y, first, colour);
}

void screen_live(const uint8_t view[VIEW * VIEW])
{
    for (int32_t i = 0; i < VIEW * VIEW; i++) {
        pixels[i] = grey(view[i]);
    }
}

void screen_fault(const char *what)
{
    int32_t letters = 0;
    while (what[letters]) {
        letters++;
    }
    fill(0, 0, VIEW, VIEW, BLACK);
    text((DISPLAY_WIDE - letters * (FONT_WIDE + 1) + 1) / 2, (VIEW - FONT_HIGH) / 2, what, RED);
}

void screen_answer(const answer *a)
{
    fill(INPUT_X - 1, INPUT_Y - 1, PICTURE + 2, PICTURE + 2, GREY);
    for (int32_t i = 0; i < PICTURE * PICTURE; i++) {
        pixels[(INPUT_Y + i / PICTURE) * DISPLAY_WIDE + INPUT_X + i % PICTURE] = grey(a->picture[i]);
    }
    const uint16_t colour = a->percent >= SURE ? GREEN : YELLOW;
    letter(DIGIT_X, DIGIT_Y, a->digit < 0 ? '-' : (char)('0' + a->digit), DIGIT_SCALE, a->digit < 0 ? GREY : colour);
    fill(DIGIT_X, PERCENT_Y, DISPLAY_WIDE - DIGIT_X, FONT_HIGH, BLACK);
    if (a->digit >= 0) {
        text(number(DIGIT_X, PERCENT_Y, a->percent, WHITE) + 2, PERCENT_Y, "%", WHITE);
    }
}

static void rate(int32_t y, const char *label, uint32_t tenths)
{
    fill(0, y, DISPLAY_WIDE, FONT_HIGH, BLACK);
    text(2, y, label, GREY);
    int32_t x = number(44, y, tenths / 10, WHITE);
    x = text(x, y, ".", WHITE);
    number(x, y, tenths % 10, WHITE);
}

void screen_rates(uint32_t display_tenths, uint32_t network_tenths)
{
    rate(RATES_Y, "FPS", display_tenths);
    rate(RATES_Y + FONT_HIGH + 2, "NET", network_tenths);
}

const uint16_t *screen_pixels(void)
{
    return pixels;
}
