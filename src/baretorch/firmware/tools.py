"""Runs compilers and linkers. They end when this process ends."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

# Messages of tools that cannot write.
FULL = {
    "No space left on device": errno.ENOSPC,
    "NoSpaceLeft": errno.ENOSPC,
    "Disk quota exceeded": errno.EDQUOT,
    "File too large": errno.EFBIG,
    "File size limit exceeded": errno.EFBIG,
}

_running: set[subprocess.Popen[str]] = set()


def run_tool(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder to its end. Raises OSError if there is no space for its output. It gets its own process
    group, so that it can be stopped together with its child processes."""
    child = subprocess.Popen(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        process_group=0,
    )
    _running.add(child)
    try:
        with child:
            output, said = child.communicate()
    except BaseException:
        _stop(child)
        raise
    finally:
        _running.discard(child)
    if child.returncode and (full := next((text for text in FULL if text in said), None)):
        raise OSError(FULL[full], full, str(folder))
    return subprocess.CompletedProcess(command, child.returncode, output, said)


def stop_tools() -> bool:
    """Stop the tools of other threads, if there are any."""
    running = tuple(_running)
    for child in running:
        _stop(child)
    return bool(running)


def _stop(child: subprocess.Popen[str]) -> None:
    """Send SIGTERM, so that compilers remove their own temporary files."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGTERM)
