"""Small `.tflite` files, written with LiteRT's own schema: what the reader is tested with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers  # type: ignore[import-untyped]
import numpy as np
from ai_edge_litert import schema_py_generated as fb  # type: ignore[import-untyped]
from flatbuffers import flexbuffers  # type: ignore[import-untyped]

from baretorch.frontends.tflite.schema import CUSTOM, OPERATORS, TYPES
from baretorch.ir.graph import Array

VERSIONS = {"BROADCAST_TO": 2}  # of operators that LiteRT does not know in version 1


@dataclass(frozen=True)
class Q:
    """How a tensor is stored: its type, scales and zero point, and the axis of several scales."""

    scale: float | Sequence[float]
    zero: int = 0
    type: str = "int8"
    axis: int = 0

    def stored(self, real: Array) -> Array:
        """Real numbers as they are stored."""
        info = np.iinfo(self.type)
        scale = np.array(self.scale, np.float64)
        if scale.ndim:
            scale = scale.reshape([-1 if d == self.axis else 1 for d in range(real.ndim)])
        return np.clip(np.rint(real / scale) + self.zero, info.min, info.max).astype(self.type)


@dataclass
class SubgraphWriter:
    """A subgraph under construction; tensors are numbers."""

    file: TfliteWriter
    graph: Any = field(default_factory=fb.SubGraphT)

    def __post_init__(self) -> None:
        self.graph.tensors, self.graph.operators = [], []
        self.graph.inputs, self.graph.outputs = [], []

    def tensor(
        self,
        name: str,
        shape: Sequence[int],
        type: str,
        q: Q | None = None,
        data: Array | None = None,
        variable: bool = False,
    ) -> int:
        t = fb.TensorT()
        t.name, t.shape, t.type = name, list(shape), TYPES.index(type)
        t.buffer = 0 if data is None else self.file.buffer(data)
        t.isVariable, t.hasRank = variable, True
        if q is not None:
            t.quantization = fb.QuantizationParametersT()
            scales = np.atleast_1d(np.array(q.scale, np.float32)).tolist()
            t.quantization.scale, t.quantization.zeroPoint = scales, [q.zero] * len(scales)
            t.quantization.quantizedDimension = q.axis
        self.graph.tensors.append(t)
        return len(self.graph.tensors) - 1

    def input(self, shape: Sequence[int], type: str | Q = "float32") -> int:
        q = type if isinstance(type, Q) else None
        self.graph.inputs.append(self.tensor(f"in/{len(self.graph.inputs)}", shape, q.type if q else str(type), q))
        return int(self.graph.inputs[-1])

    def const(self, data: Any, q: Q | None = None, name: str = "") -> int:
        """A constant: real numbers that are stored as `q` says, or numbers as they are."""
        array = np.asarray(data)
        stored = q.stored(array) if q else array
        return self.tensor(name or f"c{len(self.graph.tensors)}", array.shape, stored.dtype.name, q, stored)

    def add(
        self,
        operator: str,
        inputs: Sequence[int],
        outputs: Sequence[int],
        options: str = "",
        custom: bool = False,
        attributes: Mapping[str, int] | None = None,
        **values: Any,
    ) -> None:
        """Add an operator. A custom one may have attributes."""
        o = fb.OperatorT()
        if attributes is not None:
            o.customOptions = np.frombuffer(flexbuffers.Dumps(attributes), np.uint8)
        o.opcodeIndex, o.inputs, o.outputs = self.file.code(operator, custom), list(inputs), list(outputs)
        if options:
            made = getattr(fb, f"{options}T")()
            if hasattr(fb.BuiltinOptions, options):
                o.builtinOptionsType, o.builtinOptions = getattr(fb.BuiltinOptions, options), made
            else:
                o.builtinOptions2Type, o.builtinOptions2 = getattr(fb.BuiltinOptions2, options), made
            for name, value in values.items():
                assert hasattr(made, name), name
                setattr(made, name, value)
        self.graph.operators.append(o)

    def op(
        self,
        operator: str,
        inputs: Sequence[int],
        shape: Sequence[int],
        type: str | Q = "float32",
        options: str = "",
        **values: Any,
    ) -> int:
        """An operator with one result, which is its number."""
        q = type if isinstance(type, Q) else None
        y = self.tensor(f"{operator.lower()}/{len(self.graph.tensors)};y", shape, q.type if q else str(type), q)
        self.add(operator, inputs, [y], options, **values)
        return y

    def output(self, *tensors: int) -> None:
        self.graph.outputs.extend(tensors)


class TfliteWriter:
    """A file under construction. `main` is its first subgraph."""

    def __init__(self) -> None:
        self.model = fb.ModelT()
        self.model.version, self.model.description = 3, "tests"
        self.model.operatorCodes, self.model.subgraphs = [], []
        self.model.buffers = [fb.BufferT()]
        self.main = self.subgraph()

    def subgraph(self) -> SubgraphWriter:
        writer = SubgraphWriter(self)
        self.model.subgraphs.append(writer.graph)
        return writer

    def buffer(self, data: Array) -> int:
        buffer = fb.BufferT()
        buffer.data = np.frombuffer(np.ascontiguousarray(data).tobytes(), np.uint8)
        self.model.buffers.append(buffer)
        return len(self.model.buffers) - 1

    def code(self, operator: str, custom: bool) -> int:
        code = fb.OperatorCodeT()
        code.builtinCode = CUSTOM if custom else OPERATORS.index(operator)
        code.deprecatedBuiltinCode = min(code.builtinCode, 127)
        code.customCode, code.version = operator if custom else None, VERSIONS.get(operator, 1)
        self.model.operatorCodes.append(code)
        return len(self.model.operatorCodes) - 1

    def bytes(self) -> bytes:
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())
