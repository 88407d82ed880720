"""The zoo on four NPUs: each delegate computes what its operators and Arm's TOSA model say; the docs' table holds."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from baretorch.machines.npu import stream_check
from baretorch.npu import reference
from tests.zoo.zoo import MODELS, lowered

ROOT = Path(__file__).parents[2]


def _table() -> Any:
    spec = importlib.util.spec_from_file_location("make_npu_table", ROOT / "tools" / "make_npu_table.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


TABLE = _table()
KNOWN = json.loads(TABLE.RESULTS.read_text())


def test_the_page_is_that_of_the_figures() -> None:
    assert TABLE.PAGE.read_text("utf-8") == "\n".join(TABLE.page(KNOWN)) + "\n"
    assert set(KNOWN) == {path.stem for path in TABLE.FILES} == set(MODELS)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_delegate_is_exact(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each delegate is checked again, with random inputs and the model's own, also against the TOSA model."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert reference.is_installed()
    seen = list[int]()
    judged = stream_check.judge

    def watched(*args: object) -> None:
        judged(*args)  # type: ignore[arg-type]
        seen.append(1)

    monkeypatch.setattr(stream_check, "judge", watched)
    for npu in TABLE.NPUS:
        seen.clear()
        found = TABLE.on_npu(lowered(name, int8=True), npu)
        assert len(seen) == found["regions"]
        told = KNOWN[name][npu.accelerator]
        assert {k: found[k] for k in ("operators", "regions", "left")} == {
            k: told[k] for k in ("operators", "regions", "left")
        }
