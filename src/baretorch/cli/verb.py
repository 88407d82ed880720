"""Defines what all verbs share: each returns an Answer, and `verb` prints it as JSON or as text."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stdout, suppress
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeAlias

import click
from click.shell_completion import CompletionItem

from baretorch.escape import lines

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
    from rich.text import Text

Body: TypeAlias = Callable[..., "Answer"]

# The options of each heading in the help of a verb; all others are under "Options".
HEADINGS: Mapping[str, tuple[str, ...]] = {
    "Reading the model": ("trust", "shape", "state", "fix"),
    "int8": ("int8", "calibration", "keep_float", "config", "observer", "io"),
    "Memory": ("ram", "input", "buffers", "weights", "place", "code"),
    "Chip": ("cores", "core", "compare_cores", "npu", "units"),
    "Image": ("toolchain", "optimize", "emulator", "console", "check_inputs", "watchdog", "app"),
}
LAST = "Output"

SELECT_BOARD = "Select a board: a name from `baretorch boards`, or your own .toml."
IMAGE_FOLDER = "build/MODEL-BOARD[-onnx][-int8]"  # the default; -onnx is the kind of file, unless it is Python


@dataclass(frozen=True)
class Answer:
    """The result of a verb: an object for programs, and something that rich can print for people."""

    data: dict[str, Any]
    screen: RenderableType
    exit_code: int = 0


class Unwritable(Exception):
    """Raised when standard output cannot be written to."""

    def __init__(self, reason: OSError) -> None:
        super().__init__(str(reason))
        self.reason = reason


@dataclass(frozen=True)
class ProgressLine:
    """Shows the current stage on standard error of a terminal, and clears it when the stage is done."""

    show: Callable[[str, int, int], None]

    def __call__(self, what: str) -> None:
        """Show a stage whose length is not known."""
        self.show(what, 0, 0)

    def build(self, source: str, done: int, total: int) -> None:
        """Show the progress of firmware.build."""
        self.show(f"compile {source}", done, total)


class _VerbCommand(click.Command):
    """Lists options under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {title: [] for title in ("Options", *HEADINGS, LAST)}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                title = next((t for t, names in HEADINGS.items() if param.name in names), "Options")
                sections[LAST if param.name in ("as_json", "debug", "help") else title].append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


def verb(name: str) -> Callable[[Body], click.Command]:
    """Make a command called `name` with --json and --debug. The function's first argument is whether --json was
    given."""

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
        return click.command(name, cls=_VerbCommand)(invoke)

    return decorate


def _refuse_empty(ctx: click.Context) -> None:
    """Reject empty values: an unset shell variable is a mistake, not a value left out."""
    for parameter in ctx.command.params:
        value = ctx.params.get(parameter.name or "")
        if "" in (value if isinstance(value, tuple) else (value,)):
            raise click.BadParameter("the value is empty", ctx, parameter)


def console() -> Console:
    """Return standard output for rich: as wide as the terminal, or 120 columns if it is not one."""
    from rich.console import Console

    return Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else 120)


@dataclass(frozen=True)
class _Harmless:
    """Renders for rich and removes control characters other than rich's own."""

    screen: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.segment import Segment

        for s in console.render(self.screen, options):
            yield s if s.control else Segment(lines(s.text), s.style)


def show(screen: RenderableType) -> None:
    """Print an answer; without trailing blanks if standard output is a pipe or a file."""
    out = console()
    if out.is_terminal:
        out.print(_Harmless(screen), crop=False)
        return
    with out.capture() as text:
        out.print(_Harmless(screen), crop=False)
    for row in text.get().splitlines():
        print(row.rstrip())


def whole_lines(text: str) -> Text:
    """Return text whose lines are not wrapped, so that other programs can read them; a terminal wraps them itself."""
    from rich.text import Text

    return Text(text, no_wrap=True, overflow="ignore")


@contextmanager
def show_progress(as_json: bool) -> Iterator[ProgressLine]:
    """Yield a ProgressLine that draws a progress bar if standard error is a terminal."""
    if as_json or not sys.stderr.isatty():
        yield ProgressLine(lambda what, done, total: None)
        return
    from rich.console import Console

    from baretorch.report.terminal.progress import progress_bar

    with progress_bar(Console(stderr=True)) as bar:
        yield ProgressLine(bar)


class BoardName(click.types.StringParamType):
    """The name of a board, or the path of a .toml."""

    def get_missing_message(self, param: click.Parameter, ctx: click.Context | None) -> str:
        return "`baretorch boards` lists them"


def board_option(body: Body) -> Body:
    """Add --board. The verb's body gets the board itself, which is loaded first, so that errors come early."""

    @wraps(body)
    def with_board(*arguments: Any, board: str, **rest: Any) -> Answer:
        from baretorch.targets.boards import load_board

        return body(*arguments, board=load_board(board), **rest)

    return click.option(
        "--board",
        type=BoardName(),
        required=True,
        metavar="BOARD",
        shell_complete=complete_boards,
        help=SELECT_BOARD,
    )(with_board)


def board_name_option(help: str, metavar: str = "BOARD") -> Callable[[Body], Body]:
    """Add an optional --board. The verb's body gets its name, or None."""
    return click.option("--board", metavar=metavar, shell_complete=complete_boards, help=help)


port_option = click.option(
    "--port", metavar="PORT", help="Use the board at this serial port. Default: emulate the board."
)


def out_option(default: str) -> Callable[[Body], Body]:
    return click.option(
        "--out", type=click.Path(), metavar="DIR", help=f"Write files to this folder. Default: {default}."
    )


def complete_boards(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from baretorch.targets.boards import board_names

    return [CompletionItem(name) for name in board_names() if name.startswith(incomplete)]


def complete_emulators(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the emulators of the board that is given before; all of them if there is none."""
    from baretorch.errors import CompileError
    from baretorch.targets.boards import load_board
    from baretorch.targets.types import EMULATORS

    names = tuple(EMULATORS)
    with suppress(CompileError):
        names = load_board(ctx.params["board"]).emulators if ctx.params.get("board") else names
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
