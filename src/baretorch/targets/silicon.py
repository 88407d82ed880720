"""What a chip does between reset and a running image: clocks, resets, supplies and the registers that control them.

boards/silicon/*.toml describes it, one file per kind of chip:

- a *block* is a peripheral. Without what it `needs` it reads as zero, ignores writes, and is reset.
- a *clock* runs if what it `needs` holds: at `hz`, at a rate made `of` other clocks and fields, or as the one of its
  `sources` that a field `select`s. A `glitchless` selection changes later, and `shows` which clock it is on.
- a *signal* is a bit that the hardware sets some time after its condition holds, and clears when it does not.
- a *rule* is what must hold, or must not change, while something else holds. To break it stops the machine.

Names are CLOCK, BLOCK.REGISTER or BLOCK.REGISTER.FIELD; a condition is a clock, which then runs, or a comparison.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from baretorch.errors import InternalError

SILICON = Path(__file__).parent.parent / "boards" / "silicon"
_CONDITION = re.compile(r"([\w.]+)(?: (=|!=|>=|<=) (\w+))?")
_FACTOR = re.compile(r"([*/]?) ?([\w.]+)(?:\+(\d+))? ?")
_WORDS = ("at", "reset", "read_back", "base", "source", "atomic", "needs")


@dataclass(frozen=True)
class Field:
    """Bits of a register; `means` translates what they say."""

    shift: int
    bits: int
    means: tuple[int, ...] = ()

    @property
    def mask(self) -> int:
        return ((1 << self.bits) - 1) << self.shift


@dataclass(frozen=True)
class ChipRegister:
    """`name` is BLOCK.REGISTER. What is written to it takes effect at once, or if it is to be `read_back`, then."""

    name: str
    address: int
    reset: int
    read_back: bool
    fields: Mapping[str, Field]


@dataclass(frozen=True)
class Condition:
    """`compare` is empty for a clock that must run."""

    name: str
    compare: str = ""
    value: int = 0

    def __str__(self) -> str:
        if not self.compare:
            return f"{self.name} runs"
        return f"{self.name} {self.compare} {f'{self.value:,}' if '.' not in self.name else f'{self.value:#x}'}"


@dataclass(frozen=True)
class Factor:
    """Of a product: a clock's rate, a field's meaning or a number, and what is added to it; or what is divided by."""

    name: str
    plus: int
    divides: bool


@dataclass(frozen=True)
class ChipBlock:
    """With `atomic` its registers have three aliases more: to toggle, set and clear the bits that are written as 1."""

    name: str
    registers: tuple[ChipRegister, ...]
    needs: tuple[Condition, ...]
    atomic: bool
    source: str


@dataclass(frozen=True)
class Clock:
    """Made of factors, or with `select` as one of `sources`. A selection that `waits` is done once its source runs."""

    name: str
    of: tuple[Factor, ...]
    needs: tuple[Condition, ...]
    select: str
    sources: tuple[str, ...]
    glitchless: bool
    waits: bool
    shows: str  # a field: the number of the source; a whole register: a bit for each
    source: str


@dataclass(frozen=True)
class Signal:
    """`after` is in microseconds; it begins anew when one of the fields in `restarts` changes."""

    field: str
    when: tuple[Condition, ...]
    after: tuple[Factor, ...]
    restarts: tuple[str, ...]
    source: str


@dataclass(frozen=True)
class Rule:
    """`fixed` are fields or registers that must not change."""

    when: tuple[Condition, ...]
    needs: tuple[Condition, ...]
    fixed: tuple[str, ...]
    why: str
    source: str


@dataclass(frozen=True)
class Device:
    """The console or the counter: its clock, what its block needs, and what must hold on its pins."""

    clock: str
    needs: tuple[Condition, ...]
    transmits: tuple[Condition, ...] = ()
    receives: tuple[Condition, ...] = ()


@dataclass(frozen=True)
class FlashWindow:
    """Where flash is seen through a `controller`: the bank `memory`, and the same past the cache at `uncached`."""

    controller: str
    memory: str
    uncached: int


@dataclass(frozen=True)
class Silicon:
    """`cpu` is the clock of the cores; `memories` are those that cannot be written at once; `flash` is None where flash
    is part of the chip."""

    name: str
    cpu: str
    uart: Device
    counter: Device
    usb: Device | None
    memories: Mapping[str, tuple[Condition, ...]]
    blocks: tuple[ChipBlock, ...]
    clocks: tuple[Clock, ...]
    signals: tuple[Signal, ...]
    rules: tuple[Rule, ...]
    flash: FlashWindow | None = None


def silicon_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in SILICON.glob("*.toml")))


@cache
def load_silicon(name: str) -> Silicon:
    """The description of that name. These files are ours: what is wrong with one is our mistake."""
    rows = tomllib.loads((SILICON / f"{name}.toml").read_text(encoding="utf-8"))
    try:
        return Silicon(
            name=name,
            cpu=rows["cpu"],
            uart=_device(rows["uart"]),
            counter=_device(rows["counter"]),
            usb=_device(rows["usb"]) if "usb" in rows else None,
            memories={name: conditions(texts) for name, texts in rows.get("memory", {}).items()},
            blocks=tuple(_block(block, row) for block, row in rows["block"].items()),
            clocks=tuple(_clock(clock, row) for clock, row in rows["clock"].items()),
            signals=tuple(_signal(row) for row in rows.get("signal", ())),
            rules=tuple(_rule(row) for row in rows.get("rule", ())),
            flash=FlashWindow(**rows["flash"]) if "flash" in rows else None,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise InternalError(f"silicon/{name}.toml: {error!r}") from error


def registers(block: str, base: int, rows: Mapping[str, Mapping[str, Any]]) -> tuple[ChipRegister, ...]:
    """Each row has `at`, `reset` unless that is 0, `read_back` if it is so, and fields: a bit, "high:low", or that in
    `bits` with `means`."""
    return tuple(
        ChipRegister(
            f"{block}.{name}",
            base + row["at"],
            row.get("reset", 0),
            row.get("read_back", False),
            {key: _field(value) for key, value in row.items() if key not in _WORDS},
        )
        for name, row in rows.items()
    )


def conditions(texts: Sequence[str]) -> tuple[Condition, ...]:
    return tuple(map(_condition, texts))


def factors(text: str | int) -> tuple[Factor, ...]:
    found, at = [], 0
    text = str(text)
    while at < len(text):
        match = _FACTOR.match(text, at)
        if match is None or not match[0]:
            raise ValueError(f"{text!r} is no product")
        found.append(Factor(match[2], int(match[3] or 0), match[1] == "/"))
        at = match.end()
    return tuple(found)


def _condition(text: str) -> Condition:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no condition")
    return Condition(match[1], match[2] or "", int(match[3] or "0", 0))


def _field(value: int | str | Mapping[str, Any]) -> Field:
    if isinstance(value, Mapping):
        plain = _field(value["bits"])
        return Field(plain.shift, plain.bits, tuple(value["means"]))
    if isinstance(value, int):
        return Field(value, 1)
    high, low = map(int, value.split(":"))
    return Field(low, high - low + 1)


def _block(name: str, row: Mapping[str, Any]) -> ChipBlock:
    rows = {key: value for key, value in row.items() if key not in _WORDS}
    return ChipBlock(
        name=name,
        registers=registers(name, row["base"], rows),
        needs=conditions(row.get("needs", ())),
        atomic=row.get("atomic", False),
        source=row["source"],
    )


def _clock(name: str, row: Mapping[str, Any]) -> Clock:
    return Clock(
        name=name,
        of=factors(row.get("of", row.get("hz", ""))),
        needs=conditions(row.get("needs", ())),
        select=row.get("select", ""),
        sources=tuple(row.get("sources", ())),
        glitchless=row.get("glitchless", False),
        waits=row.get("waits", False),
        shows=row.get("shows", ""),
        source=row["source"],
    )


def _signal(row: Mapping[str, Any]) -> Signal:
    return Signal(
        row["field"],
        conditions(row["when"]),
        factors(row["after_us"]),
        tuple(row.get("restarts", ())),
        row["source"],
    )


def _rule(row: Mapping[str, Any]) -> Rule:
    when, needs = (conditions(row.get(key, ())) for key in ("when", "needs"))
    return Rule(when, needs, tuple(row.get("fixed", ())), row["why"], row["source"])


def _device(row: Mapping[str, Any]) -> Device:
    keys = ("needs", "transmits", "receives")
    return Device(row["clock"], *(conditions(row.get(key, ())) for key in keys))
