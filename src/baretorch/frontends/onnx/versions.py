"""Rewrites a model of opset 6 to 13 in the form of opset 14, which the rows of the table read.

Most operators only gained types or optional attributes in these versions. REWRITES lists the others: attributes that
became inputs, operators that were renamed, and operators whose meaning changed. Before version 11, ConvTranspose's
description swaps the two halves of an odd padding; onnxruntime computes all versions as version 11 describes it.
onnx.reference takes BatchNormalization before opset 14 as training, which is why opset 13 is rewritten too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias

import onnx
from onnx import AttributeProto, helper

from baretorch.errors import CompileError
from baretorch.frontends.onnx.lowering import opsets_of
from baretorch.frontends.onnx.order import graphs_in, reads

OLDEST = 6  # opset that is read
FORM = 14  # opset of the result
DIMENSIONS = 64  # more than a tensor has
LIMITS = (-3.4028234663852886e38, 3.4028234663852886e38)  # what Clip limits to if nothing is stated
VALUES = {  # attributes of Constant, which may also refer to an attribute of the function around it
    AttributeProto.INT: "value_int",
    AttributeProto.INTS: "value_ints",
    AttributeProto.FLOAT: "value_float",
    AttributeProto.FLOATS: "value_floats",
}
Rewrite: TypeAlias = "Callable[[Rewriting], None]"


def upgrade(model: Any) -> Any:
    """Return the model in the form of opset 14 or later; the model itself if it has that form."""
    default = opsets_of(model).get("", FORM)
    versions = [opsets_of(f).get("", default) for f in model.functions]
    if all(version >= FORM for version in (default, *versions)):
        return model
    made = onnx.ModelProto()
    made.CopyFrom(model)
    names = {*_names(made.graph), *(name for f in made.functions for node in f.node for name in _node_names(node))}
    outputs = [o.name for o in made.graph.output]
    for part, nodes, results, version in (
        (made, made.graph, outputs, default),
        *((f, f, f.output, version) for f, version in zip(made.functions, versions, strict=True)),
    ):
        if version < FORM:
            _upgrade_nodes(nodes, results, names, version)
            for o in part.opset_import:
                o.version = FORM if o.domain in ("", "ai.onnx") else o.version
    return made


def _names(graph: Any) -> Iterator[str]:
    """Yield all names of values in a graph, and in the graphs inside it."""
    yield from (v.name for v in (*graph.initializer, *graph.input))
    yield from (name for node in graph.node for name in _node_names(node))


def _node_names(node: Any) -> Iterator[str]:
    yield from (*node.input, *node.output)
    for graph in graphs_in(node):
        yield from _names(graph)


@dataclass
class Rewriting:
    """The rewriting of a node of an older version. The nodes that replace it are added to `made`. All have its name, so
    that layers and errors are called as in the file. `names` are those of all values of the model, `used` those that
    are read."""

    node: Any
    version: int
    names: set[str]
    used: set[str]
    made: list[Any]

    def attribute(self, name: str) -> Any:
        """Remove and return an AttributeProto; None if the node does not have it."""
        found = next((a for a in self.node.attribute if a.name == name), None)
        if found is not None:
            self.node.attribute.remove(found)
        return found

    def value(self, name: str, default: Any) -> Any:
        """Remove an attribute and return its value, which the rewriting depends on."""
        a = self.attribute(name)
        if a is not None and a.ref_attr_name:
            raise self.refuse(f"{name} is a parameter of a function", "a number or text")
        return default if a is None else helper.get_attribute_value(a)

    def refuse(self, what: str, need: str) -> CompileError:
        """Return the error for what has no equivalent."""
        op, name = self.node.op_type, self.node.name or next(filter(None, self.node.output), "")
        return CompileError(
            f"{op} of an old opset: {what}, which is not supported",
            at=f"{name}: {op}",
            need=need,
            try_="opset_version=13 or later in the exporter",
        )

    def fresh(self, what: str) -> str:
        """Return a new name for a value."""
        made = first = f"{next(filter(None, self.node.output), self.node.op_type)}/{what}"
        for i in count(1):
            if made not in self.names:
                break
            made = f"{first}_{i}"
        self.names.add(made)
        return made

    def add(self, op: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one result, and return the result's name."""
        result = self.fresh(op.lower())
        self.made.append(helper.make_node(op, inputs, [result], self.node.name, **attributes))
        return result

    def input_of(self, attribute: Any) -> str:
        """Add a constant with the value of an attribute, and return its name; nothing for None."""
        if attribute is None:
            return ""
        result = self.add("Constant")
        value = self.made[-1].attribute.add()
        value.CopyFrom(attribute)
        value.name = VALUES[attribute.type]
        return result

    def keep(self, op: str = "", inputs: Sequence[str] | None = None, **attributes: Any) -> None:
        """Add the node itself, as another operator, with other inputs or with further attributes."""
        self.node.op_type = op or self.node.op_type
        if inputs is not None:
            del self.node.input[:]
            self.node.input.extend(inputs)
            while self.node.input and not self.node.input[-1]:
                del self.node.input[-1]
        self.node.attribute.extend(helper.make_attribute(k, v) for k, v in attributes.items())
        self.made.append(self.node)


