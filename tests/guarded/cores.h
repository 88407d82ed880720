/* kernels/cores.h for this computer: cores are threads, and a meeting is a barrier. */
#ifndef BT_CORES_H
#define BT_CORES_H

#include <pthread.h>

#include "bt.h"

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t all;
    uint32_t here, turn;
} bt_meeting;

static inline void bt_meet(bt_meeting *m, uint32_t core)
{
    (void)core;
    pthread_mutex_lock(&m->lock); /* all zeros are a mutex and a condition on Linux */
    const uint32_t turn = m->turn;
    if (++m->here == 2) {
        m->here = 0;
        m->turn++;
        pthread_cond_broadcast(&m->all);
    }
    while (m->turn == turn)
        pthread_cond_wait(&m->all, &m->lock);
    pthread_mutex_unlock(&m->lock);
}

#endif
