"""The table of operators."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import pytest

from baretorch.errors import InternalError
from baretorch.ir.graph import Op
from baretorch.ops import OPS, kernels_of
from baretorch.ops.softmax import Softmax
from tests.ops.cases import TABLE


def test_names_are_unique_and_snake_case() -> None:
    names = [row.op.name for row in OPS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", n) for n in names)


def test_cases_have_names_of_their_own() -> None:
    """Their answers are kept by name."""
    counts = Counter(case.name for case in TABLE)
    assert [name for name, count in counts.items() if count > 1] == []


def test_kernels_of() -> None:
    assert [k.symbol for k in kernels_of(Softmax(1)) if not k.needs] == ["bt_softmax_f32_ref"]

    @dataclass(frozen=True)
    class Stranger(Op):
        name: ClassVar[str] = "stranger"

    with pytest.raises(InternalError, match="stranger"):
        kernels_of(Stranger())


def test_the_table_loads_no_torch() -> None:
    code = "import sys, baretorch.ops; print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"
