"""Warnings about an int8 model that is hardly the float model any more, with the layers that make it so."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import baretorch
from baretorch.frontends import from_module
from baretorch.ir.graph import DType
from baretorch.options import Observer
from baretorch.pipeline import LoweredModel
from tests.models import int8_model, seeded

X = torch.randn(1, 8, generator=torch.Generator().manual_seed(0))


def int8(module: nn.Module, x: torch.Tensor, samples: list[torch.Tensor]) -> LoweredModel:
    return int8_model(from_module(module.eval(), (x,), "m"), [(s,) for s in samples], observer=Observer.MINMAX)


def kinds(model: LoweredModel) -> list[str]:
    return [warning.split(":")[0] for warning in model.warnings]


def two() -> nn.Sequential:
    module = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
    return seeded(module)  # type: ignore[return-value]


def test_a_good_model_has_no_warning() -> None:
    assert int8(two(), X, [X, -X]).warnings == ()


class Lost(nn.Module):
    """A model in which one large number makes int8 lose small ones, and only the small ones are in the output."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(8, 8), nn.Linear(7, 4)
        with torch.no_grad():
            self.first.bias[0] = 3000.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.relu(self.first(x))[:, 1:])


def test_a_noisy_answer_names_its_layer() -> None:
    (warning,) = [w for w in int8(seeded_lost(), X, [X, -X]).warnings if w.startswith("accuracy")]
    assert "the int8 result to the example inputs has" in warning and "dB signal to noise" in warning
    assert "comes from first" in warning


def seeded_lost() -> nn.Module:
    torch.manual_seed(0)
    return Lost()


def test_noise_in_the_calibration_data_alone_counts_too() -> None:
    class Steep(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.exp(-3 * x.flip(1)) * torch.exp(x) * (x > 3)

    near, far = torch.zeros(1, 8), torch.full((1, 8), 4.0)
    source = int8(Steep(), near, [near, far + torch.linspace(0, 4, 8)])
    assert any(w.startswith("accuracy: the int8 result to the calibration data") for w in source.warnings)


def test_a_saturated_tensor_names_its_layer() -> None:
    warnings = int8(two(), 10 * X, [X]).warnings
    assert any(w.startswith("saturated: ") and "input" in w for w in warnings), warnings


def test_a_little_cut_off_a_few_values_is_no_news() -> None:
    """Inputs a tenth larger than those of the calibration."""
    one = seeded(nn.Linear(8, 1))
    assert int8(one, 1.1 * X, [X]).warnings == ()


class Certain(nn.Module):
    """Scores far apart: a softmax hears only the largest."""

    def __init__(self, far: float) -> None:
        super().__init__()
        self.scores, self.far = nn.Linear(8, 8), far

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.far * self.scores(x), -1)


def test_scores_that_are_clipped_on_purpose_are_not_saturated() -> None:
    torch.manual_seed(0)
    assert int8(Certain(100.0), X, [X, -X]).warnings == ()


def test_scores_that_matter_can_be_saturated() -> None:
    torch.manual_seed(0)
    warnings = int8(Certain(1.0), 20 * X, [X]).warnings
    assert any(w.startswith("saturated: ") and " of scores " in w for w in warnings), warnings


def test_a_tensor_that_is_constant_in_float_too_is_not_dead() -> None:
    """The denominator of this normalization is about 1 for all inputs."""
    image, other = torch.randn(2, 1, 4, 6, 4, generator=torch.Generator().manual_seed(0))
    assert "dead" not in kinds(int8(nn.LocalResponseNorm(3), image, [image, other]))


