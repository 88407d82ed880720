/* Standard input and output. The program ends with its input. */
#include <stdlib.h>
#include <unistd.h>

#include "bt_runtime.h"

static uint8_t out[4096];
static size_t out_bytes;

static void flush(void)
{
    for (size_t sent = 0; sent < out_bytes;) {
        const ssize_t n = write(STDOUT_FILENO, out + sent, out_bytes - sent);
        if (n <= 0) {
            exit(1);
        }
        sent += (size_t)n;
    }
    out_bytes = 0;
}

void bt_console_init(void)
{
}

void bt_console_put(uint8_t byte)
{
    out[out_bytes++] = byte;
    if (out_bytes == sizeof out) {
        flush();
    }
}

/* The operating system lets the program sleep. */
int bt_console_ready(void)
{
    return 1;
}

uint8_t bt_console_take(void)
{
    static uint8_t in[4096];
    static size_t next, end;
    if (next == end) {
        flush();
        const ssize_t n = read(STDIN_FILENO, in, sizeof in);
        if (n <= 0) {
            exit(n < 0);
        }
        next = 0;
        end = (size_t)n;
    }
    return in[next++];
}
