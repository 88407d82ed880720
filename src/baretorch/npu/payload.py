"""Read Vela's outputs: a command stream, constants, and the memory they need. Files are not trusted.

Two kinds of files have them: the `.npz` of `vela --output-format raw`, and the blocks that ExecuTorch makes of it.
"""

from __future__ import annotations

import io
import struct
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np
from numpy.lib import format as npy

from baretorch.errors import CompileError
from baretorch.npu.accelerators import Accelerator, by_config

WEIGHTS, SCRATCH, FAST, INPUT, OUTPUT = range(5)  # regions; the last two only with --separate-io-regions
ROOM = 64 << 20  # bytes; more than any microcontroller has
ALIGNED = 16

_CONFIG, _STREAM, _NOP = 1, 2, 5  # what a driver is to do
_EXECUTE, _MICRO = 1, 0x4D554556  # the second form of driver actions
_FIRST, _LAST = "vela_bin_stream", "vela_end_stream"
_BLOCKS = (_FIRST, "cmd_data", "weight_data", "scratch_size", "inputs", "outputs", _LAST)
_NPZ_MEMBERS = 64


@dataclass(frozen=True)
class Slot:
    """The place of an input or output of a graph."""

    shape: tuple[int, ...]
    element: int  # bytes
    region: int
    offset: int

    @property
    def size(self) -> int:
        """The number of bytes."""
        return prod(self.shape) * self.element


@dataclass(frozen=True)
class Payload:
    """A compiled graph."""

    accelerator: Accelerator
    commands: bytes  # words of 32 bits, little-endian; must begin at a multiple of 16
    weights: bytes  # and all other constants: region WEIGHTS
    scratch: int  # bytes of region SCRATCH
    fast: int  # bytes of region FAST; 0: it is the same memory as SCRATCH
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]

    def room(self, region: int) -> int:
        """Return the bytes of a region."""
        ends = {slot.offset + slot.size for slot in (*self.inputs, *self.outputs) if slot.region == region}
        known = {WEIGHTS: len(self.weights), SCRATCH: self.scratch, FAST: self.fast or self.scratch}
        return known[region] if region in known else max(ends, default=0)


def read_payload(data: bytes, at: str | None = None) -> Payload:
    """Parse a file's content; raise CompileError if Vela does not write such files. `at` names the file's owner."""
    if len(data) > ROOM:
        raise CompileError("this is too large for an output of Vela", at=at, need=f"at most {ROOM:,} bytes")
    try:
        parts = _npz(data) if data[:2] == b"PK" else _blocks(data)
        return _payload(parts)
    except _Damaged as damage:
        raise CompileError(
            f"this is not an output of Vela: {damage}",
            at=at,
            need="an output of `vela --output-format raw` or of ExecuTorch",
        ) from None


class _Damaged(Exception):
    """A file is damaged; the text says how."""


@dataclass(frozen=True)
class _Parts:
    """The parts that both kinds of files have."""

    commands: bytes
    weights: bytes
    scratch: int
    fast: int
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]


def _payload(parts: _Parts) -> Payload:
    accelerator, commands = read_driver_actions(parts.commands)
    if not 0 <= parts.scratch <= ROOM or not 0 <= parts.fast <= ROOM:
        raise _Damaged(f"it takes {parts.scratch:,} and {parts.fast:,} bytes of memory")
    room = {WEIGHTS: len(parts.weights), SCRATCH: parts.scratch, FAST: parts.fast or parts.scratch}
    for slot in (*parts.inputs, *parts.outputs):
        if slot.element not in (1, 2, 4, 8) or any(n < 1 for n in slot.shape) or len(slot.shape) > 8:
            raise _Damaged(f"there is no tensor {list(slot.shape)} of {slot.element} bytes each")
        if slot.region not in (SCRATCH, FAST, INPUT, OUTPUT):
            raise _Damaged(f"an input or output is in region {slot.region}, which holds none")
        if not 0 <= slot.offset <= ROOM - slot.size or slot.offset + slot.size > room.get(slot.region, ROOM):
            raise _Damaged(
                f"an input or output at {slot.offset:#x} has {slot.size:,} bytes, of {room.get(slot.region, ROOM):,}"
            )
    _need_apart("input", parts.inputs)
    _need_apart("output", parts.outputs)
    return Payload(accelerator, commands, parts.weights, parts.scratch, parts.fast, parts.inputs, parts.outputs)


