"""Fill memory before a run, so that tests detect bytes that a model reads or returns but never writes.

An image of `filled` fills its arenas before every run, with two patterns in turn. Two runs with equal inputs then
differ in every byte that no kernel writes, whatever the right value is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from baretorch.emit import CFiles
from baretorch.emit.names import make_names
from baretorch.plan.types import Plan

PATTERNS = (0xFF, 0x5A)  # floats are NaN, and about 1.5e16; no byte of the one is a byte of the other

FILL = """\
#if defined(__AVR__)
#define FILL_TABLE static const __flash
#else
#define FILL_TABLE static const
#endif

/* Fills all memory of the model that has no meaning before a run. */
static void fill(void)
{
    FILL_TABLE struct { uint8_t *at; uint32_t bytes; } parts[] = { %(parts)s };
    static uint8_t pattern = %(second)d;
    pattern = (uint8_t)(pattern ^ %(change)d);
    for (unsigned i = 0; i < sizeof parts / sizeof parts[0]; i++)
        __builtin_memset(parts[i].at, pattern, parts[i].bytes);
}

"""
CALL = "__attribute__((noinline)) void bt_model_call(void)\n{\n"


def filled(c: CFiles, name: str, plans: Mapping[str, Plan], served: str | None = None) -> CFiles:
    """Return the program with an image that fills the model's arenas, and its outputs elsewhere, before each run."""
    names = make_names(name, plans)
    method = names.methods[served] if served else names.first
    parts = [
        f"{{ (uint8_t *){arena.name} + {start}, {stop - start} }}"
        for arena in names.arenas
        for start, stop in meaningless(list(plans.values()), arena.bank, arena.bytes)
    ]
    parts += [f"{{ (uint8_t *)bt_memory_{p.name}, sizeof bt_memory_{p.name} }}" for p in method.outputs if p.direct]
    assert c.glue.count(CALL) == 1, "glue.c has no place for the call of fill()"
    if not parts:
        return c
    first, second = PATTERNS
    text = FILL % {"parts": ", ".join(parts), "second": second, "change": first ^ second}
    return replace(c, glue=c.glue.replace(CALL, f"{text}{CALL}    fill();\n"))


def meaningless(plans: list[Plan], bank: str, size: int) -> Iterator[tuple[int, int]]:
    """List the parts of an arena that hold neither an input nor state when a run begins."""
    kept = {(b.offset, b.end) for plan in plans for b in plan.layout.buffers if b.bank == bank and b.first < 0}
    at = 0
    for start, stop in sorted(kept):
        if at < start:
            yield at, start
        at = max(at, stop)
    if at < size:
        yield at, size
