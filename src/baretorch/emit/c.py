"""C spelling: names, literals, arrays."""

from __future__ import annotations

import math
import textwrap

import numpy as np

from baretorch.errors import InternalError
from baretorch.escape import c_name
from baretorch.ir import Array
from baretorch.ops.kernel import Literal

_C_TYPES = {
    "float32": "float",
    "int8": "int8_t",
    "uint8": "uint8_t",
    "int16": "int16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "bool": "uint8_t",
}


def unique(text: str, taken: set[str]) -> str:
    """`text` as a C name that is not taken yet; takes it."""
    name = base = c_name(text)
    n = 1
    while name in taken:
        n += 1
        name = f"{base}_{n}"
    taken.add(name)
    return name


def c_type(data: Array) -> str:
    return _C_TYPES[data.dtype.name]


def literal(value: Literal) -> str:
    """A C literal that reads back as the same value."""
    if isinstance(value, tuple):
        return "{ " + ", ".join(map(literal, value)) + " }"
    if isinstance(value, float):
        return float_literal(value)
    return str(value)


def float_literal(value: float) -> str:
    """The shortest decimal that gives this float32 again."""
    if math.isnan(value):
        return "BT_NAN"
    if math.isinf(value):
        return "BT_INF" if value > 0 else "-BT_INF"
    text = np.format_float_positional(np.float32(value), unique=True, trim="0")
    if len(text) > 14:
        text = np.format_float_scientific(np.float32(value), unique=True, trim="0")
    return f"{text}f"


def values(data: Array) -> str:
    """The elements of an array as C text, wrapped, without braces."""
    flat = data.reshape(-1)
    if data.dtype == np.float32:
        texts = [float_literal(float(v)) for v in flat]
    elif data.dtype == np.int64:
        texts = [f"INT64_C({v})" for v in flat]
    elif data.dtype.kind in "iub":
        texts = [str(int(v)) for v in flat]
    else:
        raise InternalError(f"no C literal for {data.dtype}")
    return textwrap.fill(", ".join(texts), width=112, initial_indent="    ", subsequent_indent="    ")