def _need_apart(what: str, slots: Sequence[Slot]) -> None:
    """Check that two inputs, or two outputs, do not overlap. An input may overlap an output."""
    for (region, _, end), (other, start, _) in pairwise(sorted((s.region, s.offset, s.offset + s.size) for s in slots)):
        if region == other and start < end:
            raise _Damaged(f"the {what} at {start:#x} begins before another one ends, at {end:#x}")


def read_driver_actions(data: bytes) -> tuple[Accelerator, bytes]:
    """Return the accelerator that a driver must find, and the command stream for it."""
    if len(data) % 4:
        raise _Damaged("driver actions are whole words")
    words = struct.unpack(f"<{len(data) // 4}I", data)
    if data[:4] == b"COP2":
        return _one_action(words, data)
    if data[:4] != b"COP1":
        raise _Damaged("no driver actions")
    accelerator: Accelerator | None = None
    commands: bytes | None = None
    at = 1
    while at < len(words):
        kind = words[at] & 0xFF
        if kind == _NOP:
            at += 1
        elif kind == _CONFIG and at + 3 <= len(words):
            accelerator = _accelerator(words[at + 1], words[at + 2])
            at += 3
        elif kind == _STREAM:
            length = words[at] >> 16 | (words[at] >> 8 & 0xFF) << 16
            at += 1
            if length == 0 or at + length > len(words):
                raise _Damaged(f"a stream of {length} words, of which {len(words) - at} are there")
            if commands is not None:
                raise _Damaged("two command streams")
            if at % 4:
                raise _Damaged("the command stream is not aligned")
            commands = data[4 * at : 4 * (at + length)]
            at += length
        else:
            raise _Damaged(f"no driver action is {words[at]:#010x}")
    if accelerator is None or commands is None:
        raise _Damaged("no command stream, or one that does not name its NPU")
    return accelerator, commands


def _one_action(words: tuple[int, ...], data: bytes) -> tuple[Accelerator, bytes]:
    """Parse the second form: one action, whose head has a length and the purpose of the stream."""
    if len(words) < 16 or words[4] != _EXECUTE or words[7] != _MICRO:
        raise _Damaged("no driver action that starts a command stream")
    start, end = 28 + words[6], 24 + words[5]
    if start % 16 or not 64 <= start < end or end != len(data) or words[2] != len(data) - 16:
        raise _Damaged(f"a stream from {start} to {end} of {len(data)} bytes")
    return _accelerator(words[10], words[11]), data[start:end]


def _accelerator(config: int, version: int) -> Accelerator:
    accelerator = by_config(config)
    if accelerator is None:
        raise _Damaged(f"no known accelerator has the configuration {config:#010x}")
    if version >> 16 != accelerator.arch:
        raise _Damaged(f"it is for the architecture {version:#010x}, which {accelerator.name} has not")
    return accelerator


# The raw output of Vela


def _npz(data: bytes) -> _Parts:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = {m.filename.removesuffix(".npy"): m for m in archive.infolist()}
            if len(members) > _NPZ_MEMBERS or sum(m.file_size for m in members.values()) > ROOM:
                raise _Damaged("it unpacks to more than can be meant")

            def array(name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
                if name not in members:
                    raise _Damaged(f"{name} is missing")
                return _array(archive.read(members[name]), name)

            def number(name: str) -> int:
                return _whole(array(name), name, 0)[0]

            if number("weight_region") != WEIGHTS or number("scratch_region") != SCRATCH:
                raise _Damaged("regions have unusual numbers")
            return _Parts(
                array("cmd_data").tobytes(),
                array("weight_data").tobytes(),
                number("scratch_size"),
                number("scratch_fast_size"),
                tuple(_npz_slots(array, "input")),
                tuple(_npz_slots(array, "output")),
            )
    except (_Damaged, MemoryError):
        raise
    except Exception as error:  # zipfile's and zlib's own, and whatever a damaged header makes of NumPy's reader
        raise _Damaged(f"the archive is damaged ({type(error).__name__})") from None


def _array(data: bytes, name: str) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]]:
    """Parse a `.npy`. Nothing is allocated that the file does not hold, and objects, which could run code, are
    refused."""
    stream = io.BytesIO(data)
    version = npy.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise _Damaged(f"{name} has an unknown version")
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, fortran, kind = read(stream)
    left = len(data) - stream.tell()
    if kind.hasobject or (fortran and len(shape) > 1) or kind.kind not in "Siuf":
        raise _Damaged(f"{name} has a kind of content that Vela does not write")
    if prod(shape) * kind.itemsize != left:
        raise _Damaged(f"{name} says {prod(shape) * kind.itemsize:,} bytes, and {left:,} are there")
    if left == 0:
        return np.zeros(shape, kind)
    return np.frombuffer(data, kind, offset=stream.tell()).reshape(shape)


