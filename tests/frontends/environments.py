"""Environments of their own for converters that are too large for ours; made once, by what is installed in them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from baretorch.firmware.cache import cache_folder

CONVERTERS = Path(__file__).parent / "converters"
LITERT_TORCH = ("litert-torch==0.10.0", "torch==2.13.0")
TFLM = ("tflite-micro==0.dev20261023182759", "numpy==2.4.6")
KERAS = ("tensorflow==2.21.0", "tf_keras==2.21.0")


def environment(*packages: str) -> Path:
    """The Python of an environment with these packages."""
    folder = cache_folder() / "environments" / "_".join(packages)
    python, done = folder / "bin" / "python", folder / "done"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *packages], check=True)
        done.touch()
    return python


def convert(script: str, packages: tuple[str, ...], *arguments: str) -> None:
    """Run one of the converters in its environment."""
    command = [str(environment(*packages)), str(CONVERTERS / script), *arguments]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-3000:]
