/* Memory with guards, for a program that runs generated C under sanitizers. Every block has GUARD bytes of a pattern
 * before and after it. ASan reports who touches them; the pattern shows what ASan cannot see, such as code without
 * instrumentation and the bytes before a block that does not begin at a multiple of 8. */
#ifndef GUARD_H
#define GUARD_H

#include <sanitizer/asan_interface.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 512
#define PATTERN 0xc3 /* -391.5 as a float, -61 as an int8: neither looks like a result */

typedef struct {
    const char *name;
    unsigned char *data;
    unsigned char *copy; /* what the caller has written, to see that it stays */
    size_t bytes;
    unsigned char *block;
} guarded;

/* Memory of so many bytes at an address that is `odd` more than a multiple of 64. */
static inline guarded guard_new(const char *name, size_t bytes, size_t odd)
{
    guarded g = { name, NULL, calloc(bytes + 1, 1), bytes, NULL };
    void *block = NULL;
    if (posix_memalign(&block, 64, GUARD + odd + bytes + GUARD))
        exit(4);
    g.block = block;
    memset(g.block, PATTERN, GUARD + odd + bytes + GUARD);
    g.data = g.block + GUARD + odd;
    return g;
}

static inline void guard_close(const guarded *g)
{
    __asan_poison_memory_region(g->block, (size_t)(g->data - g->block));
    __asan_poison_memory_region(g->data + g->bytes, GUARD);
}

static inline void guard_check(const guarded *g, const char *model)
{
    __asan_unpoison_memory_region(g->block, (size_t)(g->data - g->block) + g->bytes + GUARD);
    for (const unsigned char *p = g->block; p < g->data + g->bytes + GUARD; p++) {
        if (p == g->data)
            p += g->bytes;
        if (*p != PATTERN) {
            fprintf(stderr, "%s: byte %td of %s, which has %zu, was written\n", model, p - g->data, g->name, g->bytes);
            exit(3);
        }
    }
}

static inline void guard_read(guarded *g, FILE *in)
{
    if (fread(g->copy, 1, g->bytes, in) != g->bytes)
        exit(4);
    memcpy(g->data, g->copy, g->bytes);
}

/* An input is as it was. */
static inline void guard_unchanged(const guarded *g, const char *model)
{
    if (memcmp(g->data, g->copy, g->bytes)) {
        fprintf(stderr, "%s: the input %s was written\n", model, g->name);
        exit(3);
    }
}

#endif
