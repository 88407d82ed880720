"""baretorch mcp: boards, fit, run and explanations of errors for assistants that speak the Model Context Protocol.

Nothing is written or flashed. Each call is a process of its own, so that a model cannot disturb the server.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import getdoc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from baretorch.cli.verb import Answer, verb
from baretorch.errors import INTERNAL_ERROR, CompileError
from baretorch.escape import quote
from baretorch.files.write import scratch
from baretorch.options import OPTIONS, read_options
from baretorch.version import __version__

if TYPE_CHECKING:
    from mcp.server import MCPServer

SECONDS = 900  # for one call
LETTERS = 20_000  # of the words of one call, which the system limits
REJECTED = ("trust", "app")  # options that let files of others run
PAGE = "troubleshooting.md"
ABOUT = """Baretorch compiles trained models for bare-metal microcontrollers and emulates the chip. Results are the JSON
objects of the command line; a result with the key `error` has remedies in `try`. Options are those of the command
line with _ for -, such as {"int8": true, "ram": 20000}."""


@verb("mcp")
@click.option(
    "--folder",
    type=click.Path(exists=True, file_okay=False),
    default=".",
    metavar="DIR",
    help="Read only models in this folder and below. Default: the current folder.",
)
@click.option("--allow-python", is_flag=True, help="Also accept models in Python files, which run as your programs do.")
def mcp(as_json: bool, folder: str, allow_python: bool) -> Answer:
    """Serve boards, fit, run and error texts to an assistant.

    The protocol is the Model Context Protocol over standard input and output. Nothing is written or flashed.
    """
    if as_json:
        raise click.UsageError("--json has no meaning here: standard output belongs to the protocol")
    make_server(Tools(Path(folder).resolve(), allow_python)).run("stdio")
    return Answer({}, "")


@dataclass(frozen=True)
class Tools:
    """The tools of the server. `folder` is the only one whose models are read."""

    folder: Path
    allow_python: bool = False

    def list_boards(self) -> dict[str, Any]:
        """List all boards: CPU, clock, memory and emulators."""
        return self._call("boards")

    def fit(self, model: str, boards: list[str] | None = None, options: dict[str, Any] | None = None) -> dict[str, Any]:
        """Report which boards hold a model, and what makes it fit the others. `model` is a path in the folder."""
        words = [word for board in boards or () for word in ("--board", self._board(board))]
        return self._call("fit", self._model(model), *words, *self._options(options or {}))

    def run(self, model: str, board: str, options: dict[str, Any] | None = None) -> dict[str, Any]:
        """Compile and build a model, run the image on the emulated chip, and compare it with the original model. The
        result has flash, RAM, instructions, time and the largest error."""
        with scratch() as folder:
            words = ("--board", self._board(board), "--out", str(folder / "image"), *self._options(options or {}))
            return self._call("run", self._model(model), *words)

    def explain_error(self, text: str) -> dict[str, Any]:
        """Return the sections of the troubleshooting page about an error or a warning. `text` is the message that was
        printed."""
        found = [section for section in _sections() if section.explains(text)]
        return {"sections": [{"title": s.title, "text": s.text} for s in found]}

    def _model(self, model: str) -> str:
        path = self._inside("model", model.partition("::")[0])
        if path.suffix.lower() == ".py" and not self.allow_python:
            raise CompileError(
                f"{quote(model)} is a Python file, which is code",
                try_="start the server with `baretorch mcp --allow-python` if you trust all Python files in its folder",
            )
        return str(path) + "".join(model.partition("::")[1:])

    def _board(self, board: str) -> str:
        return str(self._inside("board", board)) if board.endswith(".toml") else board

    def _options(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        for name in REJECTED:
            if name in options:
                raise CompileError(f"{name} cannot be set here", need="files that are data")
        given = {n: v for n, v in options.items() if n in OPTIONS and OPTIONS[n].is_path and isinstance(v, str)}
        paths = {n: str(self._inside(n, path)) for n, path in given.items()}
        return read_options({**options, **paths}).words()

    def _inside(self, name: str, path: str) -> Path:
        """Return a path in the folder, or raise CompileError."""
        _need_short(path)
        full = (self.folder / path).resolve()
        if not full.is_relative_to(self.folder) or path.startswith("-"):
            raise CompileError(f"{name} {quote(path)} is not in the folder of the server", have=str(self.folder))
        return full

    def _call(self, *words: str) -> dict[str, Any]:
        """Run a command of Baretorch in a process of its own, and return its JSON object."""
        _need_short(" ".join(words))
        command = [sys.executable, "-P", "-m", "baretorch", *words, "--json"]
        try:
            done = subprocess.run(
                command, cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS
            )
            found: dict[str, Any] = json.loads(done.stdout)
        except subprocess.TimeoutExpired:
            raise CompileError(f"{words[0]} took longer than {SECONDS} s") from None
        except ValueError:
            return {
                "error": done.stderr.decode("utf-8", "replace")[-2000:],
                "exit_code": done.returncode or INTERNAL_ERROR,
            }
        return {**found, "exit_code": done.returncode}


def _need_short(text: str) -> None:
    """Raise CompileError if a text cannot be passed to a process."""
    if "\0" in text or len(text) > LETTERS or (not text.isascii() and re.search("[\ud800-\udfff]", text)):
        raise CompileError(
            f"{quote(text[:60])} cannot be passed to baretorch",
            need=f"at most {LETTERS:,} letters, without zero bytes and halves of letters",
        )


def make_server(tools: Tools) -> MCPServer:
    """Return a server with the tools, which report errors of users as JSON."""
    try:
        from mcp.server import MCPServer
        from mcp.types import ToolAnnotations
    except ImportError as error:
        raise CompileError(
            "the package mcp is needed for this and is not installed", try_='pip install "baretorch[mcp]"'
        ) from error
    server = MCPServer("baretorch", version=__version__, instructions=ABOUT)
    harmless = ToolAnnotations(read_only_hint=True, destructive_hint=False, open_world_hint=False)
    for tool in (tools.list_boards, tools.fit, tools.run, tools.explain_error):
        server.add_tool(_report_errors(tool), name=tool.__name__, description=getdoc(tool), annotations=harmless)
    return server


def _report_errors(tool: Any) -> Any:
    """Return the tool with errors that users can fix as its result."""
    from functools import wraps

    @wraps(tool)
    def call(*arguments: Any, **named: Any) -> dict[str, Any]:
        try:
            return tool(*arguments, **named)  # type: ignore[no-any-return]
        except CompileError as error:
            return error.to_json()

    return call


@dataclass(frozen=True)
class _Section:
    """A section of the troubleshooting page. Titles quote errors, with … for what differs."""

    title: str
    text: str

    def explains(self, text: str) -> bool:
        """Return whether the title quotes the text."""
        for quoted in re.findall(r"`([^`]+)`", self.title):
            parts = [part.strip().lower() for part in quoted.split("…") if len(part.strip()) > 3]
            if parts and any(_has_in_order(line, parts) for line in text.lower().splitlines()):
                return True
        return False


def _has_in_order(line: str, parts: list[str]) -> bool:
    """Return whether a line contains all parts, one after the other."""
    at = 0
    for part in parts:
        found = line.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True


def _sections() -> list[_Section]:
    """Read the troubleshooting page: in the checkout, or where pip installed it."""
    installed = Path(sysconfig.get_path("data")) / "share" / "doc" / "baretorch" / PAGE
    for path in (Path(__file__).parents[3] / "docs" / PAGE, installed):
        if path.is_file():
            parts = re.split(r"^### ", path.read_text(), flags=re.MULTILINE)[1:]
            found = (part.partition("\n") for part in parts)
            return [_Section(title, re.split(r"^## ", text, flags=re.MULTILINE)[0].strip()) for title, _, text in found]
    raise CompileError("the troubleshooting page is not installed", try_="docs/troubleshooting.md in the source tree")
