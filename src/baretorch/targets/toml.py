"""Read TOML files whose keys are declared once: on the dataclass fields that hold their values.

A field `base: Annotated[int, Key("address of its registers")]` is both the reader's rule and a row of the table in the
docs. Fields without a Key are given by the caller.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, NoReturn, TypeVar, get_args, get_origin, get_type_hints

from baretorch.errors import CompileError
from baretorch.escape import quote, short
from baretorch.files import read

T = TypeVar("T")

BOARDS = Path(__file__).parent.parent / "boards"
ADDRESSES = 1 << 32  # every target has a 32-bit address space
NAME = r"\w[\w.-]{0,99}"  # safe as an argument of another program
_TOML_KINDS = {str: "a string", int: "a whole number", bool: "true or false", list: "an array", dict: "a table"}


@dataclass(frozen=True)
class Key:
    """The rule for one key of a TOML file, and its description.

    A number is `least` to `most`. A text is one of `choices`, or matches `pattern`, or names a C file in the `folder`
    of the runtime, or a memory `bank` of that kind. `into` converts a value of the type `raw`; it raises ValueError
    with what it found. `goes_with` is the emulator or flash method that needs the key.
    """

    about: str
    name: str = ""  # the field's name where empty
    least: int = 0
    most: int = ADDRESSES - 1
    choices: tuple[str | int, ...] = ()
    pattern: str = ""
    need: str = ""  # describes valid values in errors
    folder: str = ""
    bank: str = ""
    register: bool = False  # the address of a register, which peripherals must cover
    raw: type | None = None
    into: Callable[[Any], object] | None = None
    goes_with: str = ""
    example: str = ""


@dataclass(frozen=True)
class DeclaredKey:
    """A Key together with the field that it is declared on. `kind` is the field's type without None."""

    field: str
    kind: Any
    optional: bool
    key: Key

    @property
    def name(self) -> str:
        return self.key.name or self.field

    @property
    def raw(self) -> type:
        """The type of the value in the TOML file."""
        if self.key.raw is not None:
            return self.key.raw
        kind: type = list if self.items is not None else dict if is_dataclass(self.kind) else self.kind
        return kind

    @property
    def items(self) -> Any:
        """The type of the items of an array; None for other values."""
        return get_args(self.kind)[0] if get_origin(self.kind) is tuple and self.key.raw is None else None

    @property
    def section(self) -> Any:
        """The dataclass into which a table or an array of tables is read; None for other values."""
        kind = self.kind if self.items is None else self.items
        return kind if is_dataclass(kind) and self.key.raw is None else None

    @property
    def choices(self) -> tuple[str | int, ...]:
        if not self.key.folder:
            return self.key.choices
        return tuple(sorted(path.stem for path in (BOARDS.parent / "runtime" / self.key.folder).glob("*.c")))

    @property
    def shape(self) -> str:
        """An example of the key in a TOML file, or what its value must be."""
        return f"{self.name} = {self.key.example or _TOML_KINDS[self.raw]}"


def keys_of(kind: Any) -> tuple[DeclaredKey, ...]:
    """Return the keys that are declared on the fields of a dataclass."""
    return _declared_keys(kind)


@cache  # mypy does not accept types as arguments of cached functions
def _declared_keys(kind: Any) -> tuple[DeclaredKey, ...]:
    hints = get_type_hints(kind, include_extras=True)
    found = []
    for field in fields(kind):
        if get_origin(hints[field.name]) is Annotated:
            plain, key = get_args(hints[field.name])
            inner = next(arg for arg in get_args(plain) if arg is not None) if isinstance(plain, UnionType) else plain
            optional = field.default is not MISSING or field.default_factory is not MISSING
            found.append(DeclaredKey(field.name, inner, optional, key))
    return tuple(found)


