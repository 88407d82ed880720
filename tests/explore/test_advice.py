"""Advice is true: following it gives the promised result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from baretorch import frontends, pipeline
from baretorch.explore import advice
from baretorch.explore.advice import advise
from baretorch.firmware.types import Image
from baretorch.frontends import Source
from baretorch.measure.facts import compare
from baretorch.measure.profile import make_profile
from baretorch.options import DEFAULT, Buffers, Io, Optimize, Options
from baretorch.pipeline import Compiled, LoweredModel
from baretorch.plan import make_plan
from baretorch.targets.boards import load_board
from tests.models import compile_model, int8_model

DATA = Path(__file__).parents[1] / "frontends" / "data"


def network() -> Source:
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, stride=2, padding=1), nn.ReLU())
    return frontends.from_module(layers, (torch.randn(1, 3, 24, 24),), "net")


def advised(
    source: Source | LoweredModel, folder: Path, options: Options = DEFAULT, board: str = "mps2-an386"
) -> tuple[Compiled, dict[str, str]]:
    """The texts by option; those that the model must change for all have the same."""
    compiled = compile_model(source, load_board(board), options)
    image = pipeline.build_image(compiled, folder)
    facts = compare(compiled, image, pipeline.run_image(compiled, image))
    advice = advise(facts, make_profile(compiled, image, facts.run))
    return compiled, {a.option: a.text for a in advice}


def test_advice_for_float_keeps_its_promise(tmp_path: Path) -> None:
    compiled, advice = advised(network(), tmp_path)
    assert "--int8" in advice
    (ram,) = (int(option.split()[1]) for option in advice if option.startswith("--ram"))
    plan = make_plan(compiled.graph, compiled.board, Options(ram=ram))
    assert plan.bands and plan.arena <= ram < compiled.plan.arena


def test_int8_is_advised_to_files_of_one_method(tmp_path: Path) -> None:
    for file, is_advised in (("sine.pte", True), ("methods.pte", False)):
        source = frontends.load(str(DATA / file))
        _, advice = advised(source, tmp_path / file)
        assert ("--int8" in advice) is is_advised, file


def test_advice_for_int8_keeps_its_promise(tmp_path: Path) -> None:
    source = int8_model(network(), [(torch.randn(1, 3, 24, 24),) for _ in range(4)])
    compiled, advice = advised(source, tmp_path)
    assert "--int8" not in advice
    bare = compile_model(source, compiled.board, Options(io=Io.INT8))
    assert f"arena {bare.plan.arena:,} instead of {compiled.plan.arena:,} bytes" in advice["--io int8"]


def test_what_was_done_is_not_advised(tmp_path: Path) -> None:
    _, advice = advised(network(), tmp_path, Options(optimize=Optimize.SIZE, buffers=Buffers.CALLER))
    assert advice and not {"--optimize size", "--buffers caller"} & set(advice)


@pytest.mark.parametrize("layers", [1, 16])
def test_size_is_advised_where_it_makes_the_code_smaller(layers: int, tmp_path: Path) -> None:
    torch.manual_seed(0)
    many = [nn.Linear(3 + i, 4 + i) for i in range(layers)]
    source = frontends.from_module(nn.Sequential(*many), (torch.randn(1, 3),), "net")
    codes = {}
    for optimize in (Optimize.SIZE, Optimize.SPEED):
        compiled = compile_model(source, load_board("pico"), Options(optimize=optimize))
        image = pipeline.build_image(compiled, tmp_path)
        codes[optimize] = image.flash.model_code
    _, advice = advised(source, tmp_path, board="pico")
    texts = [text for option, text in advice.items() if option == "--optimize size"]
    assert (codes["size"] < codes["speed"]) == bool(texts) == (layers > 1)
    assert all(f"model code {codes['size']:,} instead of {codes['speed']:,} bytes" in text for text in texts)


def test_the_advised_code_is_that_of_the_same_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built: list[Compiled] = []

    def build(compiled: Compiled, folder: Path) -> Image:
        built.append(compiled)
        return pipeline.build_image(compiled, folder)

    monkeypatch.setattr(advice, "build_image", build)
    source, options = network(), Options(check_inputs=True)
    compiled, _ = advised(source, tmp_path, options)
    same = compile_model(source, compiled.board, replace(options, optimize=Optimize.SIZE))
    assert [small.c.files["model.c"] for small in built] == [same.c.files["model.c"]]


def test_a_float_layer_at_the_border_is_no_error(tmp_path: Path) -> None:
    torch.manual_seed(0)
    x = torch.randn(1, 8)
    source = frontends.from_module(nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)), (x,), "net")
    source = int8_model(source, [(x,)], keep_float=("0",))
    assert "--io int8" not in advised(source, tmp_path)[1]


@pytest.mark.parametrize("n, advice", [(60, "make n_fft a power of two (32 or 64 instead of 60)"), (64, "shorter")])
def test_slow_transforms(n: int, advice: str, tmp_path: Path) -> None:
    class Power(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.fft.rfft(x).abs()

    *_, last = advised(frontends.from_module(Power(), (torch.ones(2, n),), "net"), tmp_path)[1].values()
    assert "of the instructions: " in last and advice in last and "channels" not in last


def test_advice_names_layers_and_not_what_the_compiler_made(tmp_path: Path) -> None:
    """The weights come to the cluster's scratchpad in tiles, which have names of their own, and a float image is
    quantized by cores without an FPU, which takes longest."""
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16 * 16, 40))
    x = torch.randn(1, 3, 16, 16)
    source = int8_model(frontends.from_module(layers, (x,), "net"), [(x,)])
    compiled = compile_model(source, load_board("cluster8"), DEFAULT)
    image = pipeline.build_image(compiled, tmp_path)
    facts = compare(compiled, image, pipeline.run_image(compiled, image))
    advice = advise(facts, make_profile(compiled, image, facts.run))
    assert compiled.plan.tiles is not None and "--io int8" in {a.option for a in advice}
    (text,) = (a.text for a in advice if not a.option)
    assert text == "3 has 99.7 % of the weights: fewer channels there save most flash"
