"""Write the two ExecuTorch programs of docs/teach/pte.md: the sine for portable kernels, and with a delegate.

`python tools/make_teaching_pte.py` needs the packages torch and executorch.
"""

from __future__ import annotations

import runpy
from pathlib import Path

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import to_edge_transform_and_lower

ROOT = Path(__file__).resolve().parents[1]


def main() -> None:
    sine = runpy.run_path(str(ROOT / "examples/sine/model.py"))
    exported = torch.export.export(sine["model"]().eval(), sine["inputs"]())
    for name, partitioner in (("sine", []), ("sine_xnnpack", [XnnpackPartitioner()])):
        program = to_edge_transform_and_lower(exported, partitioner=partitioner).to_executorch()
        path = ROOT / f"examples/teach/{name}.pte"
        path.write_bytes(program.buffer)
        print(f"{path.relative_to(ROOT)}: {len(program.buffer):,} bytes")


if __name__ == "__main__":
    main()
