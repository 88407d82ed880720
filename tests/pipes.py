"""Pipes where files are expected. A reader that opens one would wait for ever; here it is given an end instead, and the
test fails."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def ending(pipe: Path) -> Iterator[None]:
    """While the block runs, every reader of the pipe finds it empty."""
    over = threading.Event()

    def end() -> None:
        while not over.is_set():
            os.close(os.open(pipe, os.O_WRONLY))  # waits for a reader

    thread = threading.Thread(target=end, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        while thread.is_alive():
            os.close(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK))
            thread.join(0.01)
