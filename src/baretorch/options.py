"""Declare the options of the compiler, each once, in Options: its type, its default and its help text. The command
line, Python's compile(), JSON and reports all use that declaration."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import StrEnum
from numbers import Integral
from os import PathLike
from types import UnionType
from typing import Annotated, Any, Literal, TypedDict, TypeGuard, get_args, get_origin, get_type_hints

from baretorch.errors import CompileError
from baretorch.escape import quote, short


class Optimize(StrEnum):
    SPEED = "speed"
    SIZE = "size"


class Observer(StrEnum):
    HISTOGRAM = "histogram"
    MINMAX = "minmax"


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


@dataclass(frozen=True)
class About:
    """The help text of an option. `metavar` is the placeholder of a value that is not one of a few words; `least` is
    the smallest valid number."""

    help: str
    metavar: str = ""
    least: int = 0


@dataclass(frozen=True)
class Options:
    """The values of all options, in the order in which they are printed."""

    trust: Annotated[
        bool, About("Allow a .pt2 to run code of its own. Use it only for files that you made yourself.")
    ] = False
    shape: Annotated[
        Mapping[str, str],
        About("Set the size of an input that the file leaves open, as in x=1,3,96,96. Repeatable.", "INPUT=SIZES"),
    ] = field(default_factory=dict)
    state: Annotated[
        Mapping[str, str],
        About("Feed OUTPUT back into INPUT on the next run (recurrent state). Repeatable.", "INPUT=OUTPUT"),
    ] = field(default_factory=dict)
    fix: Annotated[
        Mapping[str, str],
        About(
            "Make an input of an .onnx file a constant, as in sr=16000 or mean=0.5,0.4,0.4. Repeatable.", "INPUT=VALUE"
        ),
    ] = field(default_factory=dict)
    toolchain: Annotated[Compiler | None, About("Select the compiler. Default: gcc if installed, else zig.")] = None
    emulator: Annotated[
        str | None, About("Select one of the board's emulators. Default: its first installed one.", "NAME")
    ] = None
    console: Annotated[
        Console | None, About("Select the image's serial port. Default: usb on boards that have it, else uart.")
    ] = None
    int8: Annotated[bool, About("Quantize to int8, with data from the file's calibration().")] = False
    calibration: Annotated[
        str | None,
        About(
            "Read calibration data from this .npz or folder of .npy. Default: MODEL.calibration.npz or calibration.npz "
            "next to MODEL.",
            "PATH",
        ),
    ] = None
    keep_float: Annotated[tuple[str, ...], About("Keep a layer in float. Repeatable.", "LAYER")] = ()
    config: Annotated[
        str | None,
        About("Read each layer's precision, and channels to remove, from this TOML.", "FILE"),
    ] = None
    observer: Annotated[
        Observer,
        About("Compute scales from calibration data without its outliers (`histogram`), or from all of it (`minmax`)."),
    ] = Observer.HISTOGRAM
    io: Annotated[
        Io | None,
        About("Select the type of an int8 model's inputs and outputs. Default: the type in its file, else float."),
    ] = None
    optimize: Annotated[
        Optimize, About("Compile a kernel once per kind of layer (`speed`), or once for all layers (`size`).")
    ] = Optimize.SPEED
    ram: Annotated[
        int | None,
        About(
            "Limit the arena, the RAM of activations, to this size in bytes. Layers are split into row bands to "
            "stay within it. Static data and the stack need RAM in addition.",
            "SIZE",
        ),
    ] = None
    input: Annotated[
        Input, About("Pass the run function a whole input image, or a callback that supplies its rows one by one.")
    ] = Input.WHOLE
    buffers: Annotated[
        Buffers, About("Copy inputs and outputs to and from the arena, or use the caller's buffers in place.")
    ] = Buffers.ARENA
    weights: Annotated[
        Weights | None,
        About(
            "Where weights are stored: `auto` (copy to RAM what speeds up the run), `flash`, `ram` (copy as many "
            "as fit at start-up), `stream` (also by DMA during the run). Default: auto for images, flash for C."
        ),
    ] = None
    code: Annotated[CodeIn, About("Run the model's code from flash, or from RAM, where start-up code copies it.")] = (
        CodeIn.FLASH
    )
    place: Annotated[
        Mapping[str, str],
        About(
            "Store the output of LAYER in this bank of RAM; `arena` as LAYER means all other tensors. Repeatable.",
            "LAYER=BANK",
        ),
    ] = field(default_factory=dict)
    check_inputs: Annotated[
        bool,
        About("Reject NaN and infinity: the C contains a function that checks inputs; images call it before a run."),
    ] = False
    cores: Annotated[
        int | None,
        About(
            "Split large layers across this number of cores. Default: all cores of a cluster, else one.", "N", least=1
        ),
    ] = None
    core: Annotated[
        int, About("Run the model on this core only; 1 leaves core 0 to the application. Default: 0.", "N")
    ] = 0
    npu: Annotated[
        UseNpu | None,
        About(
            "Use the chip's Ethos-U: `off`, `auto` for every layer of an int8 model that it supports, `require` for "
            "the whole model. Default: auto for images, off for C."
        ),
    ] = None
    units: Annotated[
        Units | None,
        About(
            "Use accelerator units of the chip: `off`, or `auto` for every layer they support. Default: auto for "
            "images, off for C."
        ),
    ] = None
    watchdog: Annotated[
        int | None,
        About("Restart the chip with its watchdog if it stops, or if a run takes longer than MS milliseconds.", "MS"),
    ] = None

    app: Annotated[
        str | None,
        About("Link the C files of this folder into the image. Their bt_main() replaces Baretorch's server.", "DIR"),
    ] = None

    def __post_init__(self) -> None:
        for name, text in self.shape.items():
            _parse_sizes(name, text)
        if self.config:  # it describes an int8 model
            object.__setattr__(self, "int8", True)
        if not self.int8 and (self.keep_float or self.observer is not Observer.HISTOGRAM or self.calibration):
            raise CompileError(  # --io also applies to models that are int8 already
                "--keep-float, --observer and --calibration go with --int8",
                need="--int8; in Python int8=True, or calibration data",
            )

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The sizes of inputs. Raises CompileError if one is invalid."""
        return {name: _parse_sizes(name, text) for name, text in self.shape.items()}

    def for_own_build(self) -> Options:
        """Return the options for C that users build themselves: only they know how much RAM is left for weights, and
        they need their own driver for an NPU."""
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

    @property
    def used_cores(self) -> int:
        """The number of the chip's cores that an image uses: core 0 starts core 1, which has a stack of its own."""
        return max(self.shared_cores, self.core + 1)

    @property
    def shared_cores(self) -> int:
        """The number of cores that share the work."""
        return self.cores or 1

    @property
    def short(self) -> Options:
        """Return the options without those that say what `compile` does by itself."""
        return replace(
            self,
            cores=None if self.cores == 1 else self.cores,
            weights=None if self.weights is Weights.FLASH else self.weights,
            npu=None if self.npu is UseNpu.OFF else self.npu,
            units=None if self.units is Units.OFF else self.units,
        )

    def words(self, given: Options | None = None) -> tuple[str, ...]:
        """Return what to add to a command line that already has the `given` options."""
        before = given or DEFAULT
        changed = (o for o in OPTIONS.values() if getattr(self, o.name) != getattr(before, o.name))
        return tuple(word for o in changed for word in o.words(getattr(self, o.name)))

    def command(self, board: str | None, verb: str = "compile") -> str:
        """Return the command that generates the same C from the same model. The C does not depend on tools and
        trust."""
        seen = replace(self, trust=False, toolchain=None, emulator=None, console=None, watchdog=None, app=None)
        seen = replace(seen.short, code=CodeIn.FLASH)
        seen = replace(seen, weights=self.weights) if verb == "run" else seen
        on = ["--board", board] if board else []
        return shlex.join(["baretorch", *verb.split(), "MODEL", *on, *seen.words()])

    def to_json(self) -> dict[str, Any]:
        """Return all options by name."""
        values = {name: getattr(self, name) for name in OPTIONS}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


