"""Write docs/reference/npu.md: which operators of the zoo run on four NPUs.

python tools/make_npu_table.py                        writes the page from benchmarks/npu.json
python tools/make_npu_table.py --measure [MODEL …]    measures all models, or these, first

A model is compiled for a Corstone-300 with the NPU and enough memory. Every delegate is checked on the emulated NPU, as
always when it is first compiled. Vela and QEMU are needed.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from baretorch import pipeline
from baretorch.errors import CompileError
from baretorch.measure.run import measure_model
from baretorch.options import Io, Options, UseNpu
from baretorch.pipeline import LoweredModel
from baretorch.targets.boards import load_board
from baretorch.targets.types import Board

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(p for p in ROOT.glob("zoo/*.py") if p.stem != "common")
RESULTS, PAGE = ROOT / "benchmarks" / "npu.json", ROOT / "docs" / "reference" / "npu.md"
BOARD = "corstone-300"
ROOM = 64 << 20  # bytes of each memory: the table is about NPUs


@dataclass(frozen=True)
class Npu:
    accelerator: str
    system_config: str  # of Vela's own vela.ini, as is the memory mode
    memory_mode: str

    @property
    def title(self) -> str:
        return self.accelerator.removeprefix("ethos-").upper()


NPUS = (
    Npu("ethos-u55-128", "Ethos_U55_High_End_Embedded", "Shared_Sram"),
    Npu("ethos-u55-256", "Ethos_U55_High_End_Embedded", "Shared_Sram"),
    Npu("ethos-u65-512", "Ethos_U65_High_End", "Sram_Only"),
    Npu("ethos-u85-256", "Ethos_U85_SYS_DRAM_Mid", "Sram_Only"),
)


def board_with(npu: Npu) -> Board:
    """Return a Corstone-300 with this NPU and enough memory."""
    plain = load_board(BOARD)
    assert plain.chip.npu is not None
    memories = tuple(replace(m, size=ROOM, origin=m.origin + i * ROOM) for i, m in enumerate(plain.chip.memories))
    other = replace(
        plain.chip.npu,
        accelerator=npu.accelerator,
        system_config=npu.system_config,
        memory_mode=npu.memory_mode,
    )
    return replace(plain, chip=replace(plain.chip, npu=other, memories=memories))


def options_for(model: LoweredModel) -> Options:
    """Return options with int8 inputs and outputs, if the first and last layers of the model are int8."""
    try:
        model.with_io(Io.INT8)
    except CompileError:
        return Options(io=Io.FLOAT)
    return Options(io=Io.INT8)


def on_npu(model: LoweredModel, npu: Npu) -> dict[str, Any]:
    """Return what runs where, and its cost."""
    options = options_for(model)
    compiled = pipeline.compile_lowered(model.with_io(options.io), board_with(npu), options)
    found, plan = compiled.partition, compiled.plan
    assert found is not None
    return {
        "operators": sum(len(region.layers) for region in found.regions),
        "regions": len(found.regions),
        "left": [[left.op, left.why] for left in found.left],
        "vela_cycles": found.cycles,
        "constants": plan.weight_bytes(),
        "arena": plan.arena,
    }


def measured(path: Path) -> dict[str, Any]:
    model = pipeline.lower_file(str(path), Options(int8=True))
    return {"cpu": on_cpu(model), **{npu.accelerator: on_npu(model, npu) for npu in NPUS}}


def on_cpu(model: LoweredModel) -> dict[str, Any]:
    """Measure the model without an NPU; there is no instruction count if the board is too small for it."""
    options = replace(options_for(model), npu=UseNpu.OFF)
    model = model.with_io(options.io)
    plan = pipeline.compile_lowered(model, board_with(NPUS[0]), options).plan
    found = {"instructions": None, "constants": plan.weight_bytes(), "arena": plan.arena}
    try:
        compiled = pipeline.compile_lowered(model, load_board(BOARD), options)
        with tempfile.TemporaryDirectory() as folder:
            run = measure_model(compiled, Path(folder)).run
    except CompileError as error:
        if "too small" not in error.what:
            raise
        return found
    return found | {"instructions": run.instructions}


def reasons(left: list[list[str]]) -> str:
    """List the operators that stay on the CPU, equal ones together."""
    told = Counter((op, why) for op, why in left)
    return "; ".join(f"{f'{n} × ' if n > 1 else ''}`{op}`: {why}" for (op, why), n in told.items()) or "–"


INTRODUCTION = """\
The table lists each model of the zoo in int8, for a Corstone-300 with one of four NPUs. The command stream of every
delegate was run on the emulated NPU. Its results equal those of the operators and of Arm's TOSA reference model, to the
last bit; `make test-all` runs them again. See [Use an NPU](../how-to/use-an-npu.md).
`python tools/make_npu_table.py --measure` measures.

Cycles are Vela's estimate for the NPU. Flash is the size of the model's constants with the NPU's commands, and RAM that
of its arena, both without code. *CPU only* is the same model with `--npu off`: instructions of the Cortex-M55, and its
flash and RAM. Operators are counted as Baretorch fuses them: a convolution with its activation and pool is one. With
`--npu require`, a softmax at the border of a region runs on the NPU too; any other layer that cannot is an error."""


def page(results: dict[str, Any]) -> Iterator[str]:
    yield "<!-- Written by tools/make_npu_table.py; do not edit. -->"
    yield ""
    yield "# The zoo on NPUs"
    yield ""
    yield INTRODUCTION
    for npu in NPUS:
        yield ""
        yield f"## {npu.title}"
        yield ""
        yield f"`{npu.accelerator}`, {npu.system_config}, {npu.memory_mode}"
        yield ""
        yield (
            "| model | on the NPU | regions | left on the CPU, and why | Vela's cycles | flash | RAM "
            "| CPU only: instructions | flash | RAM |"
        )
        yield "|---|--:|--:|---|--:|--:|--:|--:|--:|--:|"
        for name, found in sorted(results.items()):
            here, cpu = found[npu.accelerator], found["cpu"]
            cells = [str(here["operators"]), str(here["regions"]), reasons(here["left"])]
            cells += [f"{here[key]:,}" for key in ("vela_cycles", "constants", "arena")]
            cells += ["too large" if cpu["instructions"] is None else f"{cpu['instructions']:,}"]
            cells += [f"{cpu[key]:,}" for key in ("constants", "arena")]
            yield f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if sys.argv[1:2] == ["--measure"]:
        for path in FILES:
            if not sys.argv[2:] or path.stem in sys.argv[2:]:
                print(path.stem, flush=True)
                results[path.stem] = measured(path)
                RESULTS.write_text(json.dumps(dict(sorted(results.items())), indent=1) + "\n")
    PAGE.write_text("\n".join(page(results)) + "\n", "utf-8")


if __name__ == "__main__":
    main()
