"""The rung "portable C on the host": a whole table in one program, with address and undefined-behaviour checks."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from math import isinf, isnan
from pathlib import Path
from typing import Any

import numpy as np

import baretorch
from baretorch.ir import Array
from baretorch.ops import kernels_of
from baretorch.ops.kernel import Call, Kernel, Literal
from tests.ops.case import Case

HERE = Path(__file__).parent
KERNELS = Path(baretorch.__file__).parent / "kernels"
WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def has_kernel(case: Case) -> bool:
    """False for operators that are views."""
    return bool(kernels_of(case.op))


def run_host(cases: Sequence[Case], inline: bool) -> list[Array]:
    """The cases' outputs, from kernels called out of line or inlined with literal parameters."""
    jobs = [_job(c) for c in cases]
    with tempfile.TemporaryDirectory() as folder:
        source, program, inputs, outputs = (Path(folder, n) for n in ("cases.c", "cases", "inputs", "outputs"))
        source.write_text(_driver(jobs))
        inputs.write_bytes(b"".join(a.tobytes() for job in jobs for a in job.reads))
        kernels = () if inline else sorted({KERNELS / job.kernel.source for job in jobs})
        form = ("-DBT_INLINE_KERNELS",) if inline else ()
        flags = ("-O1", "-g", *WARNINGS, *SANITIZERS, *form, f"-I{KERNELS}", f"-I{HERE}")
        run("gcc", *flags, source, HERE / "host_main.c", *kernels, "-o", program)
        run(program, inputs, outputs)
        flat = np.frombuffer(outputs.read_bytes(), np.float32)
    parts = np.split(flat, np.cumsum([job.call.y.count for job in jobs]))
    assert parts.pop().size == 0, "the program wrote more than the outputs"
    return [part.reshape(job.call.y.shape) for part, job in zip(parts, jobs, strict=True)]


def call_of(case: Case) -> Call[Any]:
    graph = case.graph()
    (node,) = graph.nodes
    return Call(node.op, graph.of(node.inputs), graph.of(node.outputs))


def run(*command: str | Path) -> str:
    """Run a command that must succeed, and give what it prints."""
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0"}
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, f"{command[0]} ended with {done.returncode}\n{done.stderr[-8000:]}"
    return done.stdout


@dataclass(frozen=True)
class _Job:
    """A call of a kernel and the arrays it reads, in the order of its arguments."""

    call: Call[Any]
    kernel: Kernel[Any]
    reads: tuple[Array, ...]


def _job(case: Case) -> _Job:
    call = call_of(case)
    kernel = next(k for k in kernels_of(case.op) if not k.needs and k.fits(call))
    arrays = zip(call.inputs, case.arrays(), strict=True)
    direct = tuple(a for t, a in arrays if t.data is None or kernel.pack is None)
    return _Job(call, kernel, direct + tuple(p.data for p in (kernel.pack(call) if kernel.pack else ())))


def _driver(jobs: Sequence[_Job]) -> str:
    """A C file with a function per call and the table of them."""
    kernels = {job.kernel for job in jobs}
    sources = sorted({k.source for k in kernels})
    headers = sorted({k.header for k in kernels})
    lines = ['#include "host_case.h"', "#ifdef BT_INLINE_KERNELS"]
    lines += [f'#include "{s}"' for s in sources] + ["#else"] + [f'#include "{h}"' for h in headers] + ["#endif"]
    rows = []
    for i, job in enumerate(jobs):
        params = job.kernel.params(job.call)
        fields = ", ".join(f".{name} = {_literal(value)}" for name, value in params.fields)
        arguments = "".join(f", b[{k}]" for k in range(len(job.reads) + 1))
        lines += [
            f"static void case_{i}(void **b)",
            "{",
            f"    static const {params.struct} p = {{{fields}}};",
            f"    {job.kernel.symbol}(&p{arguments});",
            "}",
        ]
        sizes = ", ".join(str(n) for n in (*(a.nbytes for a in job.reads), job.call.y.bytes))
        rows.append(f"    {{case_{i}, {len(job.reads) + 1}, {{{sizes}}}}},")
    lines += ["const host_case host_cases[] = {", *rows, "};", f"const size_t host_case_count = {len(jobs)};", ""]
    return "\n".join(lines)


def _literal(value: Literal) -> str:
    if isinstance(value, tuple):
        return f"{{{', '.join(map(_literal, value))}}}"
    if isinstance(value, int):
        return str(value)
    if isnan(value):
        return '__builtin_nanf("")'
    if isinf(value):
        return "BT_INF" if value > 0 else "-BT_INF"
    return f"{float(np.float32(value)).hex()}f"
