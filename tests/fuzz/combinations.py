"""Options x boards x models: the factors of the covering array, and how a row is compiled, built, run and compared."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from baretorch import frontends, pipeline
from baretorch.errors import CompileError
from baretorch.escape import c_prefix
from baretorch.firmware.types import Image
from baretorch.ir.graph import Array, interpret
from baretorch.ir.io import arrange_inputs, arrange_outputs, real_outputs, store_inputs
from baretorch.machines import open_machine
from baretorch.machines.link import Link
from baretorch.machines.run import decode_outputs
from baretorch.options import Options, read_options
from baretorch.passes.to_int8 import float_layers
from baretorch.pipeline import Compiled, LoweredModel
from baretorch.targets.boards import load_board
from baretorch.targets.types import Chip
from tests.fuzz.covering import Row
from tests.models import compile_model, int8_model

LEAST_DB = {"int4": 6.0, "int4g32": 10.0}  # what int8 and finer precisions keep of these untrained models is 15 dB
TIMEOUT = 600.0  # seconds of a call on a busy computer
CALLS = 3  # consecutive runs with different inputs, so that state and stale memory show


class Dense(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(12, 40), nn.Linear(40, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(F.relu(self.a(x)))


class Wide(nn.Module):
    """More weights than a Pico has RAM, so that they can be streamed."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(640, 512), nn.Linear(512, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(F.relu(self.a(x)))


class Image2d(nn.Module):
    """Convolutions and a pool: what bands and `--input rows` cut."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(2, 8, 3, padding=1), nn.Conv2d(8, 32, 1), nn.Conv2d(32, 8, 3, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.c(F.relu(self.b(F.max_pool2d(F.relu(self.a(x)), 2)))))


class Separable(nn.Module):
    """Depthwise and pointwise convolutions with a residual sum, a mean and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.n = nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8)
        self.d, self.p, self.c = nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.Conv2d(8, 8, 1), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu6(self.n(self.a(x)))
        return self.c((x + F.relu(self.p(self.d(x)))).mean((2, 3)))


class Signal(nn.Module):
    """One-dimensional convolutions, slices and a concatenation."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv1d(3, 8, 5, padding=2), nn.Conv1d(8, 4, 3, dilation=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.tanh(self.a(x))
        return torch.cat((self.b(y), y[:, :3, 2:-2]), 1)


class Remember(nn.Module):
    """State in buffers, which is also an output."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Linear(8, 8)
        self.register_buffer("h", torch.zeros(1, 8))
        self.register_buffer("past", torch.zeros(1, 4, 6))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        h = torch.tanh(self.a(x) + self.b(self.h))
        past = torch.cat((self.past[:, 1:], x[:, None]), 1)
        self.h.copy_(h)
        self.past.copy_(past)
        return h, past.mean(1)


class Sequence(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.LSTM(4, 8, batch_first=True), nn.GRU(8, 6, batch_first=True), nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.c(self.b(self.a(x)[0])[0][:, -1])


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(8, 8) for _ in range(4))
        self.n = nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (f(x).reshape(1, 6, 2, 4).transpose(1, 2) for f in (self.q, self.k, self.v))
        mask = torch.ones(6, 6, dtype=torch.bool).tril()
        scores = (q @ k.transpose(-2, -1) / 2).masked_fill(~mask, float("-inf"))
        return self.n(x + self.o((scores.softmax(-1) @ v).transpose(1, 2).reshape(1, 6, 8)))


class Aliases(nn.Module):
    """Outputs that share memory with each other and with the input."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(6, 6)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = F.relu(self.a(x))
        return y, y[:, -1], y.reshape(2, 2, 6), x


class Tokens(nn.Module):
    """An input of indices."""

    def __init__(self) -> None:
        super().__init__()
        self.e, self.n, self.a = nn.Embedding(11, 8), nn.LayerNorm(8), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.a(F.gelu(self.n(self.e(x))))


class Decoder(nn.Module):
    """Transposed convolution, nearest upsampling, and two inputs."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.t, self.c = nn.Linear(5, 32), nn.ConvTranspose2d(8, 4, 2, stride=2), nn.Conv2d(4, 2, 3, padding=1)

    def forward(self, x: torch.Tensor, gain: torch.Tensor) -> torch.Tensor:
        y = F.silu(self.t(F.relu(self.a(x)).reshape(1, 8, 2, 2)))
        return torch.sigmoid(self.c(F.interpolate(y, scale_factor=2)) * gain)


