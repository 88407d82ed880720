"""Random TOSA graphs, compiled by Vela and computed by Arm's reference model, with the Python of their environment.

    python -m tests.npu.tosa_cases FOLDER SEED COUNT ACCELERATOR ... [KIND ...]

writes COUNT graphs of each kind per accelerator: NAME.npz is Vela's payload, NAME.io.npz has the inputs and what is
right. The last line of the output has the names of what could not be compiled, with the reason.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tests.npu.tosa_builder import Array, Builder
from tests.npu.tosa_kinds import KINDS

SYSTEMS = {  # accelerator: system configuration and memory mode of Vela's own vela.ini
    "ethos-u55-32": ("Ethos_U55_High_End_Embedded", "Shared_Sram"),
    "ethos-u55-64": ("Ethos_U55_High_End_Embedded", "Shared_Sram"),
    "ethos-u55-128": ("Ethos_U55_High_End_Embedded", "Shared_Sram"),
    "ethos-u55-256": ("Ethos_U55_Deep_Embedded", "Shared_Sram"),
    "ethos-u65-256": ("Ethos_U65_High_End", "Dedicated_Sram_384KB"),
    "ethos-u65-512": ("Ethos_U65_High_End", "Dedicated_Sram_384KB"),
    "ethos-u85-128": ("Ethos_U85_SYS_DRAM_Mid", "Sram_Only"),
    "ethos-u85-256": ("Ethos_U85_SYS_DRAM_Mid", "Sram_Only"),
    "ethos-u85-512": ("Ethos_U85_SYS_DRAM_Mid", "Dedicated_Sram_384KB"),
    "ethos-u85-1024": ("Ethos_U85_SYS_DRAM_High", "Sram_Only"),
    "ethos-u85-2048": ("Ethos_U85_SYS_DRAM_High", "Dedicated_Sram_512KB"),
}


def reference(graph: bytes, inputs: list[Array], kinds: list[tuple[list[int], Any]], path: Path) -> list[Array]:
    import tosa_reference_model  # type: ignore[import-not-found,import-untyped,unused-ignore]

    path.write_bytes(graph)
    made, status = tosa_reference_model.run(graph, inputs)
    if status != tosa_reference_model.GraphStatus.TOSA_VALID:
        raise RuntimeError(f"the reference model says {status}")
    return [
        np.frombuffer(np.asarray(m).tobytes(), kind).reshape(shape)
        for m, (shape, kind) in zip(made, kinds, strict=True)
    ]


def vela(path: Path, accelerator: str, folder: Path) -> str:
    """Vela's own text; its payload is then in the folder."""
    from ethosu.vela import vela as program  # type: ignore[import-not-found,import-untyped,unused-ignore]

    system, memory = SYSTEMS[accelerator]
    text = io.StringIO()
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        words = ["--accelerator-config", accelerator, "--config", "Arm/vela.ini", "--system-config", system]
        words += ["--memory-mode", memory, "--output-format", "raw", "--output-dir", str(folder)]
        program.main([str(path), *words])
    return text.getvalue()


def make(folder: Path, kind: str, seed: int, accelerator: str) -> str | None:
    """Build a case; return its fault if it cannot be built."""
    name = f"{kind}-{accelerator}-{seed}"
    b = Builder(f"{kind} {seed}")
    try:
        y = KINDS[kind](b)
        b.output(y)
        types = {b.dtype(k): k for k in ("int8", "int16", "int32", "bool")}
        path = folder / f"{name}.tosa"
        right = reference(b.bytes(), b.inputs, [(list(y.shape), types[y.dtype])], path)
        said = vela(path, accelerator, folder)
        payload = folder / f"{name}_vela.npz"
        if not payload.exists():
            return f"no payload: {said[-300:]}"
        payload.rename(folder / f"{name}.npz")
    except (Exception, SystemExit) as error:  # a case that cannot be made is told to the caller, who judges
        return f"{type(error).__name__}: {error}"[:300]
    np.savez(folder / f"{name}.io.npz", operators=b.made, **{f"x{i}": x for i, x in enumerate(b.inputs)},
             **{f"y{i}": r for i, r in enumerate(right)})  # fmt: skip
    return None


def main() -> None:
    folder, first, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    accelerators = [a for a in sys.argv[4:] if a in SYSTEMS]
    kinds = [a for a in sys.argv[4:] if a in KINDS] or list(KINDS)
    failed = {}
    for seed in range(first, first + count):
        for accelerator in accelerators:
            for kind in kinds:
                reason = make(folder, kind, seed, accelerator)
                if reason:
                    failed[f"{kind}-{accelerator}-{seed}"] = reason
    print(json.dumps(failed))


if __name__ == "__main__":
    main()
