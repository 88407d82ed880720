/* Runs a table of cases on the host: `host_main inputs outputs`. Both files hold the cases' buffers back to back.
 * Each buffer is an allocation of its own and of its exact size, so that the sanitizer sees every step outside. */
#include <stdio.h>
#include <stdlib.h>

#include "host_case.h"

static void *allocate(size_t bytes)
{
    void *buffer = malloc(bytes);
    if (buffer == NULL)
        abort();
    return buffer;
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    FILE *in = fopen(argv[1], "rb");
    FILE *out = fopen(argv[2], "wb");
    if (in == NULL || out == NULL)
        return 2;
    for (size_t c = 0; c < host_case_count; c++) {
        const host_case *it = &host_cases[c];
        void *buffers[HOST_BUFFERS];
        for (size_t i = 0; i < it->count; i++) {
            buffers[i] = allocate(it->bytes[i]);
            if (i + 1 < it->count && fread(buffers[i], 1, it->bytes[i], in) != it->bytes[i])
                return 2;
        }
        it->run(buffers);
        if (fwrite(buffers[it->count - 1], 1, it->bytes[it->count - 1], out) != it->bytes[it->count - 1])
            return 2;
        for (size_t i = 0; i < it->count; i++)
            free(buffers[i]);
    }
    return fclose(in) | fclose(out);
}
