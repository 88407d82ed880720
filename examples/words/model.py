"""Eight spoken words, made of tones: a small network of separable convolutions. The first call trains it.

A word is 32 frames of 16 bands, in which two or three tones rise, fall or stay. Speakers are higher or lower, faster or
slower, louder or softer, and there is noise. The seed makes all of it the same every time. `baretorch tune` may choose
fewer frames, and a network of fewer channels.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

WIDTHS, SIZES = (0.5, 0.75, 1), (16, 24, 32)  # of the network's channels, and frames of a word
WORDS, BANDS = 8, 16
TRAIN, HELD_OUT, CALIBRATION = 1, 2, 3  # seeds: no word is in two of the sets
TRACKS = torch.tensor(  # per word three tones: the band where each begins and ends, from 0 to 1
    [
        [[0.1, 0.5], [0.8, 0.8], [0.4, 0.4]],
        [[0.5, 0.1], [0.8, 0.8], [0.4, 0.4]],
        [[0.1, 0.5], [0.9, 0.6], [0.3, 0.2]],
        [[0.5, 0.1], [0.9, 0.6], [0.3, 0.2]],
        [[0.2, 0.2], [0.6, 0.9], [0.5, 0.3]],
        [[0.2, 0.4], [0.6, 0.9], [0.3, 0.5]],
        [[0.3, 0.3], [0.7, 0.4], [0.1, 0.6]],
        [[0.3, 0.3], [0.4, 0.7], [0.6, 0.1]],
    ]
)


def words(each: int, seed: int, size: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return `each` samples of each word [n, 1, size, 16], and their classes."""
    pen = torch.Generator().manual_seed(seed)
    kinds = torch.arange(WORDS * each) % WORDS

    def drawn(low: float, high: float, *shape: int) -> torch.Tensor:
        return low + (high - low) * torch.rand(len(kinds), *shape, generator=pen)

    time = (torch.linspace(0, 1, size) * drawn(0.8, 1.25, 1) + drawn(-0.1, 0.1, 1))[:, None, :, None]
    begin, end = TRACKS[kinds, :, 0, None, None], TRACKS[kinds, :, 1, None, None]
    centre = begin + (end - begin) * time.clamp(0, 1) + drawn(-0.07, 0.07, 1, 1, 1)
    bands = torch.linspace(0, 1, BANDS)
    tones = torch.exp(-(((bands - centre) / drawn(0.05, 0.09, 3, 1, 1)) ** 2)) * drawn(0.5, 1.2, 3, 1, 1)
    noise = 0.25 * torch.randn(len(kinds), size, BANDS, generator=pen)
    return (tones.sum(1) + noise)[:, None], kinds


def separable(inputs: int, outputs: int, stride: int) -> list[nn.Module]:
    return [
        nn.Conv2d(inputs, inputs, 3, stride, 1, groups=inputs, bias=False),
        nn.BatchNorm2d(inputs),
        nn.ReLU(),
        nn.Conv2d(inputs, outputs, 1, bias=False),
        nn.BatchNorm2d(outputs),
        nn.ReLU(),
    ]


def network(width: float, size: int) -> nn.Module:
    torch.manual_seed(0)
    a, b, c = (int(width * channels) for channels in (32, 64, 96))
    first = [nn.Conv2d(1, a, 3, 2, 1, bias=False), nn.BatchNorm2d(a), nn.ReLU()]
    body = [*separable(a, b, 2), *separable(b, c, 1)]
    return nn.Sequential(*first, *body, nn.AvgPool2d((size // 4, 4)), nn.Flatten(), nn.Linear(c, WORDS))


def train(model: nn.Module, epochs: int = 6, batch: int = 64, size: int = 32) -> None:
    """Learn from synthetic words: a new network, or for `baretorch tune` a smaller one."""
    torch.manual_seed(0)
    x, y = words(250, TRAIN, size)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs * (len(y) // batch + 1))
    for _ in range(epochs):
        for chosen in torch.randperm(len(y)).split(batch):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[chosen]), y[chosen]).backward()
            optimizer.step()
            schedule.step()


def model(width: float = 1, size: int = 32) -> nn.Module:
    """Return the trained network; its weights are stored next to this file."""
    net, weights = network(width, size), Path(__file__).with_name(f"words-{width}-{size}.pt")
    if not weights.exists():
        train(net, size=size)
        partial = weights.with_suffix(f".{os.getpid()}")
        torch.save(net.state_dict(), partial)
        partial.replace(weights)
    net.load_state_dict(torch.load(weights))
    return net.eval()


def inputs(size: int = 32) -> tuple[torch.Tensor, ...]:
    return (words(1, HELD_OUT, size)[0][:1],)


def calibration(size: int = 32) -> list[tuple[torch.Tensor, ...]]:
    return [(word[None],) for word in words(16, CALIBRATION, size)[0]]


def evaluate(run: Callable[..., Any], samples: int = 800, size: int = 32) -> dict[str, float]:
    """The share of held-out words that are named rightly."""
    x, y = words(samples // WORDS or 1, HELD_OUT, size)
    right = sum(int(run(word[None]).argmax()) == int(kind) for word, kind in zip(x, y, strict=True))
    return {"accuracy": right / len(y)}
