/* Copies by a cluster's DMA engine. */
#include "team.h"
#include "cluster.h"

void bt_team_copy(uint32_t channel, void *to, const void *from, uint32_t bytes)
{
    bt_dma_start(channel, to, bytes, from, bytes, bytes, 1);
}

void bt_team_await(uint32_t channel)
{
    bt_dma_wait(channel);
}
