"""What a user may ask of the compiler. Each option is declared once, in Options: its type, its default, and what to
read about it. The command line, Python's compile(), JSON and reports all go by that."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import StrEnum
from numbers import Integral
from os import PathLike
from types import UnionType
from typing import Annotated, Any, TypeGuard, get_args, get_origin, get_type_hints

from baretorch.errors import CompileError
from baretorch.escape import short, shown


class Optimize(StrEnum):
    SPEED = "speed"
    SIZE = "size"


class Observer(StrEnum):
    HISTOGRAM = "histogram"
    MINMAX = "minmax"


class Requant(StrEnum):
    WIDE = "wide"
    NARROW = "narrow"


class Io(StrEnum):
    FLOAT = "float"
    INT8 = "int8"


class Input(StrEnum):
    WHOLE = "whole"
    ROWS = "rows"


class Buffers(StrEnum):
    ARENA = "arena"
    CALLER = "caller"


class Weights(StrEnum):
    AUTO = "auto"
    FLASH = "flash"
    RAM = "ram"
    STREAM = "stream"


class CodeIn(StrEnum):
    FLASH = "flash"
    RAM = "ram"


class UseNpu(StrEnum):
    OFF = "off"
    AUTO = "auto"
    REQUIRE = "require"


class Units(StrEnum):
    OFF = "off"
    AUTO = "auto"


class Compiler(StrEnum):
    GCC = "gcc"
    ZIG = "zig"


class Console(StrEnum):
    USB = "usb"
    UART = "uart"


class Emulator(StrEnum):
    UNICORN = "unicorn"
    QEMU = "qemu"
    FVP = "fvp"
    RP2040JS = "rp2040js"
    SIMAVR = "simavr"
    CLUSTER = "cluster"
    NATIVE = "native"


@dataclass(frozen=True)
class About:
    """What people read of an option. `metavar` stands for a value that is not one of a few words; a number is `least`
    at least."""

    help: str
    metavar: str = ""
    least: int = 0


@dataclass(frozen=True)
class Options:
    """In the order in which they are told."""

    trust: Annotated[bool, About("Let a .pt2 run code of its own: for files you made yourself.")] = False
    shape: Annotated[
        Mapping[str, str],
        About("Give an input whose size the file leaves open this one: x=1,3,96,96; repeatable.", "INPUT=SIZES"),
    ] = field(default_factory=dict)
    state: Annotated[
        Mapping[str, str],
        About(
            "Let an input be what this output was in the run before: state of the model; repeatable.", "INPUT=OUTPUT"
        ),
    ] = field(default_factory=dict)
    toolchain: Annotated[Compiler | None, About("Default: gcc if installed, else zig.")] = None
    emulator: Annotated[Emulator | None, About("Default: the board's first installed one.")] = None
    console: Annotated[
        Console | None, About("What the image talks over. Default: usb on boards that have it, else uart.")
    ] = None
    int8: Annotated[bool, About("Quantize to int8, with data from the file's calibration().")] = False
    calibration: Annotated[
        str | None,
        About(
            "Take that data from an .npz or a folder of .npy; default: [NAME.]calibration.npz beside the model.", "PATH"
        ),
    ] = None
    keep_float: Annotated[tuple[str, ...], About("Leave this layer in float; repeatable.", "LAYER")] = ()
    config: Annotated[
        str | None,
        About("Quantize as this TOML says: the precision of each layer, and channels to leave out.", "FILE"),
    ] = None
    observer: Annotated[
        Observer, About("How scales follow from calibration data: without its outliers, or with all of it.")
    ] = Observer.HISTOGRAM
    requant: Annotated[
        Requant,
        About(
            "How layers come from sums to outputs: in 64 bits, or with coarser weights in 32, faster on small cores."
        ),
    ] = Requant.WIDE
    io: Annotated[
        Io | None,
        About("What an int8 model takes and gives. Default: what its file says, else float."),
    ] = None
    optimize: Annotated[Optimize, About("One instance of a kernel per kind of layer, or one per kernel.")] = (
        Optimize.SPEED
    )
    ram: Annotated[
        int | None, About("How large the arena may be; layers run in bands of rows to reach it.", "BYTES")
    ] = None
    input: Annotated[Input, About("Whether the run function takes an image, or a callback that gives its rows.")] = (
        Input.WHOLE
    )
    buffers: Annotated[
        Buffers, About("Copy inputs and outputs to and from the arena, or leave them where the caller has them.")
    ] = Buffers.ARENA
    weights: Annotated[
        Weights | None,
        About(
            "Copy weights from flash to RAM: those that pay, none, as many as there is room for at start, or by DMA "
            "during a run too. Default: auto for images, flash for C."
        ),
    ] = None
    code: Annotated[
        CodeIn, About("Run the model's code where the image has it, or from RAM, to which it is copied at start.")
    ] = CodeIn.FLASH
    place: Annotated[
        Mapping[str, str],
        About("Keep this layer's output in that bank of RAM; `arena` is all the rest; repeatable.", "LAYER=BANK"),
    ] = field(default_factory=dict)
    check_inputs: Annotated[
        bool, About("Refuse NaN and infinity: the C gets a function that finds them, which images call before a run.")
    ] = False
    cores: Annotated[
        int | None,
        About(
            "Share large layers between so many cores of the chip. Default: all of a cluster, else one.", "N", least=1
        ),
    ] = None
    core: Annotated[int, About("Run the model on this core alone; 1 leaves core 0 to the application.", "N")] = 0
    npu: Annotated[
        UseNpu | None,
        About(
            "Let the chip's Ethos-U compute nothing, what it can of an int8 model, or all of it. Default: auto for "
            "images, off for C."
        ),
    ] = None
    units: Annotated[
        Units | None,
        About(
            "Let other units of the chip, as a cluster's for matrix products, compute nothing, or what they can. "
            "Default: auto for images, off for C."
        ),
    ] = None
    watchdog: Annotated[
        int | None,
        About("Let the chip's watchdog restart it if a run takes longer than so many milliseconds, or it stops.", "MS"),
    ] = None

    app: Annotated[
        str | None,
        About("Link the C files of this folder into the image: their bt_main() runs instead of our server.", "DIR"),
    ] = None

    def __post_init__(self) -> None:
        for name, text in self.shape.items():
            _sizes(name, text)
        if self.config:  # it says how a model becomes int8
            object.__setattr__(self, "int8", True)
        chosen = self.observer is not Observer.HISTOGRAM or self.requant is not Requant.WIDE
        if not self.int8 and (self.keep_float or chosen or self.calibration):
            raise CompileError(  # --io goes with models that are int8 already, too
                "--keep-float, --observer, --requant and --calibration go with --int8",
                need="--int8; in Python int8=True, or calibration data",
            )

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The sizes of inputs; CompileError if they are none."""
        return {name: _sizes(name, text) for name, text in self.shape.items()}

    def for_own_build(self) -> Options:
        """For C that others build: only they know what RAM is left for weights, and have a driver for an NPU."""
        if self.weights is Weights.STREAM:
            raise CompileError(
                "--weights stream is for images: C that others build has no driver for it",
                try_="`--weights auto`, or leave it out",
            )
        return replace(
            self,
            weights=self.weights or Weights.FLASH,
            npu=self.npu or UseNpu.OFF,
            units=self.units or Units.OFF,
            cores=self.shared_cores,
        )

    def for_sizes(self) -> Options:
        """For an image that is only measured, where there is more room than on the board: nothing is streamed."""
        return replace(self, weights=None if self.weights is Weights.STREAM else self.weights).for_own_build()

    @property
    def used_cores(self) -> int:
        """How many of the chip's cores an image uses: core 0 starts core 1, whose stack is its own."""
        return max(self.shared_cores, self.core + 1)

    @property
    def shared_cores(self) -> int:
        """How many of them share the work."""
        return self.cores or 1

    def words(self, given: Options | None = None) -> tuple[str, ...]:
        """What to write on the command line, beside what is `given` there."""
        before = given or DEFAULT
        changed = (o for o in OPTIONS.values() if getattr(self, o.name) != getattr(before, o.name))
        return tuple(word for o in changed for word in o.words(getattr(self, o.name)))

    def command(self, board: str, verb: str = "compile") -> str:
        """What makes the same C of the same model on the command line. Tools and trust are not seen in it."""
        weights = None if self.weights is Weights.FLASH and verb != "run" else self.weights
        seen = replace(self, trust=False, toolchain=None, emulator=None, console=None, watchdog=None, app=None)
        seen = replace(seen, cores=None if self.cores == 1 else self.cores)
        seen = replace(seen, weights=weights, code=CodeIn.FLASH, npu=None if self.npu is UseNpu.OFF else self.npu)
        seen = replace(seen, units=None if self.units is Units.OFF else self.units)
        return shlex.join(["baretorch", *verb.split(), "MODEL", "--board", board, *seen.words()])

    def to_json(self) -> dict[str, Any]:
        """All of them by name."""
        values = {name: getattr(self, name) for name in OPTIONS}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


