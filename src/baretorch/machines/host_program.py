"""Run a Graph as a program of this computer over many inputs: models are observed in this way while they are
calibrated.

It is a child process, so that nothing that a model does can harm this one. Constants are read when it starts, so they
need not be compiled. No sum and product are fused, so that every x86-64 computes the same.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from baretorch.emit import KERNELS, emit
from baretorch.emit.names import CNames, make_names
from baretorch.emit.watched import watched_c
from baretorch.errors import CompileError, InternalError
from baretorch.files.write import scratch, write_scratch
from baretorch.firmware.cache import fingerprint, recall, remember
from baretorch.firmware.toolchain import Toolchain, find_toolchain
from baretorch.ir.graph import Array, Graph
from baretorch.options import Buffers, Optimize, Options
from baretorch.plan import make_plan
from baretorch.quantize.watch import RunGraph, in_numpy
from baretorch.targets.boards import load_board
from baretorch.targets.cpus import CPUS
from baretorch.targets.runtime import RUNTIME
from baretorch.targets.types import Board

FLAGS = ("-std=gnu99", "-O2", "-fno-strict-aliasing", "-ffp-contract=off")
HARNESS = RUNTIME / "host"


def computer() -> Board:
    """Return the host with kernels as fast as a computer can be. Images for the host have the portable kernels."""
    board = load_board("host")
    (cpu,) = (cpu for cpu in CPUS if cpu.name == "computer")
    return replace(board, chip=replace(board.chip, cpu=cpu))


@contextmanager
def on_host(graph: Graph) -> Iterator[RunGraph]:
    """Run a graph in C; in NumPy if there is no compiler, or if nothing is computed."""
    board = computer()
    try:
        tools = find_toolchain(board)
    except CompileError:
        tools = None
    if tools is None or not graph.nodes:
        with in_numpy(graph) as run:
            yield run
        return
    plans = {"forward": make_plan(graph, board, Options(buffers=Buffers.CALLER))}
    names = make_names("watched", plans)
    with scratch() as folder:
        program = _build(tools, names, emit("watched", plans, Optimize.SIZE, blank=True).files, folder)
        process = _Process(graph, program, names)
        try:
            yield process
        finally:
            process.close()


class _Process:
    def __init__(self, graph: Graph, program: Path, names: CNames) -> None:
        self._program, self._constants = program, [c.data for c in names.constants.values()]
        self._inputs, self._outputs = graph.of(graph.inputs), graph.of(graph.outputs)
        self._begin()

    def _begin(self) -> None:
        self._process = subprocess.Popen([self._program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._send(self._constants)

    def reset(self) -> None:
        """Start the program again, which sets its state to the initial values."""
        self.close()
        self._begin()

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def __call__(self, inputs: Sequence[Array]) -> Mapping[str, Array]:
        self._send([np.asarray(x, t.dtype.numpy).reshape(t.shape) for x, t in zip(inputs, self._inputs, strict=True)])
        assert self._process.stdout is not None
        raw = self._process.stdout.read(sum(t.bytes for t in self._outputs))
        if len(raw) < sum(t.bytes for t in self._outputs):
            raise self._crash()
        found, at = {}, 0
        for t in self._outputs:
            found[t.name] = np.frombuffer(raw, t.dtype.numpy, t.count, at).reshape(t.shape)
            at += t.bytes
        return found

    def _send(self, arrays: Sequence[Array]) -> None:
        assert self._process.stdin is not None
        try:
            for array in arrays:
                self._process.stdin.write(np.ascontiguousarray(array).tobytes())
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._crash() from None

    def _crash(self) -> InternalError:
        return InternalError(f"a model that was watched ended with code {self._process.wait()}")


def _build(tools: Toolchain, names: CNames, files: Mapping[str, str], folder: Path) -> Path:
    """Compile and link the program. Kernels are the same for every model, so their objects are kept."""
    for name, text in {**files, "watched.c": watched_c(names)}.items():
        write_scratch(folder / name, text)
    own = (*FLAGS, *(() if tools.name == "gcc" else ("-fno-sanitize=undefined", "-g0")))
    common = [text for name, text in sorted(files.items()) if name.startswith("kernels/") and name.endswith(".h")]
    objects = list[str]()
    for name in files:
        if name.startswith("kernels/") and name.endswith(".c") and (KERNELS / name.removeprefix("kernels/")).exists():
            made, key = f"{len(objects)}.o", fingerprint(tools.version, *own, name, files[name], *common)
            if kept := recall("watched", key):
                write_scratch(folder / made, kept["kernel.o"])
            else:
                tools.make((*own, f"-I{folder}", "-c", name, "-o", made), folder)
                remember("watched", key, {"kernel.o": (folder / made).read_bytes()})
            objects.append(made)
    sources = ("model.c", "watched.c", str(HARNESS / "watch.c"))
    # These files only call kernels, and optimizing calls of very many layers takes long.
    tools.make((*own, "-O0", f"-I{folder}", f"-I{HARNESS}", *sources, *objects, "-o", "watched"), folder)
    return folder / "watched"