@dataclass(frozen=True)
class Option:
    """A declared field of Options. `kind` is bool, int, str, tuple (of names), dict (of names by names) or an enum. If
    an `optional` one is None, Baretorch chooses the value."""

    name: str
    kind: type
    optional: bool
    default: Any
    about: About

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @property
    def is_path(self) -> bool:
        return self.about.metavar in ("PATH", "FILE", "DIR")

    @property
    def plain_default(self) -> Any:
        """The default as users write it: a word, not a member of an enum."""
        return str(self.default) if self.choices and self.default is not None else self.default

    @property
    def choices(self) -> tuple[str, ...]:
        """The valid words, if the option takes one of a few."""
        return tuple(str(word.value) for word in self.kind) if issubclass(self.kind, StrEnum) else ()

    def read(self, value: object) -> Any:
        """Convert a value passed from Python to the type in Options. Raises CompileError if it is invalid."""
        if value is None and self.optional:
            return None
        if self.choices and isinstance(value, str) and value in self.choices:
            return self.kind(value)
        if self.kind is bool and isinstance(value, bool):
            return value
        if self.kind is int and _is_whole(value) and value >= self.about.least:
            return int(value)
        if self.kind is tuple and isinstance(value, Collection) and not isinstance(value, str) and _are_names(value):
            return tuple(value)
        if self.kind is str and isinstance(value, (str, PathLike)):
            return str(value)
        if self.kind is dict and isinstance(value, Mapping):
            pairs = {k: _spell(v, self.about.metavar.endswith("=VALUE")) for k, v in value.items()}
            if _are_names([*pairs.keys(), *pairs.values()]):
                return pairs
        raise CompileError(f"compile(): {self.name} is {quote(value)}", need=self._need())

    @property
    def python_help(self) -> str:
        """The text for Python's help(): the valid values, and what the option does, with examples in Python."""
        text = re.sub(
            r"\b(\w+)=([\d.]+(?:,\d+(?:\.\d+)?)+)", r'{"\1": (\2)}', self.about.help.removesuffix(" Repeatable.")
        )
        text = re.sub(r"\b(\w+)=(\d+)", r'{"\1": \2}', text)
        return text if self.kind is bool else f"{self._need()}. {text}"

    def _need(self) -> str:
        needs = {
            bool: "True or False",
            int: f"a whole number, at least {self.about.least}",
            tuple: "a list of layers",
            str: "a path" if self.is_path else "a name",
            dict: f"a dict like {{{': '.join(map(repr, self.about.metavar.split('=')))}}}",
        }
        return " or ".join(map(repr, self.choices)) or needs[self.kind]

    def words(self, value: Any) -> list[str]:
        """Return the words for the command line; none if the option is left out there."""
        if self.kind is bool or value is None:
            return [self.flag] if value else []
        pairs = [f"{k}={v}" for k, v in value.items()] if self.kind is dict else []
        values = value if self.kind is tuple else pairs if self.kind is dict else [value]
        return [word for v in values for word in (self.flag, str(v))]


