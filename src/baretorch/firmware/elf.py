"""Reads linked ELF images, ELF32 and ELF64, little-endian: sections, segments, symbols, relocations.

Whatever is wrong with the bytes becomes a CompileError: the file may come from anywhere. pyelftools is not used:
it takes seven to ten times as long (KWS for cluster8: 20 ms instead of 3), and each run reads its image several times.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from baretorch.errors import CompileError

ARM, X86_64, AVR, RISCV = 40, 62, 83, 243

WRITE, ALLOC, EXECUTE = 1, 2, 4  # section flags
SYMTAB, RELA, NOBITS, REL = 2, 4, 8, 9  # section types
LOAD = 1  # segment type
NOTYPE, OBJECT, FUNC, SECTION = 0, 1, 2, 3  # symbol types
LOCAL = 0  # symbol binding
UNDEFINED, RESERVED = 0, 0xFF00  # section indices: no section, and the first of those with special meaning


@dataclass(frozen=True)
class Section:
    index: int
    name: str
    type: int
    flags: int
    address: int
    size: int
    link: int
    info: int
    data: bytes  # empty for NOBITS

    def holds(self, address: int) -> bool:
        return self.address <= address < self.address + self.size


@dataclass(frozen=True)
class Segment:
    """A segment of an ELF file, at its address in the running image and in the programmed flash (`physical`)."""

    type: int
    offset: int
    address: int
    physical: int
    data: bytes


@dataclass(frozen=True)
class Symbol:
    """A symbol of an ELF file. `value` keeps the Thumb bit; `address` does not."""

    name: str
    value: int
    size: int
    type: int
    binding: int
    section: int
    address: int

    @property
    def defined(self) -> bool:
        return UNDEFINED < self.section < RESERVED


@dataclass(frozen=True)
class Relocation:
    """A relocation. `section` is the index of the section that it changes; `addend` is None if the bytes there contain
    it."""

    section: int
    offset: int
    type: int
    symbol: Symbol
    addend: int | None


@dataclass(frozen=True)
class Elf:
    bits: int
    machine: int
    flags: int
    entry: int
    sections: tuple[Section, ...]
    segments: tuple[Segment, ...]
    symbols: tuple[Symbol, ...]
    relocations: tuple[Relocation, ...]

    @cached_property
    def _by_address(self) -> tuple[tuple[Section, ...], tuple[int, ...]]:
        mapped = sorted((s for s in self.sections if s.flags & ALLOC and s.size), key=lambda s: s.address)
        return tuple(mapped), tuple(s.address for s in mapped)

    def section_at(self, address: int) -> Section | None:
        """Return the section at an address of the running image."""
        mapped, starts = self._by_address
        i = bisect_right(starts, address) - 1
        return mapped[i] if i >= 0 and mapped[i].holds(address) else None

    def bytes_at(self, address: int, size: int) -> bytes:
        """Return the initial content of the image's memory. Raises CompileError if the file does not contain it."""
        section = self.section_at(address)
        if section is not None:
            start = address - section.address
            found = section.data[start : start + size]
            if len(found) == size:
                return found
        raise CompileError(f"the ELF file has no {size} bytes at {address:#x}")

    def symbol(self, name: str) -> Symbol:
        for s in self.symbols:
            if s.name == name and s.defined:
                return s
        raise CompileError(f"the ELF file has no symbol {name}")


@dataclass(frozen=True)
class _Layout:
    """The differences between ELF32 and ELF64."""

    header: str
    section: str
    segment: str
    symbol: str
    rel: str
    rela: str
    symbol_shift: int  # r_info holds the symbol above, the type below


_LAYOUTS = {
    1: _Layout("<HHIIIIIHHHHHH", "<IIIIIIIIII", "<IIIIIIII", "<IIIBBH", "<II", "<IIi", 8),
    2: _Layout("<HHIQQQIHHHHHH", "<IIQQQQIIQQ", "<IIQQQQQQ", "<IBBHQQ", "<QQ", "<QQq", 32),
}


def read_elf(data: bytes) -> Elf:
    """Read an ELF file. Raises CompileError if it is invalid."""
    if data[:4] != b"\x7fELF":
        raise CompileError("not an ELF file", have=f"first bytes {data[:4].hex() or 'none'}", need="7f454c46")
    if len(data) < 16 or data[4] not in _LAYOUTS or data[5] != 1:
        raise CompileError(
            "the ELF file is not a little-endian one of 32 or 64 bits", have=f"identification {data[:16].hex()}"
        )
    layout = _LAYOUTS[data[4]]
    try:
        return _read(data, layout)
    except (struct.error, IndexError) as error:
        raise CompileError(f"the ELF file is broken: {error}") from error


