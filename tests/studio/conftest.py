"""The studio that several tests ask."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from baretorch.options import Options
from baretorch.studio.digits import MODEL
from baretorch.studio.server import StudioServer
from tests.studio.client import live, served

PTE = Path(__file__).parents[1] / "frontends" / "data"


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StudioServer]:
    """The digits on an emulated Pico, the sine on the host."""
    folder = tmp_path_factory.mktemp("studio")
    reads = live(MODEL, folder / "digits", "pico", options=Options(int8=True))
    with served(("digits", reads), ("model", live(PTE / "sine.pte", folder / "sine"))) as server:
        yield server
