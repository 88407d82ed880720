"""Every model of the zoo compiles, and answers like PyTorch on the host and on an emulated Cortex-M4F."""

from __future__ import annotations

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
import torch

from baretorch import frontends
from baretorch.errors import CompileError
from baretorch.passes.order import lower_graph
from tests.zoo.zoo import MODELS, ZOO, check, check_shortage, run, source

# MACs as the field counts them, of the models that others measure too
MACS = {
    "kws": 2_656_768,
    "vww": 7_489_664,
    "ic": 12_501_632,
    "ad": 264_192,
    "tinyrps": 7_740_032,
    "mnist_mlp": 317_600,
    "sine": 288,
}
IMAGES = (
    "ic", "kws", "lenet5", "mobilenet_v2", "mobilenet_v2_block", "squeeze_excite", "squeezenet_like", "tinyrps",
    "unet_small", "vit_tiny", "vww",
)  # fmt: skip
TOO_LARGE = "mobilenet_v2"  # its weights alone, for every microcontroller of the board list


def macs(name: str) -> int:
    return lower_graph(source(name).graph).macs()


def parameters(name: str) -> int:
    return sum(p.numel() for p in source(name).module.parameters())


def docstring(name: str) -> str:
    text = (ZOO / f"{name}.py").read_text().split('"""')[1]
    return " ".join(text.split())


def test_every_file_of_the_zoo_is_tested() -> None:
    assert set(MODELS) == {path.stem for path in ZOO.glob("*.py")} - {"common"}


@pytest.mark.parametrize("name", [pytest.param(m, marks=pytest.mark.slow if m == TOO_LARGE else ()) for m in MODELS])
def test_model_answers_like_pytorch(name: str, tmp_path: Path) -> None:
    check(run(name, "host", "gcc", tmp_path))


@pytest.mark.parametrize("name", [m for m in MODELS if m != TOO_LARGE])
def test_model_answers_like_pytorch_on_the_chip(name: str, tmp_path: Path) -> None:
    check(run(name, "mps2-an386", "gcc", tmp_path))


def test_the_error_of_too_large_a_model_has_the_missing_bytes(tmp_path: Path) -> None:
    with pytest.raises(CompileError) as raised:
        run(TOO_LARGE, "mps2-an386", "gcc", tmp_path)
    check_shortage(raised.value, TOO_LARGE, "mps2-an386")


@pytest.mark.parametrize("name", MACS)
def test_macs_are_the_fields(name: str) -> None:
    assert macs(name) == MACS[name]


@pytest.mark.parametrize("name", MODELS)
def test_docstring_and_readme_give_the_size(name: str) -> None:
    count, work = parameters(name), macs(name)
    text = docstring(name)
    assert f"{count:,} parameters" in text
    assert f"{work:,} MACs" in text
    row = re.search(rf"^\| \[`{name}`\]\({name}\.py\) \|.*$", (ZOO / "README.md").read_text(), re.MULTILINE)
    assert row and row[0].endswith(f"| {count:,} | {work:,} |")


@pytest.mark.parametrize("name", MODELS)
def test_model_is_the_same_every_time_and_looks_at_its_input(name: str) -> None:
    """Random weights can die out on the way; then every answer would be right."""
    first, again = source(name), frontends.load(str(ZOO / f"{name}.py"))
    assert first.expected is not None and again.expected is not None
    for a, b in zip(first.expected, again.expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6 * float(np.abs(b).max()))
    assert again.torch is not None
    inputs = again.torch.inputs["forward"]
    other = tuple(x.flip(-1) if x.numel() > 1 else -x for x in inputs)
    with torch.no_grad():
        y, z = (again.module.eval()(*x) for x in (inputs, other))
    assert float((y - z).abs().max()) > 1e-2 * float(y.abs().max())


@pytest.mark.parametrize("name", IMAGES)
def test_images_are_neither_transposed_nor_padded_at_run_time(name: str) -> None:
    """Channels-last inputs meet channels-last kernels, which pad by themselves."""
    made = source(name)
    assert made.torch is not None
    assert all(x.is_contiguous(memory_format=torch.channels_last) for x in made.torch.inputs["forward"])
    operators = {node.op.name for node in lower_graph(made.graph).nodes}
    assert not operators & {"permute", "pad"}


def test_model_files_can_be_imported_plainly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook can import them, because nothing in them needs Baretorch."""
    monkeypatch.syspath_prepend(str(ZOO))
    spec = spec_from_file_location("sine", ZOO / "sine.py")
    assert spec is not None and spec.loader is not None
    file = module_from_spec(spec)
    spec.loader.exec_module(file)
    assert file.model()(*file.inputs()).shape == (1, 1)
