"""Every model file of the zoo and the examples brings calibration data that fits its model."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from baretorch.frontends.torch.calls import flat_tensors
from baretorch.frontends.user_code import import_file
from tests.zoo.zoo import MODELS, ROOT, ZOO

FILES = [*(ZOO / f"{name}.py" for name in MODELS), *sorted(ROOT.glob("examples/*/model.py"))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_calibration(path: Path) -> None:
    file = import_file(path)  # model() may train, which this test does not need
    samples = [flat_tensors(sample) for sample in file.calibration()]
    wanted = [(x.shape, x.dtype) for x in flat_tensors(file.inputs())]
    assert len(samples) >= 16
    assert all([(x.shape, x.dtype) for x in sample] == wanted for sample in samples)
    assert all(bool(torch.isfinite(x).all()) for sample in samples for x in sample)
    firsts = [sample[0] for sample in samples]
    assert not any(torch.equal(a, firsts[0]) for a in firsts[1:]), "sixteen times the same is one sample"
