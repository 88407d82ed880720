/* The cores of a cluster that work on one model. They wait for core 0 at the event unit's barrier. */
#include "team.h"
#include "cluster.h"
#include "bt_runtime.h"

void bt_team_entry(uint32_t core); /* called by reset.S */

#ifdef BT_APP
__attribute__((weak)) void bt_core_main(uint32_t core)
{
    (void)core;
}
#endif

void bt_team_meet(void)
{
    bt_barrier();
}

void bt_team_entry(uint32_t core)
{
    bt_barrier(); /* until core 0 has made C's world */
    bt_core_main(core);
    for (;;) {
        __asm__ volatile("wfi");
    }
}
