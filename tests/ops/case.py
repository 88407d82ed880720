"""A Case is an operator on some inputs, with PyTorch's way to compute the same; a rung is a way to run a list of them.

Every rung is one function from a list of Cases to their outputs, so that a further place to run (an emulated CPU)
is one further function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import numpy.typing as npt
import torch

from baretorch.ir.graph import Array, Builder, DType, Graph, Op, Shape, interpret
from baretorch.ir.verify import verify
from baretorch.ops.halves import FromHalf

Inputs = Callable[[np.random.Generator], tuple[Array, ...]]
Outputs = tuple[Array, ...]
EXACT = (0.0, 0.0)


@dataclass(frozen=True)
class Case:
    name: str
    op: Op
    inputs: Inputs
    torch: Callable[..., torch.Tensor | tuple[torch.Tensor, ...]]
    activations: int | None = None  # the inputs after that many are constants; None: all are activations
    tolerance: tuple[float, float] = EXACT  # |got - want| <= atol + rtol |want|, for (rtol, atol)

    def arrays(self) -> tuple[Array, ...]:
        """The inputs, the same every time."""
        return self.inputs(np.random.default_rng(crc32(self.name.encode())))

    def graph(self) -> Graph:
        """The case as a model of one node."""
        b = Builder(self.name)
        arrays = self.arrays()
        split = len(arrays) if self.activations is None else self.activations
        for i, a in enumerate(arrays):
            if i < split:
                dtype = self.op.takes if isinstance(self.op, FromHalf) else DType.of(a.dtype.name)
                assert dtype is not None
                b.input(f"x{i}", a.shape, dtype)
            else:
                b.const(f"c{i}", a)
        names = tuple(b.tensors)
        outputs = b.add_many(self.op, *names)
        return verify(b.graph(names[:split], outputs))

    def check(self, got: Outputs, want: Outputs) -> None:
        """Shapes and types are equal, NaN and infinities are in the same places, the rest is within the tolerance."""
        rtol, atol = self.tolerance
        assert len(got) == len(want)
        for have, need in zip(got, want, strict=True):
            assert (have.dtype, have.shape) == (need.dtype, need.shape)
            np.testing.assert_allclose(have, need, rtol=rtol, atol=atol, err_msg=f"{self.name}: {self.op}")


def run_torch(cases: Sequence[Case]) -> list[Outputs]:
    """PyTorch eager: what is right."""
    with torch.no_grad():
        return [_arrays(c.torch(*(torch.from_numpy(a.copy()) for a in c.arrays()))) for c in cases]


def _arrays(result: torch.Tensor | tuple[torch.Tensor, ...]) -> Outputs:
    tensors = (result,) if isinstance(result, torch.Tensor) else result
    return tuple(t.contiguous().numpy() for t in tensors)


def run_reference(cases: Sequence[Case]) -> list[Outputs]:
    """The NumPy references, through the interpreter of Graphs."""
    outputs = []
    for c in cases:
        graph = c.graph()
        values = interpret(graph, c.arrays()[: len(graph.inputs)])
        outputs.append(tuple(values[name] for name in graph.outputs))
    return outputs


def nchw(x: torch.Tensor) -> torch.Tensor:
    return x.permute(0, 3, 1, 2)


def nhwc(x: torch.Tensor) -> torch.Tensor:
    return x.permute(0, 2, 3, 1)


def normal(*shapes: Shape) -> Inputs:
    return lambda rng: tuple(rng.standard_normal(s).astype(np.float32) for s in shapes)


def spoiled(*shapes: Shape) -> Inputs:
    """Return inputs like `normal`, but with some NaN or infinite elements in the first input."""

    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        arrays = normal(*shapes)(rng)
        flat = arrays[0].reshape(-1)
        for value in (np.nan, np.inf, -np.inf):
            flat[rng.integers(flat.size)] = value
        return arrays

    return build


def negative_nan(*shapes: Shape) -> Inputs:
    """Return inputs like `normal`, but with one NaN in the first input whose sign bit is set, as x86 makes them."""

    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        arrays = normal(*shapes)(rng)
        flat = arrays[0].reshape(-1)
        flat[rng.integers(flat.size)] = -np.float32(np.nan)
        return arrays

    return build


def counted(dtype: str, *shapes: Shape) -> Inputs:
    """Any type: small different numbers."""
    return lambda rng: tuple(rng.integers(0, 100, s).astype(dtype) for s in shapes)


def values(*rows: npt.ArrayLike) -> Inputs:
    """These very numbers, one argument per input."""
    return lambda rng: tuple(np.array(r, np.float32) for r in rows)