def _upgrade_nodes(graph: Any, outputs: Sequence[str], names: set[str], version: int) -> None:
    """Rewrite the nodes of a graph or function with these outputs, and those of the graphs inside it."""
    nodes = [onnx.NodeProto.FromString(node.SerializeToString()) for node in graph.node]
    used = set(outputs).union(*map(reads, nodes))
    made = list[Any]()
    for node in nodes:
        for inside in graphs_in(node):
            _upgrade_nodes(inside, [o.name for o in inside.output], names, version)
        before, rewrite = REWRITES.get(node.op_type, (0, None))
        if rewrite is None or version >= before or node.domain not in ("", "ai.onnx"):
            made.append(node)
        else:
            rewrite(Rewriting(node, version, names, used, made))
    del graph.node[:]
    graph.node.extend(made)


# --- rewritings ---------------------------------------------------------------------------------------------


def to_inputs(*attributes: str) -> Rewrite:
    """Make a rewriting for attributes that became the inputs after the first one."""

    def rewrite(r: Rewriting) -> None:
        r.keep(inputs=[r.node.input[0], *(r.input_of(r.attribute(name)) for name in attributes)])

    return rewrite


def without(*attributes: str) -> Rewrite:
    """Make a rewriting for attributes that have no meaning for a compiler, or no longer one."""

    def rewrite(r: Rewriting) -> None:
        for name in attributes:
            r.attribute(name)
        r.keep()

    return rewrite


def broadcast(r: Rewriting) -> None:
    """Rewrite an operator whose second input was broadcast from a given axis of the first one on."""
    axis = r.value("axis", None)
    if r.value("broadcast", 0) and axis is not None:
        align(r, axis)
    else:
        r.keep()


def align(r: Rewriting, axis: int) -> None:
    """Append dimensions of 1 to the second input, so that its first one is at an axis of the first input."""
    x, y = r.node.input
    if abs(axis) > DIMENSIONS:
        raise r.refuse(f"axis is {axis}", "an axis of the first input")
    shape = r.add("Shape", y)
    end = r.add("Constant", value_ints=[abs(axis)])
    if axis >= 0:
        end = r.add("Sub", r.add("Shape", r.add("Shape", x)), end)
    one = helper.make_tensor("one", onnx.TensorProto.INT64, [1], [1])
    ones = r.add("ConstantOfShape", r.add("Sub", end, r.add("Shape", shape)), value=one)
    r.keep(inputs=[x, r.add("Reshape", y, r.add("Concat", shape, ones, axis=0))])


def clip(r: Rewriting) -> None:
    """Rewrite Clip. A limit at the largest or smallest number of float32 is none."""
    limits = [r.attribute(name) for name in ("min", "max")]
    open_ = [a is not None and not a.ref_attr_name and a.f == end for a, end in zip(limits, LIMITS, strict=True)]
    r.keep(inputs=[r.node.input[0], *("" if o else r.input_of(a) for a, o in zip(limits, open_, strict=True))])


def top_k(r: Rewriting) -> None:
    r.keep(inputs=[r.node.input[0], r.add("Constant", value_ints=[r.value("k", 0)])])


def along_axis(r: Rewriting) -> None:
    """Rewrite Softmax, LogSoftmax and Hardmax, which took all dimensions from the axis on as one."""
    (x,), (y,), axis = r.node.input, r.node.output, r.attribute("axis")
    if axis is not None and not axis.ref_attr_name and axis.i == -1:
        r.keep(axis=-1)
        return
    shape, flat = r.add("Shape", x), r.add("Flatten", x)
    if axis is not None:
        r.made[-1].attribute.append(axis)
    r.node.output[0] = r.fresh("rows")
    r.keep(inputs=[flat], axis=-1)
    r.made.append(helper.make_node("Reshape", [r.node.output[0], shape], [y], r.node.name, allowzero=1))


