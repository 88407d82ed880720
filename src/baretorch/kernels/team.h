/* Cores that work on one model together: where they wait for each other, and how data gets to and from the memory that
 * they share. A cluster's runtime has these functions (runtime/cluster/). */
#ifndef BT_TEAM_H
#define BT_TEAM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Returns when all cores have come. What a core has written before, all others read after. */
void bt_team_meet(void);

/* A copy that the DMA engine makes on one of its channels while the core that began it goes on, and its end. */
void bt_team_copy(uint32_t channel, void *to, const void *from, uint32_t bytes);
void bt_team_await(uint32_t channel);

#ifdef __cplusplus
}
#endif

#endif