def test_a_dead_tensor_names_its_layer() -> None:
    class Faint(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.loud, self.faint = nn.Linear(8, 8), nn.Linear(8, 8)
            with torch.no_grad():
                self.faint.weight.mul_(1e-4)
                self.faint.bias.zero_()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([1000 * self.loud(x), self.faint(x)], 1)

    torch.manual_seed(0)
    (warning,) = [w for w in int8(Faint(), X, [X, -X]).warnings if w.startswith("dead")]
    assert warning.startswith("dead: all values of faint are equal in int8, and from -")


@pytest.mark.parametrize("side", [1.0, 0.0])
def test_numbers_that_int8_hardly_distinguishes_are_a_warning_before_they_do_harm(side: float) -> None:
    """The largest number of a row differs from the next by less than a step in one of twenty samples, which need not
    show a wrong result. A pair that is equally good the other way round does no harm."""

    class Largest(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rows = nn.Linear(16, 16)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = self.rows(x)
            best = x == x.amax(-1, keepdim=True) if side else x > 0
            return torch.where(best, side if side else x, 0.0)

    torch.manual_seed(2)
    draw = torch.Generator().manual_seed(2)
    data = [torch.randn(1, 2, 16, generator=draw) for _ in range(16)]
    warnings = int8(Largest().eval(), data[0], data).warnings
    told = [w for w in warnings if w.startswith("accuracy: rounding to int8 can reverse comparisons in eq")]
    assert len(warnings) == len(told) == bool(side), warnings


def test_the_limits_of_logit_do_no_harm() -> None:
    class Scores(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.sigmoid().logit(1e-3)

    draw = torch.Generator().manual_seed(0)
    data = [torch.randn(1, 40, generator=draw) for _ in range(16)]
    assert int8(Scores(), data[0], data).warnings == ()


def test_they_arrive_in_python() -> None:
    with pytest.warns(UserWarning):
        model = baretorch.compile(seeded_lost().eval(), (X,), board="host", int8=True, calibration=[(X,)])
    assert any(w.startswith("accuracy") for w in model.warnings)


def test_a_call_without_positional_arguments_is_no_part_of_another() -> None:
    """Warnings name the layers; on the way there every node is looked at."""

    class Ring(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("kept", torch.zeros(1, 8))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.kept[:, :-4] = self.kept[:, 4:].clone()
            self.kept[:, -4:] = x[:, :4]
            return self.kept.clone()

    assert "accuracy" in kinds(int8(Ring(), 100 * X, [X]))


def test_noise_of_the_inputs_themselves() -> None:
    """No layer adds any: the example is far smaller than what was calibrated with."""
    (large, first, *_) = int8(two(), X, [1e25 * X]).warnings
    assert large.startswith("calibration: numbers of input reach 2.18e+25")
    assert first.startswith("accuracy: ") and first.endswith("most noise comes from the inputs")


def test_what_is_cut_off_the_answer_itself_counts() -> None:
    """The last layer's values are beyond its scale for the example alone: too few of all to be called saturated."""
    module = nn.Linear(8, 1, bias=False)
    nn.init.ones_(module.weight)
    given = [X * (-1) ** i for i in range(32)]
    (first, *_) = int8(module, 8 * X.abs().clamp(max=X.abs().max() / 8), given).warnings
    assert first.startswith("accuracy: the int8 result to the example inputs has") and first.endswith(
        "comes from linear"
    )


def samples(count: int, *shape: int) -> list[torch.Tensor]:
    draw = torch.Generator().manual_seed(1)
    return [torch.randn(shape, generator=draw) for _ in range(count)]


def accuracy(model: LoweredModel) -> list[str]:
    return [w for w in model.warnings if w.startswith("accuracy")]


class Spiking(nn.Module):
    """Leaky integrate-and-fire neurons: a threshold, a reset, and a slow average of spikes."""

    def __init__(self) -> None:
        super().__init__()
        self.taken, self.given = nn.Linear(16, 32), nn.Linear(32, 4)
        self.register_buffer("potential", torch.zeros(1, 32))
        self.register_buffer("average", torch.zeros(1, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        potential = 0.9 * self.potential + self.taken(x.abs())
        spikes = (potential > 1.0).float()
        self.potential.copy_(potential - spikes)
        self.average.copy_(0.95 * self.average + self.given(spikes))
        return self.average.clone()


class StateSpace(nn.Module):
    """A diagonal state-space model: each state decays at a rate of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.taken, self.given = nn.Linear(16, 16), nn.Linear(16, 4)
        self.register_buffer("decay", torch.linspace(0.9, 0.999, 16))
        self.register_buffer("hidden", torch.zeros(1, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.hidden.copy_(self.decay * self.hidden + self.taken(x))
        return self.given(self.hidden)


class Kalman(nn.Module):
    """The filter of a single number: the gain falls from call to call."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("state", torch.zeros(1, 16))
        self.register_buffer("variance", torch.ones(1, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        variance = self.variance + 1e-4
        gain = variance / (variance + 0.05)
        self.state.copy_(self.state + gain * (x - self.state))
        self.variance.copy_((1 - gain) * variance)
        return self.state.clone()


@pytest.mark.parametrize("make", [Spiking, StateSpace, Kalman])
def test_noise_that_adds_up_in_state_is_a_warning(make: type[nn.Module]) -> None:
    """A few calls show nothing, or little: the model is called many times in a row."""
    torch.manual_seed(0)
    (warning,) = accuracy(int8(make(), samples(1, 1, 16)[0], samples(16, 1, 16)))
    assert " to the example inputs has " in warning or "over 128 calls in a row" in warning
    assert make is Kalman or "over 128 calls in a row" in warning


class Remembers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell, self.given = nn.GRUCell(16, 16), nn.Linear(16, 4)
        self.register_buffer("hidden", torch.zeros(1, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.hidden.copy_(self.cell(x, self.hidden))
        return self.given(self.hidden)


def test_state_that_forgets_rounding_is_no_news() -> None:
    torch.manual_seed(0)
    assert accuracy(int8(Remembers(), samples(1, 1, 16)[0], samples(16, 1, 16))) == []


def test_a_layer_that_stays_float_is_not_judged_as_int8() -> None:
    """A softmax over this many numbers has no int8 form, because all of them would be 0."""
    source = int8(nn.Softmax(-1), torch.randn(1, 140_000), [torch.randn(1, 140_000)])
    graph = source.graph
    assert not any(t.dtype is DType.INT8 and t.data is None and t.holds == "softmax" for t in graph.tensors.values())
    assert source.warnings == ()
    assert source.int8_answers is not None and source.source.expected is not None
    np.testing.assert_allclose(source.int8_answers[0], source.source.expected[0], rtol=0.1)


def test_a_single_wrong_answer_counts() -> None:
    """One result is on the wrong side of a step, and all others are right: the average has more than 15 dB."""

    class Step(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.where(x.sum(-1) > 0, 1.0, 0.3)

    data = [torch.full((1, 8), (-1.0) ** i + i / 64) for i in range(30)]
    near = torch.full((1, 8), 0.0005)
    (warning,) = accuracy(int8(Step(), data[0], [*data, near]))
    assert warning.startswith("accuracy: the worst int8 result to the calibration data has 0.")


def test_each_output_is_judged_by_itself() -> None:
    """The first is large and good, the second depends on which number is the largest."""

    class Largest(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rows = nn.Linear(16, 16)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            x = self.rows(x)
            return 100 * x, torch.where(x == x.amax(-1, keepdim=True), 1.0, 0.0)

    torch.manual_seed(2)
    data = samples(16, 1, 2, 16)
    assert len(accuracy(int8(Largest(), data[0], data))) == 1


def test_an_argmin_that_chooses_an_entry_is_a_comparison() -> None:
    class Nearest(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rows, self.book = nn.Linear(16, 8), nn.Embedding(8, 8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            book = self.book.weight
            far = (book**2).sum(-1) - 2 * self.rows(x) @ book.T
            return self.book(far.argmin(-1))

    torch.manual_seed(0)
    data = samples(16, 1, 16)
    warnings = accuracy(int8(Nearest(), data[0], data))
    assert len(warnings) == 1 and warnings[0].startswith(
        "accuracy: rounding to int8 can reverse comparisons in argmin"
    ), warnings


def test_samples_that_hardly_show_how_large_others_are() -> None:
    """Powers of a number vary so much that other samples are far larger than these."""

    class Power(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.exp(3 * x)

    data = samples(16, 1, 12)
    (warning,) = accuracy(int8(Power(), data[1], data))
    assert warning.startswith("accuracy: 16 calibration samples hardly cover the range of values")
    assert accuracy(int8(nn.Sigmoid(), data[1], data)) == []