@dataclass(frozen=True)
class Option:
    """A field of Options, as it is declared. `kind` is bool, int, str, tuple (of names), dict (of names by names) or an
    enum; None for an `optional` one says that the user leaves it open."""

    name: str
    kind: type
    optional: bool
    default: Any
    about: About

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @property
    def plain_default(self) -> Any:
        """As people write it: a word, not a member of an enum."""
        return str(self.default) if self.choices and self.default is not None else self.default

    @property
    def choices(self) -> tuple[str, ...]:
        """The words that it may be, if those are few."""
        return tuple(str(word.value) for word in self.kind) if issubclass(self.kind, StrEnum) else ()

    def read(self, value: object) -> Any:
        """What a caller in Python gave, as Options has it; CompileError if it may not be that."""
        if value is None and self.optional:
            return None
        if self.choices and isinstance(value, str) and value in self.choices:
            return self.kind(value)
        if self.kind is bool and isinstance(value, bool):
            return value
        if self.kind is int and _whole(value) and value >= self.about.least:
            return int(value)
        if self.kind is tuple and isinstance(value, Collection) and not isinstance(value, str) and _names(value):
            return tuple(value)
        if self.kind is str and isinstance(value, (str, PathLike)):
            return str(value)
        if self.kind is dict and isinstance(value, Mapping):
            pairs = {k: _spelt(v) for k, v in value.items()}
            if _names([*pairs.keys(), *pairs.values()]):
                return pairs
        raise CompileError(f"compile(): {self.name} is {shown(value)}", need=self._need())

    def _need(self) -> str:
        needs = {
            bool: "True or False",
            int: f"a whole number, at least {self.about.least}",
            tuple: "a list of layers",
            str: "a path",
            dict: f"a dict like {{{': '.join(map(repr, self.about.metavar.split('=')))}}}",
        }
        return " or ".join(map(repr, self.choices)) or needs[self.kind]

    def words(self, value: Any) -> list[str]:
        """How the command line says it; nothing where it says so by leaving it out."""
        if self.kind is bool or value is None:
            return [self.flag] if value else []
        pairs = [f"{k}={v}" for k, v in value.items()] if self.kind is dict else []
        values = value if self.kind is tuple else pairs if self.kind is dict else [value]
        return [word for v in values for word in (self.flag, str(v))]


