"""Run an image in a child process: bytes in on its standard input, bytes out on its standard output."""

from __future__ import annotations

import os
import select
import subprocess
import tempfile
import time
import weakref
from collections.abc import Sequence
from typing import IO, NoReturn, Protocol

from baretorch.machines.types import DeviceFault, DeviceHang, UncountedMachine

CHUNK = 1 << 16


class HasFileno(Protocol):
    """An open file, or a socket."""

    def fileno(self) -> int: ...


class Closes(Protocol):
    def close(self) -> None: ...


class Companion(Protocol):
    """A device next to a process, which acts when it receives data, or after some seconds of silence."""

    def fileno(self) -> int: ...

    def patience(self) -> float | None:
        """Return the seconds of silence after which the device acts; None if it waits for data."""

    def look(self) -> None: ...


class Process(UncountedMachine):
    """A child process that never outlives this one: `close`, the garbage collector and the interpreter's end all stop
    it."""

    def __init__(
        self,
        command: Sequence[str],
        inherit: Sequence[HasFileno] = (),
        keep: Sequence[Closes] = (),
        apart: bool = False,
    ) -> None:
        """Start a child process.

        `inherit` are open files that the child gets too; `keep` are closed after it has ended. A Ctrl-C at the terminal
        does not reach a process that is `apart`.
        """
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            pass_fds=[file.fileno() for file in inherit],
            bufsize=0,
            start_new_session=apart,
        )
        assert self._child.stdin is not None and self._child.stdout is not None
        self._stdin, self._stdout = self._child.stdin, self._child.stdout
        os.set_blocking(self._stdin.fileno(), False)
        self._unsent = b""
        self._listens = True
        self._companion: Companion | None = None
        self.close = weakref.finalize(self, _end, self._child, self._errors, *keep)

    @property
    def pid(self) -> int:
        return self._child.pid

    def write(self, data: bytes) -> None:
        """Queue bytes. They are sent while `read` waits, because a pipe holds a limited number of bytes."""
        self._unsent += data

    def read(self, timeout: float) -> bytes:
        deadline = time.monotonic() + timeout
        while True:
            sending = [self._stdin] if self._unsent and self._listens else []
            left, companion = deadline - time.monotonic(), self._companion
            patience = companion.patience() if companion is not None else None
            limit = max(0.0, left if patience is None else min(left, patience))
            reading: list[IO[bytes] | Companion] = [self._stdout] if companion is None else [self._stdout, companion]
            readable, writable, _ = select.select(reading, sending, [], limit)
            if self._stdout in readable:
                self._listens = True
                return os.read(self._stdout.fileno(), CHUNK) or self._raise_ended()
            if writable:
                self._send()
                continue
            if companion is not None and (readable or limit < left):
                companion.look()
            if time.monotonic() >= deadline:
                raise DeviceHang(f"the image sent nothing in {timeout:g} s")

    def _send(self) -> None:
        """Send as many bytes as the pipe takes."""
        try:
            sent = os.write(self._stdin.fileno(), self._unsent[:CHUNK])
        except BrokenPipeError:
            sent = len(self._unsent)  # the other end is gone, which the next read reports
        self._unsent = self._unsent[sent:]

    def _raise_ended(self) -> NoReturn:
        status = self._child.wait()
        self._errors.seek(0)
        last = self._errors.read().decode(errors="replace").strip().splitlines()[-10:]
        how = f"by signal {-status}" if status < 0 else f"with exit status {status}"
        raise DeviceFault(f"the image's process ended {how}", have=last)


def _end(child: subprocess.Popen[bytes], *files: Closes) -> None:
    child.kill()
    child.wait()
    for file in (child.stdin, child.stdout, *files):
        if file is not None:
            file.close()
