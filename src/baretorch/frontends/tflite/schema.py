"""The content of a `.tflite` file as typed values: the required tables of its flatbuffer.

The layout is TensorFlow Lite's `schema.fbs` (file identifier TFL3). Nothing is allocated that the file does not hold:
constants are views of its bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from math import isfinite, prod

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.flatbuffer import Bytes, Table
from baretorch.frontends.untrusted import damaged_file
from baretorch.ir.graph import Array, DType, Quant, Shape

_OPERATORS = """
ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE EMBEDDING_LOOKUP FLOOR
FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D LOCAL_RESPONSE_NORMALIZATION LOGISTIC
LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH
SVDF TANH CONCAT_EMBEDDINGS SKIP_GRAM CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER
BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE
BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST PRELU MAXIMUM
ARG_MAX MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN TRANSPOSE_CONV SPARSE_TO_DENSE
TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK
LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL
FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL
REVERSE_V2 ADD_N GATHER_ND COS WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND
HARD_SWISH IF WHILE NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM
BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG REAL COMPLEX_ABS
HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE
ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU
DYNAMIC_UPDATE_SLICE RELU_0_TO_1 UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2
UNSORTED_SEGMENT_MIN SIGN BITCAST BITWISE_XOR RIGHT_SHIFT STABLEHLO_LOGISTIC STABLEHLO_ADD STABLEHLO_DIVIDE
STABLEHLO_MULTIPLY STABLEHLO_MAXIMUM STABLEHLO_RESHAPE STABLEHLO_CLAMP STABLEHLO_CONCATENATE
STABLEHLO_BROADCAST_IN_DIM STABLEHLO_CONVOLUTION STABLEHLO_SLICE STABLEHLO_CUSTOM_CALL STABLEHLO_REDUCE
STABLEHLO_ABS STABLEHLO_AND STABLEHLO_COSINE STABLEHLO_EXPONENTIAL STABLEHLO_FLOOR STABLEHLO_LOG
STABLEHLO_MINIMUM STABLEHLO_NEGATE STABLEHLO_OR STABLEHLO_POWER STABLEHLO_REMAINDER STABLEHLO_RSQRT
STABLEHLO_SELECT STABLEHLO_SUBTRACT STABLEHLO_TANH STABLEHLO_SCATTER STABLEHLO_COMPARE STABLEHLO_CONVERT
STABLEHLO_DYNAMIC_SLICE STABLEHLO_DYNAMIC_UPDATE_SLICE STABLEHLO_PAD STABLEHLO_IOTA STABLEHLO_DOT_GENERAL
STABLEHLO_REDUCE_WINDOW STABLEHLO_SORT STABLEHLO_WHILE STABLEHLO_GATHER STABLEHLO_TRANSPOSE DILATE
STABLEHLO_RNG_BIT_GENERATOR REDUCE_WINDOW STABLEHLO_COMPOSITE STABLEHLO_SHIFT_LEFT STABLEHLO_CBRT
"""
OPERATORS = tuple(_OPERATORS.split())  # by number
CUSTOM = OPERATORS.index("CUSTOM")
COMPOSITE = "STABLEHLO_COMPOSITE"

_TYPES = """
float32 float16 int32 uint8 int64 string bool int16 complex64 int8 float64 complex128 uint64 resource variant uint32
uint16 int4 bfloat16
"""
TYPES = tuple(_TYPES.split())  # by number
UNSIGNED = {"uint32": "int32", "uint64": "int64"}  # stored with the same bits, where only some operators read them
# What a tensor of the file is in the Graph; uint8 ones that have a scale are int8, and float16 ones are made float32.
_OTHERS = {"float16": "float32", **UNSIGNED}
GRAPH_TYPES = {name: dtype for name in TYPES if (dtype := DType.of(_OTHERS.get(name, name))) is not None}


def operator_name(code: int) -> str:
    return OPERATORS[code] if 0 <= code < len(OPERATORS) else f"operator {code}"


def type_name(number: int) -> str:
    return TYPES[number] if 0 <= number < len(TYPES) else f"number {number}"


IDENTIFIER = b"TFL3"
KIND = ".tflite"
MAX_RANK = 8
LEAST_SCALE, LARGEST_SCALE = 1e-36, 1e30  # with their reciprocals and steps of 128 inside of float32
ORDINARY = "a scale and a zero point for the tensor, or for each channel"
ONE_SIZE = "convert the model for one size of its inputs, a batch of 1"
damaged = partial(damaged_file, KIND)


@dataclass(frozen=True)
class Misstated:
    """A number in the file that cannot be right, and its place."""

    number: int
    at: int


@dataclass(frozen=True)
class TfTensor:
    """A tensor of the file. `data` is set for constants, which are bytes of the file. `open` means that its shape is
    only an example: the model was converted for inputs of any size, usually for any batch. `misstated` is set if the
    file states a dimension for its scales that it does not have."""

    index: int
    name: str
    shape: Shape
    type: str
    quant: Quant | None
    variable: bool
    data: memoryview | None
    open: bool = False
    misstated: Misstated | None = None

    def __str__(self) -> str:
        return f"{self.name or f't{self.index}'} {self.type}[{', '.join(map(str, self.shape))}]"

    @property
    def count(self) -> int:
        return prod(self.shape)

    @property
    def scale(self) -> float:
        """Return the only scale of a quantized tensor."""
        assert self.quant is not None
        return self.quant.scale[0]

    def array(self) -> Array:
        """Return the constant's numbers as they are stored in the file."""
        assert self.data is not None
        dtype = np.dtype(self.type).newbyteorder("<")
        if len(self.data) != self.count * dtype.itemsize:
            raise damaged(f"{self} has {len(self.data)} bytes of data")
        return np.frombuffer(self.data, dtype).reshape(self.shape).astype(dtype.newbyteorder("="), copy=False)


