"""pull: rows of the model's input that the caller writes on request, instead of the whole image.

A plan gives no memory to an input that is only read by `pull`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from baretorch.ir.graph import Array, Graph, Op, Signature, Tensor
from baretorch.ops.helpers.check import need
from baretorch.ops.helpers.kernel import Call, Kernel, Params


@dataclass(frozen=True)
class Pull(Op, name="pull", in_order=True):
    """`count` rows of x[1, H, W, C], from row `first` on."""

    first: int
    count: int

    def infer(self, inputs: Sequence[Tensor]) -> tuple[Signature, ...]:
        (x,) = inputs
        need(
            len(x.shape) == 4 and x.shape[0] == 1 and 0 <= self.first < self.first + self.count <= x.shape[1],
            self,
            f"the image does not have {self.count} rows from row {self.first} on",
            inputs,
            "rows of one image, x[1, H, W, C]",
        )
        return (Signature((1, self.count, *x.shape[2:]), x.dtype, x.quant),)

    def reference(self, *inputs: Array) -> tuple[Array, ...]:
        return (inputs[0][:, self.first : self.first + self.count],)


def row_inputs(graph: Graph) -> set[str]:
    """Return the inputs that are only read by `pull`."""
    read = {name for node in graph.nodes if not isinstance(node.op, Pull) for name in node.inputs}
    asked = {name for node in graph.nodes if isinstance(node.op, Pull) for name in node.inputs}
    return asked & set(graph.inputs) - read - graph.kept


def _params(call: Call[Pull]) -> Params:
    return Params("bt_pull", (("first", call.op.first), ("count", call.op.count)))


KERNELS: tuple[Kernel[Pull], ...] = (Kernel("bt_pull_ref", "pull/ref.c", _params),)
