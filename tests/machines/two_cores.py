"""Images of two cores on emulated chips, and what they answer."""

from __future__ import annotations

import pytest

from baretorch.machines.link import Link
from baretorch.machines.types import Cores
from baretorch.machines.unicorn.machine import UnicornMachine
from tests.machines.images import RUN, TWO_CORES, image

DATA = bytes(range(100, 116))
ANSWER = bytes((3 * DATA[15 - i] + i) % 256 for i in range(16))
INLINED = "#define BT_INLINE_KERNELS\n"
BOARDS = pytest.mark.parametrize("board", ["pico", "pico2w"])


def machine(board: str, body: str = TWO_CORES, toolchain: str | None = None) -> UnicornMachine:
    return UnicornMachine(image(board, body, toolchain=toolchain, cores=2), RUN)


def run(
    board: str, body: str = TWO_CORES, calls: int = 2, data: bytes = DATA, toolchain: str | None = None
) -> tuple[bytes, Cores]:
    """The answer and the figures of the last call."""
    emulated = machine(board, body, toolchain)
    link = Link(emulated)
    replies = [link.run([data]) for _ in range(calls)]
    cores = emulated.cores()
    assert cores is not None
    assert cores.critical_path == emulated.instructions()[-1]
    return replies[-1].outputs[0], cores
