"""Write docs/reference/quantizer.md: how exact models are in int8.

python tools/make_quantizer_table.py                        writes the page from benchmarks/quantizer.json
python tools/make_quantizer_table.py --measure [MODEL …]    measures first, all models or these

The last bit of a scale decides how values between two steps are rounded, which may change the noise of a small model by
a decibel. Therefore noise is measured several times, with slightly larger scales, and averaged. `spread_db` is the
standard deviation of the single measurements.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import log10
from pathlib import Path
from typing import Any

import numpy as np

from baretorch import pipeline
from baretorch.errors import CompileError
from baretorch.frontends import Source
from baretorch.frontends.torch.calls import flat_tensors
from baretorch.frontends.user_code import import_file
from baretorch.ir.graph import Graph, Quant
from baretorch.machines import open_machine
from baretorch.machines.session import Session
from baretorch.measure.run import measure_model
from baretorch.ops.int8.scaled import FIXED
from baretorch.options import Io, Options
from baretorch.targets.boards import load_board

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ("rps", "sine")
FILES = [
    *sorted(p for p in ROOT.glob("zoo/*.py") if p.stem != "common"),
    *(ROOT / "examples" / name / "model.py" for name in EXAMPLES),
]
RESULTS = ROOT / "benchmarks" / "quantizer.json"
PAGE = ROOT / "docs" / "reference" / "quantizer.md"
VARIATIONS = 6  # of scales
OTHER_SEEDS, HELD_OUT = 100, 128  # where the samples of the zoo that no scale was chosen with begin, and how many


def measured(path: Path) -> dict[str, Any]:
    model = pipeline.lower_file(str(path), Options(int8=True))
    assert model.quantization is not None
    source = model.source
    found: dict[str, Any] = {"accuracy": None}
    own = list(import_file(path).calibration())
    others = _held_out(path, own)
    noise: list[Any] = []
    for seed in range(VARIATIONS):
        with tempfile.TemporaryDirectory() as folder:
            board = load_board("host")
            graph = pipeline.finish_graph(_varied(model.quantization.graph, seed), board)
            compiled = pipeline.compile_graph(source, graph, board)
            image = pipeline.build_image(compiled, Path(folder))
            session = Session(open_machine(image, compiled.c.run, compiled.options.emulator), compiled.graph)
            noise.append([_powers(source, session, data) for data in (own, others)])
            if seed == 0:
                found["accuracy"] = _accuracy(path, session)
            session.close()
    single = [[_db(powers) for powers in pair] for pair in noise]
    for i, name in enumerate(("calibration_db", "held_out_db")):
        found[name] = round(_db(np.sum([pair[i] for pair in noise], axis=0)), 2)
    found["spread_db"] = round(float(np.std([pair[1] for pair in single])), 2)
    try:
        with tempfile.TemporaryDirectory() as folder:
            compiled = pipeline.compile_lowered(model.with_io(Io.INT8), load_board("mps2-an386"), Options(io=Io.INT8))
            measured = measure_model(compiled, Path(folder))
            found["instructions"] = measured.run.instructions
            found["arena"], found["code"] = compiled.plan.arena, measured.image.flash.model_code
    except CompileError as error:
        print(error.what, file=sys.stderr)
        found["instructions"] = None
    return found


def _accuracy(path: Path, session: Session) -> dict[str, float] | None:
    evaluate = getattr(import_file(path), "evaluate", None)
    if evaluate is None:
        return None
    session.reset()
    try:
        return {k: float(v) for k, v in evaluate(session).items()}
    except FileNotFoundError as error:  # data that is to be fetched first
        print(error, file=sys.stderr)
        return None


def _varied(graph: Graph, seed: int) -> Graph:
    """Return the graph with activation scales up to a few thousandths larger; tensors that share a scale keep sharing
    one."""
    rng = np.random.default_rng(seed)
    found: dict[Quant, Quant] = {}
    fixed = set(FIXED.values())
    tensors = dict(graph.tensors)
    for name, t in graph.tensors.items():
        if seed and t.quant is not None and t.quant.axis is None and t.quant not in fixed:
            if t.quant not in found:
                found[t.quant] = replace(t.quant, scale=(t.quant.scale[0] * (1 + rng.uniform(0, 0.004)),))
            tensors[name] = replace(t, quant=found[t.quant])
    return replace(graph, tensors=tensors)


def _powers(source: Source, session: Session, samples: Iterable[Any]) -> Any:
    """Signal and noise of each output's answers, run after run from the initial state."""
    assert source.eager is not None
    eager = source.eager()
    session.reset()
    sums: list[Any] = []
    for sample in samples:
        inputs = [x.numpy() for x in flat_tensors(sample)]
        want, have = (_all(run(*inputs)) for run in (eager, session))
        sums.append([(_power(w), _power(h - w)) for w, h in zip(want, have, strict=True)])
    return np.array(sums, dtype=np.float64).sum(axis=0)


