/* What a watched model is made of: see watch.c. */
#ifndef BT_WATCH_H
#define BT_WATCH_H

#include <stdint.h>

typedef struct {
    void *data;
    uint32_t bytes;
} bt_part;

typedef struct {
    const bt_part *parts;
    uint32_t count;
} bt_parts;

extern const bt_parts bt_constants, bt_inputs, bt_outputs;
void bt_watched_reset(void);
void bt_watched_run(void);

#endif