DEFAULT = Options()
MOST_DIGITS = 9  # of a size in --shape


def _is_whole(value: object) -> TypeGuard[int]:
    """Report whether a value is a whole number, NumPy's included, but not a boolean, and fits 64 bits."""
    return isinstance(value, Integral) and not isinstance(value, bool) and abs(int(value)) < 1 << 63


def _spell(value: object, real: bool) -> object:
    """Write sizes, or any `real` numbers, as the command line does; return anything else unchanged."""
    some = value if isinstance(value, (tuple, list)) else [value] if real else None
    numbers = some is not None and all(_is_whole(v) or (real and isinstance(v, (bool, float))) for v in some)
    return ",".join(map(str, some or ())) if numbers else value


def _parse_sizes(name: str, text: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",")] if text else []
    for word in words:
        if not word.isdecimal() or len(word) > MOST_DIGITS or not int(word):
            raise CompileError(
                f"--shape {short(name)}={short(text)}: {quote(word)} is not a valid size; "
                f"sizes are whole numbers from 1 with at most {MOST_DIGITS} digits"
            )
    return tuple(map(int, words))


def _are_names(values: Iterable[object]) -> bool:
    return all(isinstance(value, str) for value in values)


def _declarations() -> Iterator[Option]:
    """Yield the options that the fields of Options declare."""
    for name, hint in get_type_hints(Options, include_extras=True).items():
        declared, about = get_args(hint)
        optional = isinstance(declared, UnionType)
        kind = get_args(declared)[0] if optional else declared
        plain = {Mapping: dict, tuple: tuple}.get(get_origin(kind), kind)
        yield Option(name, plain, optional, getattr(DEFAULT, name), about)


class CompileOptions(TypedDict, total=False):
    """The options as keywords of compile(), for editors and type checkers; tests compare them with Options."""

    trust: bool
    shape: Mapping[str, str | int | tuple[int, ...]]
    state: Mapping[str, str]
    fix: Mapping[str, str | int | float | bool | tuple[float, ...]]
    toolchain: Literal["gcc", "zig"] | None
    emulator: str | None
    console: Literal["usb", "uart"] | None
    int8: bool
    keep_float: Collection[str]
    config: str | PathLike[str] | None
    observer: Literal["histogram", "minmax"]
    io: Literal["float", "int8"] | None
    optimize: Literal["speed", "size"]
    ram: int | None
    input: Literal["whole", "rows"]
    buffers: Literal["arena", "caller"]
    weights: Literal["auto", "flash", "ram", "stream"] | None
    code: Literal["flash", "ram"]
    place: Mapping[str, str]
    check_inputs: bool
    cores: int | None
    core: int
    npu: Literal["off", "auto", "require"] | None
    units: Literal["off", "auto"] | None
    watchdog: int | None
    app: str | PathLike[str] | None


OPTIONS: Mapping[str, Option] = {option.name: option for option in _declarations()}


def read_options(given: Mapping[str, object]) -> Options:
    """Build Options from the keywords of a call."""
    unknown = [name for name in given if name not in OPTIONS]
    if unknown:
        near = get_close_matches(unknown[0], OPTIONS, n=1)
        raise CompileError(
            f"compile() has no option {unknown[0]!r}",
            have=", ".join(OPTIONS),
            try_=f"did you mean {near[0]!r}?" if near else None,
        )
    return Options(**{name: OPTIONS[name].read(value) for name, value in given.items()})
