/* lookup for Arm cores with Helium: sixteen bytes are the indices of one gathering load. */
#include <arm_mve.h>

#include "lookup.h"

BT_KERNEL void bt_lookup_mve(const bt_lookup *p, const int8_t *x, const int8_t *table, int8_t *y)
{
    uint8x16_t u, v;
    __asm__ volatile("wlstp.8 lr, %[n], 2f\n"
                     "1:\n\t"
                     "vldrb.u8 %q[u], [%[x]], #16\n\t"
                     "vldrb.u8 %q[v], [%[table], %q[u]]\n\t"
                     "vstrb.8 %q[v], [%[y]], #16\n\t"
                     "letp lr, 1b\n"
                     "2:"
                     : [x] "+&r"(x), [y] "+&r"(y), [u] "=&w"(u), [v] "=&w"(v)
                     : [n] "r"(p->count), [table] "r"(table)
                     : "lr", "cc", "memory");
}
