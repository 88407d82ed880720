"""Seeded damage to files: of bytes, of the structure of JSON, and of names and values in text."""

from __future__ import annotations

import copy
import json
import random
import re
import struct
from collections.abc import Callable
from typing import Any

EXTREME = (0, 1, 2, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFC, 0xFFFFFFFF)
NAMES = (
    "",
    "x" * 5000,
    "*/ int evil; /*",
    '"); system("true"); ("',
    "__import__('os').abort()",
    "../../../etc/passwd",
    "a\x00b",
    "a\nb",
    "class",
    "NULL",
    "\u202e\U0001f600",
    "%s%n{0.__class__}",
    "<script>",
    "-1",
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 7, 1 << 31, 1 << 32, 1 << 62, 1 << 64, -(1 << 63), 10**30, 0.5, 1e308, float("inf")),
    *([], {}, "", [[]], {"as_int": -1}, {"as_expr": {"expr_str": "s0"}}, *NAMES),
)


def flip_bits(data: bytes, rng: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        made[rng.randrange(len(made))] ^= 1 << rng.randrange(8)
    return bytes(made)


def cut(data: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data))]


def extreme_values(data: bytes, rng: random.Random) -> bytes:
    made = bytearray(data.ljust(4, b"\0"))
    for _ in range(rng.randint(1, 3)):
        struct.pack_into("<I", made, 4 * rng.randrange(len(made) // 4), rng.choice(EXTREME))
    return bytes(made)


def nudge(data: bytes, rng: random.Random) -> bytes:
    """Change a small number a little: offsets, lengths and indices that are off by one."""
    made = bytearray(data)
    small = [at for at in range(0, len(made) - 3, 4) if 0 < struct.unpack_from("<I", made, at)[0] < 4096]
    if small:
        at = rng.choice(small)
        struct.pack_into("<I", made, at, max(0, struct.unpack_from("<I", made, at)[0] + rng.choice((-4, -1, 1, 4))))
    return bytes(made)


def splice(data: bytes, rng: random.Random) -> bytes:
    """Copy one place of the file over another, or take a piece out."""
    made = bytearray(data)
    size = rng.randint(1, 256)
    a, b = rng.randrange(len(made)), rng.randrange(len(made))
    if rng.random() < 0.5:
        piece = made[a : a + size]
        made[b : b + len(piece)] = piece
    else:
        del made[a : a + size]
    return bytes(made)


def rename(data: bytes, rng: random.Random) -> bytes:
    """Put a hostile name over a text of the file, of the same length."""
    texts = [m.span() for m in re.finditer(rb"[A-Za-z_:.]{4,}", data)]
    if not texts:
        return flip_bits(data, rng)
    start, end = rng.choice(texts)
    name = rng.choice(NAMES[2:]).encode()[: end - start]
    return data[:start] + name.ljust(end - start, b"_") + data[end:]


BYTES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    flip_bits,
    flip_bits,
    cut,
    extreme_values,
    nudge,
    splice,
    rename,
)


def damaged_bytes(data: bytes, rng: random.Random) -> bytes:
    return rng.choice(BYTES)(data, rng) if data else data


def damaged_json(value: Any, rng: random.Random) -> Any:
    """One to three places of a tree changed: taken out, doubled, renamed, exchanged, or given another value."""
    made = copy.deepcopy(value)
    for _ in range(rng.randint(1, 3)):
        places = list(_places(made))
        if not places:
            return made
        table, key = rng.choice(places)
        what = rng.randrange(6)
        if what == 0:
            del table[key]
        elif what == 1 and isinstance(table, list):
            table.insert(key, copy.deepcopy(table[key]))
        elif what == 2 and isinstance(table, dict):
            table[rng.choice(NAMES)] = table.pop(key)
        elif what == 3:
            other, place = rng.choice(places)
            table[key] = copy.deepcopy(other[place]) if place in _keys(other) else None
        elif what == 4 and isinstance(table[key], int):
            table[key] += rng.choice((-1, 1, 1000, 1 << 40))
        else:
            table[key] = rng.choice(VALUES)
    return made


def _keys(table: Any) -> list[Any]:
    return list(table) if isinstance(table, dict) else list(range(len(table)))


def _places(value: Any) -> Any:
    if isinstance(value, (dict, list)):
        for key in _keys(value):
            yield value, key
            yield from _places(value[key])


def json_text(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


def damaged_text(text: str, rng: random.Random) -> str:
    """Lines taken out, doubled, exchanged; words and numbers replaced; deep nests."""
    lines = text.splitlines()
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(lines))
        what = rng.randrange(8)
        if what == 0 and len(lines) > 1:
            del lines[at]
        elif what == 1:
            lines.insert(rng.randrange(len(lines)), lines[at])
        elif what == 2:
            other = rng.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif what == 3:
            lines[at] = _replaced(r"[A-Za-z_][\w.]*", lines[at], rng.choice(NAMES), rng)
        elif what == 4:
            lines[at] = _replaced(r"-?\d[\w.]*", lines[at], str(rng.choice((*EXTREME, -1, 10**30, "9" * 5000))), rng)
        elif what == 5:
            lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
        elif what == 6:
            lines[at] = _replaced(
                r"\S+$", lines[at], rng.choice(("[" * 3000, "(" * 3000, "{a=" * 500, "true", "[]")), rng
            )
        else:
            lines[at] = "".join(chr(ord(c) ^ (1 << rng.randrange(7))) if rng.random() < 0.05 else c for c in lines[at])
    return "\n".join(lines) + "\n"


def _replaced(pattern: str, line: str, new: str, rng: random.Random) -> str:
    found = list(re.finditer(pattern, line))
    if not found:
        return line
    start, end = rng.choice(found).span()
    return line[:start] + new + line[end:]
