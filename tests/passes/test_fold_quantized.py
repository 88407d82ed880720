"""fold_affine where weights are rounded to int8 already, as after training with rounding and a BatchNorm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from baretorch.ir.graph import Builder, DType, Quant, interpret
from baretorch.ir.verify import verify
from baretorch.ops.elementwise import Add, Mul
from baretorch.ops.linear import Linear
from baretorch.passes.fold import fold_affine
from baretorch.passes.to_int8 import float_layers, to_int8


def test_scales_follow_the_weights_and_the_result_keeps_its_note() -> None:
    rng = np.random.default_rng(0)
    stored = rng.integers(-127, 128, (4, 8))
    scales = np.array([0.01, 0.02, 0.005, 0.01])
    b = Builder()
    x = b.input("x", (1, 8), DType.FLOAT32, Quant((0.02,), (3,)))
    weight = b.const("weight", (stored * scales[:, None]).astype(np.float32), Quant(tuple(scales), (0,) * 4, 0))
    factor = b.const("factor", np.array([3.0, -0.5, 0.0, 1.5], np.float32))
    shift = b.const("shift", np.array([0.1, 0.2, -0.3, 0.4], np.float32))
    y = b.add(Add(), b.add(Mul(), b.add(Linear(), x, weight), factor), shift, name="y")
    b.tensors[y] = replace(b.tensors[y], quant=Quant((0.1,), (-4,)))
    before = verify(b.graph([x], [y]))
    after = verify(to_int8(verify(fold_affine(before))))
    assert [n.op.name for n in after.nodes] == ["quantize", "qlinear", "dequantize"]
    assert float_layers(after) == []
    sample = (0.02 * rng.integers(-100, 100, (1, 8))).astype(np.float32)
    (got,), (want,) = interpret(after, [sample]).values(), interpret(before, [sample]).values()
    np.testing.assert_allclose(got, np.clip(want, -12.4, 13.1), atol=0.06)
