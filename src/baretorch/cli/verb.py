"""What all verbs share: they give an Answer, and `verb` prints it as JSON or for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias

import click
from click.shell_completion import CompletionItem

from baretorch.escape import line, lines

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

Body: TypeAlias = Callable[..., "Answer"]

TOOLCHAINS = ("gcc", "zig")
EMULATORS = ("unicorn", "qemu", "native")


@dataclass(frozen=True)
class Answer:
    """What a verb found out: an object for programs and something rich can print for people."""

    data: dict[str, Any]
    screen: RenderableType
    exit_code: int = 0


class Unwritable(Exception):
    """Standard output takes no more."""

    def __init__(self, reason: OSError) -> None:
        super().__init__(str(reason))
        self.reason = reason


@dataclass(frozen=True)
class Stage:
    """Shows what is being done, on standard error of a terminal; gone when it is done."""

    show: Callable[[str, int, int], None]

    def __call__(self, what: str) -> None:
        """Something whose length is not known has begun."""
        self.show(what, 0, 0)

    def build(self, source: str, done: int, total: int) -> None:
        """The progress callback of firmware.build."""
        self.show(f"compile {source}", done, total)


def verb(name: str) -> Callable[[Body], click.Command]:
    """A command called `name` with --json and --debug. The function's first argument is whether --json was given."""

    def decorate(body: Body) -> click.Command:
        @wraps(body)
        def invoke(as_json: bool, **arguments: Any) -> int:
            _refuse_empty(click.get_current_context())
            # Standard output belongs to the JSON object, whatever a model file prints.
            with redirect_stdout(sys.stderr) if as_json else nullcontext():
                answer = body(as_json, **arguments)
            try:
                if as_json:
                    print(json.dumps(answer.data, allow_nan=False))
                else:
                    show(answer.screen)
                sys.stdout.flush()
            except OSError as error:
                raise Unwritable(error) from None
            return answer.exit_code

        options = (
            click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks."),
            click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
        )
        for option in options:
            invoke = option(invoke)
        return click.command(name)(invoke)

    return decorate


def _refuse_empty(ctx: click.Context) -> None:
    """An empty value, as of a shell variable that is not set, is a mistake and not a value left out."""
    for parameter in ctx.command.params:
        value = ctx.params.get(parameter.name or "")
        if "" in (value if isinstance(value, tuple) else (value,)):
            raise click.BadParameter("it is empty", ctx, parameter)


def console() -> Console:
    """Standard output: as wide as the terminal, or 120 columns where there is none."""
    from rich.console import Console

    return Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else 120)


@dataclass(frozen=True)
class _Harmless:
    """What rich draws, without a letter that a terminal would act on beside rich's own codes."""

    screen: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.segment import Segment

        for s in console.render(self.screen, options):
            yield s if s.control else Segment(lines(s.text), s.style)


def show(screen: RenderableType) -> None:
    """Print an answer; into a pipe or a file without the blanks that fill up lines."""
    out = console()
    if out.is_terminal:
        out.print(_Harmless(screen), crop=False)
        return
    with out.capture() as text:
        out.print(_Harmless(screen), crop=False)
    for row in text.get().splitlines():
        print(row.rstrip())


@contextmanager
def stages(as_json: bool) -> Iterator[Stage]:
    """A Stage that draws a progress bar if there is a terminal to draw on."""
    if as_json or not sys.stderr.isatty():
        yield Stage(lambda what, done, total: None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description:<24}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield Stage(
            lambda what, done, total: bar.update(task, description=line(what)[:24], completed=done, total=total or None)
        )


@dataclass(frozen=True)
class ModelFile:
    """What MODEL and --trust say: the path, which may end in `::method`, and whether what it holds may run code."""

    path: str
    trust: bool = False


def model_argument(body: Body, metavar: str = "MODEL") -> Body:
    """MODEL and --trust; the verb's body gets them together as `model`."""

    @wraps(body)
    def gathered(*arguments: Any, model: str, trust: bool, **rest: Any) -> Answer:
        return body(*arguments, model=ModelFile(model, trust), **rest)

    option = click.option("--trust", is_flag=True, help="Let a .pt2 run code of its own: for files you made yourself.")
    return click.argument("model", metavar=metavar, type=click.Path())(option(gathered))


def model_or_image_argument(body: Body) -> Body:
    return model_argument(body, "MODEL_OR_IMAGE")


def board_option(body: Body) -> Body:
    return click.option(
        "--board",
        required=True,
        metavar="BOARD",
        shell_complete=complete_boards,
        help="A name from `baretorch boards`, or your own .toml.",
    )(body)


