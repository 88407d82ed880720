"""Converts a traced run to a Graph. TABLE maps each method of Tensor, and each layer of tinygrad.nn, to its
lowering."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from baretorch.errors import CompileError, InternalError
from baretorch.frontends.aten.promotion import cast
from baretorch.frontends.lowering import DTYPES, Lowering, Result, known_value, unsupported
from baretorch.frontends.tinygrad import math, moves, nn
from baretorch.frontends.tinygrad.trace import TinygradCall, Trace, is_tinygrad_tensor, tensors
from baretorch.ir.graph import Array, Builder, DType, Graph, Origin
from baretorch.ir.verify import verify

TABLE: Mapping[str, Callable[..., Result]] = {**math.ROWS, **moves.ROWS, **nn.ROWS}

# Methods that move constants run in NumPy: without a compiler, tinygrad takes a second to transpose a weight.
MOVED = ("transpose", "permute", "reshape", "view", "flatten", "unsqueeze", "squeeze")


UNSEEN = "?"  # in the place of a method's name


@dataclass
class TinyLowering(Lowering):
    """A Lowering with the graph's tensor for each value. `keys` has the value of every Tensor after the run,
    `parameters` the names of those that the model holds."""

    trace: Trace
    keys: Mapping[int, Any]
    parameters: Mapping[Any, str]
    values: dict[Any, str] = field(default_factory=dict)
    moved: dict[Any, TinygradCall] = field(default_factory=dict)

    def key(self, tensor: Any) -> Any:
        return self.keys.get(id(tensor), tensor.uop)

    def resolve(self, arg: Any) -> Any:
        """Convert an argument for a row."""
        if is_tinygrad_tensor(arg):
            return self.value(arg)
        if isinstance(arg, (tuple, list)):
            return type(arg)(map(self.resolve, arg))
        if type(arg).__module__ == "tinygrad.dtype":
            return label(arg)
        if type(arg).__name__ == "UOp":
            raise CompileError("a size that is not known before the run is not supported", have=str(arg)[:60])
        return arg.item() if isinstance(arg, np.generic) else arg

    def value(self, tensor: Any) -> str:
        """Return the name of a Tensor's value: computed before, or a constant on its first use."""
        key = self.key(tensor)
        if key not in self.values:
            if self.trace.depends(tensor):
                raise _unsupported([_maker(self.trace, tensor, str(self.b.origin))])
            self.values[key] = self.b.const(self._name(tensor), self._constant(tensor, key))
        return self.values[key]

    def _constant(self, tensor: Any, key: Any) -> Array:
        call = self.moved.get(key)
        if call is not None:
            known = known_value(self, str(TABLE[call.name](self, *map(self.resolve, call.args))))
            if known is not None:
                return known
        kind = label(tensor.dtype)
        if DType.of(kind) is None:
            tensor = tensor.float()
        return np.array(tensor.numpy())

    def parameter(self, tensor: Any) -> str:
        """Return the name of a parameter that a constant is computed from, or an empty text."""
        inside = self.key(tensor).toposort()
        return next((name for uop, name in self.parameters.items() if uop in inside), "")

    def _name(self, tensor: Any) -> str:
        return self.parameter(tensor) or (f"{self.b.origin.path}_constant" if self.b.origin.path else "constant")


def to_graph(trace: Trace, outputs: Sequence[Any], parameters: Mapping[str, Any], name: str) -> Graph:
    """Return the Graph of a traced run. One error names everything that cannot be lowered."""
    held = [v for c in trace.calls for a in c.args[:1] if is_layer(a) for v in vars(a).values()]
    seen = [
        *parameters.values(),
        *tensors(held),
        *trace.inputs,
        *tensors([(c.args, dict(c.named), c.results) for c in trace.calls]),
        *outputs,
    ]
    keys = {id(t): t.uop for t in seen}
    calls = list(_needed_calls(trace, outputs, keys))
    b = Builder(name)
    g = TinyLowering(b, trace, keys, {t.uop.base: n for n, t in parameters.items() if t.uop.base.op.name != "CONST"})
    g.moved = {keys[id(c.results[0])]: c for c in trace.calls if c.name in MOVED and c.results}
    inputs = [b.input(f"x{i}" if i else "x", tuple(t.shape), dtype_of(t)) for i, t in enumerate(trace.inputs)]
    g.values |= {g.key(t): x for t, x in zip(trace.inputs, inputs, strict=True)}
    count: dict[str, int] = {}
    for call in calls:
        b.origin = Origin(_path(g, call, count), call.line)
        try:
            args, named = map(g.resolve, call.args), {n: g.resolve(v) for n, v in call.named.items()}
            made = TABLE[call.name](g, *args, **named)
        except CompileError as error:
            error.at = error.at or (str(b.origin),)
            raise
        for tensor, result in zip(call.results, (made,) if isinstance(made, str) else made, strict=True):
            if g.shape(result) != tuple(tensor.shape):
                raise InternalError(f"{call.name} gave {g[result]}, tinygrad says {list(tensor.shape)}")
            g.values.setdefault(g.key(tensor), cast(g, result, dtype_of(tensor)))
    b.origin = Origin()
    return verify(b.graph(inputs, [g.value(t) for t in outputs]))