def read_table(path: Path) -> TomlTable:
    """Read a TOML file, or raise CompileError."""
    try:
        rows = read.read_toml(path)
    except FileNotFoundError:
        raise CompileError(f"no file {path}", try_="`baretorch boards` lists the boards that need no file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise CompileError(f"cannot read {path}", have=str(error)) from None
    except ValueError as error:
        raise CompileError(f"{path} is not TOML", have=str(error)) from None
    return TomlTable(shown_path(path), rows)


def shown_path(path: Path) -> str:
    """Return a file's name for messages: our files relative to the package, so that texts are the same everywhere."""
    return str(path.relative_to(BOARDS.parent)) if path.is_relative_to(BOARDS) else str(path)


@dataclass(frozen=True)
class TomlTable:
    """The rows of a TOML table, and its place for messages."""

    where: str
    rows: dict[str, Any]


def read_record(table: TomlTable, kind: type[T], **given: object) -> T:
    """Read the dataclass whose fields declare the table's keys. `given` has the fields that are not read from it."""
    keys = keys_of(kind)
    values = {k.field: _value(table, k, keys) for k in keys if k.field not in given and _is_there(table, k, keys)}
    for name in table.rows:
        if name not in {k.name for k in keys}:
            raise_unknown("key", name, sorted(k.name for k in keys), at=table.where)
    return kind(**values, **given)


def read_key(table: TomlTable, kind: type, field: str) -> Any:
    """Read one key of the dataclass."""
    keys = keys_of(kind)
    key = next(k for k in keys if k.field == field)
    return _value(table, key, keys) if _is_there(table, key, keys) else None


def _is_there(table: TomlTable, key: DeclaredKey, keys: Sequence[DeclaredKey]) -> bool:
    if key.name in table.rows or key.optional:
        return key.name in table.rows
    near = difflib.get_close_matches(key.name, set(table.rows) - {k.name for k in keys}, n=1)
    raise CompileError(
        f"{key.name} is missing",
        at=table.where,
        need=key.shape,
        try_=f"is {near[0]!r} meant to be {key.name!r}?" if near else None,
    )


def _value(table: TomlTable, key: DeclaredKey, keys: Sequence[DeclaredKey]) -> Any:
    """Check and convert the value of a key that is there."""
    value = table.rows[key.name]
    if not _has_type(value, key.raw):
        raise CompileError(
            f"{key.name} must be {_TOML_KINDS[key.raw]}", at=table.where, have=short(f"{key.name} = {quote(value)}")
        )
    if key.section is not None and key.items is None:
        return read_record(TomlTable(f"{table.where} [{key.name}]", value), key.section)
    if key.items is not None:
        return tuple(_item(table, key, i, item) for i, item in enumerate(value))
    _check(table, key, value)
    if key.key.into is None:
        return value
    try:
        return key.key.into(value)
    except (TypeError, ValueError) as error:
        raise CompileError(
            f"invalid {key.name}", at=table.where, have=short(str(error)), need=key.key.need or None
        ) from None


def _item(table: TomlTable, key: DeclaredKey, index: int, item: object) -> Any:
    """Check and convert an item of an array."""
    if key.section is not None:
        if not isinstance(item, dict):
            raise CompileError(f"{key.name} must be an array of tables", at=table.where, need=f"[[{key.name}]]")
        return read_record(TomlTable(f"{table.where} [[{key.name}]] number {index + 1}", item), key.section)
    if not _has_type(item, key.items):
        raise CompileError(f"each of {key.name} must be {_TOML_KINDS[key.items]}", at=table.where, have=quote(item))
    _check(table, key, item)
    return item


def _has_type(value: object, kind: type) -> bool:
    """Report whether a value has the type; a truth value is not a number."""
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _check(table: TomlTable, key: DeclaredKey, value: Any) -> None:
    """Check a text or a number against its Key."""
    rule = key.key
    if isinstance(value, int) and not rule.least <= value <= rule.most:
        bounds = (
            f"{rule.least} to {rule.most}" if rule.most < ADDRESSES - 1 else f"at least {rule.least}, within 32 bits"
        )
        raise CompileError(f"{key.name} = {quote(value)} is out of range", at=table.where, need=rule.need or bounds)
    if key.choices and value not in key.choices:
        raise_unknown(key.name.removesuffix("s"), str(value), tuple(map(str, key.choices)), at=table.where)
    if rule.pattern and not re.fullmatch(rule.pattern, str(value), flags=re.ASCII):
        need = "letters, digits and _ . -, the first a letter or digit" if rule.pattern == NAME else rule.need
        raise CompileError(f"invalid {key.name} {quote(value)}", at=table.where, need=need)


def raise_unknown(what: str, value: str, known: Sequence[str], at: str | None, try_: str | None = None) -> NoReturn:
    near = difflib.get_close_matches(value, known, n=1)
    raise CompileError(
        f"unknown {what} {quote(value)}",
        at=at,
        need=f"one of: {', '.join(known)}",
        try_=try_ or (f"did you mean {near[0]!r}?" if near else None),
    )
