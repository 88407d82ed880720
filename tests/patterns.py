"""Fill memory before a run, so that tests detect bytes that a model reads or returns but never writes.

An image whose glue.c comes from `filling` fills its arenas before every run, with two patterns in turn. Two runs with
equal inputs then differ in every byte that no kernel writes, whatever the right value is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import pytest

from baretorch import emit
from baretorch.emit.names import CNames, Method
from baretorch.plan.types import Plan

PATTERNS = (0xFF, 0x5A)  # floats are NaN, and about 1.5e16; no byte of the one is a byte of the other

FILL = """\
/* gcc takes a length that happens to be the number of an array's words for a mistake, unless it is a parameter. */
static void fill_bytes(void *at, uint8_t pattern, uint32_t bytes)
{
    __builtin_memset(at, pattern, (__SIZE_TYPE__)bytes);
}

/* Fills all memory of the model that has no meaning before a run. */
static void fill(void)
{
    static uint8_t pattern = %(second)d;
    pattern = (uint8_t)(pattern ^ %(change)d);
%(parts)s
}

"""
CALL = "__attribute__((noinline)) void bt_model_call(void)\n{\n"


@contextmanager
def filled_images() -> Iterator[None]:
    """Let all images that are built meanwhile fill their memory before each run."""
    own = emit.glue_c
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(emit, "glue_c", lambda names, method: filling(own(names, method), names, method))
        yield


def filling(glue: str, names: CNames, method: Method) -> str:
    """Return glue.c with a call that fills the model's arenas, and its outputs elsewhere, before each run."""
    assert glue.count(CALL) == 1, "glue.c has no place for the call of fill()"
    plans = [m.plan for m in names.methods.values()]
    parts = [
        f"    fill_bytes((uint8_t *){arena.name} + {start}, pattern, {stop - start});"
        for arena in names.arenas
        for start, stop in meaningless(plans, arena.bank, arena.bytes)
    ]
    parts += [
        f"    fill_bytes(bt_memory_{p.name}, pattern, sizeof bt_memory_{p.name});" for p in method.outputs if p.direct
    ]
    if not parts:
        return glue
    first, second = PATTERNS
    text = FILL % {"parts": "\n".join(parts), "second": second, "change": first ^ second}
    return glue.replace(CALL, f"{text}{CALL}    fill();\n")


def meaningless(plans: Iterable[Plan], bank: str, size: int) -> Iterator[tuple[int, int]]:
    """List the parts of an arena that hold neither an input nor state when a run begins."""
    kept = {(b.offset, b.end) for plan in plans for b in plan.layout.buffers if b.bank == bank and b.first < 0}
    at = 0
    for start, stop in sorted(kept):
        if at < start:
            yield at, start
        at = max(at, stop)
    if at < size:
        yield at, size
