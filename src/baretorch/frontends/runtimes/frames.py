"""Messages between Baretorch and a child process: a JSON header and the bytes of arrays. Nothing is unpickled."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

LENGTH = struct.Struct("<Q")
KINDS = "biuf"  # of array types that are sent: bool, integers and floats


def encode_message(header: dict[str, Any], arrays: Sequence[npt.NDArray[Any]] = ()) -> bytes:
    """Encode a message."""
    plain = [np.asarray(a, order="C") for a in arrays]
    for array in plain:
        if array.dtype.kind not in KINDS:
            raise ValueError(f"an array of type {array.dtype} cannot be sent")
    types = [(a.dtype.newbyteorder("<").str, a.shape) for a in plain]
    text = json.dumps(header | {"arrays": types}).encode()
    data = [a.astype(a.dtype.newbyteorder("<"), copy=False).tobytes() for a in plain]
    return b"".join((LENGTH.pack(len(text)), text, *data))


def decode_message(read: Callable[[int], bytes]) -> tuple[dict[str, Any], list[npt.NDArray[Any]]]:
    """Decode a message. `read` returns exactly as many bytes as it is asked for."""
    (size,) = LENGTH.unpack(read(LENGTH.size))
    header: dict[str, Any] = json.loads(read(size))
    arrays = []
    for name, shape in header.pop("arrays"):
        dtype = np.dtype(name)
        count = int(np.prod(shape, dtype=np.int64))
        arrays.append(np.frombuffer(read(count * dtype.itemsize), dtype).reshape(shape))
    return header, arrays
