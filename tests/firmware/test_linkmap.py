"""Maps of both linkers."""

from __future__ import annotations

import pytest

from baretorch.errors import InternalError
from baretorch.firmware.reach import LinkedSection, parse_map

GNU = """
Discarded input sections

 .text.gone     0x00000000       0x12 a.o

Linker script and memory map

LOAD a.o

.text           0x10000000       0x64
 *(.text*)
 .text.f        0x10000000       0x24 a.o
                0x10000000                f
 *fill*         0x10000024        0x4
 .text.a_rather_long_name
                0x10000028       0x3c lib.a(b.o)
 .text          0x10000064        0x0 a.o

.a_long_output_section
                0x20000000        0x8 load address 0x10000064
 .data.x        0x20000000        0x8 a.o

.comment        0x00000000       0x26
 .comment       0x00000000       0x26 a.o
                                 0x27 (size before relaxing)
"""

LLD = """\
     VMA      LMA     Size Align Out     In      Symbol
10000000 10000000       64     4 .text
10000000 10000000       24     4         a.o:(.text.f)
10000000 10000000        0     1                 $t
10000001 10000001       24     1                 f
10000028 10000028       3c     4         lib.a(b.o):(.text..Lrt.b)
20000000 10000064        8     4 .a_long_output_section
20000000 10000064        8     4         a.o:(.data.x)
       0        0       26     1 .comment
       0        0       26     1         <internal>:(.comment)
"""


@pytest.mark.parametrize(
    ("text", "name", "last"),
    [(GNU, ".text.a_rather_long_name", "a.o"), (LLD, ".text..Lrt.b", "<internal>")],
)
def test_pieces(text: str, name: str, last: str) -> None:
    assert parse_map(text) == (
        LinkedSection(".text.f", ".text", "a.o", 0x10000000, 0x24),
        LinkedSection(name, ".text", "lib.a(b.o)", 0x10000028, 0x3C),
        LinkedSection(".data.x", ".a_long_output_section", "a.o", 0x20000000, 8),
        LinkedSection(".comment", ".comment", last, 0, 0x26),
    )


def test_something_else_is_our_fault() -> None:
    with pytest.raises(InternalError, match="neither"):
        parse_map("hello")