DEFAULT = Options()
MOST_DIGITS = 9  # of a size in --shape


def _whole(value: object) -> TypeGuard[int]:
    """Also NumPy's, but no truth value, and no number that JSON cannot have."""
    return isinstance(value, Integral) and not isinstance(value, bool) and abs(int(value)) < 1 << 63


def _spelt(value: object) -> object:
    """Sizes as the command line has them; anything else as it is."""
    sizes = isinstance(value, (tuple, list)) and all(map(_whole, value))
    return ",".join(map(str, value)) if isinstance(value, (tuple, list)) and sizes else value


def _sizes(name: str, text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",")] if text else []
    for word in words:
        if not word.isdecimal() or len(word) > MOST_DIGITS or not int(word):
            raise CompileError(
                f"--shape {short(name)}={short(text)}: {shown(word)} is not a valid size; "
                f"sizes are whole numbers from 1 with at most {MOST_DIGITS} digits"
            )
    return tuple(map(int, words))


def _names(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def _declared() -> Iterator[Option]:
    """The options, from the fields of Options."""
    for name, hint in get_type_hints(Options, include_extras=True).items():
        declared, about = get_args(hint)
        optional = isinstance(declared, UnionType)
        kind = get_args(declared)[0] if optional else declared
        plain = {Mapping: dict, tuple: tuple}.get(get_origin(kind), kind)
        yield Option(name, plain, optional, getattr(DEFAULT, name), about)


OPTIONS: Mapping[str, Option] = {option.name: option for option in _declared()}


def read_options(given: Mapping[str, object]) -> Options:
    """Options from the keywords of a call."""
    unknown = [name for name in given if name not in OPTIONS]
    if unknown:
        near = get_close_matches(unknown[0], OPTIONS, n=1)
        raise CompileError(
            f"compile() has no option {unknown[0]!r}",
            have=", ".join(OPTIONS),
            try_=f"did you mean {near[0]!r}?" if near else None,
        )
    return Options(**{name: OPTIONS[name].read(value) for name, value in given.items()})
