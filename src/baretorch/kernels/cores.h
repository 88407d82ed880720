/* Two cores that work on one model: where they wait for each other.
 *
 * Nothing here belongs to a chip: a meeting is ordinary memory that both cores see, and a core that waits sleeps until
 * the other signals an event (WFE and SEV of Arm). No atomic instructions are needed, as each core writes a counter of
 * its own. What a core has written before a meeting, the other reads after it. */
#ifndef BT_CORES_H
#define BT_CORES_H

#include "bt.h"

#if !defined(__arm__)
#error "events between cores are known for Arm only"
#endif

/* How often each core has come; zero before the first meeting. */
typedef struct {
    volatile uint32_t arrived[2];
} bt_meeting;

/* Wake a core that sleeps in bt_wait_event; data written before is visible when it wakes. */
BT_INLINE void bt_signal_event(void)
{
    __asm__ volatile("dsb\n\tsev" : : : "memory");
}

/* Sleep until the other core signals. It may also return at once, for an earlier signal: check the condition again. */
BT_INLINE void bt_wait_event(void)
{
    __asm__ volatile("wfe" : : : "memory");
}

/* Whether the other core has come to the meeting that `core` would enter next, which then does not wait. */
BT_INLINE int bt_other_waits(const bt_meeting *m, uint32_t core)
{
    return (int32_t)(m->arrived[1u - core] - m->arrived[core]) > 0;
}

/* The compiler must take any memory for changed by a meeting. gcc would see that bt_meet itself does not touch some
 * static variable, and keep its value of before. */
#if defined(__clang__)
#define BT_OPAQUE BT_SHARED
#else
#define BT_OPAQUE BT_SHARED __attribute__((noipa))
#endif

/* Returns when both cores have come. The other may be one meeting ahead by the time this one looks. */
BT_OPAQUE void bt_meet(bt_meeting *m, uint32_t core)
{
    const uint32_t turn = m->arrived[core] + 1u;
    __asm__ volatile("dmb" : : : "memory");
    m->arrived[core] = turn;
    bt_signal_event();
    while ((int32_t)(m->arrived[1u - core] - turn) < 0)
        bt_wait_event();
    __asm__ volatile("dmb" : : : "memory");
}

#endif
