"""Read structures and constants from C headers, so that those that C and Python share are declared once, in C."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_MACRO = re.compile(r"#define (\w+) (\d\w*)")
_ENUM = re.compile(r"enum(?: \w+)? \{([^}]*)\};")
_STRUCT = re.compile(r"struct(?: (\w+))? \{([^{}]*)\} ?(\w*);")
_FUNCTION = re.compile(r"\(\*(\w+)\)\(")
_VARIABLES = re.compile(r"(?:const )?(?:struct )?(\w+) (.*)")
_VARIABLE = re.compile(r"(\**)(\w+)((?:\[[^]]+\])*)")
_NUMBER = re.compile(r"(-?\w+)(?: (<<|\*|\+) (\w+))?")
_SCALARS: Mapping[str, Any] = {
    "bool": ctypes.c_bool,
    "int": ctypes.c_int,
    "double": ctypes.c_double,
    "int32_t": ctypes.c_int32,
    "uint8_t": ctypes.c_uint8,
    "uint16_t": ctypes.c_uint16,
    "uint32_t": ctypes.c_uint32,
    "uint64_t": ctypes.c_uint64,
}


@dataclass(frozen=True)
class Header:
    """The structures of a C header by name, and the values of its enumerators and numeric macros."""

    structs: Mapping[str, type[ctypes.Structure]]
    constants: Mapping[str, int]


def read_header(path: Path) -> Header:
    """Read a header. Pointers to functions and to structures of other headers become `c_void_p`."""
    text = _COMMENT.sub("", path.read_text())
    constants: dict[str, int] = {}
    for name, value in _MACRO.findall(text):
        constants[name] = _evaluate(value, constants)
    for body in _ENUM.findall(text):
        numbers = count()
        for enumerator in filter(None, map(str.strip, body.split(","))):
            name, _, value = enumerator.partition(" = ")
            if value:
                numbers = count(_evaluate(value, constants))
            constants[name] = next(numbers)
    bodies = {name or alias: body for name, body, alias in _STRUCT.findall(text)}
    structs: dict[str, Any] = {name: type(name, (ctypes.Structure,), {}) for name in bodies}
    for name, body in bodies.items():
        lines = map(str.strip, body.split(";"))
        structs[name]._fields_ = [field for line in lines if line for field in _fields(line, structs, constants)]
    return Header(structs, constants)


def _fields(declaration: str, structs: Mapping[str, Any], constants: Mapping[str, int]) -> Iterator[tuple[str, Any]]:
    """Yield the names and types that a line of a structure declares."""
    if function := _FUNCTION.search(declaration):
        yield function[1], ctypes.c_void_p
        return
    ((kind, names),) = _VARIABLES.findall(declaration)
    known = _SCALARS.get(kind) or structs.get(kind)
    for stars, name, dimensions in _VARIABLE.findall(names):
        type_: Any = known
        if stars:
            type_ = ctypes.POINTER(known) if known is not None else ctypes.c_void_p
        for size in reversed(re.findall(r"[^][]+", dimensions)):
            type_ *= _evaluate(size, constants)
        yield name, type_


def _evaluate(text: str, constants: Mapping[str, int]) -> int:
    """Return the value of a number, a constant, or a shift, product or sum of two of them."""
    ((left, operator, right),) = _NUMBER.findall(text)
    a = constants[left] if left in constants else int(left.rstrip("u"), 0)
    if not operator:
        return a
    b = _evaluate(right, constants)
    return a << b if operator == "<<" else a * b if operator == "*" else a + b
