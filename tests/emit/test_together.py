"""Two models in one program, as an SDK would build them: every .c file it finds, with flags of its own choice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from baretorch.emit import emit
from baretorch.emit.names import make_names
from baretorch.options import Optimize
from baretorch.plan import make_plan
from baretorch.plan.types import Plan
from baretorch.targets.boards import load_board
from tests.ops.case import Case, run_reference
from tests.ops.cases import TABLE
from tests.ops.host import run
from tests.ops.merge import merged, shared_out

MODELS = ("one", "two")
C99 = ("gcc", "-std=gnu99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
CPP17 = ("g++", "-x", "c++", "-std=gnu++17", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror")
STRICT = ("-fstrict-aliasing", "-ffp-contract=off")  # nobody knows that tensors share the arena's bytes
MAIN = """\
#include <stdio.h>
#include "one/model.h"
#include "two/model.h"

int main(int argc, char **argv)
{{
    FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");
    (void)argc;
    if ({reads})
        return 1;
    {calls}
    if ({writes})
        return 2;
    return fclose(out);
}}
"""


def some(step: int) -> list[list[Case]]:
    """Two tables with many kernels in common."""
    return [TABLE[0::step], TABLE[step // 2 :: step]]


@pytest.mark.parametrize(
    "optimize, step",
    [
        pytest.param(Optimize.SPEED, 24, id="speed"),
        pytest.param(Optimize.SIZE, 120, id="size"),  # a file to compile per kernel and model
        *(pytest.param(optimize, 2, id=f"{optimize}-all", marks=pytest.mark.slow) for optimize in Optimize),
    ],
)
@pytest.mark.parametrize("compiler", [C99, CPP17], ids=["c99", "c++17"])
def test_two_models_in_one_program(optimize: Optimize, compiler: tuple[str, ...], step: int, tmp_path: Path) -> None:
    tables = some(step)
    graphs, arrays = zip(*(merged(cases) for cases in tables), strict=True)
    plans = [make_plan(graph, load_board("host")) for graph in graphs]
    for name, plan in zip(MODELS, plans, strict=True):
        for path, text in emit(name, {"forward": plan}, optimize).files.items():
            (tmp_path / name / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / path).write_text(text)
    (tmp_path / "main.c").write_text(main(plans))
    (tmp_path / "inputs").write_bytes(b"".join(a.tobytes() for some in arrays for a in some))
    objects = []
    for name in (*MODELS, "."):
        for source in sorted((tmp_path / name).glob("*.c" if name == "." else "**/*.c")):
            objects.append(source.with_suffix(".o"))
            run(*compiler, *STRICT, "-O2", f"-I{tmp_path / name}", "-c", source, "-o", objects[-1])
    run(compiler[0], *objects, "-o", tmp_path / "both")
    run(tmp_path / "both", tmp_path / "inputs", tmp_path / "outputs")
    raw = (tmp_path / "outputs").read_bytes()
    for cases, graph in zip(tables, graphs, strict=True):
        outputs = []
        for t in graph.of(graph.outputs):
            outputs.append(np.frombuffer(raw[: t.bytes], t.dtype.numpy).reshape(t.shape))
            raw = raw[t.bytes :]
        for case, have in zip(cases, shared_out(cases, outputs), strict=True):
            case.check(have, run_reference([case])[0])
    assert not raw


def main(plans: Sequence[Plan]) -> str:
    reads, calls, writes = [], [], []
    for name, plan in zip(MODELS, plans, strict=True):
        method = make_names(name, {"forward": plan}).first
        for ports, what, file, to in ((method.inputs, "fread", "in", reads), (method.outputs, "fwrite", "out", writes)):
            for port in ports:
                size = plan.graph[port.operand.tensor].bytes
                if size:
                    to.append(f"{what}({port.macro}, 1, {size}, {file}) != {size}")
        calls.append(f"{method.run}({', '.join('NULL' for _ in method.ports)});")
    return MAIN.format(reads=" || ".join(reads), calls=" ".join(calls), writes=" || ".join(writes))
