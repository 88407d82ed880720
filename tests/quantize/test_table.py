"""The table of int8 accuracy shows what was measured."""

from __future__ import annotations

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_is_up_to_date() -> None:
    spec = importlib.util.spec_from_file_location("quantizer", ROOT / "tools" / "make_quantizer_table.py")
    assert spec is not None and spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert (ROOT / "docs" / "reference" / "quantizer.md").read_text() == tool.page()
