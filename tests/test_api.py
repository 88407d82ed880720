"""baretorch.compile(): the options of the command line, and words that are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import baretorch
from baretorch.errors import CompileError

X = torch.randn(1, 3, 16, 16, generator=torch.Generator().manual_seed(0)).to(memory_format=torch.channels_last)


def network() -> nn.Module:
    torch.manual_seed(0)
    images = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 3, 2), nn.ReLU())
    return nn.Sequential(images, nn.Flatten(), nn.Linear(196, 2)).eval()


@pytest.mark.parametrize(
    "options",
    [{"input": "rows"}, {"ram": 6000}, {"buffers": "caller"}, {"weights": "ram"}, {"place": {"0.2": "SCRATCH"}}],
    ids=lambda options: next(iter(options)),
)
def test_memory_is_spent_as_asked_and_the_answer_stays(options: dict[str, Any]) -> None:
    whole = baretorch.compile(network(), (X,), board="pico")
    model = baretorch.compile(network(), (X,), board="pico", **options)
    with torch.no_grad():
        expected = network()(X).numpy()
    try:
        np.testing.assert_allclose(np.asarray(model.run(X)), expected, rtol=1e-4, atol=1e-5)
    finally:
        model.close()
    if "weights" in options:
        assert model.build().ram.weights == model.memory.weights
    elif "place" in options:
        assert {bank.name for bank in model.compiled.plan.banks} == {"SRAM", "SCRATCH"}
    else:
        assert model.memory.arena < whole.memory.arena


@pytest.mark.parametrize("option", ["optimize", "observer", "io", "input", "buffers", "weights"])
def test_a_word_that_is_none(option: str) -> None:
    with pytest.raises(CompileError, match=rf"compile\(\): {option} is 'fast'") as caught:
        baretorch.compile(network(), (X,), board="pico", **{option: "fast"})
    assert caught.value.need
