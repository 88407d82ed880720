/* A camera with 324x324 grey pixels, about 20 frames a second: the HM01B0 of the Pico4ML, over one data line.
 *
 *     if (camera_start() == CAMERA_GOOD) {
 *         camera_begin();
 *         for (int row = 0; row < CAMERA_HIGH && (line = camera_line()) != 0; row++) { ... }
 *     }
 *
 * For one core, which called rest_init of rp2040.h before. Pins are those of the board's [pins.camera]. */
#ifndef CAMERA_H
#define CAMERA_H

#include <stdint.h>

#define CAMERA_WIDE 324
#define CAMERA_HIGH 324
#define CAMERA_BORDER 2 /* pixels and lines at each side that colour filters would need */

typedef enum {
    CAMERA_GOOD,
    CAMERA_NO_ANSWER, /* nobody at its address */
    CAMERA_BUS_STUCK, /* the I2C bus is held low */
    CAMERA_UNKNOWN,   /* another chip answers */
    CAMERA_NO_FRAMES, /* it answers, and sends nothing */
} camera_state;

camera_state camera_start(void);               /* resets it, sets it up, lets it send; takes a quarter of a second */
void camera_begin(void);                       /* what comes next is the first line of the next frame */
const uint8_t *camera_line(void);              /* waits for a line, which stays until the next but one; 0: none comes */
camera_state camera_number(uint8_t *number);   /* how many frames it has sent, modulo 256: tells which were missed */

#endif