def toolchain_option(body: Body) -> Body:
    return click.option("--toolchain", type=click.Choice(TOOLCHAINS), help="Default: gcc if installed, else zig.")(body)


def emulator_option(body: Body) -> Body:
    return click.option("--emulator", type=click.Choice(EMULATORS), help="Default: the board's first installed one.")(
        body
    )


def optimize_option(body: Body) -> Body:
    return click.option(
        "--optimize",
        type=click.Choice(["speed", "size"]),
        default="speed",
        show_default=True,
        help="One instance of a kernel per kind of layer, or one per kernel.",
    )(body)


@dataclass(frozen=True)
class Quantization:
    """What --int8, --keep-float, --observer and --io say."""

    int8: bool = False
    keep_float: tuple[str, ...] = ()
    io: str = "float"
    unless_done: bool = False  # a model that is int8 already stays as it is
    observer: str = "histogram"


def io_option(body: Body) -> Body:
    return click.option(
        "--io",
        type=click.Choice(["float", "int8"]),
        default="float",
        show_default=True,
        help="What an int8 model takes and gives.",
    )(body)


def observer_option(body: Body) -> Body:
    return click.option(
        "--observer",
        type=click.Choice(["histogram", "minmax"]),
        default="histogram",
        show_default=True,
        help="How scales follow from calibration data: without its outliers, or with all of it.",
    )(body)


def int8_options(body: Body) -> Body:
    """--int8 and what goes with it; the verb's body gets them together as `quantization`."""

    @wraps(body)
    def gathered(
        *arguments: Any, int8: bool, keep_float: tuple[str, ...], observer: str, io: str, **rest: Any
    ) -> Answer:
        if not int8 and (keep_float or observer != "histogram"):  # --io also goes with models that are int8 already
            raise click.UsageError("--keep-float and --observer go with --int8")
        return body(*arguments, quantization=Quantization(int8, keep_float, io, observer=observer), **rest)

    result: Body = gathered
    for option in (
        io_option,
        observer_option,
        click.option("--keep-float", multiple=True, metavar="LAYER", help="Leave this layer in float; repeatable."),
        click.option("--int8", is_flag=True, help="Quantize to int8, with data from the file's calibration()."),
    ):
        result = option(result)
    return result


def memory_options(body: Body) -> Body:
    """--ram, --input, --buffers, --weights and --place; the verb's body gets them together as `memory`."""

    @wraps(body)
    def gathered(
        *arguments: Any,
        ram: int | None,
        input_: str,
        buffers: str,
        weights: str,
        place: tuple[str, ...],
        **rest: Any,
    ) -> Answer:
        from baretorch.plan.types import Memory

        pairs = [p.rpartition("=") for p in place]
        wrong = [p for p, (layer, _, bank) in zip(place, pairs, strict=True) if not layer or not bank]
        if wrong:
            raise click.UsageError(f"--place takes LAYER=BANK, not {wrong[0]}")
        elsewhere = {layer: bank for layer, _, bank in pairs}
        memory = Memory(elsewhere, ram, input_ == "rows", buffers == "caller", weights == "ram")
        return body(*arguments, memory=memory, **rest)

    result: Body = gathered
    for option in (
        click.option(
            "--place",
            multiple=True,
            metavar="LAYER=BANK",
            help="Keep this layer's output in that bank of RAM; `arena` is all the rest; repeatable.",
        ),
        click.option(
            "--weights",
            type=click.Choice(["flash", "ram"]),
            default="flash",
            show_default=True,
            help="Read weights from flash, or copy those read most to RAM at start, as far as there is room.",
        ),
        click.option(
            "--buffers",
            type=click.Choice(["arena", "caller"]),
            default="arena",
            show_default=True,
            help="Copy inputs and outputs to and from the arena, or leave them where the caller has them.",
        ),
        click.option(
            "--input",
            "input_",
            type=click.Choice(["whole", "rows"]),
            default="whole",
            show_default=True,
            help="Whether the run function takes an image, or a callback that gives its rows.",
        ),
        click.option(
            "--ram",
            type=click.IntRange(min=0),
            metavar="BYTES",
            help="How large the arena may be; layers run in bands of rows to reach it.",
        ),
    ):
        result = option(result)
    return result


def check_inputs_option(body: Body) -> Body:
    return click.option(
        "--check-inputs",
        is_flag=True,
        help="Refuse NaN and infinity: the C gets a function that finds them, which images call before a run.",
    )(body)


def out_option(default: str) -> Callable[[Body], Body]:
    return click.option("--out", type=click.Path(), metavar="DIR", help=f"Where files go. Default: {default}.")


def complete_boards(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from baretorch.targets.boards import board_names

    return [CompletionItem(name) for name in board_names() if name.startswith(incomplete)]
