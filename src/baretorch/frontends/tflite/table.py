"""Maps each builtin operator of TensorFlow Lite to a row, and a file to a Graph."""

from __future__ import annotations

from collections.abc import Sequence

from baretorch.errors import CompileError
from baretorch.frontends.lowering import unsupported
from baretorch.frontends.tflite import composite, elementwise, layers, reduce, shapes, signal, state
from baretorch.frontends.tflite.lowering import LoweredFile, TfliteRow, lower_operators
from baretorch.frontends.tflite.schema import Subgraph, TfModel, TfOperator
from baretorch.frontends.untrusted import ROOM, Made, check_folded, most_bytes, too_large
from baretorch.ir.graph import Graph

TABLE: dict[str, TfliteRow] = {
    **layers.ROWS,
    **elementwise.ROWS,
    **reduce.ROWS,
    **shapes.ROWS,
    **state.ROWS,
    **composite.ROWS,
}
CUSTOM: dict[str, TfliteRow] = signal.ROWS  # by the names that TensorFlow Lite Micro gives them

# What LiteRT has in float or integers only, and of the rest what stays float in an int8 model.
_NOT_INT8 = """
ADD_N ARG_MAX ARG_MIN ASSIGN_VARIABLE ATAN2 CALL_ONCE CAST CEIL COS CUMSUM DEQUANTIZE DIV EMBEDDING_LOOKUP FILL FLOOR
FLOOR_DIV FLOOR_MOD L2_POOL_2D LOG LOGICAL_AND LOGICAL_NOT LOGICAL_OR NEG POW READ_VARIABLE REDUCE_ALL REDUCE_ANY
REDUCE_PROD RELU_0_TO_1 ROUND SCATTER_ND SHAPE SIGN SIN SQRT SQUARE TOPK_V2 VAR_HANDLE ZEROS_LIKE
"""
NOT_INT8 = frozenset(_NOT_INT8.split())


def to_graph(model: TfModel, subgraph: Subgraph, name: str) -> LoweredFile:
    """Return the Graph of a subgraph; one error names all operators that it cannot lower."""
    unknown = [
        (s, o) for s in model.within(subgraph) for o in s.operators if o.name not in (CUSTOM if o.custom else TABLE)
    ]
    if unknown:
        raise _unsupported(unknown)
    rows = {**TABLE, **CUSTOM}
    return lower_operators(rows, model, subgraph, name, subgraph.operators, subgraph.inputs, subgraph.outputs)


def layer_graph(model: TfModel, subgraph: Subgraph, operator: TfOperator) -> Graph:
    """Return one operator as a Graph of its own; everything that it reads and that is not constant is an input."""
    tensors = subgraph.tensors
    inputs = [
        i for i in dict.fromkeys(operator.inputs) if i >= 0 and tensors[i].data is None and not tensors[i].variable
    ]
    return lower_operators(TABLE, model, subgraph, "layer", [operator], inputs, operator.outputs).graph


def known_ahead(subgraph: Subgraph) -> set[int]:
    """Return constants, and values computed only from them and from shapes."""
    known = {t.index for t in subgraph.tensors if t.data is not None}
    for o in subgraph.operators:
        if o.name == "SHAPE" or (o.inputs and all(i in known or i < 0 for i in o.inputs)):
            known.update(o.outputs)
    return known


def check_sizes(model: TfModel, subgraph: Subgraph) -> None:
    """Raise CompileError if a tensor, or a value computed from constants, is unreasonably large."""
    for each in model.within(subgraph):
        _check_sizes(each)


def _check_sizes(subgraph: Subgraph) -> None:
    tensors = subgraph.tensors
    for t in tensors:
        if (size := most_bytes(t.shape)) > ROOM:
            raise too_large(f"{t} takes {size:,} bytes", trust=True)
    made = (
        Made(o.outputs, [i for i in o.inputs if i >= 0], sum(most_bytes(tensors[i].shape) for i in o.outputs))
        for o in subgraph.operators
    )
    check_folded(made, (t.index for t in tensors if t.data is not None), sum(len(t.data or b"") for t in tensors))


def _unsupported(operators: Sequence[tuple[Subgraph, TfOperator]]) -> CompileError:
    names = sorted({f"{o.name} (custom)" if o.custom else o.name for _, o in operators})
    at = [f"{o.name}: {', '.join(str(subgraph.tensors[i]) for i in o.outputs[:2])}" for subgraph, o in operators]
    try_ = ["`baretorch ops` and docs/reference/tflite.md list what is supported"]
    if any(o.custom for _, o in operators):
        try_.insert(0, "convert it with builtin operators only (without SELECT_TF_OPS and custom operators)")
    return unsupported(names, at[:12], try_)
