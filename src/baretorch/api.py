"""The Python interface: what the command line does, as objects.

model = baretorch.compile(net, (example,), board="pico2w")
model.memory.arena, model.c_files["model.c"]
image = model.build("build/net")
outputs = model.run(x)
"""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from baretorch import frontends, pipeline
from baretorch.devices.link import Link
from baretorch.emulators import open_machine
from baretorch.emulators.run import call
from baretorch.emulators.types import Machine
from baretorch.errors import CompileError
from baretorch.firmware.types import Image
from baretorch.ir import Array
from baretorch.targets.boards import load_board


@dataclass(frozen=True)
class Memory:
    """Bytes the model itself takes: no runtime, no stack."""

    arena: int
    lower_bound: int
    weights: int


@dataclass
class Model:
    """A model compiled for a board. Building and running happen when asked for, once."""

    compiled: pipeline.Compiled
    toolchain: str | None = None
    emulator: str | None = None
    _image: Image | None = field(default=None, repr=False)
    _machine: Machine | None = field(default=None, repr=False)
    _link: Link | None = field(default=None, repr=False)

    @property
    def c_files(self) -> dict[str, str]:
        """The generated C by file name."""
        return dict(self.compiled.c.files)

    @property
    def memory(self) -> Memory:
        plan = self.compiled.plan
        return Memory(plan.arena, plan.lower_bound, plan.weight_bytes())

    def build(self, folder: str | Path | None = None) -> Image:
        """The image for the board, in `folder` or in a temporary one."""
        if self._image is None or folder is not None:
            if folder is None:
                temporary = tempfile.TemporaryDirectory(prefix="baretorch-")
                atexit.register(temporary.cleanup)
                folder = temporary.name
            self.close()
            self._image = pipeline.build_image(self.compiled, Path(folder), self.toolchain)
        return self._image

    def run(self, *inputs: Any) -> Array | tuple[Array, ...]:
        """Run on the emulated chip, which stays up between calls. Takes tensors or arrays; gives arrays."""
        if self._link is None:
            self._machine = open_machine(self.build(), self.compiled.c.run, self.emulator)
            self._link = Link(self._machine)
        graph, program = self.compiled.graph, self.compiled.source.program
        if len(inputs) != len(program.inputs):
            raise CompileError(f"run() takes {len(program.inputs)} input(s), {len(inputs)} were given")
        arrays = []
        for x, spec in zip(inputs, program.inputs, strict=True):
            array = np.asarray(x.detach().numpy() if hasattr(x, "detach") else x)
            if array.shape != spec.shape or array.dtype != spec.dtype.numpy:
                raise CompileError(
                    f"input {spec.name} has the wrong shape or type",
                    have=f"{array.dtype}{list(array.shape)}",
                    need=f"{spec.dtype.label}{list(spec.shape)}",
                )
            arrays.append(np.ascontiguousarray(array.transpose(spec.order)))
        outputs = tuple(
            o.transpose(np.argsort(order))
            for o, order in zip(call(self._link, graph, arrays), program.output_orders, strict=True)
        )
        return outputs[0] if len(outputs) == 1 else outputs

    def close(self) -> None:
        """End the emulation."""
        if self._machine is not None:
            self._machine.close()
        self._machine = self._link = None


def compile(
    model: Any,
    inputs: Sequence[Any] | None = None,
    *,
    board: str,
    name: str = "model",
    optimize: str = "speed",
    toolchain: str | None = None,
    emulator: str | None = None,
) -> Model:
    """Compile an nn.Module with example inputs, or a model file (.py, .pt2, .pte), for a board."""
    if isinstance(model, (str, Path)):
        source = frontends.load(str(model))
    elif inputs is None:
        raise CompileError("compile() needs example inputs for an nn.Module", need="a tuple of example tensors")
    else:
        source = frontends.from_module(model, inputs, name)
    return Model(pipeline.compile_source(source, load_board(board), optimize), toolchain, emulator)