def _npz_slots(array: object, name: str) -> Iterator[Slot]:
    assert callable(array)
    shapes = array(f"{name}_shape")
    columns = [_whole(array(f"{name}_{what}"), name, 1) for what in ("elem_size", "region", "offset")]
    count = len(columns[0])
    if any(len(c) != count for c in columns) or (count and (shapes.ndim != 2 or len(shapes) != count)):
        raise _Damaged(f"there are not as many {name}s as there are shapes of them")
    for i in range(count):
        shape = tuple(_whole(shapes[i], name, 1))
        yield Slot(shape, columns[0][i], columns[1][i], columns[2][i])


def _whole(value: np.ndarray[tuple[int, ...], np.dtype[np.generic]], name: str, dims: int) -> list[int]:
    if value.size == 0 and dims:
        return []  # an empty list has no type
    if value.dtype.kind not in "iu" or value.ndim != dims:
        raise _Damaged(f"{name} is not a whole number")
    return [int(n) for n in value.reshape(-1)]


# ExecuTorch's blocks: name (16 bytes), length, 12 bytes of nothing, data up to a multiple of 16


def _blocks(data: bytes) -> _Parts:
    found: dict[str, bytes] = {}
    at = 0
    while at + 32 <= len(data):
        name = data[at : at + 16].split(b"\0")[0].decode("ascii", "replace")
        length, kind = struct.unpack_from("<II", data, at + 16)
        if not found and name != _FIRST:
            raise _Damaged(f"it does not begin with {_FIRST}")
        if kind:
            raise _Damaged(f"{name} is in another file")
        if name not in _BLOCKS:
            raise _Damaged(f"no block is called {name!r}")
        if name in found:
            raise _Damaged(f"there are two blocks {name!r}")
        at += 32
        if at + length > len(data):
            raise _Damaged(f"block {name!r} has {length:,} bytes, of which {len(data) - at:,} are there")
        found[name] = data[at : at + length]
        at += -(-length // ALIGNED) * ALIGNED
        if name == _LAST:
            break
    if _LAST not in found:
        raise _Damaged("it ends early")
    if at != len(data):
        raise _Damaged(f"{len(data) - at:,} bytes follow its end")
    return _Parts(
        _block(found, "cmd_data"),
        _block(found, "weight_data"),
        _numbers(_block(found, "scratch_size"), 1)[0],
        0,
        tuple(_block_slots(_block(found, "inputs"))),
        tuple(_block_slots(_block(found, "outputs"))),
    )


def _block(found: Mapping[str, bytes], name: str) -> bytes:
    if name not in found:
        raise _Damaged(f"block {name!r} is missing")
    return found[name]


def _numbers(data: bytes, count: int) -> tuple[int, ...]:
    if len(data) < 4 * count:
        raise _Damaged("a block ends early")
    return struct.unpack_from(f"<{count}i", data)


def _block_slots(data: bytes) -> Iterator[Slot]:
    (count,) = _numbers(data, 1)
    if not 0 <= count <= len(data):
        raise _Damaged(f"{count} inputs or outputs")
    if len(data) != 4 + 36 * count:
        raise _Damaged(f"{count} inputs or outputs in {len(data)} bytes")
    for i in range(count):
        *shape, element, offset, region = _numbers(data[4 + 36 * i :], 9)
        yield Slot(tuple(shape), element, region, offset)


def to_blocks(npz: bytes) -> bytes:
    """Convert an output of `vela --output-format raw` to ExecuTorch's blocks."""
    parts = _npz(npz)

    def slots(each: tuple[Slot, ...]) -> bytes:
        rows = (struct.pack("<9i", *s.shape, s.element, s.offset, s.region) for s in each)
        return struct.pack("<i", len(each)) + b"".join(rows)

    size = struct.pack("<I", parts.scratch)
    content = (b"", parts.commands, parts.weights, size, slots(parts.inputs), slots(parts.outputs), b"")
    return b"".join(
        name.encode().ljust(ALIGNED, b"\0")
        + struct.pack("<4I", len(data), 0, 0, 0)
        + data
        + bytes(-len(data) % ALIGNED)
        for name, data in zip(_BLOCKS, content, strict=True)
    )
