"""float16 weights that are too small or too large for it are stored times a power of two, exactly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import baretorch
from tests.quantize.int8_models import sqnr


def scaled(module: nn.Module, factors: torch.Tensor) -> nn.Module:
    """The layer `0` with its output channels scaled."""
    layer = module[0]  # type: ignore[index]
    with torch.no_grad():
        layer.weight.mul_(factors.reshape(-1, *[1] * (layer.weight.dim() - 1)))
        if layer.bias is not None:
            layer.bias.mul_(factors)
    return module.eval()


SIZES = {
    "too small": torch.full((4,), 1e-9),
    "with few bits": torch.full((4,), 1e-6),
    "too large": torch.full((4,), 1e6),
    "different": torch.tensor([1e-9, 1.0, 1e-20, 1e6]),
    "ordinary": torch.ones(4),
    "zero": torch.zeros(4),
}
LAYERS = {
    "linear": (lambda: nn.Sequential(nn.Linear(64, 4)), (1, 64)),
    "limited": (lambda: nn.Sequential(nn.Linear(64, 4), nn.ReLU()), (1, 64)),
    "conv": (lambda: nn.Sequential(nn.Conv2d(3, 4, 3)), (1, 3, 8, 8)),
    "depthwise": (lambda: nn.Sequential(nn.Conv2d(4, 4, 3, groups=4, bias=False)), (1, 4, 8, 8)),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("layer", LAYERS)
def test_each_channel_keeps_the_precision_of_float16(layer: str, size: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    make, shape = LAYERS[layer]
    module = scaled(make(), SIZES[size])
    (tmp_path / "c.toml").write_text('[layers]\n"0" = "float16"\n')
    x = torch.randn(shape)
    samples = [(torch.randn(shape),) for _ in range(8)]
    model = baretorch.compile(module, (x,), board="host", calibration=samples, config=str(tmp_path / "c.toml"))
    have, want = np.asarray(model.run(x)), module(x).detach().numpy()
    model.close()
    for channel in range(4):
        h, w = have[:, channel], want[:, channel]
        assert np.array_equal(h, w) if not w.any() else sqnr(h, w) > 55, f"channel {channel}: {sqnr(h, w):.1f} dB"
    factors = [n for n in model.compiled.graph.nodes if n.op.name == "mul"]
    assert bool(factors) == (size not in ("ordinary", "zero")), "ordinary weights are stored as they are"
