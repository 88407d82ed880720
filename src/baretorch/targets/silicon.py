"""Model what a chip does between reset and a running image: clocks, resets, supplies and their registers.

boards/silicon/*.toml describes it, one file per kind of chip:

- a *block* is a peripheral. Without what it `needs` it reads as zero, ignores writes, and is reset.
- a *clock* runs if what it `needs` holds: at `hz`, at a rate made `of` other clocks and fields, or as the one of its
  `sources` that a field `select`s. A `glitchless` selection changes later, and `shows` which clock it is on.
- a *signal* is a bit that the hardware sets some time after its condition holds, and clears when it does not.
- a *rule* is what must hold, or must not change, while something else holds. Breaking it stops the machine.

Names are CLOCK, BLOCK.REGISTER or BLOCK.REGISTER.FIELD; a condition is a clock, which then runs, or a comparison.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, TypeAlias

from baretorch.errors import CompileError, InternalError
from baretorch.targets.toml import BOARDS, Key, TomlTable, read_record, read_table

SILICON = BOARDS / "silicon"
_CONDITION = re.compile(r"([\w.]+)(?: (=|!=|>=|<=) (\w+))?")
_FACTOR = re.compile(r"([*/]?) ?([\w.]+)(?:\+(\d+))? ?")
_WORDS = ("at", "reset", "read_back", "base", "source", "atomic", "needs")


@dataclass(frozen=True)
class RegisterField:
    """The bits of a register; `means` maps their values to numbers."""

    shift: int
    bits: int
    means: tuple[int, ...] = ()

    @property
    def mask(self) -> int:
        return ((1 << self.bits) - 1) << self.shift


@dataclass(frozen=True)
class SiliconRegister:
    """A register; `name` is BLOCK.REGISTER. A write takes effect at once, or when the register is `read_back`."""

    name: str
    address: int
    reset: int
    read_back: bool
    fields: Mapping[str, RegisterField]


@dataclass(frozen=True)
class Condition:
    """A comparison, or with an empty `compare` a clock that must run."""

    name: str
    compare: str = ""
    value: int = 0

    def __str__(self) -> str:
        if not self.compare:
            return f"{self.name} runs"
        return f"{self.name} {self.compare} {f'{self.value:,}' if '.' not in self.name else f'{self.value:#x}'}"


@dataclass(frozen=True)
class Factor:
    """A factor of a product: the rate of a clock, the meaning of a field or a number, plus an offset; or a divisor."""

    name: str
    plus: int
    divides: bool


def parse_conditions(texts: Sequence[str]) -> tuple[Condition, ...]:
    """Parse conditions; raise ValueError with the first that is not valid."""
    return tuple(map(_parse_condition, texts))


def _parse_condition(text: str) -> Condition:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a condition")
    return Condition(match[1], match[2] or "", int(match[3] or "0", 0))


def parse_factors(text: str | int) -> tuple[Factor, ...]:
    """Parse a product such as "pll_vco / RCC.PLLCFGR.PLLR+1"."""
    found, at = [], 0
    text = str(text)
    while at < len(text):
        match = _FACTOR.match(text, at)
        if match is None or not match[0]:
            raise ValueError(f"{text!r} is not a product")
        found.append(Factor(match[2], int(match[3] or 0), match[1] == "/"))
        at = match.end()
    return tuple(found)


NEEDS = Key("conditions", raw=list, into=parse_conditions)
SOURCE = Key("the document that says so")
Conditions: TypeAlias = Annotated[tuple[Condition, ...], NEEDS]
Product: TypeAlias = tuple[Factor, ...]


@dataclass(frozen=True)
class ChipBlock:
    """A block of registers. With `atomic` each has three aliases: to toggle, set and clear the bits that are written as
    1."""

    name: str
    registers: tuple[SiliconRegister, ...]
    needs: tuple[Condition, ...]
    atomic: bool
    source: str


@dataclass(frozen=True)
class Clock:
    """A clock, computed from factors, or with `select` one of `sources`. A selection that `waits` takes effect once its
    source runs."""

    name: str
    source: Annotated[str, SOURCE]
    of: Annotated[
        Product, Key("its rate: a product of clocks, fields and numbers", raw=object, into=parse_factors)
    ] = ()
    needs: Conditions = ()
    select: Annotated[str, Key("the field that selects one of `sources`")] = ""
    sources: Annotated[tuple[str, ...], Key("clocks by the field's value")] = ()
    glitchless: Annotated[bool, Key("the selection may change in use")] = False
    waits: Annotated[bool, Key("a selection is done once its source runs")] = False
    shows: Annotated[str, Key("a field: the number of the source; a whole register: a bit for each")] = ""


@dataclass(frozen=True)
class Signal:
    """A bit that the hardware sets `after` microseconds, which restart when one of the fields in `restarts` changes."""

    field: Annotated[str, Key("the bit")]
    when: Conditions
    after: Annotated[Product, Key("microseconds", name="after_us", raw=object, into=parse_factors)]
    source: Annotated[str, SOURCE]
    restarts: Annotated[tuple[str, ...], Key("fields that start the time again when they change")] = ()


@dataclass(frozen=True)
class Rule:
    """A rule of the chip. While `when` holds, `needs` must hold and the `fixed` fields and registers must not
    change."""

    why: Annotated[str, Key("the reason, in words")]
    source: Annotated[str, SOURCE]
    when: Conditions = ()
    needs: Conditions = ()
    fixed: Annotated[tuple[str, ...], Key("fields and registers that must not change")] = ()


@dataclass(frozen=True)
class DriverNeeds:
    """The needs of the console or the counter: its clock, the conditions of its block, and those of its pins."""

    clock: Annotated[str, Key("its clock")]
    needs: Conditions = ()
    transmits: Conditions = ()
    receives: Conditions = ()


@dataclass(frozen=True)
class FlashWindow:
    """The addresses at which a `controller` maps flash: the bank `memory`, and the same uncached at `uncached`."""

    controller: Annotated[str, Key("the block that reads flash")]
    memory: Annotated[str, Key("the bank")]
    uncached: Annotated[int, Key("address of the same bank past the cache")]


def _parse_memories(rows: Mapping[str, Sequence[str]]) -> dict[str, tuple[Condition, ...]]:
    return {name: parse_conditions(texts) for name, texts in rows.items()}


def _parse_blocks(rows: Mapping[str, Mapping[str, Any]]) -> tuple[ChipBlock, ...]:
    return tuple(
        ChipBlock(
            name=name,
            registers=parse_registers(
                name, row["base"], {key: value for key, value in row.items() if key not in _WORDS}
            ),
            needs=parse_conditions(row.get("needs", ())),
            atomic=row.get("atomic", False),
            source=row["source"],
        )
        for name, row in rows.items()
    )


def _parse_clocks(rows: Mapping[str, Mapping[str, Any]]) -> tuple[Clock, ...]:
    """Parse clocks; `hz` is a product of one factor."""
    tables = {name: {"of" if key == "hz" else key: value for key, value in row.items()} for name, row in rows.items()}
    return tuple(read_record(TomlTable(name, table), Clock, name=name) for name, table in tables.items())


@dataclass(frozen=True)
class Silicon:
    """The behaviour of a kind of chip. `cpu` is the clock of the cores; `memories` are those that cannot be written at
    once; `flash` is None if flash is part of the chip."""

    name: str
    cpu: Annotated[str, Key("the clock of the cores")]
    uart: Annotated[DriverNeeds, Key("the console")]
    counter: Annotated[DriverNeeds, Key("the counter")]
    blocks: Annotated[tuple[ChipBlock, ...], Key("peripherals", name="block", raw=dict, into=_parse_blocks)]
    clocks: Annotated[tuple[Clock, ...], Key("clocks", name="clock", raw=dict, into=_parse_clocks)]
    memories: Annotated[
        Mapping[str, tuple[Condition, ...]],
        Key("banks, and what they need before they can be written", name="memory", raw=dict, into=_parse_memories),
    ] = field(default_factory=dict)
    signals: Annotated[tuple[Signal, ...], Key("bits that the hardware sets", name="signal")] = ()
    rules: Annotated[tuple[Rule, ...], Key("rules", name="rule")] = ()
    usb: Annotated[DriverNeeds | None, Key("the USB controller")] = None
    flash: Annotated[FlashWindow | None, Key("flash that is read through a controller")] = None


def silicon_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in SILICON.glob("*.toml")))


@cache
def load_silicon(name: str) -> Silicon:
    """Load a silicon file. These files are ours: a mistake in one is an internal error."""
    try:
        return read_record(read_table(SILICON / f"{name}.toml"), Silicon, name=name)
    except (CompileError, KeyError, TypeError, ValueError) as error:
        raise InternalError(f"silicon/{name}.toml: {error!r}") from error


def parse_registers(block: str, base: int, rows: Mapping[str, Mapping[str, Any]]) -> tuple[SiliconRegister, ...]:
    """Parse registers. Each row has `at`, `reset` unless that is 0, `read_back`, and fields: a bit, "high:low", or that
    in `bits` with `means`."""
    return tuple(
        SiliconRegister(
            f"{block}.{name}",
            base + row["at"],
            row.get("reset", 0),
            row.get("read_back", False),
            {key: _parse_field(value) for key, value in row.items() if key not in _WORDS},
        )
        for name, row in rows.items()
    )


def _parse_field(value: int | str | Mapping[str, Any]) -> RegisterField:
    if isinstance(value, Mapping):
        plain = _parse_field(value["bits"])
        return RegisterField(plain.shift, plain.bits, tuple(value["means"]))
    if isinstance(value, int):
        return RegisterField(value, 1)
    high, low = map(int, value.split(":"))
    return RegisterField(low, high - low + 1)
