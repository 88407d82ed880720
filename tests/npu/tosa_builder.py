"""TOSA graphs under construction, with Arm's own serializer. Runs where tosa-tools are, without Baretorch."""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

CAMEL = {
    "CONV2D": "Conv2d",
    "DEPTHWISE_CONV2D": "DepthwiseConv2d",
    "TRANSPOSE_CONV2D": "TransposeConv2d",
    "AVG_POOL2D": "AvgPool2d",
    "MAX_POOL2D": "MaxPool2d",
    "MATMUL": "MatMul",
    "ARGMAX": "ArgMax",
    "INTDIV": "IntDiv",
}


class Builder:
    """A TOSA graph under construction; values are the serializer's tensors."""

    def __init__(self, seed: str) -> None:
        from serializer import tosa_serializer  # type: ignore[import-not-found,import-untyped,unused-ignore]
        from tosa.Op import Op  # type: ignore[import-not-found,import-untyped,unused-ignore]

        self.ts: Any = tosa_serializer
        self.op: Any = Op
        self.graph = tosa_serializer.TosaSerializer("", tosa_version_minor=0, tosa_version_draft=False)
        self.block = self.graph.currRegion.currBasicBlock
        self.rng = np.random.default_rng(zlib.crc32(seed.encode()))
        self.pick = random.Random(seed)
        self.inputs: list[Array] = []
        self.made = 0

    def dtype(self, kind: Any) -> int:
        names = {"int8": "INT8", "int16": "INT16", "int32": "INT32", "int48": "INT48", "bool": "BOOL", "uint8": "UINT8"}
        return int(getattr(self.ts.DType, names[str(kind)]))

    def input(self, shape: Sequence[int], kind: str = "int8", low: int | None = None, high: int | None = None) -> Any:
        if kind == "bool":
            values = self.rng.integers(0, 2, shape).astype(bool)
        else:
            info = np.iinfo(kind)
            values = self.rng.integers(
                info.min if low is None else low, (info.max if high is None else high) + 1, shape
            )
        self.inputs.append(values.astype(kind))
        return self.graph.addPlaceholder(list(shape), self.dtype(kind), None)

    def const(self, values: Any, kind: str) -> Any:
        data = np.asarray(values)
        data = data.astype(np.int64) if kind == "int48" else data.astype(kind)
        return self.graph.addConst(list(data.shape), self.dtype(kind), data)

    def shape(self, values: Sequence[int]) -> Any:
        return self.graph.addConst([len(values)], self.ts.DType.SHAPE, np.array(values, np.int64))

    def add(self, op: str, inputs: Sequence[Any], shape: Sequence[int], kind: str, *attributes: Any) -> Any:
        code = getattr(self.op, op)
        attribute = self.ts.TosaSerializerAttribute()
        camel = CAMEL.get(op) or "".join(w.capitalize() for w in op.split("_"))
        getattr(attribute, f"{camel}Attribute")(*attributes)
        made = self.graph.addIntermediate(list(shape), self.dtype(kind))
        made.kind = kind
        self.graph.addOperator(code, [i.name for i in inputs], [made.name], attribute)
        self.made += 1
        return made

    def output(self, value: Any) -> None:
        self.block.addOutput(value.name)

    def rescale(self, value: Any, into: str, scales: Sequence[float] | float, zero_in: int = 0, zero_out: int = 0,
                double: bool = False) -> Any:  # fmt: skip
        each = list(scales) if isinstance(scales, Sequence) else [scales]
        pairs = [quantized(s) for s in each]
        wide = value.dtype != self.dtype("int48")
        if not wide:
            pairs = [((m + (1 << 15)) >> 16, s - 16) for m, s in pairs]
            pairs = [(min(m, 32767), s) for m, s in pairs]
        kind_in = {self.dtype(k): k for k in ("int8", "int16", "int32", "int48")}[value.dtype]
        return self.add(
            "RESCALE",
            [value, self.const([m for m, _ in pairs], "int32" if wide else "int16"),
             self.const([s for _, s in pairs], "int8"), self.const([zero_in], kind_in), self.const([zero_out], into)],
            value.shape, into, wide, 3 if double and wide else 1, len(pairs) > 1, False, False,
        )  # fmt: skip

    def bytes(self) -> bytes:
        return bytes(self.graph.serialize())


def quantized(scale: float) -> tuple[int, int]:
    """TOSA's multiplier and shift of a factor."""
    mantissa, exponent = np.frexp(scale)
    multiplier, shift = round(float(mantissa) * 2**31), 31 - int(exponent)
    if multiplier == 2**31:
        multiplier, shift = multiplier // 2, shift - 1
    return multiplier, shift