def _needed_calls(trace: Trace, outputs: Sequence[Any], keys: Mapping[int, Any]) -> Iterator[TinygradCall]:
    """Yield the calls that compute new values from the inputs. Raises CompileError if such a value has another source:
    a method that is not in TABLE, or one that was not recorded."""
    live = {keys[id(t)] for t in trace.inputs}
    lost: dict[str, None] = {}
    needed = []

    def strange(tensor: Any) -> bool:
        return keys[id(tensor)] not in live and trace.depends(tensor)

    for call in trace.calls:
        given = [*tensors((call.args, dict(call.named)))]
        odd = [t for t in given if strange(t)]
        for t in odd:
            lost[f"{call.outer}: {call.line}" if call.outer else _maker(trace, t, call.line)] = None
        if odd or any(keys[id(t)] in live for t in given):
            if not live.issuperset(keys[id(t)] for t in call.results):
                needed.append(call)
            live |= {keys[id(t)] for t in call.results}
    lost |= {_maker(trace, t, "the output"): None for t in outputs if strange(t)}
    if lost:
        raise _unsupported(list(lost))
    yield from needed


def _maker(trace: Trace, tensor: Any, reader: str) -> str:
    """Return the outermost method that computed a value, or else the one that reads it."""
    found = [c for c in trace.looked_into if any(r.uop is tensor.uop for r in c.results)]
    return f"{found[-1].name}: {found[-1].line}" if found else f"{UNSEEN}: {reader}"


def _unsupported(lost: Sequence[str]) -> CompileError:
    names = sorted({text.partition(":")[0] for text in lost} - {UNSEEN})
    if not names:
        return CompileError(
            "the model computes with more than methods of Tensor: "
            "no recorded method returned a value that depends on its input",
            at=[text.removeprefix(f"{UNSEEN}: ") for text in lost],
            try_="methods of Tensor instead of UOps and kernels of your own",
        )
    at, hint = (
        [text for text in lost if not text.startswith(UNSEEN)],
        "docs/reference/tinygrad.md lists what is supported",
    )
    return unsupported(names, at, hint, "method of Tensor", "methods of Tensor")


def _path(g: TinyLowering, call: TinygradCall, count: dict[str, int]) -> str:
    """Return a layer's name: that of the object that holds its parameters, or the method's name with a number."""
    held = [v for a in call.args[:1] if is_layer(a) for v in vars(a).values()]
    for t in tensors([call.args, dict(call.named), held]):
        name = g.parameter(t) if g.key(t) not in g.values or g[g.values[g.key(t)]].data is not None else ""
        if name:
            path = name.rpartition(".")[0] or name
            break
    else:
        path = call.name.strip("_")
    count[path] = count.get(path, 0) + 1
    return path if count[path] == 1 else f"{path}_{count[path]}"


def is_layer(value: Any) -> bool:
    """Report whether it is a layer of tinygrad.nn, or of a subclass."""
    return any(c.__module__ == "tinygrad.nn" for c in type(value).__mro__)


def label(dtype: Any) -> str:
    """Return NumPy's name of a tinygrad type."""
    from tinygrad.dtype import _to_np_dtype, dtypes, strong_dtype

    if dtype in dtypes.weaks:
        dtype = strong_dtype(dtype)
    found = _to_np_dtype(dtype)
    return str(dtype.name) if found is None else np.dtype(found).name


def dtype_of(tensor: Any) -> DType:
    found = DType.of(label(tensor.dtype))
    if found is None:
        raise CompileError(f"{label(tensor.dtype)} is not supported", need=DTYPES, try_="x.float() in the model")
    return found
