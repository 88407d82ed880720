/* Where a model gets the rows of its input image from, where it does not ask for all of them at once. */
#ifndef BT_ROWS_H
#define BT_ROWS_H

#include <stdint.h>

typedef struct {
    /* Write rows first … first + count - 1 to `to`, in the order and type that model.h states. The rows of a run are
     * requested in order, none of them twice. */
    void (*rows)(void *context, int32_t first, int32_t count, void *to);
    void *context; /* handed through */
} bt_row_source;

#endif
