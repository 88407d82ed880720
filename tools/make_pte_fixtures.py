"""Write the small `.pte` files in tests/frontends/data that the reader's tests use without executorch.

    python tools/make_pte_fixtures.py [folder]
    python tools/make_pte_fixtures.py --released

Needs the executorch extra. The files are the same on every run, but for the last bits of what PyTorch computes, which
differ from CPU to CPU: weights and inputs are exact in binary to keep that small, and a test compares within 1e-5.

With --released, the files of one version of ExecuTorch and PyTorch's results are written to a folder named after it,
such as executorch-1.0.1. The kept ones are from 1.0.1, 1.2.0 and 1.5.1 with torch 2.13.0. To repeat this with another
version than the installed one, put its unpacked wheel and its flatc first:

    pip download --no-deps executorch==1.0.1
    python -m zipfile -e executorch-1.0.1-*.whl old
    chmod +x old/executorch/data/bin/flatc
    PATH=$PWD/old/executorch/data/bin:$PATH PYTHONPATH=old:src python tools/make_pte_fixtures.py --released
"""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "frontends"), str(ROOT)]

from executorch.exir import ExecutorchBackendConfig  # noqa: E402
from executorch.exir.passes import MemoryPlanningPass  # noqa: E402
from pte_cases import case, coder, export  # noqa: E402
from pte_quantized import cortex_m, mixed, xnnpack  # noqa: E402
from pte_released import complete_torch, expected, made_files  # noqa: E402
from pte_text import text_of  # noqa: E402
from tests.pte import write_pte  # noqa: E402


def make(folder: Path) -> None:
    """Write each file, and next to it the program as text, to review before it is committed."""
    folder.mkdir(parents=True, exist_ok=True)
    sine, cnn, curves, last = case("sine"), case("cnn"), case("curves"), case("cnn_channels_last")
    caller_owns_io = ExecutorchBackendConfig(
        memory_planning_pass=MemoryPlanningPass(alloc_graph_input=False, alloc_graph_output=False)
    )
    (folder / "sine.pte").write_bytes(export(sine.module(), sine.inputs()))
    (folder / "cnn.pte").write_bytes(export(cnn.module(), cnn.inputs()))
    (folder / "views.pte").write_bytes(export(curves.module(), curves.inputs(), caller_owns_io))
    write_pte(last.module(), last.inputs(), folder / "channels_last.pte")
    window = case("window")
    (folder / "state.pte").write_bytes(export(window.module(), window.inputs()))
    write_pte(*coder(), folder / "methods.pte")
    depthwise = case("depthwise")
    quantized = xnnpack(depthwise.module(), depthwise.inputs())
    (folder / "quantized.pte").write_bytes(export(quantized, depthwise.inputs()))
    (folder / "cortex_m.pte").write_bytes(cortex_m(*mixed(), "M55"))
    (folder / "cortex_m4.pte").write_bytes(cortex_m(sine.module(), sine.inputs(), "M4"))
    for file in sorted(folder.glob("*.pte")):
        file.with_suffix(".txt").write_text(text_of(file.read_bytes(), file.stem))


def make_released(folder: Path) -> None:
    """Write the files of the ExecuTorch that is found first, and expected.npz with PyTorch's results."""
    version = metadata.version("executorch")  # of the first one that is found, which need not be the installed one
    folder = folder / f"executorch-{version}"
    folder.mkdir(parents=True, exist_ok=True)
    complete_torch()
    results = {}
    for name, made in made_files(tuple(map(int, version.split(".")))).items():
        (folder / f"{name}.pte").write_bytes(made.data)
        results |= {f"{name}.{key}": value for key, value in expected(made).items()}
    exir = [m.__file__ or "" for name, m in sys.modules.items() if name.startswith("executorch.exir.")]
    places = {file.partition("/executorch/")[0] for file in exir if file}
    assert len(places) == 1, f"two versions of ExecuTorch are mixed: {places}"
    np.savez_compressed(folder / "expected.npz", **results)
    print(f"{folder}: written by executorch {version} with torch {torch.__version__}")


if __name__ == "__main__":
    data = ROOT / "tests" / "frontends" / "data"
    if sys.argv[1:] == ["--released"]:
        make_released(data)
    else:
        make(Path(sys.argv[1]) if len(sys.argv) > 1 else data)
