/* Copies from flash to RAM that an engine makes while the core goes on, one at a time: runtime/dma/<driver>.c. */
#ifndef BT_STREAM_H
#define BT_STREAM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void bt_stream_start(void); /* the engine; before all else */
void bt_stream_begin(void *to, const void *from, uint32_t bytes); /* whole words, at such addresses */
void bt_stream_wait(void); /* until all of it is there */

#ifdef __cplusplus
}
#endif

#endif
