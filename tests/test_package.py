"""The wheel works outside the checkout, and without torch and executorch."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
PTE = ROOT / "tests" / "frontends" / "data"


def run(*command: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | environment
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)


def requirements(name: str, found: set[str]) -> set[str]:
    """The distributions that `name` needs, without extras, itself included."""
    if name in found:
        return found
    found.add(name)
    for text in importlib.metadata.requires(name) or ():
        need = Requirement(text)
        if need.marker is None or need.marker.evaluate({"extra": ""}):
            requirements(need.name, found)
    return found


@pytest.fixture(scope="session")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the built wheel and links to its plain requirements: all that Python sees there."""
    folder = tmp_path_factory.mktemp("clean")
    site = folder / "site"
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    tree = folder / "tree"  # a copy, as setuptools builds in the tree and stumbles over what another build left there
    shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    (tree / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "troubleshooting.md", tree / "docs")
    made = run(*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", ".", str(tree), cwd=folder)
    assert made.returncode == 0, made.stderr
    (wheel,) = folder.glob("*.whl")
    done = run(*pip, "install", "--no-deps", "--target", str(site), str(wheel), cwd=folder)
    assert done.returncode == 0, done.stderr
    for name in requirements("baretorch", set()) - {"baretorch"}:
        for file in importlib.metadata.files(name) or ():
            top = file.parts[0]
            if top not in ("..", "__pycache__", "bin") and not (site / top).exists():
                (site / top).symlink_to(Path(str(importlib.metadata.distribution(name).locate_file(top))))
    return site


def python(clean: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-S", *arguments, cwd=cwd, PYTHONPATH=str(clean))


def baretorch(clean: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return python(clean, "-m", "baretorch", *arguments, cwd=cwd)


def test_the_clean_room_is_clean(clean: Path, tmp_path: Path) -> None:
    for name in ("torch", "executorch"):
        assert python(clean, "-c", f"import {name}", cwd=tmp_path).returncode != 0
    where = python(clean, "-c", "import baretorch; print(baretorch.__file__)", cwd=tmp_path)
    assert where.stdout.strip() == str(clean / "baretorch" / "__init__.py"), where.stderr


def test_the_studio_is_all_there(clean: Path) -> None:
    studio = ROOT / "src" / "baretorch" / "studio"
    files = [p.relative_to(studio) for folder in ("page", "bundled") for p in (studio / folder).iterdir()]
    assert len(files) > 8
    assert [p for p in files if not (clean / "baretorch" / "studio" / p).is_file()] == []


@pytest.mark.slow
def test_the_studio_reads_a_digit_without_torch(clean: Path, tmp_path: Path) -> None:
    """Zig and Unicorn only, on the emulated Pico."""
    from tests.studio.strokes import DIGITS

    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | {"PYTHONPATH": str(clean)}
    command = [
        sys.executable,
        "-S",
        "-u",
        "-m",
        "baretorch",
        "studio",
        "--board",
        "pico",
        "--int8",
        "--toolchain",
        "zig",
    ]
    heard = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell's background job ignores it
    program = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True, preexec_fn=heard)
    assert program.stdout is not None
    url = program.stdout.readline().strip()
    body = json.dumps({"strokes": DIGITS[8]}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{url}api/digits/draw", body), timeout=60) as answer:
        assert int(np.argmax(json.load(answer)["outputs"][0])) == 8
    program.send_signal(signal.SIGINT)
    assert program.wait(20) == 0
    program.stdout.close()


def test_compile_a_pte_without_torch(clean: Path, tmp_path: Path) -> None:
    pte = sorted(PTE.glob("*.pte"))[0]
    done = baretorch(clean, "compile", str(pte), "--board", "pico2w", "--out", "c", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
    assert (tmp_path / "c" / "model.c").is_file()


@pytest.mark.parametrize("pte", sorted(p.name for p in PTE.glob("*.pte")))
def test_run_a_pte_without_torch(clean: Path, tmp_path: Path, pte: str) -> None:
    """Zig and Unicorn only: what `pip install baretorch` brings."""
    options = ("--board", "pico2w", "--toolchain", "zig", "--json")
    done = baretorch(clean, "run", str(PTE / pte), *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["emulator"] == "unicorn"
    assert facts["max_error"] < 1e-5


def test_run_a_tflite_without_torch_and_litert(clean: Path, tmp_path: Path) -> None:
    """`pip install baretorch` alone reads the file, and there is no reference runtime to compare with."""
    options = ("--board", "pico2w", "--toolchain", "zig", "--json")
    done = baretorch(clean, "run", str(PTE / "lstm_int8.tflite"), *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["emulator"], facts["reference"], facts["max_error"]) == ("unicorn", "the graph", 0)


def fresh(folder: Path, extra: str) -> str:
    """The Python of a fresh environment with what `pip install baretorch[extra]` brings, which is not PyTorch."""
    made = run(sys.executable, "-m", "venv", "fresh", cwd=folder)
    assert made.returncode == 0, made.stderr
    python = str(folder / "fresh" / "bin" / "python")
    shutil.copytree(ROOT / "src", folder / "tree" / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "tree")
    done = run(python, "-m", "pip", "install", "--quiet", f"{folder / 'tree'}[{extra}]", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert run(python, "-c", "import torch", cwd=folder).returncode != 0
    return python


@pytest.mark.slow
def test_pip_install_baretorch_tflite_runs_a_tflite(tmp_path: Path) -> None:
    """It runs in a fresh environment, on the emulated pico2w."""
    done = run(
        *(fresh(tmp_path, "tflite"), "-m", "baretorch", "run", str(PTE / "kws_int8.tflite"), "--board", "pico2w"),
        *("--toolchain", "zig", "--json"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["emulator"], facts["reference"], facts["float_layers"]) == ("unicorn", "LiteRT", [])
    assert facts["max_lsb"] <= 2 and facts["layerwise"]["max_lsb"] <= 1


@pytest.mark.slow
def test_pip_install_baretorch_onnx_runs_an_onnx(tmp_path: Path) -> None:
    """It runs in a fresh environment, on the emulated pico2w; onnx.reference computes the expected results, as there is
    no onnxruntime. With calibration data next to the file it is quantized, too."""
    from tests.frontends.onnx.files import small_cnn

    (tmp_path / "net.onnx").write_bytes(small_cnn().SerializeToString())
    samples = np.random.default_rng(1).standard_normal((20, 2, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "calibration.npz", x=samples)
    words = (fresh(tmp_path, "onnx"), "-m", "baretorch", "run", "net.onnx", "--board", "pico2w", "--toolchain", "zig")
    for more, limit in (((), 1e-5), (("--int8",), 0.02)):
        done = run(*words, *more, "--json", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        facts = json.loads(done.stdout)
        assert (facts["emulator"], facts["reference"], facts["float_layers"]) == ("unicorn", "onnx.reference", [])
        assert facts["max_error"] < limit


def test_a_model_file_without_torch_is_an_error_with_a_remedy(clean: Path, tmp_path: Path) -> None:
    done = baretorch(clean, "run", str(ROOT / "examples/sine/model.py"), "--board", "pico", cwd=tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "torch" in done.stderr and 'pip install "baretorch[torch]"' in done.stderr