@dataclass(frozen=True)
class TfOperator:
    """An operator: the numbers of its tensors, where -1 represents a missing one, and its options. `between` are
    tensors that only define scales of its intermediate values."""

    name: str  # CONV_2D; that of a custom operator is its own
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: Table | None
    custom: bool = False
    between: tuple[int, ...] = ()
    attributes: bytes = b""  # of a custom operator, in a format of its own

    @property
    def decomposition(self) -> int:
        """Return the number of the subgraph that a composite operator stands for."""
        return -1 if self.options is None else self.options.integer(1, "i")


@dataclass(frozen=True, eq=False)
class Subgraph:
    name: str
    tensors: tuple[TfTensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[TfOperator, ...]


@dataclass(frozen=True)
class TfModel:
    file: Bytes
    subgraphs: tuple[Subgraph, ...]
    signatures: Mapping[str, int] = field(default_factory=dict)  # a signature's name -> its subgraph
    _spent: set[int] = field(default_factory=set)

    def corrected(self) -> bytes:
        """Return the file with dimension 0 for scales whose stated dimension does not exist."""
        data = bytearray(self.file.data)
        for wrong in (t.misstated for s in self.subgraphs for t in s.tensors if t.misstated is not None):
            data[wrong.at : wrong.at + 4] = bytes(4)
        return bytes(data)

    def within(self, subgraph: Subgraph) -> tuple[Subgraph, ...]:
        """Return a subgraph, and all subgraphs that compute its composite operators."""
        found = [subgraph]
        for each in found:  # which grows meanwhile
            calls = [o for o in each.operators if o.name == COMPOSITE and o.options is not None]
            inner = (self.subgraphs[i] for o in calls if 0 <= (i := o.decomposition) < len(self.subgraphs))
            found += [s for s in dict.fromkeys(inner) if all(s is not f for f in found)]
        return tuple(found)

    def spend(self, t: TfTensor) -> None:
        """Count a constant that is expanded: tensors can share their bytes. A constant that many layers read counts
        once."""
        if id(t) not in self._spent:
            self._spent.add(id(t))
            self.file.spend(len(t.data or b""))


def read_model(data: bytes) -> TfModel:
    """Return all subgraphs of a file."""
    file = Bytes(data, KIND, IDENTIFIER, "a TensorFlow Lite model")
    root = Table(file, file.integer("I", 0))
    if (version := root.integer(0, "I")) != 3:
        raise CompileError(f"version {version} of the .tflite format is not supported", need="version 3")
    codes = tuple(_code(table) for table in root.tables(1))
    buffers = tuple(_buffer(file, table) for table in root.tables(4))
    subgraphs = tuple(_subgraph(file, table, codes, buffers) for table in root.tables(2))
    if not subgraphs:
        raise damaged("it has no subgraph")
    signatures = {s.text(2): s.integer(4, "I") for s in root.tables(7)}
    return TfModel(file, subgraphs, {name: i for name, i in signatures.items() if i < len(subgraphs)})


def _code(table: Table) -> tuple[str, bool]:
    """Return an operator's name, and whether it is a custom one."""
    code = max(table.integer(0, "b"), table.integer(3, "i"))
    return (table.text(1) or "CUSTOM", True) if code == CUSTOM else (operator_name(code), False)


def _buffer(file: Bytes, table: Table) -> memoryview:
    """Return the bytes of a constant: in the flatbuffer, or after it."""
    offset, size = table.integer(1, "Q"), table.integer(2, "Q")
    return file.slice(offset, size, "a constant") if offset > 1 else table.span(0)


def _subgraph(
    file: Bytes, table: Table, codes: tuple[tuple[str, bool], ...], buffers: tuple[memoryview, ...]
) -> Subgraph:
    tensors = tuple(_tensor(i, t, buffers) for i, t in enumerate(table.tables(0)))
    file.spend(len(tensors))

    def known(numbers: tuple[int, ...], least: int) -> tuple[int, ...]:
        for n in numbers:
            if not least <= n < len(tensors):
                raise damaged(f"it refers to tensor {n} of {len(tensors)}")
        return numbers

    operators = []
    for t in table.tables(3):
        code = t.integer(0, "I")
        if code >= len(codes):
            raise damaged(f"it refers to operator code {code} of {len(codes)}")
        name, custom = codes[code]
        inputs, outputs = known(t.integers(1, "i"), -1), known(t.integers(2, "i"), 0)
        between = known(t.integers(8, "i"), -1)
        attributes = bytes(t.span(5)) if custom else b""
        options = t.table(4) or t.table(12)
        operators.append(TfOperator(name, inputs, outputs, options, custom, between, attributes))
    inputs, outputs = known(table.integers(1, "i"), 0), known(table.integers(2, "i"), 0)
    return Subgraph(table.text(4), tensors, inputs, outputs, tuple(operators))


def _tensor(index: int, table: Table, buffers: tuple[memoryview, ...]) -> TfTensor:
    name, shape, number = table.text(3), table.integers(0, "i"), table.integer(2, "I")
    shown = name or f"t{index}"
    if len(shape) > MAX_RANK or min(shape, default=0) < 0:
        raise CompileError(
            f"{shown}: the shape {list(shape[:MAX_RANK])} is not supported",
            need=f"at most {MAX_RANK} dimensions, each of a size that the file states",
            try_=ONE_SIZE,
        )
    if number >= len(buffers):
        raise damaged(f"{shown} is buffer {number} of {len(buffers)}")
    if table.table(6) is not None:
        raise CompileError(f"{shown}: sparse tensors are not supported", try_="convert the model without sparsity")
    kind = type_name(table.integer(1, "b"))
    data = buffers[number] if number and len(buffers[number]) else None
    if data is None and 0 in shape:
        data = memoryview(b"")
    variable, open_ = table.integer(5, "B") != 0, -1 in table.integers(7, "i")
    quant, misstated = _quant(shown, kind, shape, table.table(4))
    return TfTensor(index, name, shape, kind, quant, variable, data, open_, misstated)


def _quant(shown: str, kind: str, shape: Shape, table: Table | None) -> tuple[Quant | None, Misstated | None]:
    """Return the scales, or None, and the stated dimension if the tensor does not have it. With as many scales as a
    tensor of one dimension has numbers, there is no doubt: converters of 2019 state 3 for biases."""
    scales = table.reals(2, "f") if table else ()
    if table is not None and table.integer(4, "B"):
        raise CompileError(f"{shown}: scales per block, or of another kind, are not supported", need=ORDINARY)
    if table is None or not scales:
        return None, None
    zeros, stated = table.integers(3, "q") or (0,) * len(scales), table.integer(6, "i")
    if len(zeros) == 1:
        zeros = zeros * len(scales)
    per_axis = len(scales) > 1
    axis = 0 if shape == (len(scales),) else stated
    if len(zeros) != len(scales):
        raise damaged(f"{shown} has {len(scales)} scales and {len(zeros)} zero points")
    if per_axis and not (0 <= axis < len(shape) and shape[axis] == len(scales)):
        raise damaged(f"{shown} has {len(scales)} scales for dimension {axis} of {list(shape)}")
    bias = kind in ("int32", "int64")  # whose scale is a product, which may be below all numbers of float32
    for scale in scales:
        if not isfinite(scale) or scale < 0 or (scale == 0 and not bias):
            raise damaged(f"{shown} has the scale {scale}")
        if scale >= LARGEST_SCALE or (scale < LEAST_SCALE and not bias):
            need = f"scales from {LEAST_SCALE:g} to {LARGEST_SCALE:g}"
            raise CompileError(f"{shown}: the scale {scale:g} is not supported", need=need)
    if not all(-(1 << 31) <= z < 1 << 31 for z in zeros):
        raise damaged(f"{shown} has a zero point beyond 32 bits")
    at = table.at(6) if per_axis and axis != stated else None
    return Quant(scales, zeros, axis if per_axis else None), None if at is None else Misstated(stated, at)
