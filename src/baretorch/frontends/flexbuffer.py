"""Reads the attributes of custom operators: a FlexBuffers map of whole numbers and truth values.

The bytes may be damaged or malicious: every offset is checked before it is used, and the number of attributes and the
length of their names are limited.
"""

from __future__ import annotations

from baretorch.frontends.untrusted import damaged_file

INT, UINT, MAP, BOOL = 1, 2, 9, 26  # types of values
MOST = 64  # attributes, and letters of a name


def read_integers(data: bytes, kind: str) -> dict[str, int]:
    """Return the attributes by their names. Attributes of other types are left out."""

    def number(at: int, width: int, signed: bool = False) -> int:
        if width not in (1, 2, 4, 8) or not 0 <= at <= len(data) - width:
            raise damaged_file(kind, f"the attributes of a custom operator refer to byte {at} of {len(data)}")
        return int.from_bytes(data[at : at + width], "little", signed=signed)

    if len(data) < 3 or data[-2] >> 2 != MAP:
        raise damaged_file(kind, "the attributes of a custom operator are not a map")
    root, width = len(data) - 2 - data[-1], 1 << (data[-2] & 3)
    values = root - number(root, data[-1])
    count, key_width = number(values - width, width), number(values - 2 * width, width)
    if count > MOST:
        raise damaged_file(kind, f"a custom operator has {count} attributes")
    keys = values - 3 * width - number(values - 3 * width, width)
    found = {}
    for i in range(count):
        at = keys + i * key_width
        start = at - number(at, key_width)
        end = data.find(b"\0", start, start + MOST) if start >= 0 else -1
        if end < 0:
            raise damaged_file(kind, "the name of an attribute has no end")
        type = number(values + count * width + i, 1) >> 2
        if type in (INT, UINT, BOOL):
            found[data[start:end].decode("ascii", "replace")] = number(values + i * width, width, signed=type == INT)
    return found
