"""Run Arm's TOSA reference model, which defines TOSA files: a separate program in Vela's environment."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from io import BytesIO

import numpy as np

from baretorch.errors import CompileError
from baretorch.files.write import scratch, write_scratch
from baretorch.ir.graph import Array
from baretorch.npu.vela import find_program

PROGRAM = "tosa_reference_model"
LONGEST = 600  # seconds


def is_installed() -> bool:
    return find_program(PROGRAM) is not None


def run(file: bytes, inputs: Mapping[str, Array], outputs: Sequence[str]) -> list[Array]:
    """Run a file, and return the outputs with these names."""
    program = find_program(PROGRAM)
    if program is None:
        raise CompileError("the TOSA reference model is not installed", need=f"the program {PROGRAM}, of tosa-tools")

    def files(names: Sequence[str]) -> str:
        return ",".join(f"{name}.npy" for name in names)

    with scratch("baretorch-tosa-") as folder:
        write_scratch(folder / "graph.tosa", file)
        for each, x in inputs.items():
            saved = BytesIO()
            np.save(saved, x)
            write_scratch(folder / f"{each}.npy", saved.getvalue())
        words = [str(program), "--tosa_file=graph.tosa", "--tosa_level=NONE"]
        words += [f"--flatbuffer_dir={folder}", f"--output_dir={folder}"]
        words += [f"--ifm_name={','.join(inputs)}", f"--ifm_file={files(list(inputs))}"]
        words += [f"--ofm_name={','.join(outputs)}", f"--ofm_file={files(outputs)}"]
        try:
            done = subprocess.run(words, cwd=folder, capture_output=True, text=True, errors="replace", timeout=LONGEST)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CompileError("the TOSA reference model does not run", at=str(program), have=str(error)) from error
        if done.returncode:
            said = (done.stdout + done.stderr).strip().splitlines()[-5:]
            raise CompileError(
                "the TOSA reference model rejects a graph that Baretorch wrote", at=str(program), have=said
            )
        return [np.asarray(np.load(folder / f"{each}.npy")) for each in outputs]
