"""kernels/math/math.h keeps the error bounds that its comment states."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import pytest

from tests.ops.host import HERE, KERNELS, WARNINGS, run

BOUNDS = {"exp": 1.1, "tanh": 3.0, "sigmoid": 3.0}  # ULP
STRIDE = 251  # 17 million floats per function, in every exponent and of both signs

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
    assert worst.keys() == BOUNDS.keys()
    assert all(worst[name] <= bound for name, bound in BOUNDS.items()), worst
    header = (KERNELS / "math/math.h").read_text()
    for name, bound in BOUNDS.items():
        assert f"{f'bt_{name}_f32':<15} {bound:g} ULP" in header


EDGES = """
#include <stdio.h>
#include "math/math.h"
int main(void)
{
    float x;
    while (scanf("%f", &x) == 1)
        printf("%.9g %.9g %.9g\\n", (double)bt_exp_f32(x), (double)bt_tanh_f32(x), (double)bt_sigmoid_f32(x));
    return 0;
}
"""


def test_edges(tmp_path: Path) -> None:
    """Signed zeros, infinities, NaN, and the borders of overflow and underflow."""
    source, program, numbers = tmp_path / "edges.c", tmp_path / "edges", tmp_path / "numbers"
    table = {
        # x: exp, tanh, sigmoid
        "0": ("1", "0", "0.5"),
        "-0": ("1", "-0", "0.5"),
        "1e-45": ("1", "1.40129846e-45", "0.5"),
        "-1e-40": ("1", "-9.99994610e-41", "0.5"),
        "inf": ("inf", "1", "1"),
        "-inf": ("0", "-1", "0"),
        "nan": ("nan", "nan", "nan"),
        "88.7228317": ("3.40279852e+38", "1", "1"),
        "88.7228394": ("inf", "1", "1"),
        "-87.3365402": ("1.17549967e-38", "-1", "1.17549967e-38"),
        "-87.3365479": ("0", "-1", "1.17549071e-38"),
        "-88.7228394": ("0", "-1", "0"),
    }
    source.write_text(EDGES)
    numbers.write_text("\n".join(table))
    run("gcc", "-O2", *WARNINGS, f"-I{KERNELS}", source, "-o", program)
    got = run("sh", "-c", f"'{program}' < '{numbers}'").splitlines()
    for (x, want), line in zip(table.items(), got, strict=True):
        for a, b in zip(line.split(), want, strict=True):
            assert a.startswith("-") == b.startswith("-"), x
            np.testing.assert_allclose(float(a), float(b), rtol=4e-7, atol=0, err_msg=x)
