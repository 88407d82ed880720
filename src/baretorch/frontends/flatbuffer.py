"""A small FlatBuffers reader for files that may be damaged or malicious.

Every offset and length is checked before it is used, and a budget bounds the total work, so that a damaged file ends in
a CompileError and nothing else. Readers name a field by its slot number, which is its place in its table of the schema,
where a union takes two.
"""

from __future__ import annotations

from struct import calcsize, unpack_from

from baretorch.errors import CompileError
from baretorch.frontends.untrusted import damaged_file


class Bytes:
    """The file's bytes. Reads stay within its bounds, and their number is limited."""

    def __init__(self, data: bytes, kind: str, identifier: bytes, what: str) -> None:
        """Raise CompileError if the bytes do not have the identifier of a file that is `what`."""
        if len(data) < 8 or data[4:8] != identifier:
            raise CompileError(
                f"not {what}",
                have=f"{len(data)} bytes with the identifier {data[4:8]!r}",
                need=f"a {kind} file, identifier {identifier!r}",
            )
        self.data = data
        self._kind = kind
        self._budget = 1000 + 4 * len(data)  # items; an honest file needs far less than one per byte

    def damaged(self, what: str) -> CompileError:
        return damaged_file(self._kind, what)

    def spend(self, items: int) -> None:
        self._budget -= items
        if self._budget < 0:
            raise self.damaged("its tables refer to each other without end")

    def real(self, format: str, at: int) -> float:
        return float(self.many(format, at, 1)[0])

    def integer(self, format: str, at: int) -> int:
        return int(self.many(format, at, 1)[0])

    def many(self, format: str, at: int, count: int) -> tuple[int | float, ...]:
        if at < 0 or at + count * calcsize("<" + format) > len(self.data):
            raise self.damaged(f"it refers to byte {at} of {len(self.data)}")
        self.spend(count)
        return unpack_from(f"<{count}{format}", self.data, at)

    def slice(self, start: int, size: int, what: str) -> memoryview:
        if start + size > len(self.data):
            raise self.damaged(f"{what} ends at byte {start + size} of {len(self.data)}; is it cut short?")
        return memoryview(self.data)[start : start + size]


class Table:
    """A FlatBuffers table: fields by slot number, each of which may be absent."""

    def __init__(self, file: Bytes, at: int) -> None:
        self._file = file
        self._start = at
        self._fields = at - file.integer("i", at)
        self._size = file.integer("H", self._fields)

    def at(self, slot: int) -> int | None:
        """Return the place of a field in the file, or None if it is absent."""
        place = 4 + 2 * slot
        offset = self._file.integer("H", self._fields + place) if place + 2 <= self._size else 0
        return self._start + offset if offset else None

    def _target(self, slot: int) -> int | None:
        at = self.at(slot)
        return None if at is None else at + self._file.integer("I", at)

    def integer(self, slot: int, format: str, default: int = 0) -> int:
        at = self.at(slot)
        return default if at is None else self._file.integer(format, at)

    def real(self, slot: int, format: str) -> float:
        at = self.at(slot)
        return 0.0 if at is None else self._file.real(format, at)

    def table(self, slot: int) -> Table | None:
        at = self._target(slot)
        return None if at is None else Table(self._file, at)

    def integers(self, slot: int, format: str) -> tuple[int, ...]:
        return tuple(map(int, self._vector(slot, format)[1]))

    def reals(self, slot: int, format: str) -> tuple[float, ...]:
        return tuple(map(float, self._vector(slot, format)[1]))

    def text(self, slot: int) -> str:
        try:
            return bytes(self.integers(slot, "B")).decode()
        except UnicodeDecodeError:
            raise self._file.damaged("a name in it is not text") from None

    def span(self, slot: int) -> memoryview:
        """Return a vector of bytes without reading it."""
        at = self._target(slot)
        if at is None:
            return memoryview(b"")
        return self._file.slice(at + 4, self._file.integer("I", at), "a constant")

    def tables(self, slot: int) -> tuple[Table, ...]:
        start, offsets = self._vector(slot, "I")
        return tuple(Table(self._file, start + 4 * i + int(offset)) for i, offset in enumerate(offsets))

    def union(self, slot: int) -> tuple[int, Table]:
        """Return kind (numbered from 1) and content of a union."""
        table = self.table(slot + 1)
        if table is None:
            raise self._file.damaged("a value in it is empty")
        return self.integer(slot, "B"), table

    def _vector(self, slot: int, format: str) -> tuple[int, tuple[int | float, ...]]:
        at = self._target(slot)
        if at is None:
            return 0, ()
        return at + 4, self._file.many(format, at + 4, self._file.integer("I", at))
