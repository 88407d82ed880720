"""TOML as our files are written in: read, checked key by key, and refused with the place and the remedy."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NoReturn, TypeVar

from baretorch.errors import CompileError
from baretorch.inputs import read_text
from baretorch.targets.runtime import RUNTIME

T = TypeVar("T")

BOARDS = Path(__file__).parent.parent / "boards"
ADDRESSES = 1 << 32  # every target has a 32-bit address space
_TOML_KINDS = {str: "a string", int: "a whole number", list: "an array", dict: "a table"}


def read(path: Path) -> Table:
    try:
        rows = tomllib.loads(read_text(path))
    except FileNotFoundError:
        raise CompileError(f"no file {path}", try_="`baretorch boards` lists the boards that need no file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise CompileError(f"cannot read {path}", have=str(error)) from None
    except RecursionError:
        raise CompileError(f"{path} is not TOML", have="arrays or tables in each other, too deep to read") from None
    except tomllib.TOMLDecodeError as error:
        raise CompileError(f"{path} is not TOML", have=short(str(error))) from None
    except ValueError:
        raise CompileError(f"{path} is not TOML", have="a number of thousands of digits") from None
    return Table(place(path), rows)


def place(path: Path) -> str:
    """A file as a message names it: ours relative to the package, so that a text is the same on every machine."""
    return str(path.relative_to(BOARDS.parent)) if path.is_relative_to(BOARDS) else str(path)


class Table:
    """One TOML table being read. Each key is taken once; `end` refuses what is left over."""

    def __init__(self, where: str, rows: dict[str, object]) -> None:
        self.where = where
        self.rows = rows
        self._taken: list[str] = []

    def maybe(self, key: str, kind: type[T]) -> T | None:
        self._taken.append(key)
        if key not in self.rows:
            return None
        value = self.rows[key]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise CompileError(f"{key} must be {_TOML_KINDS[kind]}", at=self.where, have=short(f"{key} = {value!r}"))
        return value

    def take(self, key: str, kind: type[T]) -> T:
        value = self.maybe(key, kind)
        if value is None:
            near = difflib.get_close_matches(key, [k for k in self.rows if k not in self._taken], n=1)
            raise CompileError(
                f"{key} is missing",
                at=self.where,
                need=f"{key} = {_TOML_KINDS[kind]}",
                try_=f"is {near[0]!r} meant to be {key!r}?" if near else None,
            )
        return value

    def argument(self, key: str) -> str | None:
        """A value that another program gets as an argument: it may not say more than a name."""
        value = self.maybe(key, str)
        if value is not None and not re.fullmatch(r"\w[\w.-]*", value, flags=re.ASCII):
            raise CompileError(
                f"{key} must be a name",
                at=self.where,
                have=f"{key} = {value!r}"[:200],
                need="letters, digits and _ . -",
            )
        return value

    def number(self, key: str) -> int:
        value = self.take(key, int)
        if not 0 <= value < ADDRESSES:
            raise CompileError(f"{key} must fit 32 bits without a sign", at=self.where, have=short(f"{key} = {value}"))
        return value

    def rate(self, key: str) -> int:
        """A number that something is divided by."""
        value = self.number(key)
        if value == 0:
            raise CompileError(f"{key} must not be 0", at=self.where)
        return value

    def word(self, key: str, known: Sequence[str]) -> str:
        value = self.take(key, str)
        if value not in known:
            unknown(key, value, known, at=self.where)
        return value

    def words(self, key: str, known: Sequence[str]) -> tuple[str, ...]:
        values = self.take(key, list)
        for value in values:
            if value not in known:
                unknown(key.removesuffix("s"), str(value), known, at=self.where)
        return tuple(values)

    def source(self, key: str, folder: str) -> str:
        """A value that names a C file of the runtime."""
        return self.word(key, sorted(path.stem for path in (RUNTIME / folder).glob("*.c")))

    def table(self, key: str) -> Table:
        return Table(f"{self.where} [{key}]", self.take(key, dict))

    def tables(self, key: str) -> Iterable[Table]:
        for i, rows in enumerate(self.maybe(key, list) or ()):
            if not isinstance(rows, dict):
                raise CompileError(f"{key} must be an array of tables", at=self.where, need=f"[[{key}]]")
            yield Table(f"{self.where} [[{key}]] number {i + 1}", rows)

    def end(self) -> None:
        for key in self.rows:
            if key not in self._taken:
                unknown("key", key, sorted(set(self._taken)), at=self.where)


def short(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:120]}…"


def unknown(what: str, value: str, known: Sequence[str], at: str | None, try_: str | None = None) -> NoReturn:
    near = difflib.get_close_matches(value, known, n=1)
    raise CompileError(
        f"unknown {what} {short(repr(value))}",
        at=at,
        need=f"one of: {', '.join(known)}",
        try_=try_ or (f"did you mean {near[0]!r}?" if near else None),
    )
