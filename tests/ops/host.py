"""The rung "portable C on the host": a whole table in one program, with address and undefined-behaviour checks.

Bytes of the arena that belong to no buffer are poisoned. The table runs once for each pattern that the other bytes are
filled with before the inputs are read, and all runs must give equal outputs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import baretorch
from baretorch.emit import emit
from baretorch.emit.names import CPort, make_names
from baretorch.plan import make_plan
from baretorch.plan.types import Plan
from baretorch.targets.boards import load_board
from baretorch.targets.types import Board
from tests.compiled import run_once
from tests.ops.arrange import gaps, spread
from tests.ops.case import Outputs
from tests.ops.merge import Model, merged, need_written, shared_out
from tests.patterns import PATTERNS
from tests.sanitized import SANITIZERS

HERE = Path(__file__).parent
KERNELS = Path(baretorch.__file__).parent / "kernels"
CLANG = (sys.executable, "-m", "ziglang", "cc")
WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")

MAIN = """\
#include <stdio.h>
#include <string.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define __asan_poison_memory_region(from, bytes) ((void)(from), (void)(bytes))
#define __asan_unpoison_memory_region(from, bytes) ((void)(from), (void)(bytes))
#endif
#include "model.h"
#include "weights.h"

#define COUNT(table) (sizeof table / sizeof table[0])

int main(int argc, char **argv)
{
    static const struct { size_t from, bytes; } gaps[] = { %(gaps)s };
    static const int patterns[] = { %(patterns)s };
    const struct { void *at; size_t bytes; } reads[] = { %(reads)s }, writes[] = { %(writes)s };
    FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
    (void)argc;
    for (size_t run = 0; run < COUNT(patterns); run++) {
        __asan_unpoison_memory_region(cases_arena, sizeof cases_arena);
        memset(cases_arena, patterns[run], sizeof cases_arena);
        for (size_t i = 0; i < COUNT(gaps); i++)
            __asan_poison_memory_region((char *)cases_arena + gaps[i].from, gaps[i].bytes);
        rewind(in);
        for (size_t i = 0; i < COUNT(reads); i++)
            if (fread(reads[i].at, 1, reads[i].bytes, in) != reads[i].bytes)
                return 1;
        cases_run(%(nulls)s);
        for (size_t i = 0; i < COUNT(writes); i++)
            if (fwrite(writes[i].at, 1, writes[i].bytes, out) != writes[i].bytes)
                return 2;
    }
    return fclose(out);
}
"""


def run_host(
    cases: Sequence[Model],
    inline: bool,
    arrange: Callable[[Plan], Plan] = spread,
    flags: Sequence[str] = ("-O1", "-g", *SANITIZERS),
    compiler: Sequence[str] = ("gcc",),
    board: Board | None = None,
) -> list[Outputs]:
    """Return the cases' outputs, from kernels called out of line or inlined with literal parameters."""
    graph, arrays = merged(cases)
    plan = arrange(make_plan(graph, board or load_board("host")))
    c = emit("cases", {"forward": plan}, "speed" if inline else "size")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, text in {**c.files, "main.c": _main(plan)}.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        (folder / "inputs").write_bytes(b"".join(a.tobytes() for a in arrays))
        # What only calls is long, and its speed does not matter.
        calls = ["main.c"] if inline else ["main.c", "model.c"]
        sources = [folder / s for s in c.sources if s not in calls]
        common = (*compiler, *flags, *WARNINGS, f"-I{folder}")
        for source in calls:
            make(*common, "-O0", "-g0", "-c", folder / source, "-o", folder / f"{Path(source).stem}.o")
        make(*common, *sources, *(folder / f"{Path(s).stem}.o" for s in calls), "-o", folder / "cases")
        run(folder / "cases", folder / "inputs", folder / "outputs")
        raw = (folder / "outputs").read_bytes()
    runs: list[list[Outputs]] = []
    for _ in PATTERNS:
        outputs = []
        for t in graph.of(graph.outputs):
            outputs.append(np.frombuffer(raw[: t.bytes], t.dtype.numpy).reshape(t.shape))
            raw = raw[t.bytes :]
        runs.append(shared_out(cases, outputs))
    assert not raw, "the program wrote more than the outputs"
    return need_written(cases, runs)


def run(*command: str | Path) -> str:
    """Run a command that must succeed, and give what it prints."""
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}\n{done.stderr[-8000:]}"
    return done.stdout


def make(*command: str | Path) -> None:
    """Run a compiler that must succeed, unless it made something of the same files before."""
    done = run_once([str(c) for c in command], Path())
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}\n{done.stderr[-8000:]}"


def _main(plan: Plan) -> str:
    method = make_names("cases", {"forward": plan}).first

    def part(port: CPort) -> str:
        return f"{{ (void *){port.macro}, {plan.graph[port.operand.tensor].bytes} }}"

    return MAIN % {
        "patterns": ", ".join(map(str, PATTERNS)),
        "gaps": ", ".join(f"{{ {start}, {stop - start} }}" for start, stop in gaps(plan)),
        "reads": ", ".join(map(part, method.inputs)) or "{ 0, 0 }",
        "writes": ", ".join(map(part, method.outputs)),
        "nulls": ", ".join("NULL" for _ in method.ports),
    }
