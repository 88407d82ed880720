"""Frames on the wire between host and device, and the text around them.

    'B' 'T'  type u8  seq u8  length u32  payload  CRC-32 u32        (little-endian)

The CRC (zlib's) covers type to payload. Whatever a device sends outside a frame is text for people.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

MAGIC = b"BT"
HEADER = struct.Struct("<2sBBI")
CRC = struct.Struct("<I")
FRAME_BYTES = HEADER.size + CRC.size  # besides the payload

HELLO, RUN = ord("H"), ord("R")  # host to device
HELLO_REPLY, RUN_REPLY, ERROR_REPLY = ord("h"), ord("r"), ord("e")  # device to host
NONE, MORE = 0, 1
KINDS = bytes((HELLO, RUN, HELLO_REPLY, RUN_REPLY, ERROR_REPLY))


@dataclass(frozen=True)
class Frame:
    """One message. `seq` ties a reply to its request."""

    kind: int
    seq: int
    payload: bytes = b""


def encode(frame: Frame) -> bytes:
    """The frame as it travels."""
    header = HEADER.pack(MAGIC, frame.kind, frame.seq, len(frame.payload))
    checked = header[len(MAGIC) :] + frame.payload
    return MAGIC + checked + CRC.pack(zlib.crc32(checked))


class Decoder:
    """Takes a byte stream apart, piece by piece, into frames and text (bytes).

    What looks like a frame but has an unknown type, more than `limit` payload bytes or a wrong CRC is text up to
    its second byte; the search goes on there, so that a whole frame behind a damaged one is found.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._pending = b""

    def feed(self, data: bytes) -> list[Frame | bytes]:
        """The frames and texts that `data` completes. An unfinished frame is kept for the next call."""
        self._pending += data
        return list(self._take())

    def give_up(self) -> list[Frame | bytes]:
        """Nothing more will come: treat the unfinished frame as text, and look for frames inside it."""
        return list(self._take(final=True))

    def _take(self, final: bool = False) -> Iterator[Frame | bytes]:
        data, start, text = self._pending, 0, 0
        while (start := _find_magic(data, start)) >= 0:
            frame = self._frame_at(data, start)
            if frame is MORE and not final:
                break
            if not isinstance(frame, Frame):
                start += 1
                continue
            if start > text:
                yield data[text:start]
            yield frame
            start = text = start + FRAME_BYTES + len(frame.payload)
        stop = start if start >= 0 else len(data)
        self._pending = data[stop:]
        if stop > text:
            yield data[text:stop]

    def _frame_at(self, data: bytes, start: int) -> Frame | int:
        """The frame that starts there, or NONE, or MORE bytes are needed to tell."""
        head = data[start : start + HEADER.size]
        if len(head) > len(MAGIC) and head[len(MAGIC)] not in KINDS:
            return NONE
        if len(head) < HEADER.size:
            return MORE
        _, kind, seq, length = HEADER.unpack(head)
        if length > self.limit:
            return NONE
        end = start + HEADER.size + length
        if end + CRC.size > len(data):
            return MORE
        if CRC.unpack_from(data, end) != (zlib.crc32(data[start + len(MAGIC) : end]),):
            return NONE
        return Frame(kind, seq, data[start + HEADER.size : end])


def _find_magic(data: bytes, start: int) -> int:
    """The next place where a frame starts or, with the last byte, may start; -1 if there is none."""
    at = data.find(MAGIC, start)
    if at < 0 and len(data) > start and data[-1] == MAGIC[0]:
        return len(data) - 1
    return at
