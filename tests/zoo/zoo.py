"""The models of the zoo, and how exactly each must equal PyTorch."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from baretorch import pipeline
from baretorch.errors import CompileError
from baretorch.frontends import Source
from baretorch.measure.facts import RunFacts, compare
from baretorch.options import Compiler, Io, Options
from baretorch.pipeline import LoweredModel, lower_file, read
from baretorch.targets.boards import load_board
from tests.models import compile_model

ROOT = Path(__file__).resolve().parents[2]
ZOO = ROOT / "zoo"

MODELS = (
    "ad", "cnn1d", "decoder", "encoder", "gru", "ic", "kws", "kws_raw", "kws_stream", "lenet5", "lstm", "mnist_mlp",
    "mobilenet_v2", "mobilenet_v2_block", "rfft512", "sine", "softmax", "squeeze_excite", "squeezenet_like",
    "streaming_gru", "tcn", "tinyrps", "unet_small", "vit_tiny", "vww",
)  # fmt: skip

TOLERANCE = 1e-5  # of the largest magnitude that PyTorch expects; measured: 5e-6 for mobilenet_v2, else below 1e-6


@cache
def source(name: str) -> Source:
    return read(str(ZOO / f"{name}.py"))


@cache
def lowered(name: str, int8: bool = False) -> LoweredModel:
    """Read a model and run all passes; with `int8`, quantize it."""
    return lower_file(str(ZOO / f"{name}.py"), Options(int8=int8))


def run(name: str, board: str, toolchain: str, folder: Path, int8: bool = False) -> RunFacts:
    """The model, run on the board's emulator; in int8 with int8 inputs and outputs."""
    options = Options(toolchain=Compiler(toolchain), io=Io.INT8 if int8 else Io.FLOAT)
    compiled = compile_model(lowered(name, int8), load_board(board), options)
    image = pipeline.build_image(compiled, folder)
    return compare(compiled, image, pipeline.run_image(compiled, image))


def check_shortage(error: CompileError, name: str, board: str) -> None:
    """An error that says truly how many bytes of which memory are missing; code and runtime are not known exactly."""
    chip, plan = load_board(board).chip, pipeline.compile_source(source(name), load_board("host")).plan
    needs = {chip.code: plan.weight_bytes(), chip.data: plan.arena + chip.stack_bytes}
    room = {bank: chip.memory(bank).size for bank in needs}
    if chip.cpu.flash_reach:  # of constants that flash can hold; kernels that do not read them there have theirs in RAM
        room[chip.code] = min(room[chip.code], chip.cpu.flash_reach)
        copied = re.search(r"([\d,]+) bytes of constants in", "\n".join(error.have))
        needs[chip.data] += int(copied[1].replace(",", "")) if copied else 0
    short = {bank: int(gap.replace(",", "")) for bank, gap in re.findall(r"(\w+) is ([\d,]+) bytes too sm", error.what)}
    assert short, error
    for bank, gap in short.items():
        assert gap > 0
        assert abs(gap - (needs[bank] - room[bank])) < 40_000


def check(facts: RunFacts) -> None:
    """PyTorch's answer, within the tolerance, in memory that was set aside for it."""
    assert facts.reference == "PyTorch"
    assert facts.largest > 0
    assert facts.max_error <= TOLERANCE * facts.largest
    if facts.image.board.name != "host":
        assert facts.run.instructions
        assert 0 < facts.run.stack_peak <= facts.image.ram.stack
