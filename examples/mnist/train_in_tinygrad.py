"""Train the network of in_tinygrad.py in tinygrad, which takes some minutes, after `make mnist`:

    python examples/mnist/train_in_tinygrad.py

It prints how many test images and photographs the network reads, and writes the weights to build/mnist/in_tinygrad.npz.
Half of the training images are moved by up to two pixels, and a quarter are photographs. tinygrad needs a compiler:
clang, or Zig's, which comes with Baretorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from camera import kept_photographs, photographed
from data import FOLDER, images_and_labels

from baretorch.frontends.tinygrad.zig import choose_device, use_zig

choose_device()
import tinygrad.runtime.support.compiler_cpu as compiler_cpu  # noqa: E402

use_zig(compiler_cpu)
from tinygrad import Context, Tensor, TinyJit, nn  # noqa: E402

EPOCHS, BATCH, SHIFT = 6, 128, 2
Part = tuple[np.ndarray, np.ndarray]


def network(pixels: int = 784, hidden: int = 400) -> list[Any]:
    return [nn.Linear(pixels, hidden), Tensor.relu, nn.Linear(hidden, 10)]


def moved(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Move all images by the same few pixels; the next batch gets another shift."""
    return np.roll(images.reshape(-1, 28, 28), rng.integers(-SHIFT, SHIFT + 1, 2), (1, 2)).reshape(len(images), -1)


def train(layers: list[Any], plain: Part, photos: Part, epochs: int, batch: int, after: Callable[[int], None]) -> None:
    """Images [n, 784] and their digits; calls `after` each epoch."""
    rng, quarter = np.random.default_rng(0), batch // 4
    steps = len(plain[0]) // batch
    optimizer = nn.optim.AdamW(nn.state.get_parameters(layers), lr=2e-3, weight_decay=1e-4)

    @TinyJit
    def step(x: Tensor, y: Tensor) -> Tensor:
        optimizer.zero_grad()
        loss = x.sequential(layers).sparse_categorical_crossentropy(y, label_smoothing=0.05).backward()
        optimizer.step()
        return loss.realize()

    for epoch in range(epochs):
        optimizer.lr.assign(Tensor([2e-3 * (1 - epoch / epochs)])).realize()
        order = rng.permutation(len(plain[0]))
        with Context(TRAINING=1):
            for n in range(steps):
                own = order[n * batch : (n + 1) * batch][: 3 * quarter]
                photo = rng.integers(0, len(photos[0]), batch - 3 * quarter)
                x = plain[0][own]
                x = np.concatenate([moved(x[: 2 * quarter], rng), x[2 * quarter :], photos[0][photo]])
                y = np.concatenate([plain[1][own], photos[1][photo]])
                step(Tensor(x).realize(), Tensor(y.astype(np.int32)).realize())
        after(epoch + 1)


def accuracy(layers: list[Any], part: Part) -> float:
    found = Tensor(part[0]).sequential(layers).argmax(1).numpy()
    return float(np.mean(found == part[1]))


def main() -> None:
    Tensor.manual_seed(0)
    layers, tests = network(), images_and_labels("t10k")
    camera = photographed(*images_and_labels("t10k", 200), seed=1)

    def tell(epoch: int) -> None:
        both = (accuracy(layers, part) for part in (tests, camera))
        text = "epoch {} of {}: {:.2%} of the test images, {:.2%} of 200 photographs"
        print(text.format(epoch, EPOCHS, *both), flush=True)

    train(layers, images_and_labels("train"), kept_photographs(), EPOCHS, BATCH, tell)
    stored = {name: tensor.numpy().astype(np.float16) for name, tensor in nn.state.get_state_dict(layers).items()}
    np.savez_compressed(FOLDER / "in_tinygrad.npz", **stored)


if __name__ == "__main__":
    main()
