/* Runs a model over many inputs on this computer. It reads its constants once, then inputs until there are no more, and
 * writes the outputs for each. watched.c, generated with the model, has the addresses. */
#include <stdio.h>

#include "watch.h"

static int transfer(const bt_part *parts, uint32_t count, FILE *in, FILE *out)
{
    for (uint32_t i = 0; i < count; i++) {
        size_t done = in ? fread(parts[i].data, 1, parts[i].bytes, in) : fwrite(parts[i].data, 1, parts[i].bytes, out);
        if (done != parts[i].bytes)
            return 0;
    }
    return 1;
}

int main(void)
{
    if (!transfer(bt_constants.parts, bt_constants.count, stdin, NULL))
        return 1;
    bt_watched_reset();
    while (transfer(bt_inputs.parts, bt_inputs.count, stdin, NULL)) {
        bt_watched_run();
        if (!transfer(bt_outputs.parts, bt_outputs.count, NULL, stdout) || fflush(stdout))
            return 2;
    }
    return 0;
}
