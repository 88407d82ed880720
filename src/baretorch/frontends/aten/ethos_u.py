"""The row of the ATen table for delegates that ExecuTorch compiled for an Ethos-U: opaque command streams.

It means what the NPU does with it, and that is what the emulated one is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten.rows import AtenRow
from baretorch.frontends.lowering import Lowering
from baretorch.ir.graph import Array, DType, Graph, Shape, Tensor
from baretorch.machines.npu.faults import NpuFault
from baretorch.machines.npu.interpreter import run_payload
from baretorch.npu.accelerators import by_config
from baretorch.npu.payload import SCRATCH, Payload, Slot
from baretorch.ops.delegate import MOST_PARTS, Computes, Delegate, DelegatePort
from baretorch.ops.move import Cat, Slice

TARGET = "ethos_u::delegate"
REMEMBERED = 8  # answers; several passes are asked for the same inputs


def delegate(
    g: Lowering,
    commands: str,
    weights: str,
    config: int,
    scratch: int,
    xs: Sequence[str],
    x_places: Sequence[int],
    y_shapes: Sequence[Shape],
    y_places: Sequence[int],
) -> str | tuple[str, ...]:
    """Lower a delegate. Tensors are int8 in memory layout; the places are offsets in the scratch."""
    if len(xs) > MOST_PARTS or len(y_shapes) > MOST_PARTS:
        raise CompileError(
            f"a delegate has {len(xs)} inputs and {len(y_shapes)} outputs", need=f"at most {MOST_PARTS} of each"
        )
    accelerator = by_config(config)
    assert accelerator is not None, f"{config:#x}"
    stream, constants = (g.constant(name, "a command stream").tobytes() for name in (commands, weights))
    inputs = _parts([g.shape(x) for x in xs], x_places)
    outputs = _parts(y_shapes, y_places)
    slots = (tuple(Slot(p.shape, 1, SCRATCH, p.scratch or 0) for p in parts) for parts in (inputs, outputs))
    payload = Payload(accelerator, stream, constants, scratch, 0, *slots)
    op = Delegate(
        (f"a delegate for {accelerator.name}",),
        scratch,
        "",
        config,
        _region_graph(inputs, outputs),
        inputs,
        outputs,
        _emulate(payload),
    )
    x = xs[0] if len(xs) == 1 else g.b.add(Cat(0), *(g.reshape(x, (prod(g.shape(x)),)) for x in xs))
    y = g.b.add(op, x, commands, weights)
    if len(outputs) == 1:
        return y
    return tuple(g.reshape(g.b.add(Slice(0, p.offset, p.end), y), p.shape) for p in outputs)


def _parts(shapes: Sequence[Shape], places: Sequence[int]) -> tuple[DelegatePort, ...]:
    """Return the parts of a scratch, one after the other."""
    ends = np.cumsum([prod(shape) for shape in shapes])
    starts = [0, *(int(end) for end in ends[:-1])]
    return tuple(DelegatePort(tuple(s), at, place) for s, at, place in zip(shapes, starts, places, strict=True))


def _region_graph(inputs: Sequence[DelegatePort], outputs: Sequence[DelegatePort]) -> Graph:
    """Return a graph with the only known facts of the region: its inputs and outputs."""
    xs = {f"x{i}": p.shape for i, p in enumerate(inputs)}
    ys = {f"y{i}": p.shape for i, p in enumerate(outputs)}
    tensors = {name: Tensor(name, shape, DType.INT8) for name, shape in {**xs, **ys}.items()}
    return Graph("delegate", tensors, (), tuple(xs), tuple(ys))


def _emulate(payload: Payload) -> Computes:
    @lru_cache(REMEMBERED)
    def answers(given: tuple[bytes, ...]) -> tuple[bytes, ...]:
        try:
            return tuple(run_payload(payload, given))
        except NpuFault as fault:
            raise CompileError(
                "a delegate's command stream fails on the emulated NPU",
                have=str(fault),
                need="a stream that Vela made, as ExecuTorch stores it",
                try_="export the model again, with another version of ethos-u-vela",
            ) from None

    def computes(inputs: Sequence[Array]) -> list[Array]:
        made = answers(tuple(x.tobytes() for x in inputs))
        return [np.frombuffer(y, np.int8).reshape(p.shape) for y, p in zip(made, payload.outputs, strict=True)]

    return computes


ROWS: dict[str, AtenRow] = {TARGET: AtenRow(delegate, (Delegate,))}
