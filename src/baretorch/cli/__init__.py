"""The command line: the list of verbs, and the one place where errors become exit codes."""

from __future__ import annotations

import difflib
import errno
import io
import json
import os
import re
import signal
import sys
import tempfile
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import NoReturn, TextIO

import click

from baretorch.cli.boards import boards
from baretorch.cli.build import build
from baretorch.cli.check import check
from baretorch.cli.compile import compile_
from baretorch.cli.completion import completion
from baretorch.cli.debug import debug
from baretorch.cli.doctor import doctor
from baretorch.cli.evaluate import evaluate
from baretorch.cli.export import export
from baretorch.cli.fit import fit
from baretorch.cli.flash import flash
from baretorch.cli.inspect import inspect
from baretorch.cli.mcp import mcp
from baretorch.cli.monitor import monitor
from baretorch.cli.new import new
from baretorch.cli.ops import ops
from baretorch.cli.profile import profile
from baretorch.cli.project import project
from baretorch.cli.report import report
from baretorch.cli.run import run
from baretorch.cli.studio import studio
from baretorch.cli.tune import tune
from baretorch.cli.verb import Unwritable
from baretorch.errors import INTERNAL_ERROR, USAGE_ERROR, USER_ERROR, CompileError
from baretorch.escape import lines
from baretorch.version import __version__

INTERRUPTED, BROKEN_PIPE, TERMINATED = 130, 141, 143  # as shells report a program that a signal ended

WHOLE = 1000  # characters: texts of help are not cut
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EMFILE, errno.ENFILE)

EXIT_CODES = {
    0: "done",
    USER_ERROR: "an error that you can fix; standard error explains it",
    USAGE_ERROR: "wrong usage: an option or an argument",
    INTERNAL_ERROR: "a bug in Baretorch",
    INTERRUPTED: "interrupted (SIGINT, for example by Ctrl-C); no temporary files remain",
    BROKEN_PIPE: "standard output was closed (a broken pipe, for example by `| head`)",
    TERMINATED: "terminated (SIGTERM); no temporary files remain",
}

GOALS: Mapping[str, tuple[click.Command, ...]] = {
    "Try a model": (new, run, studio, monitor, report),
    "Make it smaller or faster": (fit, profile, evaluate, tune),
    "Ship it": (compile_, project, build, flash, export, check),
    "Look inside": (inspect, debug, boards, ops),
    "Set up": (doctor, completion, mcp),
}
VERBS = tuple(verb for verbs in GOALS.values() for verb in verbs)
WISHES = (
    ("run my model on an emulated chip", "baretorch run MODEL --board pico2w"),
    ("start without a model", "baretorch new my_model.py"),
    ("play with it in the browser", "baretorch studio MODEL"),
    ("know which boards hold it", "baretorch fit MODEL"),
    ("make it smaller", "baretorch run MODEL --board BOARD --int8"),
    ("find the slow layers", "baretorch profile MODEL --board BOARD"),
    ("measure its accuracy on the chip", "baretorch evaluate MODEL --board BOARD"),
    ("search for the best model that fits", "baretorch tune MODEL --board BOARD --flash 60k --accuracy-drop 0.5"),
    ("use the C in my own project", "baretorch compile MODEL --board BOARD --out DIR"),
    ("get a project for my SDK", "baretorch project MODEL --sdk SDK --out DIR"),
    ("put it on my board", "baretorch flash MODEL --board BOARD"),
    ("check budgets in pull requests", "baretorch check"),
    ("see what is installed", "baretorch doctor"),
)


class _Group(click.Group):
    """Lists verbs by goal and suggests the nearest one for a misspelt verb."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [verb.name or "" for verb in VERBS]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for goal, verbs in GOALS.items():
            with formatter.section(goal):
                formatter.write_dl([(verb.name or "", verb.get_short_help_str(WHOLE)) for verb in verbs], col_max=12)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None:
            near = difflib.get_close_matches(name, self.list_commands(ctx), n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            ctx.fail(f"No such command {name!r}.{hint}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=_Group,
    commands=VERBS,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Every command takes --json (one JSON object on standard output) and --debug (tracebacks).",
)
@click.version_option(__version__, prog_name="baretorch", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Run trained models on bare-metal microcontrollers.

    MODEL is a Python file with model() and inputs() (PyTorch or tinygrad), or an .onnx, .tflite, .pt2 or .pte file.
    MODEL::METHOD selects one of several methods.
    """
    if ctx.invoked_subcommand is None:
        width = max(len(wish) for wish, _ in WISHES)
        click.echo("I want to …\n")
        for wish, command in WISHES:
            click.echo(f"  {wish:<{width}}  {command}")
        click.echo("\n`baretorch --help` lists all commands; `baretorch boards` and `baretorch ops` what is supported.")


