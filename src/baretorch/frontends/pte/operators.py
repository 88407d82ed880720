"""The schemas of operators in `.pte` files, which select a call's operator and check the type of each argument.

A `.pte` stores an operator's name, its overload and a list of values, but not the operator's schema. `aten.txt` has
the schemas of ATen, written by tools/make_pte_operators.py; `executorch.txt` those of ExecuTorch's own operators, with
a line for each published version, from the oldest to the newest. Rows get arguments in the order of the newest one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TypeAlias

from baretorch.errors import CompileError

FILES = ("aten.txt", "executorch.txt")
WORKSPACE = ("scratch", "output_scratch")  # working memory of ExecuTorch's kernels, which is never read
MANY = 32  # schemas and argument types in an error
_LINE = re.compile(r"(?P<name>\w+::\w+)(?:\.(?P<overload>\w+))?\((?P<parameters>.*)\)")
_PARAMETER = re.compile(r"(?P<type>\w+)(?P<written>\(\w!\))?(?P<item>\?)?(?P<list>\[\d*\])?(?P<none>\?)? (?P<rest>.+)")
_NUMBERS = ("int", "float", "bool")
# The kinds of values that a parameter of each type accepts. ExecuTorch stores a number by its Python type, so that a
# whole number may be stored for a float; types, layouts and memory formats are stored as numbers.
_ACCEPTED = {
    "Tensor": ("Tensor",),
    "Scalar": _NUMBERS,
    "int": ("int",),
    "SymInt": ("int",),
    "float": ("float", "int"),
    "bool": ("bool",),
    "str": ("str",),
    "ScalarType": ("int",),
    "Layout": ("int",),
    "MemoryFormat": ("int",),
    "Device": (),
    "Generator": (),
}

Default: TypeAlias = bool | int | float | str | None


@dataclass(frozen=True)
class Parameter:
    """A parameter of an operator. `optional` ones may be None, as may the items of a list with `optional_items`."""

    name: str
    type: str
    is_list: bool
    optional: bool
    optional_items: bool
    default: Default

    def accepts(self, kind: str) -> bool:
        """Report whether a value of this kind (`int`, `Tensor[]`, `None` …) matches."""
        if kind == "None":
            return self.optional
        if not self.is_list:
            return kind in _ACCEPTED[self.type]
        item = kind.removesuffix("[]")
        if item == kind:
            return False
        return item in ("", *_ACCEPTED[self.type]) or (self.optional_items and item == f"{self.type}?")


@dataclass(frozen=True)
class Schema:
    """One version of an operator's schema, without the tensors that it writes its results to."""

    text: str
    operator: str
    overload: str
    parameters: tuple[Parameter, ...]

    def accepts(self, kinds: Sequence[str]) -> bool:
        """Report whether values of these kinds match its arguments."""
        return len(kinds) == len(self.parameters) and all(map(Parameter.accepts, self.parameters, kinds))


@dataclass(frozen=True)
class Matched:
    """A call's schema, and the newest one of its operator, which defines the order of arguments."""

    schema: Schema
    newest: Schema

    def order(self) -> list[tuple[Parameter, int | None]]:
        """Return the newest schema's parameters, each with its place in the call, or None if the call has none."""
        places = {p.name: i for i, p in enumerate(self.schema.parameters)}
        return [(p, places.get(p.name)) for p in self.newest.parameters]


def find_schema(operator: str, overload: str, kinds: Sequence[str], at: str) -> Matched | None:
    """Return the schema of a call by the kinds of its arguments; CompileError if no known one fits, and None if no
    schema of the operator is known at all."""
    known = known_schemas().get(operator)
    if known is None:
        return None
    versions = [s for s in known if s.overload == overload]
    found = next((s for s in versions if s.accepts(kinds)), None)
    if found is not None:
        return Matched(found, versions[-1])
    name = f"{operator}.{overload}" if overload else operator
    short = ", ".join(kinds[:MANY]) + (f" and {len(kinds) - MANY} more" if len(kinds) > MANY else "")
    raise CompileError(
        f"{name} is called with arguments of an unknown schema" if versions else f"the overload {name} is unknown",
        at=at,
        have=f"{name}({short})",
        need=[s.text for s in (versions or known)[-MANY:]],
        try_="export the model again with ExecuTorch 1.5.1; a newer one may have another schema",
    )


def parse(line: str) -> Schema:
    """Parse a schema in PyTorch's notation, without the types of results."""
    found = _LINE.fullmatch(line)
    if found is None:
        raise ValueError(f"not a schema: {line}")
    texts = [p for p in _split(found["parameters"]) if p]
    named = texts.index("*") if "*" in texts else len(texts)
    out = [p for p in texts[named + 1 :] if "!)" in p]  # what comes before the star is changed in place
    parameters = [_parameter(p) for p in texts if p != "*" and p not in out]
    shown = ", ".join(p for p in texts if p not in out).removesuffix(", *")
    name, overload = found["name"], found["overload"] or ""
    return Schema(
        f"{name}{'.' if overload else ''}{overload}({shown})", name, overload, tuple(p for p in parameters if p)
    )


@cache
def known_schemas() -> dict[str, list[Schema]]:
    """Return all schemas by operator, each version's from the oldest to the newest."""
    found: dict[str, list[Schema]] = {}
    for file in FILES:
        for line in files(__package__).joinpath(file).read_text("utf-8").splitlines():
            if line and not line.startswith("#"):
                schema = parse(line)
                found.setdefault(schema.operator, []).append(schema)
    return found


def _parameter(text: str) -> Parameter:
    found = _PARAMETER.fullmatch(text)
    if found is None or found["type"] not in _ACCEPTED:
        raise ValueError(f"not a parameter: {text}")
    name, _, default = found["rest"].partition("=")
    is_list, item, none = found["list"] is not None, found["item"] is not None, found["none"] is not None
    return Parameter(name, found["type"], is_list, none if is_list else item or none, is_list and item, _value(default))


def _value(text: str) -> Default:
    try:
        value = ast.literal_eval(text) if text else None
    except (ValueError, SyntaxError):  # a name, such as `contiguous_format`
        return None
    return value if isinstance(value, (bool, int, float, str)) else None


def _split(text: str) -> list[str]:
    """Split at commas outside of brackets."""
    parts, depth = [""], 0
    for c in text:
        depth += (c in "[(") - (c in "])")
        if c == "," and not depth:
            parts.append("")
        else:
            parts[-1] += c
    return [p.strip() for p in parts]
