"""The cost of a choice on a board is that of its image, and only choices that make an image can be selected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from baretorch.errors import InternalError
from baretorch.frontends import from_module
from baretorch.frontends.choices import Offer
from baretorch.options import Options
from baretorch.pipeline import build_image, compile_graph, run_image
from baretorch.quantize.precisions import Precision
from baretorch.targets.boards import load_board
from baretorch.targets.types import Board
from baretorch.tune import workbench
from baretorch.tune.result import Budget
from baretorch.tune.study import FinishedTrial, Suggestion
from baretorch.tune.tuner import Tuner
from baretorch.tune.workbench import Benches, Choice, Workbench
from tests.wrong import zero_weights


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 32))


def likeness(net: nn.Module) -> Callable[[Any], dict[str, float]]:
    """How near a model's answers are to the original's: int8 is nearer than int4."""
    torch.manual_seed(9)
    given = torch.randn(20, 1, 16)

    def evaluate(run: Any) -> dict[str, float]:
        with torch.no_grad():
            wrong = sum(float(np.square(np.asarray(run(x)) - net(x).numpy()).sum()) for x in given)
            return {"likeness": 1 - wrong / float(net(given).square().sum())}

    return evaluate


def tuner(board: Board, budget: Budget, net: nn.Module | None = None) -> Tuner:
    net = network() if net is None else net
    torch.manual_seed(1)
    source = replace(from_module(net, (torch.randn(1, 16),), "net"), calibration=list(torch.randn(40, 1, 16)))
    bench = Workbench(source, board, Options(int8=True), likeness(net), "no train()")
    return Tuner(Benches(Offer(), lambda arguments: bench), "likeness", 1.0, budget, lambda *shown: None)


def with_flash(board: Board, size: int) -> Board:
    chip = board.chip
    banks = tuple(replace(m, size=size) if m.name == chip.code else m for m in chip.memories)
    return replace(board, chip=replace(chip, memories=banks))


def test_what_does_not_fit_the_board_is_not_chosen() -> None:
    """It is the most accurate, and no budget was given. A candidate that cannot run has no time, rather than 0."""
    board = load_board("mps2-an386")
    whole = tuner(board, Budget(0.5)).bench
    fits = whole.costs(whole.int8(whole.variant(Choice())))
    assert not fits.lacks
    tuning = tuner(with_flash(board, fits.flash - 600), Budget(0.5, ram=1 << 20))
    small = dict.fromkeys("02", Precision.INT4)
    done = []
    for number, layers in enumerate(({}, small)):
        suggested = Suggestion(layers, {})
        done.append(FinishedTrial(number, suggested, tuning.measure(suggested)))
    large, little = (d.found for d in done)
    assert large.accuracy > little.accuracy and large.over[-1] > 0 > little.over[-1]
    assert (
        abs(large.costs.flash - fits.flash) < 32 and large.costs.instructions >= 64 * 48
    )  # linked to lie elsewhere: other gaps
    best = tuning.best(tuning.winners_of(done)).candidate
    assert best.choice == "0 in int4, 2 in int4" and not best.over
    assert tuning.winners_of(done)[0].candidate.over == ("no image for mps2-an386",)


@pytest.mark.parametrize("name", ["cluster8", "arduino-mega", "virt-rv32"])
def test_instructions_are_those_of_the_run(name: str, tmp_path: Path) -> None:
    """This holds also on boards whose emulators do not count per layer."""
    bench = tuner(load_board(name), Budget(0.5)).bench
    graph = bench.int8(bench.variant(Choice()))
    compiled = compile_graph(bench.source, graph, bench.board, bench.options)
    run = run_image(compiled, build_image(compiled, tmp_path))
    assert run.instructions is not None
    assert 0.8 * run.instructions < bench.costs(graph).instructions <= run.instructions


def test_a_wrong_image_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = tuner(load_board("mps2-an386"), Budget(0.5)).bench
    graph = bench.int8(bench.variant(Choice()))
    monkeypatch.setattr(workbench, "build_image", lambda compiled, folder: build_image(zero_weights(compiled), folder))
    with pytest.raises(InternalError, match=r"the image of a choice is wrong .* of the int8 graph"):
        bench.costs(graph)


class Mixed(nn.Module):
    """A model with all kinds of layers that have constants other than weights: tables, states, scales."""

    def __init__(self) -> None:
        super().__init__()
        kinds = (nn.GELU, nn.SiLU, nn.Sigmoid, nn.Tanh, nn.Hardswish, nn.Hardsigmoid, nn.Mish, nn.ELU, nn.Softplus)
        self.layers = nn.Sequential(*(layer for kind in kinds for layer in (nn.Linear(16, 16), kind())))
        self.norm, self.attention = nn.LayerNorm(16), nn.MultiheadAttention(16, 2, batch_first=True)
        self.lstm, self.gru = nn.LSTM(16, 8, batch_first=True), nn.GRU(8, 16, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(self.layers(x)).reshape(-1, 2, 8).repeat(1, 1, 2)
        y = self.attention(y, y, y, need_weights=False)[0]
        return torch.softmax(self.gru(self.lstm(y)[0])[0][:, -1], -1)


def test_a_model_of_every_kind_of_layer_has_costs() -> None:
    torch.manual_seed(0)
    tuning = tuner(load_board("mps2-an386"), Budget(0.5), Mixed().eval())
    found = tuning.measure(Suggestion({"layers.0": Precision.INT4}, {}))
    assert found.costs.instructions > 16 * 16 * 9 and found.over[-1] < 0
