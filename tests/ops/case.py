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

from baretorch.ir import Array, Builder, DType, Graph, Op, Shape, interpret, verify
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.elementwise import Add, Clamp, Mul, Sigmoid, Tanh
from baretorch.ops.layout import Pad, Permute, Reshape
from baretorch.ops.linear import Linear
from baretorch.ops.move import Cat, Copy, Slice
from baretorch.ops.pool import AvgPool2d, MaxPool2d
from baretorch.ops.reduce import Mean
from baretorch.ops.softmax import Softmax

Inputs = Callable[[np.random.Generator], tuple[Array, ...]]

# How far a rung may be from the one above: |got - want| <= atol + rtol |want|.
TOLERANCE: dict[type[Op], tuple[float, float]] = {
    Linear: (1e-5, 1e-5),  # atol: sums of up to some hundred products of about 1, in another order than PyTorch's
    Conv2d: (1e-5, 1e-5),  # the same
    AvgPool2d: (1e-6, 1e-6),  # sums of a few dozen elements, as above
    Mean: (1e-6, 1e-6),  # as above
    Softmax: (2e-6, 1e-37),  # rtol: exp, sum and 1 / sum round; atol: results below FLT_MIN may become 0
    Tanh: (4e-7, 0.0),  # 3 ULP and PyTorch's own
    Sigmoid: (4e-7, 1e-37),  # the same; atol as in softmax
    Add: (0.0, 0.0),
    Mul: (0.0, 0.0),
    Clamp: (0.0, 0.0),
    MaxPool2d: (0.0, 0.0),
    Permute: (0.0, 0.0),
    Reshape: (0.0, 0.0),
    Pad: (0.0, 0.0),
    Slice: (0.0, 0.0),
    Cat: (0.0, 0.0),
    Copy: (0.0, 0.0),
}


@dataclass(frozen=True)
class Case:
    name: str
    op: Op
    inputs: Inputs
    torch: Callable[..., torch.Tensor]
    activations: int | None = None  # the inputs after that many are constants; None: all are activations

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
                dtype = DType.of(a.dtype.name)
                assert dtype is not None
                b.input(f"x{i}", a.shape, dtype)
            else:
                b.const(f"c{i}", a)
        names = tuple(b.tensors)
        out = b.add(self.op, *names, name="y")
        return verify(b.graph(names[:split], [out]))

    def check(self, got: Array, want: Array) -> None:
        """Shapes are equal, NaN and infinities are in the same places, the rest is within the op's tolerance."""
        rtol, atol = TOLERANCE[type(self.op)]
        assert got.dtype == want.dtype
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, err_msg=f"{self.name}: {self.op}")


def run_torch(cases: Sequence[Case]) -> list[Array]:
    """PyTorch eager: what is right."""
    with torch.no_grad():
        return [c.torch(*(torch.from_numpy(a.copy()) for a in c.arrays())).contiguous().numpy() for c in cases]


def run_reference(cases: Sequence[Case]) -> list[Array]:
    """The NumPy references, through the interpreter of Graphs."""
    outputs = []
    for c in cases:
        graph = c.graph()
        outputs.append(interpret(graph, c.arrays()[: len(graph.inputs)])[graph.outputs[0]])
    return outputs


def normal(*shapes: Shape) -> Inputs:
    return lambda rng: tuple(rng.standard_normal(s).astype(np.float32) for s in shapes)


def spoiled(*shapes: Shape) -> Inputs:
    """As `normal`, but some of the first input's elements are NaN or infinite."""

    def build(rng: np.random.Generator) -> tuple[Array, ...]:
        arrays = normal(*shapes)(rng)
        flat = arrays[0].reshape(-1)
        for value in (np.nan, np.inf, -np.inf):
            flat[rng.integers(flat.size)] = value
        return arrays

    return build


def counted(dtype: str, *shapes: Shape) -> Inputs:
    """Any type: small different numbers."""
    return lambda rng: tuple(rng.integers(0, 100, s).astype(dtype) for s in shapes)


def values(*rows: npt.ArrayLike) -> Inputs:
    """These very numbers, one argument per input."""
    return lambda rng: tuple(np.array(r, np.float32) for r in rows)
