"""Pictures of the hands: the letters R, P and S, 28x28 pixels, drawn a little differently every time, with noise."""

from itertools import pairwise

import torch
from torch import Tensor

HANDS = ("rock", "paper", "scissors")
SIZE = 28

# Strokes of each letter as points (x, y), x to the right, y downwards, within -1..1.
_STROKES = {
    "R": ("-.6,-1 -.6,1", "-.6,-1 .2,-1 .6,-.75 .6,-.3 .2,0 -.6,0", "0,0 .65,1"),
    "P": ("-.6,-1 -.6,1", "-.6,-1 .2,-1 .6,-.75 .6,-.2 .2,.1 -.6,.1"),
    "S": (".6,-.7 .3,-1 -.3,-1 -.6,-.75 -.6,-.35 -.3,-.1 .3,.1 .6,.35 .6,.75 .3,1 -.3,1 -.6,.7",),
}


def _segments(letter: str) -> Tensor:
    """[segments, 2 ends, 2 coordinates]"""
    found = []
    for stroke in _STROKES[letter]:
        points = [tuple(map(float, point.split(","))) for point in stroke.split()]
        found += list(pairwise(points))
    return torch.tensor(found)


def draw(hand: int, count: int, generator: torch.Generator) -> Tensor:
    """float32[count, 1, 28, 28] from 0 (paper) to 1 (ink): turned, slanted, stretched, moved, thick or thin, noisy."""

    def between(low: float, high: float) -> Tensor:
        return low + (high - low) * torch.rand(count, 1, 1, generator=generator)

    letter = _segments("RPS"[hand])
    shaky = letter + 0.06 * torch.randn(count, *letter.shape, generator=generator)
    x, y = shaky[..., 0] * between(6, 10), shaky[..., 1] * between(7, 10.5)
    x = x + between(-0.3, 0.3) * y
    angle = between(-0.4, 0.4)
    x, y = x * torch.cos(angle) - y * torch.sin(angle), x * torch.sin(angle) + y * torch.cos(angle)
    ends = torch.stack([x + between(-2.5, 2.5), y + between(-2.5, 2.5)], -1) + (SIZE - 1) / 2
    ink = (between(0.9, 1.8) - _distance(ends)).clamp(-0.5, 0.5) + 0.5
    noise = between(0.05, 0.25) * torch.randn(count, SIZE, SIZE, generator=generator)
    return (ink * between(0.6, 1.0) + noise).clamp(0, 1).unsqueeze(1)


def _distance(segments: Tensor) -> Tensor:
    """[pictures, segments, 2, 2] -> from the middle of each pixel to the nearest segment, in pixels."""
    y, x = torch.meshgrid(torch.arange(SIZE), torch.arange(SIZE), indexing="ij")
    pixels = torch.stack([x, y], -1).reshape(1, SIZE, SIZE, 2).float()
    nearest = torch.full((len(segments), SIZE, SIZE), float("inf"))
    for ends in segments.unbind(1):
        start, way = (t[:, None, None] for t in (ends[:, 0], ends[:, 1] - ends[:, 0]))
        along = ((pixels - start) * way).sum(-1) / (way * way).sum(-1)
        nearest = torch.minimum(nearest, (pixels - start - along.clamp(0, 1).unsqueeze(-1) * way).norm(dim=-1))
    return nearest


def pictures(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """float32[3 * count, 1, 28, 28], `count` of each hand, and which hand each is; the same for the same seed."""
    generator = torch.Generator().manual_seed(seed)
    drawn = [draw(hand, count, generator) for hand in range(len(HANDS))]
    return torch.cat(drawn), torch.arange(len(HANDS)).repeat_interleave(count)


def main() -> None:
    """Print the first picture of each hand, and the number of pictures that the network learns from."""
    shades = " ░▒▓█"
    drawn, _ = pictures(1, seed=1)
    rows = drawn.squeeze(1).reshape(len(HANDS), SIZE // 2, 2, SIZE).mean(2)  # a character is twice as high as wide
    for line in rows.permute(1, 0, 2).tolist():
        print("  ".join("".join(shades[min(int(v * len(shades)), len(shades) - 1)] for v in hand) for hand in line))
    print("  ".join(f"{hand:<{SIZE}}" for hand in HANDS))


if __name__ == "__main__":
    main()
