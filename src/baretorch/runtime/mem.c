/* The four functions that compilers call on their own, since there is no C library. Without the attribute a
 * compiler would recognise the loops and turn each function into a call of itself. */
#include <stddef.h>
#include <stdint.h>

#ifdef __clang__
#define AS_WRITTEN __attribute__((used, no_builtin))
#else
#define AS_WRITTEN __attribute__((used, optimize("no-tree-loop-distribute-patterns")))
#endif

typedef uint32_t __attribute__((may_alias)) word;

void *memcpy(void *to, const void *from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int value, size_t n);
int memcmp(const void *a, const void *b, size_t n);

/* Goes forward, so that memmove can use it. */
AS_WRITTEN void *memcpy(void *to, const void *from, size_t n)
{
    uint8_t *t = to;
    const uint8_t *f = from;
    if ((((uintptr_t)t | (uintptr_t)f) & 3u) == 0) {
        word *wt = to;
        const word *wf = from;
        for (; n >= 16; n -= 16, wt += 4, wf += 4) { /* four at once: load and store multiple */
            const word a = wf[0], b = wf[1], c = wf[2], d = wf[3];
            wt[0] = a, wt[1] = b, wt[2] = c, wt[3] = d;
        }
        for (; n >= 4; n -= 4) {
            *wt++ = *wf++;
        }
        t = (uint8_t *)wt;
        f = (const uint8_t *)wf;
    }
    for (; n > 0; n--) {
        *t++ = *f++;
    }
    return to;
}

AS_WRITTEN void *memmove(void *to, const void *from, size_t n)
{
    uint8_t *t = to;
    const uint8_t *f = from;
    if ((uintptr_t)t - (uintptr_t)f >= n) { /* the target does not begin inside the source */
        return memcpy(to, from, n);
    }
    while (n > 0) {
        n--;
        t[n] = f[n];
    }
    return to;
}

AS_WRITTEN void *memset(void *to, int value, size_t n)
{
    uint8_t *t = to;
    const uint8_t byte = (uint8_t)value;
    if (((uintptr_t)t & 3u) == 0) {
        for (; n >= 4; n -= 4, t += 4) {
            *(word *)(void *)t = byte * 0x01010101u;
        }
    }
    for (; n > 0; n--) {
        *t++ = byte;
    }
    return to;
}

AS_WRITTEN int memcmp(const void *a, const void *b, size_t n)
{
    const uint8_t *x = a;
    const uint8_t *y = b;
    for (; n > 0; n--, x++, y++) {
        if (*x != *y) {
            return *x - *y;
        }
    }
    return 0;
}
