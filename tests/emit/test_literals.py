"""Literals read back as the same bits."""

from __future__ import annotations

import math
import re
import struct
import textwrap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from baretorch.emit.c import float_literal, literal, unique, values


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_floats_round_trip(value: float) -> None:
    text = float_literal(value)
    assert re.fullmatch(r"-?\d+\.\d+(e[+-]\d+)?f", text), "a C float constant"
    assert struct.pack("f", np.float32(text[:-1])) == struct.pack("f", value)


def test_special_values() -> None:
    assert [float_literal(v) for v in (math.inf, -math.inf, math.nan, -0.0)] == ["BT_INF", "-BT_INF", "BT_NAN", "-0.0f"]
    assert literal((1, 2)) == "{ 1, 2 }"
    assert values(np.array([True, False])) == "    1, 0"
    assert values(np.array([-(2**62)])) == f"    INT64_C({-(2**62)})"


DRAW = np.random.default_rng(0)
ARRAYS = {
    "int8": DRAW.integers(-128, 128, 3001).astype(np.int8),
    "uint8": DRAW.integers(0, 256, 3001).astype(np.uint8),
    "int32": DRAW.integers(-(2**31), 2**31, 501).astype(np.int32),
    "float": DRAW.normal(size=2001).astype(np.float32),
    "any size": (DRAW.normal(size=2001) * 10.0 ** DRAW.integers(-44, 38, 2001)).astype(np.float32),
    "round": (DRAW.integers(-9, 10, 501) / 4).astype(np.float32),
    "edges": np.float32([1e-4, 2e-4, 1e5, 99999.99, 1e16, -0.0, np.inf, -np.inf, np.nan, 0.00012345678, 1e-45]),
    "nothing": np.float32([]),
}


@pytest.mark.parametrize("at_once", [5, 1 << 16])
@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_their_literals_wrapped(name: str, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("baretorch.emit.c._AT_ONCE", at_once)
    for data in (ARRAYS[name], ARRAYS[name][:26], ARRAYS[name][:1]):
        text = ", ".join(float_literal(v) if data.dtype.kind == "f" else str(v) for v in data.tolist())
        assert values(data) == textwrap.fill(text, 112, initial_indent="    ", subsequent_indent="    ")


def test_unique_names() -> None:
    taken: set[str] = set()
    assert [unique("a.b", taken), unique("a_b", taken), unique("a/b", taken)] == ["a_b", "a_b_2", "a_b_3"]
