"""Rules that replace operators by their int8 forms: a rule adds nodes to the walk, or raises why the operator stays
float.

Rules are next to the int8 operators, and the table of operators (ops/__init__.py) lists them. They work with a `Walk`:
the graph so far, and every tensor as float, as int8, or as both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from baretorch.ir.graph import Array, DType, Graph, Node, Op, Quant, Shape, Tensor, fresh, with_data
from baretorch.ops.int8.arithmetic import dequantize, quantize_array
from baretorch.ops.int8.lookup import Lookup
from baretorch.ops.int8.quantize import FINER, Dequantize, Dequantize16, Narrow, Quantize, Quantize16, Widen
from baretorch.ops.layout import Permute, Reshape
from baretorch.ops.logic import Where


class StaysFloat(Exception):
    """The reason why an operator has no int8 form in this graph."""


class NoInt8(StaysFloat):
    """The reason why an operator has no int8 form in any graph."""


EVERY = np.arange(-128, 128, dtype=np.int8)  # all values of an int8
PRODUCT = 255 * 255  # the largest of two numbers less their zero points


@dataclass(frozen=True)
class ByteFunction:
    """A tensor as a function of another one: its values for each of the 256 numbers that the other can have."""

    of: str
    values: Array


@dataclass
class Walk:
    graph: Graph
    nodes: list[Node] = field(default_factory=list)
    new: dict[str, Tensor] = field(default_factory=dict)
    stored: dict[str, str] = field(default_factory=dict)  # tensor -> its int8 tensor
    wide: dict[str, str] = field(default_factory=dict)  # tensor -> its int16 tensor
    floats: set[str] = field(default_factory=set)  # tensors that exist as float
    cut: dict[str, str] = field(default_factory=dict)  # float inputs of the graph -> the same within their scale
    found: dict[str, Quant] = field(default_factory=dict)  # scales of tensors without a note
    functions: dict[str, ByteFunction] = field(default_factory=dict)  # tensors that are functions of another

    def __post_init__(self) -> None:
        self.floats.update(self.graph.inputs)
        self.floats.update(s.name for s in self.graph.state)
        self.floats.update(t.name for t in self.graph.tensors.values() if t.data is not None)
        self.uses = self.graph.uses()
        self.makers = {n: node for n, node in self.graph.producer().items() if self.graph[n].in_float is None}

    def tensor(self, name: str) -> Tensor:
        """Return a tensor of the graph so far, or of the graph before; an input may be int8 already."""
        return self.new.get(name) or self.graph[name]

    def quant(self, name: str) -> Quant | None:
        """Return the scale of the whole tensor, if it has one."""
        quant = self.found.get(name, self.graph[name].quant)
        return None if quant is None or quant.axis is not None else quant

    def scale(self, name: str) -> Quant:
        """Return the scale of the whole tensor. That of constants and functions is known without a measurement."""
        quant = self.quant(name)
        if quant is None:
            known = self.functions[name].values if name in self.functions else self.graph[name].data
            if known is None or known.dtype != np.float32 or not np.isfinite(known).all() or not known.size:
                raise StaysFloat(f"no int8 scale was measured for {name}")
            quant = self.found[name] = _scale_around(known)
        return quant

    def function(self, name: str) -> ByteFunction | None:
        """Return the tensor as a function of another one, or of itself if it has a scale and other nodes read it too.
        An int8 tensor of the graph is not a real number: its readers use the stored one."""
        quant = self.quant(name)
        if name in self.functions and (quant is None or len(self.uses[name]) == 1):
            return self.functions[name]
        if quant is None:
            return None
        whole = self.graph[name].dtype is DType.INT8
        return ByteFunction(name, EVERY if whole else dequantize(EVERY, quant.scale[0], quant.zero_point[0]))

    def deepest(self, name: str) -> ByteFunction | None:
        """Return the tensor as a function of another one if it is one, no matter which nodes read it."""
        return self.functions.get(name) or self.function(name)

    def add(self, op: Op, like: str, shape: Shape, quant: Quant | None, *inputs: str) -> str:
        """Add a node with a new int8 output, named after the tensor `like`, and return the output."""
        name = fresh(self.graph, self.new, f"{like}_int8")
        self.new[name] = replace(
            self.graph[like], name=name, dtype=DType.INT8, shape=shape, quant=quant, data=None, value=""
        )
        self.nodes.append(Node(op, inputs, (name,)))
        return name

    def emit(self, node: Node, op: Op, *inputs: str) -> None:
        """Add the int8 form of the node."""
        (out,) = node.outputs
        self.stored[out] = self.add(op, out, self.graph[out].shape, self.quant(out), *inputs)

    def same(self, node: Node, op: Op) -> None:
        """Add this operator on stored bytes, for one whose output consists of its inputs' own values. Inputs of other
        scales get the output's; an output without a scale gets theirs, or one that holds the constants too."""
        (out,) = node.outputs
        values = [n for n in node.inputs if self.graph[n].dtype is DType.FLOAT32]  # the rest: indices, conditions
        quants = [self.scale(n) for n in values if self.graph[n].data is None]
        if quants and self.quant(out) is None and all(q == quants[0] for q in quants):
            self.found[out] = quants[0]
            constants = [d for n in values if (d := self.graph[n].data) is not None and np.isfinite(d).all()]
            if not isinstance(op, Where):  # the constant may be a mask, which must not fit
                self.found[out] = _scale_holding(quants[0], constants)
        y = self.scale(out)
        self.emit(node, op, *(self.rescale(n, y) if n in values else self.real(n) for n in node.inputs))

    def view(self, op: Permute | Reshape, like: str, x: str) -> str:
        """Return an int8 tensor in another order or shape, or itself if that changes nothing."""
        t = self.tensor(x)
        (signature,) = op.infer([t])
        unmoved = isinstance(op, Reshape) or op.dims == tuple(range(len(op.dims)))
        if unmoved and signature.shape == t.shape:
            return x
        return self.add(op, like, signature.shape, t.quant, x)

    def int8(self, name: str) -> str:
        """Return the tensor as it is stored; quantize it here if it exists only as float."""
        if name not in self.stored:
            t, quant = self.graph[name], self.scale(name)
            scale, zero = quant.scale[0], quant.zero_point[0]
            if t.data is not None:
                self.stored[name] = self.constant(t, "int8", quantize_array(t.data, scale, zero))
            elif name in self.wide:
                self.stored[name] = self.add(Narrow(zero), name, t.shape, quant, self.wide[name])
            elif name in self.functions:
                function = self.functions[name]
                table = self.table(name, function.values, quant)
                self.stored[name] = self.add(Lookup(), name, t.shape, quant, self.int8(function.of), table)
            else:
                self.stored[name] = self.add(Quantize(scale, zero), name, t.shape, quant, name)
        return self.stored[name]

    def int16(self, name: str) -> str:
        """Return the tensor as int16: as it was made, or converted from the form that exists."""
        if name not in self.wide:
            t, quant = self.graph[name], self.scale(name)
            if name in self.floats and name not in self.stored and t.data is None:
                self.wide[name] = self.add_int16(Quantize16(self.finer_scale(name)), name, self.real(name))
            else:
                self.wide[name] = self.add_int16(Widen(quant.zero_point[0]), name, self.int8(name))
        return self.wide[name]

    def finer_scale(self, name: str) -> float:
        """Return the scale of the tensor as int16."""
        return self.scale(name).scale[0] / FINER

    def add_int16(self, op: Op, like: str, *inputs: str) -> str:
        """Add a node with a new int16 output in the finer scale of the tensor `like`, and return the output."""
        name = fresh(self.graph, self.new, f"{like}_int16")
        (signature,) = op.infer([self.tensor(n) for n in inputs])
        quant = Quant((self.finer_scale(like),), (0,))
        t = replace(self.graph[like], name=name, dtype=DType.INT16, shape=signature.shape, quant=quant)
        self.new[name] = replace(t, data=None, value="")
        self.nodes.append(Node(op, inputs, (name,)))
        return name

    def rescale(self, name: str, quant: Quant) -> str:
        """Return the tensor in another scale."""
        t = self.graph[name]
        if t.data is not None:
            return self.constant(t, "int8", quantize_array(t.data, quant.scale[0], quant.zero_point[0]))
        have = self.scale(name)
        if have == quant:
            return self.int8(name)
        values = dequantize(EVERY, have.scale[0], have.zero_point[0])
        return self.add(Lookup(), name, self.graph[name].shape, quant, self.int8(name), self.table(name, values, quant))

    def table(self, like: str, values: Array, quant: Quant) -> str:
        """Add a constant with the 256 results of a function, quantized with the scale `quant`; return its name."""
        return self.constant(self.graph[like], "table", quantize_array(values, quant.scale[0], quant.zero_point[0]))

    def real(self, name: str) -> str:
        """Return the tensor as float, or as it is stored if the graph has it as int8; dequantize it here if it exists
        only as int8."""
        if self.graph[name].dtype is DType.INT8:
            return self.stored.get(name, name)
        if name not in self.floats:
            quant = self.scale(name)
            op: Op = Dequantize(quant.scale[0], quant.zero_point[0])
            if name in self.wide:
                op = Dequantize16(self.finer_scale(name))
            self.nodes.append(Node(op, (self.wide.get(name) or self.stored[name],), (name,)))
            self.floats.add(name)
        return name

    def constant(self, like: Tensor, suffix: str, data: Array) -> str:
        dtype = DType.of(data.dtype.name)
        assert dtype is not None
        name = fresh(self.graph, self.new, f"{like.name}_{suffix}")
        self.new[name] = with_data(replace(like, name=name, dtype=dtype), data)
        return name


Int8Rule: TypeAlias = Callable[[Walk, Node], None]


def limits(lo: float, hi: float, quant: Quant) -> tuple[int, int]:
    """Return real limits as stored numbers."""
    low, high = quantize_array(np.array([lo, hi], np.float32), quant.scale[0], quant.zero_point[0])
    return int(low), int(high)


def fits_32_bits(largest: int) -> None:
    if largest >= 1 << 31:
        raise StaysFloat("its sums could leave 32 bits")


def _scale_holding(quant: Quant, constants: list[Array]) -> Quant:
    """Return this scale if it holds these constants, else one for its range and for them."""
    scale, zero = quant.scale[0], quant.zero_point[0]
    if all((np.abs(dequantize(quantize_array(d, scale, zero), scale, zero) - d) <= scale).all() for d in constants):
        return quant
    return _scale_around(np.concatenate([dequantize(EVERY, scale, zero), *(d.reshape(-1) for d in constants)]))


def _scale_around(values: Array) -> Quant:
    """Return a scale for these numbers and 0."""
    lo, hi = min(float(values.min()), 0.0), max(float(values.max()), 0.0)
    scale = (hi - lo) / 255 or 1.0
    return Quant((scale,), (-128 - round(lo / scale),))
