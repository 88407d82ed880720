"""Write the small `.pte` files in tests/frontends/data that the reader's tests use without executorch.

    python tools/make_pte_fixtures.py [folder]

Needs the executorch extra. The files are the same on every run, but for the last bits of what PyTorch computes, which
differ from CPU to CPU: weights and inputs are exact in binary to keep that small, and a test compares within 1e-5.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "frontends"))

from executorch.exir import ExecutorchBackendConfig  # noqa: E402
from executorch.exir.passes import MemoryPlanningPass  # noqa: E402
from pte_cases import case, coder, export  # noqa: E402
from pte_quantized import cortex_m, mixed, xnnpack  # noqa: E402
from pte_text import text_of  # noqa: E402

from baretorch.frontends.pte.export import write_pte  # noqa: E402


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


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests" / "frontends" / "data")