class Methods(nn.Module):
    """Two methods over the same weights and state; the image serves the second."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(6, 6)
        self.register_buffer("total", torch.zeros(1, 6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.a(x))

    def add(self, x: torch.Tensor) -> torch.Tensor:
        total = self.total + F.relu(self.a(x))
        self.total.copy_(total)
        return total * 0.5


class Wrong(Exception):
    """An image computes something else than it should."""


@dataclass(frozen=True)
class Sample:
    """A model of the table. `layers` are those with weights that take other precisions than int8."""

    make: Callable[[], nn.Module]
    shapes: tuple[tuple[int, ...], ...]
    layers: tuple[str, ...]
    entries: int = 0  # the inputs are indices below this
    methods: tuple[str, ...] = ("forward",)  # the last is served
    grouped: tuple[str, ...] = ()  # those of the layers that can have a factor for each 32 inputs
    image: bool = False  # the input is an image in the order of memory that rows are read in

    def inputs(self, seed: int) -> tuple[torch.Tensor, ...]:
        random = torch.Generator().manual_seed(seed)
        if self.entries:
            return tuple(torch.randint(self.entries, shape, generator=random) for shape in self.shapes)
        made = tuple(torch.randn(shape, generator=random) for shape in self.shapes)
        return tuple(x.to(memory_format=torch.channels_last) for x in made) if self.image else made


SAMPLES: Mapping[str, Sample] = {
    "dense": Sample(Dense, ((1, 12),), ("a", "b"), grouped=("a", "b")),
    "wide": Sample(Wide, ((1, 640),), ("a", "b"), grouped=("a", "b")),
    "image": Sample(Image2d, ((1, 2, 24, 10),), ("a", "b", "c"), grouped=("b",), image=True),
    "separable": Sample(Separable, ((1, 1, 24, 12),), ("a", "p", "c"), grouped=("p", "c"), image=True),
    "signal": Sample(Signal, ((1, 3, 20),), ("a", "b")),
    "remember": Sample(Remember, ((1, 6),), ("a", "b"), grouped=("a", "b")),
    "sequence": Sample(Sequence, ((1, 5, 4),), ("c",), grouped=("c",)),
    "attention": Sample(Attention, ((1, 6, 8),), ("q", "k", "v", "o"), grouped=("q", "o")),
    "aliases": Sample(Aliases, ((1, 4, 6),), ("a",), grouped=("a",)),
    "tokens": Sample(Tokens, ((1, 7),), ("a",), entries=11, grouped=("a",)),
    "decoder": Sample(Decoder, ((1, 5), (1, 2, 8, 8)), ("a", "c"), grouped=("a",)),
    "methods": Sample(Methods, ((1, 6),), ("a",), methods=("forward", "add")),
}

PRECISIONS = ("float", "int8", "int4", "int4g32", "int16", "float16", "some float")
# Board and model first; then options by name. "" leaves an option at its default. The first level is the default, to
# which repairs return.
FACTORS: Mapping[str, tuple[str, ...]] = {
    "board": (
        *("mps2-an386", "host", "mps2-an385", "mps2-an385-v6m", "mps2-an500", "mps2-an505", "mps3-an547"),
        *("virt-rv32", "virt-hazard3", "pico", "pico2w", "nucleo-wb55rg", "nucleo-h743zi", "microbit"),
        *("arduino-mega", "cluster8", "cluster4-soc", "corstone-300", "corstone-320"),
    ),
    "model": tuple(SAMPLES),
    "two": ("", "beside"),  # a second model in the same image
    "precision": PRECISIONS,
    "observer": ("", "minmax"),
    "io": ("", "float", "int8"),
    "optimize": ("", "size"),
    "ram": ("", "tight"),  # less than the model takes without it: bands
    "input": ("", "rows"),
    "buffers": ("", "caller", "barely aligned"),  # the caller's, aligned to 4 and to no more
    "weights": ("", "flash", "ram", "stream"),
    "code": ("", "ram"),
    "check_inputs": ("", "yes"),
    "cores": ("", "1", "2"),
    "core": ("", "1"),
    "npu": ("", "off"),
    "units": ("", "off"),
    "watchdog": ("", "2000"),
    "console": ("", "uart"),
    "toolchain": ("", "zig"),
    "place": ("", "bank"),  # a layer's output in another bank of RAM
}
DEFAULTS = {name: levels[0] for name, levels in FACTORS.items()}
# What goes back to its default first when a row is rejected: the rarest levels stay longest.
REPAIRS = [
    *("watchdog", "console", "toolchain", "check_inputs", "npu", "units", "observer", "place", "io", "code"),
    *("two", "core", "cores", "ram", "input", "weights", "buffers", "optimize", "precision", "model", "board"),
]
NOT_VARIED = {
    "trust": "about reading files of one format",
    "shape": "about reading files of one format",
    "fix": "about reading files of one format",
    "state": "about reading files of one format",
    "emulator": "chooses who runs an image; tests/emulators compares them",
    "int8": "varied as precision",
    "calibration": "where data comes from; the rows bring their own",
    "keep_float": "varied as precision",
    "config": "varied as precision",
    "app": "such an image does not answer; tests/firmware/test_app.py runs some",
}


def impossible(row: Mapping[str, str]) -> str | None:
    """Return why Baretorch rejects a row for what is known before it is compiled, or None. Factors may be missing."""
    get = {**DEFAULTS, **row}.get
    chip = chip_of(row["board"]) if "board" in row else None
    sample = SAMPLES[row.get("model", DEFAULTS["model"])]
    int8 = row.get("precision", "int8") != "float"
    reasons = {
        "the model has several methods, which stay float": get("model") == "methods" and "precision" in row and int8,
        "for int8 models only": not int8 and any(get(name) for name in ("observer", "io")),
        "--core and --cores exclude each other": bool(get("core")) and get("cores") == "2",
        "checks need inputs that are complete before the run": bool(get("check_inputs")) and get("input") == "rows",
        "a stream is for one core and one method": get("weights") == "stream"
        and (get("cores") == "2" or bool(get("core")) or get("model") == "methods"),
        "bands are those of an image": get("ram") == "tight" and "model" in row and not sample.image,
        "rows are those of a chain of convolutions": get("input") == "rows"
        and "model" in row
        and get("model") != "image",
        "weights are streamed that do not fit RAM": get("weights") == "stream"
        and "model" in row
        and get("model") != "wide",
        "no float comes in": bool(get("check_inputs")) and (get("io") == "int8" or sample.entries > 0),
        "a float layer takes no int8": get("io") == "int8" and get("precision") in ("some float", "float16"),
        "no layer has weights in groups": get("precision") == "int4g32" and "model" in row and not sample.grouped,
        "two models share one core and one server": bool(get("two"))
        and (
            any(get(name) for name in ("cores", "core", "check_inputs", "input", "buffers", "place", "ram"))
            or get("weights") == "stream"
            or get("model") == "methods"
        ),
    }
    if chip is not None:
        reasons |= {
            "the chip has one core": chip.core_count == 1 and (get("cores") == "2" or bool(get("core"))),
            "a cluster has no core to spare": chip.cluster is not None and bool(get("core")),
            "no DMA engine reads flash": chip.dma is None and get("weights") == "stream",
            "flash is as fast as RAM": chip.flash_path is None
            and (get("code") == "ram" or get("weights") in ("ram", "stream")),
            "the chip has no NPU to turn off": chip.npu is None and bool(get("npu")),
            "the chip has no unit to turn off": chip.cluster is None and bool(get("units")),
            "the chip has no watchdog": chip.watchdog is None and bool(get("watchdog")),
            "the console is a UART anyway": chip.usb is None and bool(get("console")),
            "clang makes no code for it": chip.cpu.zig is None and get("toolchain") == "zig",
            "there is one bank of RAM": len(_banks(chip)) < 2 and bool(get("place")),
            "1.3 MB of weights do not fit": get("model") == "wide" and chip.memory(chip.code).size < 2 << 20,
            "two models are linked for one core": bool(get("two"))
            and (chip.cluster is not None or chip.cpu.flash_apart),
        }
    return next((reason for reason, is_so in reasons.items() if is_so), None)


@cache
def chip_of(board: str) -> Chip:
    return load_board(board).chip


def _banks(chip: Chip) -> list[str]:
    return [bank.name for bank in chip.memories if bank.kind == "ram"]


def config_of(row: Row) -> str | None:
    """Return the text of the configuration that gives every layer with weights the row's precision."""
    if row["precision"] not in ("int4", "int4g32", "int16", "float16"):
        return None
    sample = SAMPLES[row["model"]]
    layers = sample.grouped if row["precision"] == "int4g32" else sample.layers
    return "[layers]\n" + "".join(f'"{name}" = "{row["precision"]}"\n' for name in layers)


