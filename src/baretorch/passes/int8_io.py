"""Change the types of the model's inputs and outputs. `--io int8` removes quantize and dequantize at the border;
`--io float` adds them where the model's file has int8 or int16 there."""

from __future__ import annotations

from dataclasses import replace

from baretorch.errors import CompileError
from baretorch.ir.graph import DType, Graph, Node, Op, Quant, Tensor, fresh
from baretorch.ops.int8.quantize import Dequantize, Dequantize16, Narrow, Quantize, Quantize16, Widen
from baretorch.passes.rewrite import rebuild


def bare_io(graph: Graph) -> Graph:
    """Make inputs and outputs int8 where the model computes them in int8; CompileError if it does not."""
    uses = graph.uses()
    producer = graph.producer()
    new: dict[str, Tensor] = {}
    rename: dict[str, str] = {}
    nodes: list[Node] = list(graph.nodes)
    state = list(graph.state)
    for name in graph.inputs:
        readers = uses.get(name, [])
        if graph[name].dtype is not DType.FLOAT32 or not readers:
            continue
        kinds = {quant for r in readers if (quant := _read_scale(graph[name], r.op)) is not None}
        floats = [r for r in readers if _read_scale(graph[name], r.op) is None]
        if floats or len(kinds) != 1:
            raise _float_border(graph, f"input {name}", (floats or readers)[0])
        (quant,) = kinds
        new[name] = replace(graph[name], dtype=DType.INT8, quant=quant)
        for r in readers:
            if isinstance(r.op, Quantize16):
                nodes[nodes.index(r)] = replace(r, op=Widen(quant.zero_point[0]))
            else:
                nodes.remove(r)
                rename[r.outputs[0]] = name
        if any(s.next == name for s in state):  # which stays float
            real = fresh(graph, new, f"{name}_real")
            new[real] = replace(graph[name], name=real)
            nodes.append(Node(Dequantize(quant.scale[0], quant.zero_point[0]), (name,), (real,)))
            state = [replace(s, next=real) if s.next == name else s for s in state]
    outputs = []
    for name in graph.outputs:
        made = producer.get(name)
        if graph[name].dtype is not DType.FLOAT32 or (name in graph.inputs and name in new):
            outputs.append(name)
        elif made is not None and isinstance(made.op, Dequantize):
            stored = made.inputs[0]
            quant = Quant((made.op.scale,), (made.op.zero,))
            new[stored] = replace(new.get(stored, graph[stored]), quant=quant)
            outputs.append(stored)
        elif made is not None and isinstance(made.op, Dequantize16) and (quant := graph[name].quant) is not None:
            narrow = fresh(graph, new, f"{name}_int8")
            new[narrow] = replace(graph[name], name=narrow, dtype=DType.INT8)
            nodes.append(Node(Narrow(quant.zero_point[0]), made.inputs, (narrow,)))
            outputs.append(narrow)
        else:
            raise _float_border(graph, f"output {name}", made)
    return rebuild(replace(graph, outputs=tuple(outputs), state=tuple(state)), nodes, new.values(), rename)


def float_io(graph: Graph) -> Graph:
    """Convert int8 and int16 inputs and outputs from and to float."""
    new: dict[str, Tensor] = {}
    before: list[Node] = []
    after: list[Node] = []
    rename: dict[str, str] = {}
    for t in graph.of(graph.inputs):
        if t.quant is not None and t.is_quantized:
            stored = fresh(graph, new, f"{t.name}_{t.dtype.label}")
            new |= {stored: replace(t, name=stored), t.name: replace(t, dtype=DType.FLOAT32)}
            (scale,), (zero,) = t.quant.scale, t.quant.zero_point
            quantize: Op = Quantize(scale, zero) if t.dtype is DType.INT8 else Quantize16(scale)
            before.append(Node(quantize, (t.name,), (stored,)))
            rename[t.name] = stored
    outputs = []
    for t in graph.of(graph.outputs):
        outputs.append(t.name)
        if t.quant is not None and t.is_quantized:
            outputs[-1] = real = fresh(graph, new, f"{t.name}_real")
            new[real] = replace(t, name=real, dtype=DType.FLOAT32, data=None)
            (scale,), (zero,) = t.quant.scale, t.quant.zero_point
            dequantize: Op = Dequantize(scale, zero) if t.dtype is DType.INT8 else Dequantize16(scale)
            after.append(Node(dequantize, (t.name,), (real,)))
    nodes = [replace(n, inputs=tuple(rename.get(x, x) for x in n.inputs)) for n in (*graph.nodes, *after)]
    state = tuple(replace(s, next=rename.get(s.next, s.next)) for s in graph.state)
    whole = replace(graph, outputs=tuple(outputs), state=state)
    return rebuild(whole, [*before, *nodes], new.values()) if new else graph


def _read_scale(x: Tensor, op: Op) -> Quant | None:
    """Return the scale in which an operator reads a float input that could be int8."""
    if isinstance(op, Quantize16):
        return replace(x.quant, bits=8) if x.quant is not None else None
    return Quant((op.scale,), (op.zero,)) if isinstance(op, Quantize) else None


def _float_border(graph: Graph, what: str, layer: Node | None) -> CompileError:
    if not any(t.dtype is DType.INT8 for t in graph.tensors.values()):
        return CompileError(
            f"--io int8: {what} is not int8, because nothing in this model is",
            try_=["`--int8` quantizes the model", "leave --io at float"],
        )
    made = graph[layer.outputs[0]] if layer else None
    return CompileError(
        f"--io int8: {what} is not int8, because its layer is computed in float",
        at=str(made.origin) or None if made else None,
        have=f"{layer.op.name} gives {made}" if layer else None,
        try_="leave --io at float, or quantize the first and last layer",
    )
