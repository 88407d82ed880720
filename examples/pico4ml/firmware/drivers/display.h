/* A display of 80x160 pixels, RGB565: the ST7735S of the Pico4ML, over SPI. For one core, which called rest_init of
 * rp2040.h before. Pins are those of the board's [pins.display]. */
#ifndef DISPLAY_H
#define DISPLAY_H

#include <stdint.h>

#define DISPLAY_WIDE 80
#define DISPLAY_HIGH 160

int display_start(void); /* resets it, sets it up, lights it; whether it could be read: it is used all the same */

/* Begins to send a picture, row by row, and returns; the picture must stay as it is for 17 ms. 0 if the one before is not
 * through after all that time: it is given up. */
int display_show(const uint16_t pixels[DISPLAY_WIDE * DISPLAY_HIGH]);

#endif
