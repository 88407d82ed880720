"""The rung "portable C on the host": a whole table in one program, with address and undefined-behaviour checks.

Bytes of the arena that belong to no buffer are poisoned.
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
from baretorch.emit.names import Port, make_names
from baretorch.plan import make_plan
from baretorch.plan.types import Plan
from baretorch.targets.boards import load_board
from baretorch.targets.types import Board
from tests.ops.arrange import gaps, spread
from tests.ops.case import Outputs
from tests.ops.merge import Model, merged, shared_out

HERE = Path(__file__).parent
KERNELS = Path(baretorch.__file__).parent / "kernels"
CLANG = (sys.executable, "-m", "ziglang", "cc")
WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-strict-aliasing")

MAIN = """\
#include <stdio.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define __asan_poison_memory_region(from, bytes) ((void)(from), (void)(bytes))
#endif
#include "model.h"
#include "weights.h"

int main(int argc, char **argv)
{
    static const struct { size_t from, bytes; } gaps[] = { %(gaps)s };
    FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
    (void)argc;
    for (size_t i = 0; i < sizeof gaps / sizeof gaps[0]; i++)
        __asan_poison_memory_region((char *)cases_arena + gaps[i].from, gaps[i].bytes);
    if (%(reads)s)
        return 1;
    cases_run(%(nulls)s);
    if (%(writes)s)
        return 2;
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
    """The cases' outputs, from kernels called out of line or inlined with literal parameters."""
    graph, arrays = merged(cases)
    plan = arrange(make_plan(graph, board or load_board("host")))
    c = emit("cases", {"forward": plan}, "speed" if inline else "size")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path, text in {**c.files, "main.c": _main(plan)}.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        (folder / "inputs").write_bytes(b"".join(a.tobytes() for a in arrays))
        sources = [folder / s for s in (*c.sources, "main.c")]
        run(*compiler, *flags, *WARNINGS, f"-I{folder}", *sources, "-o", folder / "cases")
        run(folder / "cases", folder / "inputs", folder / "outputs")
        raw = (folder / "outputs").read_bytes()
    outputs = []
    for t in graph.of(graph.outputs):
        outputs.append(np.frombuffer(raw[: t.bytes], t.dtype.numpy).reshape(t.shape))
        raw = raw[t.bytes :]
    assert not raw, "the program wrote more than the outputs"
    return shared_out(cases, outputs)


def run(*command: str | Path) -> str:
    """Run a command that must succeed, and give what it prints."""
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}\n{done.stderr[-8000:]}"
    return done.stdout


def _main(plan: Plan) -> str:
    method = make_names("cases", {"forward": plan}).first

    def move(what: str, port: Port, file: str) -> str:
        t = plan.graph[port.operand.tensor]
        return f"{what}({port.macro}, 1, {t.bytes}, {file}) != {t.bytes}" if t.bytes else "0"

    return MAIN % {
        "gaps": ", ".join(f"{{ {start}, {stop - start} }}" for start, stop in gaps(plan)),
        "reads": "\n        || ".join(move("fread", p, "in") for p in method.inputs),
        "writes": "\n        || ".join(move("fwrite", p, "out") for p in method.outputs),
        "nulls": ", ".join("NULL" for _ in method.ports),
    }
