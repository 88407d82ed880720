"""Run Arm's Vela, which compiles TOSA for Ethos-U: a separate program, of which nothing is imported here.

Vela and the TOSA reference model pin their NumPy versions, so they cannot share an environment with Baretorch's other
dependencies. They may be in a second environment: `vela` in Baretorch's, or the one that the environment variable
names.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from baretorch.errors import CompileError
from baretorch.files.write import scratch, write_scratch
from baretorch.npu.payload import Payload, read_payload
from baretorch.targets.parts import Npu

VARIABLE = "BARETORCH_VELA"
OLDEST = (5, 2, 0)  # older versions produced wrong streams
LONGEST = 600  # seconds


def find_program(program: str) -> Path | None:
    """Return the path of a program: in the folder that the variable names, in this environment, in the one inside it,
    or on PATH."""
    folders = [Path(sys.executable).parent, Path(sys.prefix) / "vela" / "bin"]
    if named := os.environ.get(VARIABLE):
        folders = [Path(named), Path(named) / "bin"]
        if not folders[0].is_dir():
            raise CompileError(
                f"{VARIABLE} names no folder", have=named, need="an environment that has Vela, or its bin"
            )
    for folder in folders:
        if (folder / program).is_file():
            return folder / program
    found = None if named else shutil.which(program)
    return Path(found) if found else None


class VelaRefused(Exception):
    """Vela does not compile a graph; the text is its reason."""


@dataclass(frozen=True)
class VelaResult:
    """Vela's output for a graph, and the cycles that it estimates for a run."""

    payload: Payload
    cycles: int


def is_installed() -> bool:
    return find_program("vela") is not None


def compile_tosa(tosa: bytes, npu: Npu) -> VelaResult:
    """Compile a graph in TOSA for this NPU; raise `VelaRefused` if Vela cannot run all of it there."""
    data, cycles = _run_vela(tosa, npu, "--separate-io-regions", "--cop-format", "COP2")
    try:
        return VelaResult(read_payload(data), cycles)
    except CompileError as error:  # such as an output to which Vela 5.2.0 gave no address
        raise VelaRefused(f"its output cannot be used: {error.what}") from error


def raw(tosa: bytes, npu: Npu) -> bytes:
    """Return Vela's output file with inputs and outputs inside the scratch, as other programs expect it."""
    return _run_vela(tosa, npu)[0]


def _run_vela(tosa: bytes, npu: Npu, *how: str) -> tuple[bytes, int]:
    """Return the file that Vela writes, and the cycles that it estimates."""
    vela = _program()
    with scratch("baretorch-vela-") as folder:
        write_scratch(folder / "region.tosa", tosa)
        words = [str(vela), "region.tosa", "--output-dir", "out", "--output-format", "raw"]
        words += ["--accelerator-config", npu.accelerator, "--config", "Arm/vela.ini"]
        words += ["--system-config", npu.system_config, "--memory-mode", npu.memory_mode]
        done = _run([*words, *how], folder)
        files, tables = list(folder.glob("out/*.npz")), list(folder.glob("out/*.csv"))
        left = re.search(r"CPU operators = (\d+)", done.stdout)
        if done.returncode or len(files) != 1 or len(tables) != 1 or left is None or int(left[1]):
            raise VelaRefused(_complaint(done))
        return files[0].read_bytes(), _cycles(tables[0])


def _program() -> Path:
    vela = find_program("vela")
    if vela is None:
        raise CompileError(
            "Vela is not installed",
            need=f"ethos-u-vela {'.'.join(map(str, OLDEST))} or newer: it compiles for Ethos-U",
            try_=f"pip install 'baretorch[ethos-u]', or an environment of its own that {VARIABLE} names",
        )
    version = _version(vela)
    if version < OLDEST:
        raise CompileError(
            f"Vela {'.'.join(map(str, version))} is too old",
            at=str(vela),
            need=f"{'.'.join(map(str, OLDEST))} or newer: streams of older ones were seen to compute something else",
            try_="pip install --upgrade ethos-u-vela",
        )
    return vela


@cache
def _version(vela: Path) -> tuple[int, ...]:
    done = _run([str(vela), "--version"], None)
    found = re.fullmatch(r"(\d{1,6})\.(\d{1,6})\.(\d{1,6})\S*", done.stdout.strip())
    if done.returncode or found is None:
        raise CompileError("Vela does not start", at=str(vela), have=_complaint(done), try_=f"{vela} --version")
    return tuple(map(int, found.groups()))


def _run(words: list[str], folder: Path | None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(words, cwd=folder, capture_output=True, text=True, errors="replace", timeout=LONGEST)
    except OSError as error:
        raise CompileError("Vela does not start", at=words[0], have=str(error)) from error
    except subprocess.TimeoutExpired as error:
        raise CompileError(f"Vela took longer than {LONGEST} seconds", at=words[0]) from error


def _complaint(done: subprocess.CompletedProcess[str]) -> str:
    """Return the line of the output that states the error, or else the last line."""
    lines = [line.strip() for line in (done.stdout + "\n" + done.stderr).splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"(?i)\berror\b|not supported|could not|unsupported", line)]
    return (telling or lines or [f"it ended with code {done.returncode}"])[-1][:300]


def _cycles(table: Path) -> int:
    with table.open(newline="", encoding="utf-8", errors="replace") as file:
        row = next(csv.DictReader(file), {})
    text = row.get("cycles_total", "")
    if not re.fullmatch(r"\d{1,18}", text):
        raise CompileError("Vela's summary has no cycles_total", at=table.name, need="Vela 5.2.0 or newer")
    return int(text)
