"""kernels/math/ keeps the error bounds that its comments state."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import pytest

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
    "pow": 2.0,
}
EXACT = {"sqrt_bits": 0.5, "round": 0.0, "floor": 0.0, "ceil": 0.0, "trunc": 0.0}  # or correctly rounded
STRIDE = 509  # 8 million floats per function, in every exponent and of both signs

# Compilers may fuse a * b + c on cores that can, so the bounds must hold either way.
FUSED = ("-ffp-contract=fast", *(("-mfma",) if platform.machine() == "x86_64" else ()))


@pytest.mark.parametrize("contract", [("-ffp-contract=off",), FUSED], ids=["separate", "fused"])
def test_errors_stay_within_their_bounds(contract: tuple[str, ...], tmp_path: Path) -> None:
    program = tmp_path / "sweep"
    run(
        "gcc",
        "-O2",
        *WARNINGS,
        *contract,
        f"-DSTRIDE={STRIDE}",
        f"-I{KERNELS}",
        HERE / "math_sweep.c",
        "-o",
        program,
        "-lm",
    )
    worst = {name: float(ulp) for name, ulp, _ in (line.split() for line in run(program).splitlines())}
    bounds = BOUNDS | EXACT
    assert worst.keys() == bounds.keys()
    assert all(worst[name] <= bound for name, bound in bounds.items()), worst
    header = "".join(path.read_text() for path in (KERNELS / "math").glob("*.h"))
    for name, bound in BOUNDS.items():
        assert f"{f'bt_{name}_f32':<15} {bound:g} ULP" in header


EDGES = """
#include <stdio.h>
#include "math/erf.h"
#include "math/log.h"
#include "math/trig.h"
int main(void)
{
    float x, y;
    while (scanf("%f,%f", &x, &y) >= 1)
        printf("%.9g\\n", (double)CALL);
    return 0;
}
"""


def compute(call: str, arguments: list[str], folder: Path) -> list[float]:
    """What a C expression of x and y gives for each `x,y`."""
    source, program, numbers = folder / "edges.c", folder / "edges", folder / "numbers"
    source.write_text(EDGES.replace("CALL", call))
    numbers.write_text("\n".join(arguments))
    run("gcc", "-O2", *WARNINGS, "-Wno-unused-variable", f"-I{KERNELS}", source, "-o", program)
    return [float(line) for line in run("sh", "-c", f"'{program}' < '{numbers}'").splitlines()]


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
    for i, name in enumerate(("exp", "tanh", "sigmoid", "expm1")):
        got = compute(f"bt_{name}_f32(x)", list(table), tmp_path)
        for (x, row), a in zip(table.items(), got, strict=True):
            want = float(row[i])
            assert np.signbit(a) == np.signbit(want) or np.isnan(want), (name, x)
            np.testing.assert_allclose(a, want, rtol=4e-7, atol=0, err_msg=f"{name} {x}")


SPECIAL = ["0", "-0", "1", "-1", "0.5", "-0.5", "2", "-2", "3", "-3", "1e-45", "3e38", "1e13", "inf", "-inf", "nan"]


@pytest.mark.parametrize("name", ["sin", "cos", "log", "log2", "log1p", "sqrt", "trunc", "floor", "ceil"])
def test_special_arguments(name: str, tmp_path: Path) -> None:
    got = compute(f"bt_{name}_f32(x)", SPECIAL, tmp_path)
    with np.errstate(all="ignore"):
        want = getattr(np, name)(np.array(SPECIAL, np.float32).astype(np.float64))
    np.testing.assert_allclose(got, want, rtol=4e-7, atol=0)
    np.testing.assert_array_equal(np.signbit(got)[want == 0], np.signbit(want)[want == 0])


@pytest.mark.parametrize("name", ["power", "fmod", "remainder"])
def test_special_pairs(name: str, tmp_path: Path) -> None:
    """What C's pow and fmod and Python's % say for every pair of special numbers."""
    pairs = [(x, y) for x in SPECIAL for y in SPECIAL]
    got = np.array(compute(f"bt_{C_NAMES.get(name, name)}_f32(x, y)", [f"{x},{y}" for x, y in pairs], tmp_path))
    x, y = np.array(pairs, np.float32).astype(np.float64).T
    with np.errstate(all="ignore"):
        want = getattr(np, name)(x, y).astype(np.float32).astype(np.float64)
    want[np.abs(want) < np.finfo(np.float32).tiny] *= name != "power"  # powers flush to zero
    np.testing.assert_allclose(got, want, rtol=4e-7, atol=0)


C_NAMES = {"power": "pow"}
