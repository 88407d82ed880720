"""Print a table of published integer networks: does each one's image compute exactly the published outputs?

    python benchmarks/integer_networks.py FOLDER [--only WORD …]

FOLDER is DeeployTest/Tests of https://github.com/pulp-platform/Deeploy, whose networks have inputs.npz and outputs.npz
next to them. Its files are read where they are; none of them is part of this repository.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from baretorch.errors import CompileError
from baretorch.files.write import scratch
from baretorch.frontends.onnx.integer import OPERATORS
from baretorch.ir.graph import interpret
from baretorch.ir.io import real_outputs, store_inputs
from baretorch.options import Options
from baretorch.pipeline import LoweredModel, build_image, compile_lowered, lower, read, run_image
from baretorch.targets.boards import load_board

INSTRUCTIONS, CYCLES = "mps2-an386", "cluster8"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", nargs="*", default=[""], metavar="WORD", help="parts of names of networks")
    parser.add_argument("--no-images", action="store_true", help="compare the interpreted graphs only")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"| network | numbers compared | different | MACs | instructions, {INSTRUCTIONS} | cycles, {CYCLES} |")
    print("|---|--:|--:|--:|--:|--:|")
    wrong = 0
    for file in sorted(given.folder.rglob("network.onnx")):
        name = str(file.parent.relative_to(given.folder))
        if any(word in name for word in given.only) and _is_integer(file):
            cells, bad = _row(file, not given.no_images)
            wrong += bad
            print(f"| {name} | {' | '.join(cells)} |", flush=True)
    return 1 if wrong else 0


def _is_integer(file: Path) -> bool:
    try:
        model = onnx.load(file, load_external_data=False)
    except Exception:  # a pointer of Git LFS instead of a file
        return False
    return any(node.op_type in OPERATORS for node in model.graph.node)


def _row(file: Path, images: bool) -> tuple[list[str], int]:
    """Return the cells of a network, and whether it computes other numbers."""
    try:
        with scratch() as folder:
            model = lower(read(str(_with_inputs(file, folder))))
    except CompileError as error:
        return [f"rejected: {error.what}", "", "", "", ""], 0
    published = file.with_name("outputs.npz")
    if not published.is_file():
        return ["no outputs", "", f"{model.graph.macs():,}", "", ""], 0
    with np.load(published) as arrays:
        want = [arrays[name] for name in arrays.files]
    graph = model.graph
    values = interpret(graph, store_inputs(graph, model.source.examples))
    bad = _different(model, [values[name] for name in graph.outputs], want)
    figures = []
    for board in (INSTRUCTIONS, CYCLES) if images else ():
        try:
            compiled = compile_lowered(model, load_board(board), Options())
            with scratch() as folder:
                run = run_image(compiled, build_image(compiled, folder))
        except CompileError as error:
            figures.append(error.what)
            continue
        bad += _different(model, run.outputs, want)
        figures.append(f"{(run.instructions if board == INSTRUCTIONS else run.emulator_cycles) or 0:,}")
    count = sum(x.size for x in want)
    return [f"{count:,}", f"{bad:,}", f"{graph.macs():,}", *figures], int(bad > 0)


def _with_inputs(file: Path, folder: Path) -> Path:
    """Copy a network, and its example inputs under the names of its inputs. Deeploy's are in the order of the inputs,
    and some files have arrays for constants after them."""
    model = onnx.load(file)
    constants = {t.name for t in model.graph.initializer}
    names = [i.name for i in model.graph.input if i.name not in constants]
    copy = folder / file.name
    copy.write_bytes(file.read_bytes())
    if file.with_name("inputs.npz").is_file():
        with np.load(file.with_name("inputs.npz")) as arrays:
            given = [arrays[name] for name in arrays.files]
        np.savez(folder / "inputs.npz", **dict(zip(names, given, strict=False)))
    return copy


def _different(model: LoweredModel, have: Any, want: list[Any]) -> int:
    """Return how many numbers differ."""
    graph = model.graph
    made = [p.from_memory(y) for p, y in zip(graph.gives(), real_outputs(graph, tuple(have)), strict=True)]
    return sum(int((a.reshape(-1) != b.reshape(-1)).sum()) for a, b in zip(made, want, strict=True))


if __name__ == "__main__":
    sys.exit(main())