def _db(powers: Any) -> float:
    """The least of the outputs."""
    return min((10 * log10(signal / noise) if noise else 999.0) for signal, noise in powers)


def _held_out(path: Path, own: Sequence[Any]) -> list[Any]:
    """Samples of the same kind with other seeds; what the file evaluates with where it has no seeds."""
    common: Any = import_file(ROOT / "zoo" / "common.py")
    sys.modules["common"] = common
    before = common.samples
    common.samples = lambda make, count=16: before(lambda seed: make(seed + OTHER_SEEDS), HELD_OUT)
    file = import_file(path)
    others = list(file.calibration())
    sys.modules.pop("common")
    first, again = flat_tensors(own[0])[0], flat_tensors(others[0])[0]
    return others if not bool((first == again).all()) else _evaluated_with(file)


def _evaluated_with(file: Any) -> list[Any]:
    net, asked = file.model(), []

    def run(*inputs: Any) -> Any:
        asked.append(inputs)
        return net(*inputs).detach().numpy()

    file.evaluate(run)
    return asked


def _all(answer: Any) -> list[Any]:
    return [np.asarray(a, np.float64) for a in (answer if isinstance(answer, tuple) else (answer,))]


def _power(x: Any) -> float:
    return float(np.square(x[np.isfinite(x)]).sum())


def measure(names: Sequence[str]) -> None:
    found = json.loads(RESULTS.read_text())
    for path in FILES:
        name = str(path.relative_to(ROOT).with_suffix("")).removesuffix("/model")
        if not names or path.stem in names or name in names:
            found[name] = measured(path)
            print(name, found[name], flush=True)
            RESULTS.write_text(json.dumps(found, indent=1) + "\n")


def page() -> str:
    lines = [
        "<!-- Written by `python tools/make_quantizer_table.py`; do not edit. -->",
        "",
        "# How exact int8 models are",
        "",
        "The table lists the signal to noise ratio against float in dB, over the calibration data and over 128 other",
        "samples of its kind (for examples: the samples of `evaluate()`). Ratios are averaged over scales that differ",
        "in their last bits; `±` is the standard deviation of the single measurements. Instructions, code and arena",
        "are those on mps2-an386 with `--io int8`.",
        "",
        "Decibels depend on the last bits of PyTorch's results, which differ from computer to computer. Those of",
        "examples also depend on the weights that were trained there.",
        "",
        "| model | calibration dB | others dB | ± dB | accuracy | instructions | code | arena |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, row in sorted(json.loads(RESULTS.read_text()).items()):
        cells = [f"{row[k]:.2f}" for k in ("calibration_db", "held_out_db", "spread_db")]
        cells += [f"{next(iter(row['accuracy'].values())):.4f}" if row["accuracy"] else "–"]
        cells += ["–" if row.get(k) is None else f"{row[k]:,}" for k in ("instructions", "code", "arena")]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> None:
    if arguments[:1] == ["--measure"]:
        measure(arguments[1:])
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
