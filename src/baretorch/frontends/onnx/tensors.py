"""Converts constants of a file to NumPy. The declared size is compared with the bytes in the file first."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

from baretorch.errors import CompileError
from baretorch.ir.graph import Array, DType

BITS = {"INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "INT2": 2, "UINT2": 2}  # of types that share bytes


def type_name(number: int) -> str:
    """Return ONNX's name of an element type, in lower case."""
    known = TensorProto.DataType.values()
    return str(TensorProto.DataType.Name(number)).lower() if number in known else f"type {number}"


def dtype_of(number: int, what: str) -> DType:
    """Return Baretorch's type. Raises CompileError if there is none."""
    label = {"float": "float32"}.get(type_name(number), type_name(number))
    dtype = DType.of(label)
    if dtype is None:
        raise CompileError(
            f"{what}: the type {label} is not supported",
            need=f"one of {', '.join(d.label for d in DType)}",
            try_="convert the model to float32" if label in ("float16", "bfloat16", "double") else None,
        )
    return dtype


def array_of(tensor: Any) -> Array:
    """Return the data of a TensorProto, whose external data has been read."""
    what = f"the constant {tensor.name!r}" if tensor.name else "a constant"
    count = prod(tensor.dims)
    if any(d < 0 for d in tensor.dims):
        raise CompileError(f"{what} has the shape {list(tensor.dims)}")
    if tensor.data_type == TensorProto.STRING:
        raise CompileError(f"{what} holds strings, which are not supported")
    if tensor.data_location == TensorProto.EXTERNAL:
        raise CompileError(f"{what} is stored in another file; only constants of the model itself may be")
    bits = BITS.get(type_name(tensor.data_type).upper(), 8)
    brought = 8 * max(len(tensor.raw_data), tensor.ByteSize()) // bits  # at most so many elements
    if count > brought:
        raise CompileError(f"{what} has {count:,} elements, but the file brings {tensor.ByteSize():,} bytes for them")
    try:
        data = numpy_helper.to_array(tensor)
    except Exception as error:  # whatever does not fit together in it
        raise CompileError(f"{what} is damaged", have=str(error)[:200]) from error
    return np.asarray(data)


def tensor_of(data: Array, name: str = "") -> Any:
    """Make a TensorProto."""
    return numpy_helper.from_array(np.asarray(data), name)


def element_type(data: Array) -> int:
    return int(onnx.helper.np_dtype_to_tensor_dtype(data.dtype))
