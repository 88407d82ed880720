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


def board_option(body: Body) -> Body:
    """--board; the verb's body gets the board itself. It is looked up before anything is done: it fails faster."""

    @wraps(body)
    def with_board(*arguments: Any, board: str, **rest: Any) -> Answer:
        from baretorch.targets.boards import load_board

        return body(*arguments, board=load_board(board), **rest)

    return click.option(
        "--board",
        required=True,
        metavar="BOARD",
        shell_complete=complete_boards,
        help="A name from `baretorch boards`, or your own .toml.",
    )(with_board)


def out_option(default: str) -> Callable[[Body], Body]:
    return click.option("--out", type=click.Path(), metavar="DIR", help=f"Where files go. Default: {default}.")


def complete_boards(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from baretorch.targets.boards import board_names

    return [CompletionItem(name) for name in board_names() if name.startswith(incomplete)]
