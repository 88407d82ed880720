"""Images of a dummy model, each built once for all tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from baretorch.firmware.build import build
from baretorch.firmware.types import Image
from baretorch.targets.boards import load_board

DUMMY = Path(__file__).parent / "dummy"
SOURCES = tuple(DUMMY / name for name in ("model.c", "weights.c", "glue.c"))

Build = Callable[[str, str], Image]


@pytest.fixture(scope="session")
def image_of(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """image_of(board, toolchain): the dummy model's image for a board."""
    images: dict[tuple[str, str], Image] = {}

    def get(board: str, toolchain: str) -> Image:
        key = (board, toolchain)
        if key not in images:
            folder = tmp_path_factory.mktemp(f"{board}-{toolchain}")
            images[key] = build("dummy", load_board(board), folder, SOURCES, DUMMY, "dummy_run", toolchain)
        return images[key]

    return get
