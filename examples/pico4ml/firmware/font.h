/* Letters of 5x7 pixels, drawn for this example: digits, capitals, and % . - ? */
#ifndef FONT_H
#define FONT_H

#include <stdint.h>

#define FONT_WIDE 5
#define FONT_HIGH 7

/* Its rows from top to bottom, each with the leftmost pixel in bit 4; an unknown one is blank. */
const uint8_t *font_rows(char letter);

#endif
