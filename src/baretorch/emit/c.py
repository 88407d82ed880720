"""C syntax: names, literals, arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from baretorch.errors import InternalError
from baretorch.escape import c_name
from baretorch.ir.graph import Array, DType, numbered
from baretorch.ops.helpers.kernel import Literal


def unique(text: str, taken: set[str]) -> str:
    """Convert `text` to a C name that is not in `taken`, and add it."""
    name = next(name for name in numbered(c_name(text)) if name not in taken)
    taken.add(name)
    return name


def c_type(data: Array) -> str:
    """Return the C type of an array's elements; uint16 are the bits of halves."""
    dtype = next((d for d in DType if d.numpy == data.dtype), None)
    assert dtype is not None, f"C has no type for {data.dtype}"
    return dtype.c


def literal(value: Literal) -> str:
    """Return a C literal that reads back as the same value."""
    if isinstance(value, tuple):
        return "{ " + ", ".join(map(literal, value)) + " }"
    if isinstance(value, float):
        return float_literal(value)
    return str(value)


def float_literal(value: float) -> str:
    """Return the shortest decimal that reads back as this float32."""
    if math.isnan(value):
        return "BT_NAN"
    if math.isinf(value):
        return "BT_INF" if value > 0 else "-BT_INF"
    text = np.format_float_positional(np.float32(value), unique=True, trim="0")
    if len(text) > 14:
        text = np.format_float_scientific(np.float32(value), unique=True, trim="0")
    return f"{text}f"


def values(data: Array) -> str:
    """Return the elements of an array as C text, wrapped, without braces."""
    return "".join(values_in_parts(data))


def values_in_parts(data: Array) -> Iterator[str]:
    """Yield the elements of an array as C text in parts: the text of a large array takes four times its memory."""
    if not data.size:
        return
    yield "    "
    begun: list[str] = []  # elements of the line that is not full yet
    flat = data.reshape(-1)
    for at in range(0, flat.size, _AT_ONCE):
        texts = begun + _texts(flat[at : at + _AT_ONCE])
        last = at + _AT_ONCE >= flat.size
        ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)) + len(", "))
        begins = np.concatenate(([0], ends[:-1]))
        ends[-1] -= last  # no comma after the last number
        after = np.searchsorted(ends, begins + _WIDTH + 1, "right").tolist()  # the next line, if one begins here
        i = 0
        lines: list[str] = []
        while after[i] < len(texts):
            lines.append(", ".join(texts[i : after[i]]))
            i = after[i]
        begun = texts[i:]
        yield "".join(f"{line},\n    " for line in lines)
    yield ", ".join(begun)


_WIDTH = 108  # of a line, without its four blanks
_AT_ONCE = 1 << 16  # elements: their texts take some 70 bytes each
_BYTES = {np.dtype(t): [str(v) for v in np.arange(256).astype(t)] for t in ("int8", "uint8")}


def _texts(flat: Array) -> list[str]:
    """Return a C literal per element. NumPy formats plain floats as `float_literal` does, and much faster."""
    if flat.dtype == np.float32:
        texts: list[str] = np.char.add(flat.astype("U15"), "f").tolist()
        size = np.abs(flat)
        plain = ((size >= 2e-4) & (size < 1e5)) | (size == 0)
        long = np.fromiter(map(len, texts), np.int64, len(texts)) > 15
        for i in np.flatnonzero(~plain | long).tolist():
            texts[i] = float_literal(float(flat[i]))
        return texts
    if flat.dtype in _BYTES:
        return list(map(_BYTES[flat.dtype].__getitem__, flat.view(np.uint8).tolist()))
    if flat.dtype == np.int64:
        return [f"INT64_C({v})" for v in flat.tolist()]
    if flat.dtype.kind in "iub":
        return list(map(str, flat.astype(np.int64).tolist()))
    raise InternalError(f"no C literal for {flat.dtype}")
