"""The parent's side of a reference runtime in a child process.

There is one process for each library, which serves all models that are open in it. It is started when the first one is
opened, and again after a crash. It ends with us: by `stop`, at exit, and when its standard input is closed.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from threading import RLock
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from baretorch.errors import CompileError
from baretorch.frontends.runtimes.frames import decode_message, encode_message

Array: TypeAlias = npt.NDArray[Any]
Key = TypeVar("Key", int, str)

CHUNK = 1 << 16
PATIENCE = 600.0  # seconds for one answer
CHILD = "baretorch.frontends.runtimes.child"


class Refusal(CompileError):
    """The runtime rejects a model, or does not respond in time."""


class Crash(CompileError):
    """The runtime's process ended while it handled a request."""


class OpenModel(Generic[Key]):
    """A model that is open in a runtime's process, with the state after its last run."""

    def __init__(self, library: str, data: bytes, operators: Sequence[str] = ()) -> None:
        self._child, self._number = _open(library, data, operators)
        weakref.finalize(self, self._child.forget, self._number)

    def run(self, inputs: Mapping[Key, Array], wanted: Sequence[Key]) -> dict[Key, Array]:
        """Run the model once and return the wanted tensors."""
        header = {"ask": "run", "model": self._number, "inputs": _plain(inputs), "wanted": _plain(wanted)}
        made = self._child.ask(header, list(inputs.values()))
        return dict(zip(wanted, (np.array(y) for y in made), strict=True))


def _plain(keys: Iterable[Any]) -> list[Any]:
    """Return the keys as Python numbers and texts: those of a FlatBuffer may be NumPy's."""
    return [key.item() if isinstance(key, np.generic) else key for key in keys]


class _Child:
    """The process of one library."""

    def __init__(self, library: str) -> None:
        self.library = library
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        paths = os.pathsep.join(path for path in sys.path if path)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", CHILD, library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
            env=os.environ | {"PYTHONPATH": paths},
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        os.set_blocking(self._stdin.fileno(), False)
        self._owner = os.getpid()
        self._lock = RLock()
        self._forgotten: list[int] = []
        self._opened = 0
        self.ended: str = ""  # how it ended, if it has

    @property
    def alive(self) -> bool:
        """Report whether it can handle requests; a forked process must not share the pipes of its parent."""
        return not self.ended and self._owner == os.getpid()

    def load(self, data: bytes, operators: Sequence[str]) -> int:
        with self._lock:
            self._opened += 1
            header = {"ask": "open", "model": self._opened, "operators": list(operators)}
            self.ask(header, [np.frombuffer(data, np.uint8)])
            return self._opened

    def forget(self, number: int) -> None:
        """Close a model with the next message. The garbage collector calls this at any time, so nothing is sent."""
        self._forgotten.append(number)

    def ask(self, header: dict[str, Any], arrays: Sequence[Array]) -> list[Array]:
        """Send a message and wait for the response."""
        with self._lock:
            if not self.alive:
                raise Crash(f"{self.library} has ended", have=self.ended or "it belongs to another process")
            closed, self._forgotten = self._forgotten, []
            try:
                answer, made = self._exchange(encode_message(header | {"closed": closed}, arrays))
            except BaseException:  # also Ctrl-C: the rest of this answer must not be read as the next one
                self.stop()
                raise
        if "refused" in answer:
            raise Refusal(f"{self.library} refuses the model", have=answer["refused"])
        return made

    def stop(self) -> None:
        """End the process."""
        if self._owner == os.getpid():
            self.ended = self.ended or "it was stopped"
            self._process.kill()
            self._process.wait()
        for file in (self._stdin, self._stdout, self._errors):
            file.close()

    def _exchange(self, message: bytes) -> tuple[dict[str, Any], list[Array]]:
        unsent, deadline = memoryview(message), time.monotonic() + PATIENCE

        def read(size: int) -> bytes:
            nonlocal unsent
            parts, missing = [], size
            while missing:
                sending = [self._stdin] if unsent else []
                left = max(0.0, deadline - time.monotonic())
                readable, writable, _ = select.select([self._stdout], sending, [], left)
                if readable:
                    part = os.read(self._stdout.fileno(), min(missing, CHUNK))
                    if not part:
                        raise self._crash()
                    parts.append(part)
                    missing -= len(part)
                elif writable:
                    try:
                        unsent = unsent[os.write(self._stdin.fileno(), unsent[:CHUNK]) :]
                    except BrokenPipeError:
                        raise self._crash() from None
                else:
                    raise Refusal(f"{self.library} did not respond within {PATIENCE:g} s")
            return b"".join(parts)

        return decode_message(read)

    def _crash(self) -> Crash:
        status = self._process.wait()
        how = f"signal {-status} ({signal.Signals(-status).name})" if status < 0 else f"exit status {status}"
        self.ended = f"it crashed with {how}"
        self._errors.seek(0)
        said = [text for text in self._errors.read().decode(errors="replace").splitlines() if text.strip()]
        return Crash(
            f"{self.library} crashed with {how} when it ran the model",
            have=[text[:200] for text in said[-2:]] or None,
            need=f"a file that {self.library}, its own runtime, can run",
            try_="convert the model again: the file may be damaged",
        )


_children: dict[str, _Child] = {}


def _open(library: str, data: bytes, operators: Sequence[str]) -> tuple[_Child, int]:
    child = _children.get(library)
    if child is None or not child.alive:
        child = _children[library] = _Child(library)
    return child, child.load(data, operators)


def stop_all() -> None:
    """End the processes of all libraries."""
    for child in _children.values():
        child.stop()
    _children.clear()


atexit.register(stop_all)
