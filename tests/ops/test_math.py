"""kernels/math/ keeps the error bounds that its comments state."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from baretorch.ir.graph import Array
from tests.ops.host import HERE, KERNELS, WARNINGS, run

BOUNDS = {  # ULP
    "exp": 1.1,
    "expm1": 2.0,
    "tanh": 3.0,
    "sigmoid": 3.0,
    "log": 1.1,
    "log2": 2.0,
    "log1p": 1.5,
    "sin": 3.0,
    "cos": 3.0,
    "erf": 3.5,
    "erfc": 5.0,
    "erfcx": 6.0,
    "erfinv": 4.0,
    "exp2": 1.5,
    "log10": 2.0,
    "asin": 2.5,
    "acos": 1.5,
    "atan": 1.5,
    "sinh": 2.5,
    "cosh": 1.5,
    "asinh": 2.0,
    "acosh": 2.0,
    "atanh": 2.5,
    "atan2": 2.0,
    "hypot": 2.0,
    "pow": 2.0,
}
EXACT = {"sqrt_bits": 0.5, "round": 0.0, "floor": 0.0, "ceil": 0.0, "trunc": 0.0}  # or correctly rounded
# Of every so many floats one: a million per function, in every exponent and of both signs, or 32 times as many.
STRIDES = [4093, pytest.param(127, marks=pytest.mark.slow)]

# Compilers may fuse a * b + c on cores that can, so the bounds must hold either way.
FUSED = ("-ffp-contract=fast", *(("-mfma",) if platform.machine() == "x86_64" else ()))


@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize("contract", [("-ffp-contract=off",), FUSED], ids=["separate", "fused"])
def test_errors_stay_within_their_bounds(contract: tuple[str, ...], stride: int, tmp_path: Path) -> None:
    program = tmp_path / "sweep"
    run(
        "gcc",
        "-O2",
        *WARNINGS,
        *contract,
        f"-DSTRIDE={stride}",
        f"-I{KERNELS}",
        HERE / "math_sweep.c",
        "-o",
        program,
        "-lm",
    )
    worst = {name: float(ulp) for name, ulp, _ in (line.split() for line in run(program).splitlines())}
    bounds = BOUNDS | EXACT
    assert worst.keys() == bounds.keys()
    assert {name: ulp for name, ulp in worst.items() if ulp > bounds[name]} == {}
    header = "".join(path.read_text() for path in (KERNELS / "math").glob("*.h"))
    for name, bound in BOUNDS.items():
        assert f"{f'bt_{name}_f32':<15} {bound:g} ULP" in header


EDGES = """
#include <stdio.h>
#include "math/atan.h"
#include "math/erf.h"
#include "math/hyperbolic.h"
#include "math/log.h"
#include "math/trig.h"
int main(void)
{
    float x, y;
    while (scanf("%f,%f", &x, &y) >= 1) {
        CALLS
    }
    return 0;
}
"""


def compute(calls: Sequence[str], arguments: list[str], folder: Path) -> Array:
    """Return the result of each C expression of x and y for each `x,y`, a row per expression."""
    source, program, numbers = folder / "edges.c", folder / "edges", folder / "numbers"
    source.write_text(
        EDGES.replace("CALLS", "\n        ".join(f'printf("%.9g\\n", (double){call});' for call in calls))
    )
    numbers.write_text("\n".join(arguments))
    run("gcc", "-O1", *WARNINGS, "-Wno-unused-variable", f"-I{KERNELS}", source, "-o", program)
    printed = run("sh", "-c", f"'{program}' < '{numbers}'").split()
    return np.array(printed, np.float64).reshape(len(arguments), len(calls)).T


def test_edges(tmp_path: Path) -> None:
    """Signed zeros, infinities, NaN, and the borders of overflow and underflow."""
    table = {
        # x: exp, tanh, sigmoid, expm1
        "0": ("1", "0", "0.5", "0"),
        "-0": ("1", "-0", "0.5", "0"),
        "1e-45": ("1", "1.40129846e-45", "0.5", "1.40129846e-45"),
        "-1e-40": ("1", "-9.99994610e-41", "0.5", "-9.99994610e-41"),
        "inf": ("inf", "1", "1", "inf"),
        "-inf": ("0", "-1", "0", "-1"),
        "nan": ("nan", "nan", "nan", "nan"),
        "88.7228317": ("3.40279852e+38", "1", "1", "3.40279852e+38"),
        "88.7228394": ("inf", "1", "1", "inf"),
        "-87.3365402": ("1.17549967e-38", "-1", "1.17549967e-38", "-1"),
        "-87.3365479": ("0", "-1", "1.17549071e-38", "-1"),
        "-88.7228394": ("0", "-1", "0", "-1"),
    }
    names = ("exp", "tanh", "sigmoid", "expm1")
    computed = compute([f"bt_{name}_f32(x)" for name in names], list(table), tmp_path)
    for i, (name, got) in enumerate(zip(names, computed, strict=True)):
        for (x, row), a in zip(table.items(), got, strict=True):
            want = float(row[i])
            assert np.signbit(a) == np.signbit(want) or np.isnan(want), (name, x)
            np.testing.assert_allclose(a, want, rtol=4e-7, atol=0, err_msg=f"{name} {x}")


SPECIAL = ["0", "-0", "1", "-1", "0.5", "-0.5", "2", "-2", "3", "-3", "1e-45", "3e38", "1e13", "inf", "-inf", "nan"]


# NumPy's or torch.special's names of functions, and where C has another.
ONE = (
    *("sin", "cos", "log", "log2", "log1p", "sqrt", "trunc", "floor", "ceil", "exp2", "log10"),
    *("arcsin", "arccos", "arctan", "sinh", "cosh", "arcsinh", "arccosh", "arctanh", "erfc", "erfcx", "erfinv"),
)
TWO = ("power", "fmod", "remainder", "arctan2", "hypot")
IN_C = {"power": "pow", **{f"arc{n}": f"a{n}" for n in ("sin", "cos", "tan", "tan2", "sinh", "cosh", "tanh")}}


def exact(name: str, *arguments: Array) -> Array:
    """Compute in double precision, and return the nearest float; results beyond all floats are infinite."""
    wide = [a.astype(np.float64) for a in arguments]
    with np.errstate(all="ignore"):
        if name.startswith("erf"):  # NumPy has none of them
            y: Array = getattr(torch.special, name)(*map(torch.from_numpy, wide)).numpy()
        else:
            y = getattr(np, name)(*wide)
        return y.astype(np.float32).astype(np.float64)


def test_special_arguments(tmp_path: Path) -> None:
    computed = compute([f"bt_{IN_C.get(name, name)}_f32(x)" for name in ONE], SPECIAL, tmp_path)
    for name, got in zip(ONE, computed, strict=True):
        want = exact(name, np.array(SPECIAL, np.float32))
        np.testing.assert_allclose(got, want, rtol=4e-7, atol=0, err_msg=name)
        np.testing.assert_array_equal(np.signbit(got)[want == 0], np.signbit(want)[want == 0], err_msg=name)


def test_special_pairs(tmp_path: Path) -> None:
    """C's functions and Python's % agree for every pair of special numbers."""
    pairs = [(x, y) for x in SPECIAL for y in SPECIAL]
    calls = [f"bt_{IN_C.get(name, name)}_f32(x, y)" for name in TWO]
    computed = compute(calls, [f"{x},{y}" for x, y in pairs], tmp_path)
    for name, got in zip(TWO, computed, strict=True):
        want = exact(name, *np.array(pairs, np.float32).T)
        want[np.abs(want) < np.finfo(np.float32).tiny] *= name != "power"  # powers flush to zero
        np.testing.assert_allclose(got, want, rtol=4e-7, atol=0, err_msg=name)