def options_of(row: Row, folder: Path, ram: int | None = None) -> Options:
    """Return the row's options; CompileError if they exclude each other."""
    given: dict[str, Any] = {"int8": row["precision"] != "float"}
    for name in ("observer", "io", "optimize", "input", "weights", "code", "npu", "units", "console"):
        given |= {name: row[name]} if row[name] else {}
    for name in ("cores", "core", "watchdog"):
        given |= {name: int(row[name])} if row[name] else {}
    given |= {"buffers": "caller"} if row["buffers"] else {}
    given |= {"toolchain": row["toolchain"] or "gcc"}
    given |= {"check_inputs": True} if row["check_inputs"] else {}
    given |= {"ram": ram} if ram is not None else {}
    given |= {"keep_float": SAMPLES[row["model"]].layers[:1]} if row["precision"] == "some float" else {}
    given |= {"place": {SAMPLES[row["model"]].layers[0]: _banks(chip_of(row["board"]))[-1]}} if row["place"] else {}
    if text := config_of(row):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "layers.toml").write_text(text)
        given |= {"config": str(folder / "layers.toml")}
    return read_options(given)


@cache
def module_of(model: str) -> nn.Module:
    torch.manual_seed(len(model))
    module = SAMPLES[model].make().eval()
    for layer in module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.running_mean.normal_(0, 0.3)
            layer.running_var.uniform_(0.5, 2)
    return module


