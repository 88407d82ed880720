"""MNIST through the camera: what the firmware of examples/pico4ml makes of photographs of its digits."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from data import FOLDER, images_and_labels

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "pico4ml"))
from photo import Vision, photographs, seen

PHOTOS = 10_000


def photographed(images: np.ndarray, digits: np.ndarray, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """The networks' input, float32[n, 784], and their digits; without photographs that nothing can be read on."""
    vision = Vision()
    found = [(vision(seen(frame)), digit) for frame, digit in zip(photographs(images, seed), digits, strict=True)]
    read = [(picture, digit) for picture, digit in found if picture is not None]
    return np.stack([p for p, _ in read]).astype(np.float32) / 255, np.array([d for _, d in read], np.int64)


def kept_photographs() -> tuple[np.ndarray, np.ndarray]:
    """Those of the first training images, made once, some minutes."""
    path = FOLDER / "photographs.npz"
    if not path.exists():
        print(f"photographing {PHOTOS:,} digits", flush=True)
        images, digits = photographed(*images_and_labels("train", PHOTOS))
        np.savez_compressed(path, images=images, digits=digits)
    with np.load(path) as kept:
        return kept["images"], kept["digits"]
