"""Keyword spotting as samples come, 20 ms per call: 23,180 parameters, 2,667,448 MACs.

The front end and the network of `kws_raw`, with memory: each call takes 320 new samples, makes one frame of cepstral
coefficients of the last 480, and gives the scores of the last 49 frames. Both memories are registered buffers that
`copy_` renews; all the samples of a second never exist at once.
"""

import torch
from common import seeded_images
from kws import kws
from kws_raw import COEFFICIENTS, HOP, WINDOW, Mfcc, sound
from torch import nn

FRAMES = 49


class KwsStream(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mfcc = Mfcc()
        self.net = kws()
        self.register_buffer("past", torch.zeros(1, WINDOW - HOP))
        self.register_buffer("frames", torch.zeros(1, FRAMES, COEFFICIENTS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        window = torch.cat([self.past, x], dim=-1)
        frame = self.mfcc(window).unsqueeze(1)
        self.past.copy_(window[:, HOP:])
        self.frames.copy_(torch.cat([self.frames[:, 1:], frame], dim=1))
        return self.net(self.frames.unsqueeze(1))


def model() -> nn.Module:
    return seeded_images(KwsStream)


def inputs() -> tuple[torch.Tensor, ...]:
    """The end of a loud word."""
    return (3 * sound(HOP, seed=4) * torch.linspace(1, 0, HOP) ** 6,)


def calibration() -> list[tuple[torch.Tensor, ...]]:
    """Two seconds of sound, piece by piece, as the model remembers."""
    return [(piece,) for piece in sound(100 * HOP, seed=2).split(HOP, dim=-1)]