@cache
def read(model: str, name: str = "model") -> frontends.Source:
    """Export a sample once."""
    sample = SAMPLES[model]
    methods = {method: sample.inputs(1) for method in sample.methods}
    return frontends.from_methods(module_of(model), methods, name, sample.methods[-1])


@lru_cache(64)
def _quantized(model: str, name: str, precision: str, observer: str, text: str | None) -> LoweredModel:
    sample = SAMPLES[model]
    with TemporaryDirectory() as folder:
        row = DEFAULTS | {"model": model, "precision": precision, "observer": observer}
        o = options_of(row, Path(folder))
        given = {"keep_float": o.keep_float, "observer": o.observer, "config": o.config}
        return int8_model(read(model, name), [sample.inputs(10 + i) for i in range(8)], **given)


def quantize_by(row: Row, config: Path) -> LoweredModel:
    """Quantize a row's model as a configuration file says."""
    return int8_model(read(row["model"]), [SAMPLES[row["model"]].inputs(10)], config=str(config))


def source_of(row: Row, model: str, name: str = "model") -> frontends.Source | LoweredModel:
    """Return the row's model as read, quantized if the row says so."""
    if row["precision"] == "float":
        return read(model, name)
    row = row | {"model": model}
    return _quantized(model, name, row["precision"], row["observer"], config_of(row))


def compiled(row: Row, folder: Path, model: str | None = None, name: str = "model") -> Compiled:
    """Compile a row for its board."""
    board = load_board(row["board"])
    row = row | {"model": model or row["model"]}
    source, options = source_of(row, row["model"], name), options_of(row, folder)
    made = compile_model(source, board, options)
    return compile_model(source, board, options_of(row, folder, _less(made.plan.arena))) if row["ram"] else made


