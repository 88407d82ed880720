/* What the display shows: the live view on top; below it the network's input at the left and its answer at the right; and
 * how many pictures a second the display and the network make. */
#ifndef SCREEN_H
#define SCREEN_H

#include "drivers/display.h"
#include "vision.h"

typedef struct {
    uint8_t picture[PICTURE * PICTURE]; /* the network's input */
    int8_t digit;                       /* what it reads there; -1 if there is nothing to read */
    uint8_t percent;                    /* how sure it is */
} answer;

void screen_live(const uint8_t view[VIEW * VIEW]);
void screen_fault(const char *text); /* instead of the live view; capitals, at most 13 */
void screen_answer(const answer *a);
void screen_rates(uint32_t display_tenths, uint32_t network_tenths); /* of pictures a second */
const uint16_t *screen_pixels(void);

#endif
