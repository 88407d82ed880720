/* From a grey view of paper to the 28x28 picture that a network for MNIST's digits expects, in fixed point. */
#ifndef VISION_H
#define VISION_H

#include <stdint.h>

#define VIEW 80    /* cells across and down the view: each is the mean of 4x4 pixels of the camera */
#define PICTURE 28 /* pixels across and down the picture */

/* Makes the picture: 0 is paper, 255 is ink. What is darker than its surroundings is ink; the box around it is scaled to
 * 20x20 at the same aspect, and its centre of mass put where MNIST has it. 0 if there is nothing to read, and then the
 * picture is all paper. Not reentrant. */
int vision_read(const uint8_t view[VIEW * VIEW], uint8_t picture[PICTURE * PICTURE]);

#endif