def _less(arena: int) -> int:
    """Return a limit below what the model takes, so that layers must run in bands."""
    return max(arena * 3 // 4, 16) & ~3


# What glue.c declares for a port of the caller's.
_MEMORY = re.compile(r"static uint32_t (bt_memory_\w+)\[(\d+)\];")


def barely_aligned(glue: str) -> str:
    """Rewrite glue.c so that each buffer of the caller's is aligned to 4, as model.h asks, and to no more."""

    def moved(match: re.Match[str]) -> str:
        name, words = match[1], match[2]
        return (
            f"static struct {{ uint32_t before[1], at[{words}]; }} raw_{name} __attribute__((aligned(16)));\n"
            f"#define {name} raw_{name}.at"
        )

    return _MEMORY.sub(moved, glue)


@dataclass(frozen=True)
class Built:
    """An image of one model, or of two whose ports follow each other."""

    models: tuple[Compiled, ...]
    image: Image


def build(row: Row, folder: Path) -> Built:
    """Compile a row and build its image."""
    first = compiled(row, folder)
    if row["buffers"] == "barely aligned":
        first = replace(first, c=replace(first.c, glue=barely_aligned(first.c.glue)))
    if not row["two"]:
        return Built((first,), pipeline.build_image(first, folder))
    other = compiled(row, folder, _other(row), "other")
    return Built((first, other), pipeline.build_image(joined(first, other), folder))


def joined(first: Compiled, other: Compiled) -> Compiled:
    """Return the first model with the C of both, and a glue.c that serves them as one: ports of both, runs of both."""
    own = {name if name.startswith("kernels/") else f"other/{name}": text for name, text in other.c.files.items()}
    sources = [name if name.startswith("kernels/") else f"other/{name}" for name in other.c.sources]
    glue, others = first.c.glue, other.c.glue
    for ports in ("inputs", "outputs"):
        table = re.compile(rf"bt_buffer {ports}\[\] = {{ (.*) }};")
        more = table.search(others)
        count = re.search(rf"\.{ports[:-1]}_count = (\d+)", others)
        assert more and count
        glue = table.sub(lambda m, more=more: f"{m[0][:-3]}, {more[1]} }};", glue)
        total = re.compile(rf"(\.{ports[:-1]}_count = )(\d+)")
        glue = total.sub(lambda m, count=count: f"{m[1]}{int(m[2]) + int(count[1])}", glue)
    run = re.search(r"void bt_model_call\(void\)\n{\n(?:    fill\(\);\n)?(.*\n)", others)
    reset = re.search(r"void bt_model_reset\(void\)\n{\n(.*\n)", others)
    assert run and reset
    glue = glue.replace('#include "model.h"\n', '#include "model.h"\n#include "other/model.h"\n', 1)
    glue = glue.replace("void bt_model_call(void)\n{\n", f"void bt_model_call(void)\n{{\n{run[1]}", 1)
    glue = glue.replace("void bt_model_reset(void)\n{\n", f"void bt_model_reset(void)\n{{\n{reset[1]}", 1)
    c = replace(
        first.c,
        files=own | first.c.files,
        sources=(*first.c.sources, *(s for s in sources if s not in first.c.sources)),
        glue=glue,
    )
    return replace(first, c=c)


def answers(built: Built) -> list[list[tuple[Array, ...]]]:
    """Run the image on its emulated board; return the real outputs of each model, call by call."""
    first = built.models[0]
    machine = open_machine(built.image, first.c.run, first.options.emulator)
    found: list[list[tuple[Array, ...]]] = [[] for _ in built.models]
    try:
        link = Link(machine)
        link.hello(c_prefix(first.graph.name))
        for call in range(CALLS):
            given = [x for model in built.models for x in inputs_of(model, call)]
            raw = list(link.run([np.ascontiguousarray(x).tobytes() for x in given], TIMEOUT).outputs)
            for model, own in zip(built.models, found, strict=True):
                outputs, raw = raw[: len(model.graph.outputs)], raw[len(model.graph.outputs) :]
                own.append(decode_outputs(model.graph, outputs))
    finally:
        machine.close()
    return found


def inputs_of(model: Compiled, call: int) -> list[Array]:
    """Return the inputs of one call as the image takes them."""
    graph = model.graph
    return store_inputs(graph, arrange_inputs(graph, sample_of(model).inputs(100 + call)))


def sample_of(model: Compiled) -> Sample:
    """Return the sample that a model was made from."""
    module = model.source.module
    return next(sample for sample in SAMPLES.values() if sample.make is type(module))


def check(row: Row, built: Built, folder: Path) -> None:
    """Raise Wrong unless the image computes what `host` and the interpreter do, and about what PyTorch does."""
    for model, have in zip(built.models, answers(built), strict=True):
        graph = model.graph
        memory: dict[str, Array] = {}
        values = [interpret(graph, inputs_of(model, call), memory=memory) for call in range(CALLS)]
        want = [tuple(run[name] for name in graph.outputs) for run in values]
        exact = row["precision"].startswith("int") and not float_layers(graph)
        _same("the interpreter", have, want, exact, 1e-4 if row["precision"] == "float" else 1 / 64)
        _same("host", have, on_host(row, model, folder), exact, 1e-4 if row["precision"] == "float" else 1 / 64)
        _near(row, model, have)


def on_host(row: Row, model: Compiled, folder: Path) -> list[tuple[Array, ...]]:
    """Return what the same graphs give on this computer, planned without any option."""
    plain = pipeline.compile_lowered(model.model, load_board("host"), Options())
    return answers(Built((plain,), pipeline.build_image(plain, folder / f"host-{model.graph.name}")))[0]


def _same(
    who: str, have: list[tuple[Array, ...]], want: list[tuple[Array, ...]], exact: bool, tolerance: float
) -> None:
    for call, (got, need) in enumerate(zip(have, want, strict=True)):
        for i, (a, b) in enumerate(zip(got, need, strict=True)):
            if exact or a.dtype.kind != "f":
                if a.tobytes() != np.ascontiguousarray(b).tobytes():
                    raise Wrong(f"call {call}, output {i}: {int((a != b).sum())} of {a.size} differ from {who}")
            elif not np.abs(a - b).max(initial=0) <= tolerance * max(float(np.abs(b).max(initial=0)), 1e-3):
                raise Wrong(f"call {call}, output {i}: off by {np.abs(a - b).max():.3g} from {who}")


def _near(row: Row, model: Compiled, have: list[tuple[Array, ...]]) -> None:
    """Compare with PyTorch: in float closely; int8 must keep LEAST_DB over all calls."""
    sample, graph = sample_of(model), model.graph
    module = copy.deepcopy(module_of(row["model"] if model.graph.name == "model" else _other(row)))
    signal = noise = 0.0
    for call, outputs in enumerate(have):
        with torch.no_grad():
            made = getattr(module, sample.methods[-1])(*sample.inputs(100 + call))
        right = [y.numpy() for y in (made if isinstance(made, tuple) else (made,))]
        ours = arrange_outputs(graph, real_outputs(graph, outputs))
        for i, (a, b) in enumerate(zip(ours if isinstance(ours, tuple) else (ours,), right, strict=True)):
            if row["precision"] == "float" and not np.abs(a - b).max(initial=0) <= 1e-4 * np.abs(b).max(initial=1e-3):
                raise Wrong(f"call {call}, output {i}: off by {np.abs(a - b).max():.3g} from PyTorch")
            signal += float(np.square(b).sum())
            noise += float(np.square(a - b).sum())
    least = LEAST_DB.get(row["precision"], 15.0)
    if not noise * 10 ** (least / 10) <= signal:
        raise Wrong(f"{10 * np.log10(signal / max(noise, 1e-30)):.1f} dB against PyTorch, where {least} are expected")


def _other(row: Row) -> str:
    return "remember" if row["model"] == "dense" else "dense"


def rejects(row: Row, folder: Path) -> str | None:
    """Return the text with which Baretorch rejects a row, or None."""
    if reason := impossible(row):
        return reason
    try:
        build(row, folder)
    except CompileError as error:
        return str(error)
    return None