def _read(data: bytes, layout: _Layout) -> Elf:
    header = struct.unpack_from(layout.header, data, 16)
    _, machine, _, entry, segment_table, section_table, flags, *rest = header
    _, segment_size, segments, section_size, sections, names = rest
    found = _sections(data, layout, section_table, section_size, sections, names)
    tables = {s.index: tuple(_symbols(s, found, layout, machine)) for s in found if s.type == SYMTAB}
    return Elf(
        bits=64 if layout.symbol_shift == 32 else 32,
        machine=machine,
        flags=flags,
        entry=entry,
        sections=found,
        segments=tuple(_segments(data, layout, segment_table, segment_size, segments)),
        symbols=tuple(s for table in tables.values() for s in table),
        relocations=tuple(r for s in found if s.type in (REL, RELA) for r in _relocations(s, tables, layout)),
    )


def _piece(data: bytes, offset: int, size: int) -> bytes:
    if offset + size > len(data):
        raise CompileError(
            f"the ELF file is truncated: it has {len(data)} bytes, and {size} bytes at {offset} are needed"
        )
    return data[offset : offset + size]


def _text(table: bytes, offset: int) -> str:
    end = table.find(b"\0", offset)
    if end < 0:
        raise CompileError(f"the ELF file is broken: no name at {offset} of a string table of {len(table)} bytes")
    return table[offset:end].decode("utf-8", "replace")


def _records(layout: str, table: bytes) -> Iterator[tuple[int, ...]]:
    size = struct.calcsize(layout)
    return struct.iter_unpack(layout, table[: len(table) // size * size])


def _table(data: bytes, layout: str, offset: int, entry: int, count: int) -> Iterator[tuple[int, ...]]:
    if count and entry != struct.calcsize(layout):
        raise CompileError(f"the ELF file is broken: table entries of {entry} bytes")
    return _records(layout, _piece(data, offset, entry * count))


def _sections(
    data: bytes, layout: _Layout, offset: int, entry: int, count: int, names_index: int
) -> tuple[Section, ...]:
    rows = list(_table(data, layout.section, offset, entry, count))
    if not rows:
        return ()
    bodies = [b"" if row[1] in (0, NOBITS) else _piece(data, row[4], row[5]) for row in rows]
    if sum(map(len, bodies)) > 2 * len(data):
        raise CompileError("the ELF file is broken: its sections overlap")
    names = bodies[names_index]
    return tuple(
        Section(
            index=i,
            name=_text(names, row[0]) if names else "",
            type=row[1],
            flags=row[2],
            address=row[3],
            size=row[5],
            link=row[6],
            info=row[7],
            data=body,
        )
        for i, (row, body) in enumerate(zip(rows, bodies, strict=True))
    )


def _segments(data: bytes, layout: _Layout, offset: int, entry: int, count: int) -> Iterator[Segment]:
    for row in _table(data, layout.segment, offset, entry, count):
        if layout.symbol_shift == 32:
            kind, _, start, address, physical, stored, *_ = row
        else:
            kind, start, address, physical, stored, *_ = row
        yield Segment(kind, start, address, physical, _piece(data, start, stored) if kind == LOAD else b"")


def _symbols(table: Section, sections: Sequence[Section], layout: _Layout, machine: int) -> Iterator[Symbol]:
    names = sections[table.link].data
    for row in _records(layout.symbol, table.data):
        if layout.symbol_shift == 32:
            name, info, _, section, value, size = row
        else:
            name, value, size, info, _, section = row
        kind = info & 15
        own = _text(names, name) if name else ""
        if kind == SECTION and not own and section < len(sections):
            own = sections[section].name
        thumb = machine == ARM and kind == FUNC
        yield Symbol(own, value, size, kind, info >> 4, section, value & ~1 if thumb else value)


def _relocations(table: Section, symbols: dict[int, tuple[Symbol, ...]], layout: _Layout) -> Iterator[Relocation]:
    if table.link not in symbols:
        return  # the dynamic ones of a host program
    shift = layout.symbol_shift
    for offset, info, *addend in _records(layout.rel if table.type == REL else layout.rela, table.data):
        symbol = symbols[table.link][info >> shift]
        yield Relocation(table.info, offset, info & ((1 << shift) - 1), symbol, addend[0] if addend else None)
