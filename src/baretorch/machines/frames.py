"""Frames on the wire between host and device, and the text around them.

    'B' 'T'  type u8  seq u8  length u32  payload  CRC-32 u32        (little-endian)

The CRC (zlib's) covers type to payload. Whatever a device sends outside a frame is text for people.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

MAGIC = b"BT"
HEADER = struct.Struct("<2sBBI")
CRC = struct.Struct("<I")
FRAME_BYTES = HEADER.size + CRC.size  # in addition to the payload

HELLO, RUN, RESET = ord("H"), ord("R"), ord("Z")  # host to device
HELLO_REPLY, RUN_REPLY, RESET_REPLY, ERROR_REPLY = ord("h"), ord("r"), ord("z"), ord("e")  # device to host
WRONG_INPUT = 4  # the code of an error reply that names an input
NO_FRAME = 0
KINDS = bytes((HELLO, RUN, RESET, HELLO_REPLY, RUN_REPLY, RESET_REPLY, ERROR_REPLY))


@dataclass(frozen=True)
class Frame:
    """A message. `seq` connects a reply with its request."""

    kind: int
    seq: int
    payload: bytes = b""


def encode_frame(frame: Frame) -> bytes:
    """Return the bytes of a frame."""
    header = HEADER.pack(MAGIC, frame.kind, frame.seq, len(frame.payload))
    checked = header[len(MAGIC) :] + frame.payload
    return MAGIC + checked + CRC.pack(zlib.crc32(checked))


class Decoder:
    """Splits a byte stream, piece by piece, into frames and text.

    Bytes that look like a frame but have an unknown type, more than `limit` payload bytes or a wrong CRC are text up to
    the second byte. The search continues there, so that a whole frame after a damaged one is found.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._pending = bytearray()  # an unfinished frame
        self._needed = 0  # its length, as far as it is known

    def feed(self, data: bytes) -> list[Frame | bytes]:
        """Return the frames and texts that `data` completes. An unfinished frame is kept for the next call."""
        self._pending += data
        return self._take(final=False) if len(self._pending) >= self._needed else []

    def give_up(self) -> list[Frame | bytes]:
        """Treat the unfinished frame as text, and look for frames inside it, because no more bytes will arrive."""
        return self._take(final=True)

    def _take(self, final: bool) -> list[Frame | bytes]:
        data, start, text = bytes(self._pending), 0, 0
        found: list[Frame | bytes] = []
        self._needed = 0
        while (start := _find_magic(data, start)) >= 0:
            frame = self._frame_at(data, start)
            if isinstance(frame, Frame):
                found += [data[text:start], frame] if start > text else [frame]
                start = text = start + FRAME_BYTES + len(frame.payload)
            elif frame == NO_FRAME or final:
                start += 1
            else:
                self._needed = frame
                break
        stop = start if start >= 0 else len(data)
        if stop > text:
            found.append(data[text:stop])
        self._pending = bytearray(data[stop:])
        return found

    def _frame_at(self, data: bytes, start: int) -> Frame | int:
        """Return the frame that starts at a position, or NO_FRAME, or the number of bytes that are needed to decide."""
        head = data[start : start + HEADER.size]
        if len(head) > len(MAGIC) and head[len(MAGIC)] not in KINDS:
            return NO_FRAME
        if len(head) < HEADER.size:
            return len(head) + 1
        _, kind, seq, length = HEADER.unpack(head)
        if length > self.limit:
            return NO_FRAME
        end = start + HEADER.size + length
        if end + CRC.size > len(data):
            return FRAME_BYTES + int(length)
        if CRC.unpack_from(data, end) != (zlib.crc32(data[start + len(MAGIC) : end]),):
            return NO_FRAME
        return Frame(kind, seq, data[start + HEADER.size : end])


def _find_magic(data: bytes, start: int) -> int:
    """Return the next position where a frame starts, or may start with the last byte; -1 if there is none."""
    at = data.find(MAGIC, start)
    if at < 0 and len(data) > start and data[-1] == MAGIC[0]:
        return len(data) - 1
    return at
