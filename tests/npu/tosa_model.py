"""Arm's TOSA reference model: what a TOSA file means."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from baretorch.ir import Array
from baretorch.npu.tools import find


def program(name: str) -> Path:
    found = find(name)
    assert found is not None, f"no {name}: tools/setup.sh test installs it"
    return found


def run(folder: Path, file: bytes, inputs: dict[str, Array], outputs: Sequence[str]) -> list[Array]:
    """The outputs of these names."""
    (folder / "graph.tosa").write_bytes(file)
    for name, x in inputs.items():
        np.save(folder / f"{name}.npy", x)

    def files(names: Sequence[str]) -> str:
        return ",".join(f"{name}.npy" for name in names)

    command = [program("tosa_reference_model"), "--tosa_file=graph.tosa", "--tosa_level=NONE"]
    command += [f"--flatbuffer_dir={folder}", f"--output_dir={folder}"]
    command += [f"--ifm_name={','.join(inputs)}", f"--ifm_file={files(list(inputs))}"]
    command += [f"--ofm_name={','.join(outputs)}", f"--ofm_file={files(outputs)}"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[:3000]
    return [np.asarray(np.load(folder / f"{name}.npy")) for name in outputs]
