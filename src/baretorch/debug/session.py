"""Run gdb with an image, and run the model with its example inputs again and again meanwhile."""

from __future__ import annotations

import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from baretorch.debug.about import FACTS, DebugInfo
from baretorch.debug.plain import plain_commands
from baretorch.errors import CompileError
from baretorch.escape import gdb_path, gdb_quoted
from baretorch.files.ownership import MARK, check_file
from baretorch.firmware.elf import ARM
from baretorch.ir.graph import Array
from baretorch.ir.io import store_inputs
from baretorch.machines.gdb import DebuggerGone
from baretorch.machines.link import Link
from baretorch.machines.types import DeviceHang, GdbServer
from baretorch.pipeline import Compiled
from baretorch.targets.runtime import RUNTIME
from baretorch.targets.types import Board

COMMANDS = Path(__file__).parent / "commands.py"
START = "debug.gdb"
PATIENCE = 1e8  # seconds: a user may stop at a breakpoint for long
PROGRAMS = ("gdb-multiarch", "arm-none-eabi-gdb"), ("gdb-multiarch", "riscv64-unknown-elf-gdb")

END_SECONDS = 5.0  # for an emulator to notice that gdb has ended


def find_gdb(board: Board) -> str:
    """Return the path of a gdb for the board's CPU. CompileError with the remedy if there is none."""
    names = PROGRAMS[0] if board.chip.cpu.elf_machine == ARM else PROGRAMS[1]
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise CompileError(
            f"no gdb for {board.name}", need=f"the program {' or '.join(names)}", try_="`apt-get install gdb-multiarch`"
        )
    return found


def has_python(gdb: str) -> bool:
    command = [gdb, "-nx", "-batch", "-ex", "python print(6 * 7)"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    return done.stdout.strip() == b"42"


def start_commands(compiled: Compiled, folder: Path, server: GdbServer, python: bool) -> str:
    """Return debug.gdb, which stops at the run function of the first run and defines the model's commands."""
    sources = [folder.resolve(), *sorted({p.parent for p in RUNTIME.rglob("*.c")})]
    about = DebugInfo(compiled)
    model = _quote_path(folder.resolve() / FACTS)
    knows = [f"source {_quote_path(COMMANDS)}", f"baretorch-model {model}"] if python else [plain_commands(about)]
    lines = [
        f"# {MARK}debug",
        "set pagination off",
        "set confirm off",
        *(f"directory {_quote_path(path, gdb_quoted)}" for path in reversed(sources)),
        *knows,
        f"target remote {_quote_path(Path(server.target))}",
        *server.begin,
        f"tbreak {about.method.run}_in",
        "continue",
    ]
    return "\n".join(lines) + "\n"


def check_folder(folder: Path) -> None:
    """Raise CompileError if gdb cannot be given files of this folder, or debug.gdb in it is not ours."""
    _quote_path(folder.resolve() / FACTS)
    check_file(folder / START)


def _quote_path(path: Path, write: Callable[[str], str] = gdb_path) -> str:
    try:
        return write(str(path))
    except ValueError:
        raise CompileError(
            "gdb cannot be given this path",
            have=str(path),
            need="a path without a line break",
            try_="--out with another folder; TMPDIR names the folder for temporary files",
        ) from None


@dataclass
class Feeder:
    """Runs the image with the example's inputs, again and again, each time as the first run after a reset."""

    server: GdbServer
    inputs: Sequence[bytes]
    has_state: bool
    fault: list[CompileError] = field(default_factory=list)
    runs: int = 0
    _over: bool = False

    def __call__(self) -> None:
        try:
            self.server.start()
            link = Link(self.server.machine)
            self._greet(link)
            while not self._over:
                if self.has_state:
                    link.reset(PATIENCE)
                link.run(self.inputs, PATIENCE)
                self.runs += 1
        except DebuggerGone:
            return
        except Exception as error:
            if self._over:  # the connection was closed meanwhile
                return
            if not isinstance(error, CompileError):
                raise
            self.fault.append(error)
            self.server.end()

    def _greet(self, link: Link) -> None:
        """Say hello until the image answers: a board's serial line may lose data while it starts."""
        while not self._over:
            try:
                link.hello(seconds=None if self.server.machine.name == "serial" else PATIENCE)
                return
            except DeviceHang:
                continue

    def stop(self) -> None:
        self._over = True


@contextmanager
def feed(compiled: Compiled, server: GdbServer) -> Iterator[Feeder]:
    """Run the image with its inputs while the block runs."""
    given: Sequence[Array] = store_inputs(compiled.graph, compiled.source.examples)
    feeder = Feeder(server, [np.ascontiguousarray(x).tobytes() for x in given], bool(compiled.graph.state))
    thread = threading.Thread(target=feeder, daemon=True)
    thread.start()
    try:
        yield feeder
    finally:
        feeder.stop()
        server.close()
        thread.join(END_SECONDS)


def run_gdb(gdb: str, elf: Path, start: Path, script: Path | None, output: int | None = None) -> tuple[int, str]:
    """Run gdb at the terminal, or with a script until that ends. Return its exit code and its captured output."""
    files = [start, *([script] if script else [])]
    command = [gdb, "-q", "-nx", *(["-batch"] if script else []), str(elf.absolute())]  # no name begins with a dash
    command += [word for file in files for word in ("-x", str(file.absolute()))]
    before = signal.signal(signal.SIGINT, lambda *_: None)  # a Ctrl-C is for gdb
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL if script else None, stdout=output, text=True, check=False
        )
    finally:
        signal.signal(signal.SIGINT, before)
    return done.returncode, done.stdout or ""