class Terminated(KeyboardInterrupt):
    """Raised on SIGTERM. It unwinds the program as Ctrl-C does, so that temporary folders and processes are removed."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the program `baretorch`."""
    signal.signal(signal.SIGTERM, _terminate)
    sys.stdout, sys.stderr = _usable(sys.stdout), _usable(sys.stderr)
    try:
        code = run_command(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()  # and not when Python ends, which would print a traceback
    except KeyboardInterrupt as error:
        code = _interrupt_code(error)
    except OSError as error:
        code = _unwritable(error)
    sys.exit(code)


def _terminate(number: int, frame: object) -> NoReturn:
    raise Terminated


def _interrupt_code(error: BaseException | None) -> int:
    return TERMINATED if isinstance(error, Terminated) else INTERRUPTED


def run_command(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    as_json = "--json" in arguments
    try:
        code = cli.main(list(arguments), prog_name="baretorch", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.Abort as error:
        if as_json:
            _print_json(CompileError("interrupted"))
        return _interrupt_code(error.__cause__)
    except click.ClickException as error:
        if as_json:
            _print_json(CompileError(error.format_message()))
        else:
            shown = io.StringIO()
            error.show(shown)
            text = re.sub("^Error: ", "error: ", shown.getvalue(), flags=re.MULTILINE)
            click.echo(_shorten(text), nl=False, err=True)
        return USAGE_ERROR
    except Unwritable as error:
        return _unwritable(error.reason)
    except SystemExit:  # click and rich end so when a pipe is closed
        return _unwritable(BrokenPipeError())
    except Exception as error:
        return _report_error(error, as_json, "--debug" in arguments)


def _usable(stream: TextIO | None) -> TextIO:
    """Return a standard stream that accepts any text; if the caller has closed it, one that discards it."""
    if stream is None:
        return open(os.devnull, "w")
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")
    return stream


def _unwritable(error: OSError) -> int:
    """Discard all further output, including what is still in the buffer, and return the exit code."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return BROKEN_PIPE
    _show(CompileError("cannot write to standard output", have=str(error)).render())
    return USER_ERROR


def _report_error(error: Exception, as_json: bool, debug: bool) -> int:
    """Report what went wrong: a user's error with a remedy, or an internal one with the way to a traceback."""
    if debug:
        traceback.print_exception(error)
    if isinstance(error, CompileError):
        if as_json:
            _print_json(error)
        else:
            _show(error.render())
        return USER_ERROR
    if isinstance(error, OSError) and error.errno in NO_ROOM:
        return _report_error(_no_room(error), as_json, False)
    reason = f"{type(error).__name__}: {error}"
    hint = "run the command again with --debug for the traceback, and report it"
    if as_json:
        _print_json(CompileError(f"internal error: {reason}", try_=hint))
    else:
        _show(f"internal error: {reason}\n  try   {hint}")
    return INTERNAL_ERROR


def _no_room(error: OSError) -> CompileError:
    where = error.filename2 or error.filename or tempfile.gettempdir()
    return CompileError(
        f"cannot write: {error.strerror}",
        at=str(where),
        need="free space on the disk; incomplete files were removed",
        try_="--out for another folder, TMPDIR for temporary files, XDG_CACHE_HOME for the cache",
    )


def _print_json(error: CompileError) -> None:
    """Print an error as JSON on standard output, or as text if that is closed."""
    try:
        print(json.dumps(error.to_json()), flush=True)
    except OSError as problem:
        _unwritable(problem)
        _show(error.render())


def _shorten(text: str) -> str:
    """Return a text whose very long words are shortened: a user may give numbers of any length."""
    return re.sub(r"\S{500,}", lambda word: f"{word[0][:120]}… ({len(word[0]):,} characters)", text)


def _show(text: str) -> None:
    """Print an error on standard error; on a terminal its first word is red and its labels are dim."""
    text = _shorten(lines(text))
    if sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
        first, *rest = text.split("\n")
        word, colon, what = first.partition(":")
        rows = [click.style(word + colon, fg="red", bold=True) + what]
        rows += [click.style(row[:8], dim=True) + row[8:] for row in rest]
        text = "\n".join(rows)
    click.echo(text, err=True)
