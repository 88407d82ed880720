"""A model that does not come from PyTorch is quantized without it: torch is not imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

SCRIPT = """
import json, sys
for name in ("torch", "executorch"):
    sys.modules[name] = None  # whoever imports it gets an ImportError
from dataclasses import replace
import numpy as np
from baretorch import pipeline
from baretorch.frontends import KINDS, load
from baretorch.ir.graph import interpret
from baretorch.machines.host_program import on_host
from baretorch.options import Options
from baretorch.passes.to_int8 import float_layers
from baretorch.ir.io import store_inputs
from baretorch.quantize.watch import in_numpy
from tests.frontends.layers import load_layers

KINDS[".layers"] = load_layers
rng = np.random.default_rng(0)
source = load(sys.argv[1])
(port,) = source.graph.takes()
samples = [(rng.standard_normal(port.shape).astype(np.float32),) for _ in range(20)]
found = []
for runner in (on_host, in_numpy):
    pipeline.on_host = runner
    made = pipeline.lower(replace(source, calibration=samples), Options(int8=True))
    graph = made.graph
    (have,) = interpret(graph, store_inputs(graph, source.examples)).values()
    scales = [t.quant.scale for t in made.quantization.graph.tensors.values() if t.quant]
    answers = source.expected[0], made.int8_answers[0]
    found.append([float_layers(graph), scales, have.tolist(), *(y.tolist() for y in answers)])
print(json.dumps(found))
"""


def test_quantized_by_itself(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    layers = [
        {"image": [1, 4, 4, 2]},
        {"flatten": None},
        {"linear": {"rows": rng.standard_normal((6, 32)).round(3).tolist()}},
        {"relu": None},
        {"linear": {"rows": rng.standard_normal((3, 6)).round(3).tolist()}},
    ]
    (tmp_path / "net.layers").write_text(json.dumps(layers))
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "net.layers")],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    in_c, in_numpy = json.loads(run.stdout)
    assert in_c[0] == [] and in_c[1] == in_numpy[1], "the same scales from C and from the interpreter"
    have, want, simulated = (np.array(x) for x in in_c[2:])
    assert 10 * np.log10(np.square(want).sum() / np.square(have - want).sum()) > 20
    np.testing.assert_allclose(have, simulated, atol=1.01 * in_c[1][-1][0])
