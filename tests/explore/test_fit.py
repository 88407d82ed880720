"""Every change that fit knows, on boards that are just too small without it; following it must make the image fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from pathlib import Path

import torch
from torch import nn

from baretorch import pipeline
from baretorch.explore.fit import Finding, Fitter, Trial
from baretorch.frontends import Source, from_module
from baretorch.options import Options
from baretorch.pipeline import LoweredModel, lower
from baretorch.targets.boards import load_board
from baretorch.targets.types import Board
from tests.models import compile_model, int8_model

AS_IS = Options()


class Streaming(nn.Module):
    """A model with much state, which is stored in the arena."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.zeros(64, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.window.copy_(torch.cat([self.window[1:], x]))
        return self.window.mean(0, keepdim=True)


def convolutions() -> Source:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 2, 3, stride=2), nn.ReLU())
    return from_module(layers, (torch.ones(1, 1, 24, 24),), "convolutions")


def fitter(make: Callable[[], Source], given: Options = AS_IS) -> Fitter:
    return Fitter(lambda int8: int8_model(make()) if int8 else lower(make()), given)


def resized(board: Board, sizes: dict[str, int]) -> Board:
    memories = tuple(replace(m, size=sizes.get(m.name, m.size)) for m in board.chip.memories)
    return replace(board, chip=replace(board.chip, memories=memories))


def as_is(make: Callable[[], Source], board: Board) -> Trial:
    found = fitter(make).find(board).as_is
    assert found is not None and found.fits
    return found


def followed(make: Callable[[], Source], found: Finding, folder: Path) -> Options:
    """Build with the change; a CompileError if that does not fit."""
    assert found.as_is is not None and not found.as_is.fits and found.change is not None
    options = found.change.options
    compiled = compile_model(int8_model(make()) if options.int8 else make(), found.board, options)
    pipeline.build_image(compiled, folder)
    return options


def test_bands_where_the_runtime_takes_the_last_bytes(tmp_path: Path) -> None:
    board = load_board("microbit")
    arena = as_is(convolutions, board).arena
    tight = resized(board, {"SRAM": arena + board.chip.stack_bytes})
    maker = fitter(convolutions)
    maker.lower = lambda int8: lower(convolutions())  # no help from int8
    found = maker.find(tight)
    options = followed(convolutions, found, tmp_path)
    assert options.ram is not None and options.ram < arena
    assert options.words(AS_IS) == ("--ram", str(options.ram))
    assert found.change and found.change.bands


def test_size_where_the_code_is_too_large(tmp_path: Path) -> None:
    def kinds() -> Source:
        """Layers of different kinds, each of which is an instance of its kernel."""
        torch.manual_seed(0)
        layers = [(nn.Conv2d(4 * i, 4 * i + 4, 3, stride=1 + i % 2, padding=i % 2), nn.ReLU()) for i in range(1, 6)]
        return from_module(nn.Sequential(*chain(*layers)), (torch.ones(1, 4, 48, 48),), "kinds")

    board = load_board("mps2-an385-v6m")
    need = as_is(kinds, board).flash.need
    maker = fitter(kinds)
    maker.lower = lambda int8: lower(kinds())
    options = followed(kinds, maker.find(resized(board, {"CODE": need - 1})), tmp_path)
    assert options.words(AS_IS) == ("--optimize", "size")


def test_a_larger_bank_where_state_fills_the_main_one(tmp_path: Path) -> None:
    def streaming() -> Source:
        return from_module(Streaming(), (torch.ones(1, 16),), "streaming")

    board = load_board("mps3-an547")
    arena = as_is(streaming, board).arena
    tight = resized(board, {"DTCM": board.chip.stack_bytes + arena // 4})
    maker = fitter(streaming)
    maker.lower = lambda int8: lower(streaming())
    options = followed(streaming, maker.find(tight), tmp_path)
    assert options.words(AS_IS) == ("--place", "arena=SRAM")


def test_int8_at_the_border(tmp_path: Path) -> None:
    """int8 with float inputs and outputs is too large by a little."""
    board, given = load_board("microbit"), Options(int8=True)
    trial = fitter(convolutions, given).find(board).as_is
    assert trial is not None
    tight = resized(board, {"SRAM": trial.ram.need - 768})
    found = fitter(convolutions, given).find(tight)
    options = followed(convolutions, found, tmp_path)
    assert options.words(given) == ("--io", "int8")


def test_a_model_that_cannot_be_quantized_is_reported() -> None:
    def made(int8: bool) -> LoweredModel:
        return int8_model(convolutions(), keep_float=("nothing",)) if int8 else lower(convolutions())

    board = resized(load_board("microbit"), {"SRAM": 2048 + 64})
    maker = Fitter(made, AS_IS)
    found = maker.find(board)
    assert found.change is None
    assert "activations must shrink from" in found.advice and "instead of 24 x 24" in found.advice
    assert maker.notes == ["int8 was not tried: --keep-float nothing: no such layer"] and maker.warnings == []


def test_weights_beyond_the_address_space_are_reported_with_the_size_of_the_board() -> None:
    """The enlarged AVR that sizes are measured with has 8 MiB of flash; the error names the flash of the Uno."""
    linear = nn.Linear(2048, 1100, bias=False)
    found = fitter(lambda: from_module(linear, (torch.ones(1, 2048),), "large")).find(load_board("arduino-uno"))
    assert found.as_is is None and found.error is not None
    missing = 2049 * 1100 * 4 - 32_256  # with a bias of zeros
    assert found.error.what == f"the weights do not fit arduino-uno: FLASH is {missing:,} bytes too small"


def test_close_estimates_are_measured() -> None:
    """A board that is nearly full is built for itself."""
    pico, twin = load_board("pico"), load_board("pico4ml")
    maker = fitter(convolutions)
    first = maker.find(pico).as_is
    second = maker.find(twin).as_is
    assert first is not None and first.measured
    assert second is not None and not second.measured and second.flash.need == first.flash.need
    full = maker.find(resized(twin, {"FLASH": first.flash.need + 100})).as_is
    assert full is not None and full.measured and full.fits
