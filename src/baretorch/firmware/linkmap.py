"""Parses linker maps of GNU ld and LLD: which input section of which object file went where."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from baretorch.errors import InternalError


@dataclass(frozen=True)
class LinkedSection:
    """An input section in the linked image."""

    name: str
    output: str  # the output section it is part of
    source: str  # object file, or archive(member)
    address: int
    size: int

    @property
    def end(self) -> int:
        return self.address + self.size


_GNU_START = "Linker script and memory map"
_LLD_START = re.compile(r"\s*VMA\s+LMA\s+Size\s+Align\s+Out\s+In\s+Symbol")
# GNU ld breaks the line after a long name. Output sections start in the first column, input sections in the second.
_GNU_ROW = re.compile(
    r"^(?P<output>[^\s*/]\S*)(?:\s+0x[0-9a-f]+\s+0x[0-9a-f]+.*)?$"
    r"|^ (?P<name>[^\s*]\S*)\s+0x(?P<address>[0-9a-f]+)\s+0x(?P<size>[0-9a-f]+) (?P<source>\S.*)$",
    re.MULTILINE,
)
_LLD_ROW = re.compile(
    r"^ *(?P<address>[0-9a-f]+) +[0-9a-f]+ +(?P<size>[0-9a-f]+) +[0-9]+ "
    r"(?:(?P<output>\S+)| {8}(?P<source>\S.*):\((?P<name>.+)\))$",
    re.MULTILINE,
)


def parse_map(text: str) -> tuple[LinkedSection, ...]:
    """Return all input sections that take up space, in the order of the map."""
    if _LLD_START.match(text):
        return tuple(_pieces(_LLD_ROW, text))
    _, found, body = text.partition(_GNU_START)
    if not found:
        raise InternalError("the linker's map is neither GNU ld's nor LLD's")
    return tuple(_pieces(_GNU_ROW, body))


def _pieces(row: re.Pattern[str], text: str) -> Iterator[LinkedSection]:
    output = ""
    for match in row.finditer(text):
        if match["output"]:
            output = match["output"]
        elif size := int(match["size"], 16):
            yield LinkedSection(match["name"], output, match["source"], int(match["address"], 16), size)
