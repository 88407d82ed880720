"""Train the network that is part of `baretorch studio`, a few minutes on two cores.

python tools/train_digits.py            trains it, after `make mnist`, and writes it with its calibration images
python tools/train_digits.py measure    prints how many of the test images it reads in int8

It needs torch and executorch. The network is convolutional and has 17,690 parameters. Its training images are tilted,
scaled, sheared and shifted a little, and their strokes made thicker or thinner, because drawing with a mouse differs
from drawing with a pen.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import baretorch
from baretorch import frontends
from baretorch.frontends.pte.export import write_programs

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples/mnist"))
from cnn import network
from data import images_and_labels
from train import varied

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "src/baretorch/studio/bundled"
EPOCHS, BATCH, CALIBRATION = 12, 128, 64


def train() -> nn.Module:
    torch.manual_seed(0)
    net = network()
    images, digits = (torch.from_numpy(a) for a in images_and_labels("train"))
    images = images.reshape(-1, 1, 28, 28)
    steps = EPOCHS * (len(images) // BATCH)
    optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, steps)
    for epoch in range(EPOCHS):
        net.train()
        for batch in torch.randperm(len(images))[: steps // EPOCHS * BATCH].split(BATCH):
            optimizer.zero_grad()
            F.cross_entropy(net(varied(images[batch])), digits[batch], label_smoothing=0.05).backward()
            optimizer.step()
            schedule.step()
        print(f"epoch {epoch + 1} of {EPOCHS}: {accuracy(net):.2%} of the test images", flush=True)
    return net.eval()


def accuracy(net: nn.Module) -> float:
    images, digits = (torch.from_numpy(a) for a in images_and_labels("t10k"))
    with torch.no_grad():
        return float((net(images.reshape(-1, 1, 28, 28)).argmax(1) == digits).float().mean())


def measure() -> None:
    """Measure the C of the image on this computer: in int8 it computes the same bits as the chip."""
    model = baretorch.compile(FOLDER / "digits.pte", board="host", int8=True)
    images, digits = images_and_labels("t10k")
    answers = [int(np.argmax(model.run(image.reshape(1, 1, 28, 28)))) for image in images]
    right = np.mean(np.array(answers) == digits)
    print(f"{right:.2%} of the test images in int8, {model.memory.weights:,} bytes of weights")
    model.close()


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    trained = train()
    sample, _ = images_and_labels("train", CALIBRATION)
    sample = sample.reshape(-1, 1, 28, 28)
    source = frontends.from_module(trained, (torch.from_numpy(sample[:1]),), "digits")
    assert source.torch is not None
    write_programs(source.torch, FOLDER / "digits.pte")
    np.savez_compressed(FOLDER / "calibration.npz", x=sample[:, None])
    np.savez_compressed(FOLDER / "inputs.npz", x=sample[:1, None])


if __name__ == "__main__":
    measure() if sys.argv[1:] == ["measure"] else main()