def dropout(r: Rewriting) -> None:
    """Rewrite Dropout, which returned its input. What the mask was then is stated nowhere; most files name it without
    reading it."""
    r.attribute("ratio")
    if not r.value("is_test", r.version > 6):
        raise r.refuse("it is in training mode", "is_test 1")
    if any(name in r.used for name in r.node.output[1:]):
        raise r.refuse("its mask is read", "its first output only")
    del r.node.output[1:]
    r.keep()


def batch_norm(r: Rewriting) -> None:
    """Rewrite BatchNormalization, which trained if it had more than one output, and which without `spatial` had a mean
    and a variance for each element of a sample."""
    if any(r.node.output[1:]):
        raise r.refuse("it has the outputs of training", "one output")
    if not r.value("is_test", r.version > 6):
        raise r.refuse("it is in training mode", "is_test 1")
    del r.node.output[1:]
    if r.value("spatial", 1):
        r.keep()
        return
    x, scale, bias, mean, var = r.node.input
    epsilon = r.input_of(r.attribute("epsilon")) or r.add("Constant", value_float=1e-5)
    factor = r.add("Div", scale, r.add("Sqrt", r.add("Add", var, epsilon)))
    rest = r.add("Sub", bias, r.add("Mul", mean, factor))
    del r.node.attribute[:]
    r.keep("Add", [r.add("Mul", x, factor), rest])


def resize(r: Rewriting) -> None:
    """Rewrite Resize and Upsample, whose positions count from the first element. Resize took the nearest element before
    a position where an axis becomes longer, and the one after it where it becomes shorter, so that takes two nodes."""
    x, mode = r.node.input[0], r.value("mode", b"nearest").decode("utf-8", "replace")
    if r.version > 6:
        scales = r.input_of(r.attribute("scales")) or r.node.input[1]
    else:
        scales = r.add("Constant", value_floats=[1.0, 1.0, r.value("height_scale", 1.0), r.value("width_scale", 1.0)])
    where = {"mode": mode, "coordinate_transformation_mode": "asymmetric"}
    if mode == "nearest" and r.node.op_type == "Resize":
        one = r.add("Constant", value_floats=[1.0])
        x = r.add("Resize", x, "", r.add("Max", scales, one), nearest_mode="floor", **where)
        scales = r.add("Min", scales, one)
    if mode == "nearest":
        where["nearest_mode"] = "ceil" if r.node.op_type == "Resize" else "floor"
    r.keep("Resize", [x, "", scales], **where)


def scan(r: Rewriting) -> None:
    """Rewrite Scan, which ran over each sample of a batch separately, as one Scan over the samples around another."""
    lengths, *inputs = r.node.input
    if lengths:
        raise r.refuse("it has sequence_lens", "sequences of equal length")
    directions = r.attribute("directions")
    given, made = [r.fresh("sample") for _ in inputs], [r.fresh("result") for _ in r.node.output]
    each = onnx.NodeProto.FromString(r.node.SerializeToString())
    for names, own in ((each.input, given), (each.output, made)):
        del names[:]
        names.extend(own)
    if directions is not None:
        directions.name = "scan_input_directions"
        each.attribute.append(directions)
    values = ([helper.make_empty_tensor_value_info(name) for name in some] for some in (given, made))
    body = helper.make_graph([each], "samples", *values)
    del r.node.attribute[:]
    r.keep(inputs=inputs, num_scan_inputs=len(inputs), body=body)


REWRITES: Mapping[str, tuple[int, Rewrite]] = {  # the opset before which an operator needs it
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Pow"), (7, broadcast)),
    **dict.fromkeys(("And", "Or", "Xor", "Equal", "Greater", "Less"), (7, broadcast)),
    "PRelu": (7, lambda r: align(r, 1)),
    "Gemm": (7, without("broadcast")),
    **dict.fromkeys(("RNN", "GRU", "LSTM"), (7, without("output_sequence"))),
    "Scan": (9, scan),
    "BatchNormalization": (14, batch_norm),
    "Slice": (10, to_inputs("starts", "ends", "axes")),
    "TopK": (10, top_k),
    "Clip": (11, clip),
    "Pad": (11, to_inputs("pads", "value")),
    "Resize": (11, resize),
    "Dropout": (12, dropout),
    "Upsample": (13, resize),
    "Scatter": (13, lambda r: r.keep("ScatterElements")),
    **dict.fromkeys(("Softmax", "LogSoftmax", "Hardmax"), (13, along_axis)),
    **dict.fromkeys(("Squeeze", "Unsqueeze", "ReduceSum"), (13, to_inputs("axes"))),
    "Split": (13, to_inputs("split")),
}
