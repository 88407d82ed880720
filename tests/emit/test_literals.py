"""Literals read back as the same bits."""

from __future__ import annotations

import math
import re
import struct

import numpy as np
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


def test_unique_names() -> None:
    taken: set[str] = set()
    assert [unique("a.b", taken), unique("a_b", taken), unique("a/b", taken)] == ["a_b", "a_b_2", "a_b_3"]
