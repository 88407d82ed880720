"""Errors of damaged files have golden texts; `.pt2` and TOML have theirs in their own tests."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from baretorch.errors import CompileError
from baretorch.firmware.elf import read_elf
from baretorch.firmware.uf2 import check_uf2, decode_uf2
from baretorch.frontends.aten.methods import share_state
from baretorch.frontends.aten.program import check_program_sizes
from baretorch.frontends.pte.reader import read_pte_methods
from baretorch.targets.boards import load_board
from tests.cli.program import check_golden
from tests.fuzz.readers import DATA, uf2s
from tests.fuzz.retype import calls, with_arguments, with_kind
from tests.graph_text import parse

SINE = (DATA / "sine.pte").read_bytes()
UF2 = uf2s()[0]
GRAPH = "graph g\ninput  x: float32[1, 4]\ny: float32[1, 4] = tanh(x)\noutput y\n"


def pte(data: bytes) -> None:
    for program in share_state(read_pte_methods(data, "sine")).values():
        check_program_sizes(program)


def patched(data: bytes, at: int, value: int) -> bytes:
    return data[:at] + struct.pack("<I", value) + data[at + 4 :]


def sizes(*numbers: int) -> bytes:
    """The file with other sizes where [1, 8] was."""
    old = struct.pack("<III", 2, 1, 8)  # a vector of two
    assert old in SINE
    return SINE.replace(old, struct.pack("<III", 2, *numbers))


def other_types() -> bytes:
    """A file in which the offset of a convolution is a bool."""
    data = (DATA / "cortex_m.pte").read_bytes()
    call = next(c for c in calls(data) if c.operator == "cortex_m::quantized_conv2d")
    return with_kind(data, call, 6, 3)


def other_count() -> bytes:
    """The file, in which a matrix product has one argument less."""
    call = next(c for c in calls(SINE) if c.operator == "aten::addmm")
    return with_arguments(SINE, call, call.arguments[:1] + call.arguments[2:])


def elf(*fields: int) -> bytes:
    """A 32-bit header for Arm that counts one section, at the offset and of the size that are given."""
    offset, entry = fields
    return b"\x7fELF\x01\x01\x01".ljust(16, b"\0") + struct.pack(
        "<HHIIIIIHHHHHH", 2, 40, 1, 0, 0, offset, 0, 52, 32, 0, entry, 1, 0
    )


TEXTS: dict[str, Callable[[], object]] = {
    "pte_empty": lambda: pte(b""),
    "pte_other_kind": lambda: pte(b"PK\x03\x04" + bytes(60)),
    "pte_half": lambda: pte(SINE[: len(SINE) // 2]),
    "pte_root": lambda: pte(patched(SINE, 0, 0x7FFFFFFF)),
    "pte_large_sizes": lambda: pte(sizes(0x7FFFFFFF, 0x7FFFFFFF)),
    "pte_negative_sizes": lambda: pte(sizes(0xFFFFFFFF, 8)),
    "pte_other_sizes": lambda: pte(sizes(1, 9)),
    "pte_other_types": lambda: pte(other_types()),
    "pte_other_count": lambda: pte(other_count()),
    "uf2_empty": lambda: decode_uf2(b""),
    "uf2_cut": lambda: decode_uf2(UF2[:-100]),
    "uf2_magic": lambda: decode_uf2(patched(UF2, 512, 0)),
    "uf2_payload": lambda: decode_uf2(patched(UF2, 512 + 16, 0xFFFFFFFF)),
    "uf2_number": lambda: decode_uf2(patched(UF2, 512 + 20, 1000)),
    "uf2_missing": lambda: check_uf2(UF2[:-512], load_board("pico").chip),
    "uf2_address": lambda: check_uf2(patched(UF2, 12, 0x30000000), load_board("pico").chip),
    "uf2_twice": lambda: check_uf2(patched(UF2, 512 + 12, 0x10000000), load_board("pico").chip),
    "elf_empty": lambda: read_elf(b""),
    "elf_big_endian": lambda: read_elf(b"\x7fELF\x01\x02".ljust(16, b"\0")),
    "elf_cut": lambda: read_elf(elf(0x7FFFFFFF, 40)),
    "elf_entries": lambda: read_elf(elf(52, 41)),
    "graph_line": lambda: parse(GRAPH.replace("tanh(x)", "tanh x")),
    "graph_operator": lambda: parse(GRAPH.replace("tanh", "system")),
    "graph_twice": lambda: parse(GRAPH.replace("output", "y: float32[1, 4] = tanh(x)\noutput")),
    "graph_nothing": lambda: parse(GRAPH.replace("tanh(x)", "tanh(z)")),
    "graph_attribute": lambda: parse(GRAPH.replace("tanh(x)", "tanh(x) lo=__import__('os').abort()")),
    "graph_deep": lambda: parse(GRAPH.replace("tanh(x)", f"tanh(x) lo={'-' * 100_000}1")),
}


@pytest.mark.parametrize("name", TEXTS)
def test_error_text(name: str) -> None:
    with pytest.raises(CompileError) as caught:
        TEXTS[name]()
    check_golden(f"damaged_{name}", caught.value.render() + "\n")
