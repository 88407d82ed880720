#ifndef HOST_CASE_H
#define HOST_CASE_H

#include <stddef.h>

#define HOST_BUFFERS 8

/* One call of a kernel; the last buffer is its output. */
typedef struct {
    void (*run)(void **buffers);
    size_t count;
    size_t bytes[HOST_BUFFERS];
} host_case;

extern const host_case host_cases[];
extern const size_t host_case_count;

#endif
