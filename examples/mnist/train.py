"""Trains the networks of model.py, cnn.py and small.py on the 60,000 training images, some minutes each, and keeps
their weights:

    python examples/mnist/train.py mlp
    python examples/mnist/train.py cnn
    python examples/mnist/train.py small

after `make mnist`. Half of what a network sees is varied: tilted, scaled, sheared, shifted, with thick or thin strokes.
A quarter are photographs (examples/pico4ml/photo.py), seen through the very code of the camera's firmware, so that it
reads both MNIST and paper. The seed is fixed; the weights still differ in their last bits from CPU to CPU.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from types import ModuleType

import cnn
import model as mlp
import numpy as np
import small
import torch
from camera import kept_photographs, photographed
from data import images_and_labels
from torch import nn
from torch.nn import functional as F

EPOCHS, BATCH = 16, 128
TILT, SHEAR, SCALE, SHIFT = 15 * math.pi / 180, 0.2, 0.15, 2.0  # radians, radians, a part, pixels
Prepared = Callable[[torch.Tensor], torch.Tensor]
NETWORKS: dict[str, tuple[ModuleType, Prepared]] = {  # and what becomes of images [n, 1, 28, 28] for it
    "mlp": (mlp, lambda images: images.flatten(1)),
    "cnn": (cnn, lambda images: images),
    "small": (small, small.halved),
}


def varied(images: torch.Tensor) -> torch.Tensor:
    """Digits [n, 1, 28, 28] as others might have written them."""
    n = len(images)
    tilt, shear = (torch.rand(n) * 2 - 1) * TILT, (torch.rand(n) * 2 - 1) * SHEAR
    wide, high = (1 + (torch.rand(n) * 2 - 1) * SCALE for _ in range(2))
    x, y = ((torch.rand(n) * 2 - 1) * SHIFT / 14 for _ in range(2))
    cos, sin = tilt.cos(), tilt.sin()
    rows = torch.stack([wide * cos, -high * sin + shear, x, wide * sin, high * cos, y], 1).reshape(n, 2, 3)
    moved = F.grid_sample(images, F.affine_grid(rows, list(images.shape), align_corners=False), align_corners=False)
    thick, thin = F.max_pool2d(moved, 3, 1, 1), -F.max_pool2d(-moved, (1, 3), 1, (0, 1))
    how = (torch.rand(n, 1, 1, 1) * 2.4 - 1.2).clamp(-0.6, 0.7)
    return torch.where(how > 0, torch.lerp(moved, thick, how.abs()), torch.lerp(moved, thin, how.abs()))


def train(
    net: nn.Module,
    prepared: Prepared,
    plain: tuple[np.ndarray, np.ndarray],
    photos: tuple[np.ndarray, np.ndarray],
    epochs: int,
    after: Callable[[int], None],
) -> None:
    """Images [n, 784] and their digits; calls `after` each epoch."""
    (images, digits), (pictures, labels) = (tuple(map(torch.from_numpy, pair)) for pair in (plain, photos))
    steps = epochs * (len(images) // BATCH)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, steps)
    quarter = BATCH // 4
    for epoch in range(epochs):
        net.train()
        for batch in torch.randperm(len(images))[: steps // epochs * BATCH].split(BATCH):
            chosen = torch.randint(len(pictures), (quarter,))
            x = images[batch].reshape(-1, 1, 28, 28)
            x = torch.cat(
                [varied(x[: 2 * quarter]), x[2 * quarter : 3 * quarter], pictures[chosen].reshape(-1, 1, 28, 28)]
            )
            y = torch.cat([digits[batch][: 3 * quarter], labels[chosen]])
            optimizer.zero_grad()
            F.cross_entropy(net(prepared(x)), y, label_smoothing=0.05).backward()
            optimizer.step()
            schedule.step()
        net.eval()
        after(epoch + 1)


def accuracy(net: nn.Module, prepared: Prepared, part: tuple[np.ndarray, np.ndarray]) -> float:
    images, digits = map(torch.from_numpy, part)
    with torch.no_grad():
        return float((net(prepared(images.reshape(-1, 1, 28, 28))).argmax(1) == digits).float().mean())


def main(name: str) -> None:
    file, prepared = NETWORKS[name]
    torch.manual_seed(0)
    net, photos = file.network(), kept_photographs()
    tests = images_and_labels("t10k")
    camera = photographed(*images_and_labels("t10k", 200), seed=1)

    def tell(epoch: int) -> None:
        both = (accuracy(net, prepared, part) for part in (tests, camera))
        print(
            f"epoch {epoch} of {EPOCHS}: {{:.2%}} of the test images, {{:.2%}} of 200 photographs".format(*both),
            flush=True,
        )

    train(net, prepared, images_and_labels("train"), photos, EPOCHS, tell)
    np.savez_compressed(file.WEIGHTS, **{k: t.numpy().astype(np.float16) for k, t in net.state_dict().items()})


if __name__ == "__main__":
    main(sys.argv[1])
