"""Small models in C, built into real images for any board."""

from __future__ import annotations

import atexit
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from baretorch.firmware.build import build
from baretorch.firmware.types import Image
from baretorch.options import Console
from baretorch.targets.boards import board_names, load_board

RUN = "toy_run"
EMULATED = [(name, e) for name in board_names() for e in load_board(name).emulators if e != "fvp"]

GLUE = """\
#include <stdint.h>
#include "bt_runtime.h"

#define INPUT_BYTES {inputs}
#define OUTPUT_BYTES {outputs}
static uint8_t input[INPUT_BYTES] __attribute__((aligned(8)));
static uint8_t output[OUTPUT_BYTES] __attribute__((aligned(8)));
static const BT_FLASH char name[] = "toy";
static const BT_FLASH bt_buffer ins[] = {{{{input, INPUT_BYTES}}}};
static const BT_FLASH bt_buffer outs[] = {{{{output, OUTPUT_BYTES}}}};
const BT_FLASH bt_model bt_the_model = {{name, ins, outs, 1, 1}};
void toy_run(const void *from, void *to);

{body}

void bt_model_reset(void)
{{
}}

void bt_model_call(void)
{{
    toy_run(input, output);
    __asm__ volatile(".globl bt_model_returned\\nbt_model_returned:" ::: "memory");
}}
"""

# Bytes reversed, with an arithmetic that uses the FPU, divisions and conditional code.
REVERSE = """\
__attribute__((noinline)) static float mean(const uint8_t *from, uint32_t n)
{
    float sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += (float)from[i] * 0.5f;
    }
    return sum / (float)n;
}

__attribute__((noinline)) static uint8_t clamp(int32_t x)
{
    return (uint8_t)(x < 0 ? 0 : x > 255 ? 255 : x);
}

void __attribute__((noinline)) toy_run(const void *from, void *to)
{
    const uint8_t *x = from;
    uint8_t *y = to;
    volatile float m = mean(x, INPUT_BYTES);
    for (uint32_t i = 0; i < OUTPUT_BYTES; i++) {
        int32_t bias = (int32_t)x[i] - 128 > 0 ? 3 : -3;
        y[i] = clamp((int32_t)x[INPUT_BYTES - 1 - i] + bias - bias);
    }
    (void)m;
}
"""


# In two phases, each core a half: triples, then those reversed and numbered, which needs the other core's half.
TWO_CORES = """\
#include "cores.h"

#define HALF (INPUT_BYTES / 2)
static bt_meeting meeting;
static const uint8_t *x;
static uint8_t *y;
static uint8_t triples[INPUT_BYTES];

__attribute__((noinline)) static void triple(uint32_t first)
{
    for (uint32_t i = first; i < first + HALF; i++) {
        triples[i] = (uint8_t)(3 * x[i]);
    }
}

__attribute__((noinline)) static void reverse(uint32_t first)
{
    for (uint32_t i = first; i < first + HALF; i++) {
        y[i] = (uint8_t)(triples[INPUT_BYTES - 1 - i] + i);
    }
}

void bt_core1_main(void)
{
    for (;;) {
        bt_meet(&meeting, 1); /* begin */
        triple(HALF);
        bt_meet(&meeting, 1); /* between */
        reverse(HALF);
        bt_meet(&meeting, 1); /* end */
    }
}

void __attribute__((noinline)) toy_run(const void *from, void *to)
{
    x = from;
    y = to;
    bt_meet(&meeting, 0); /* begin */
    triple(0);
    bt_meet(&meeting, 0); /* between */
    reverse(0);
    bt_meet(&meeting, 0); /* end */
}
"""


@cache
def image(
    board: str,
    body: str = REVERSE,
    inputs: int = 16,
    outputs: int = 16,
    toolchain: str | None = None,
    cores: int = 1,
    console: Console = Console.UART,
    watchdog: int | None = None,
) -> Image:
    """The image of a model whose C is `body`; built once per test run."""
    folder = Path(mkdtemp(prefix="baretorch-test-"))
    atexit.register(shutil.rmtree, folder)
    source = folder / "glue.c"
    source.write_text(GLUE.format(body=body, inputs=inputs, outputs=outputs))
    made = load_board(board).with_console(console)
    return build("toy", made, folder, [source], folder, RUN, toolchain, cores=cores, watchdog=watchdog)
