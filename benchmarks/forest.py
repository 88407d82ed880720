"""Measure the random forest of digits, and compare it with the C of emlearn and m2cgen.

`python benchmarks/forest.py` writes its section of docs/benchmarks.md; `make bench` writes it with all others. The
figures of the peers are for a forest of the same size, trained on the same data, on mps2-an386: code and data of the
classifier, and executed instructions.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from peers import M0PLUS, M4F, M33, TOOLCHAIN
from tables import ROOT, line, replace_section

sys.path.insert(0, str(ROOT))

from tests.frontends.onnx import digits

from baretorch import frontends, pipeline
from baretorch.files.write import scratch
from baretorch.measure.run import measure_model
from baretorch.options import Compiler, Console, Optimize, Options
from baretorch.targets.boards import load_board

BOARDS = (M4F, M33, M0PLUS, "virt-rv32")


@dataclass(frozen=True)
class Measured:
    """Instructions per inference, and bytes of code and of data."""

    made_by: str
    board: str
    instructions: int
    code: int
    data: int | None  # None: `code` is both

    @property
    def bytes(self) -> int:
        return self.code + (self.data or 0)


PEERS = (
    Measured("emlearn, inlined", M4F, 442, 11_628, None),
    Measured("emlearn, tables", M4F, 1_206, 8_928, None),
    Measured("m2cgen", M4F, 9_530, 78_756, None),
)


def measure_all() -> list[Measured]:
    with scratch() as folder:
        file = folder / "digits_forest.onnx"
        file.write_bytes(digits.forest().SerializeToString())
        np.savez(folder / "digits_forest.inputs.npz", x=digits.inputs()[:1, None])
        source = frontends.load(str(file))
        model = pipeline.lower(source)
        found = []
        for board in BOARDS:
            for optimize in Optimize:
                options = Options(toolchain=Compiler(TOOLCHAIN), console=Console.UART, optimize=optimize)
                compiled = pipeline.compile_lowered(model, load_board(board), options)
                facts = measure_model(compiled, folder / f"{board}-{optimize.value}").facts.to_json()
                flash = facts["flash"]
                made_by = f"Baretorch, {optimize.value}"
                found.append(Measured(made_by, board, facts["instructions"], flash["model_code"], flash["weights"]))
    return found


def section(rows: Sequence[Measured]) -> str:
    """Return the section of the page."""
    lines = [
        "## A random forest compared with emlearn and m2cgen",
        "",
        "The forest has 10 trees of depth 8 on scikit-learn's digits: 64 features, 10 classes, 1,020 comparisons.",
        "Baretorch returns the class and all probabilities, and has scikit-learn's class on all of 10,000 inputs.",
        "emlearn's class differs on 1 of 40.",
        "",
        "| made by | board | instructions | code | data | bytes |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for r in (*rows, *PEERS):
        parts = ("", "") if r.data is None else (f"{r.code:,}", f"{r.data:,}")
        lines.append(line([r.made_by, r.board, f"{r.instructions:,}", *parts, f"{r.bytes:,}"]))
    return "\n".join(lines) + "\n"


def main() -> None:
    replace_section(section(measure_all()))


if __name__ == "__main__":
    main()
