"""Cases of the Fourier transforms, and of what is asked of their results."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from baretorch.ir.graph import Op
from baretorch.ops.fft import Fft, Irfft, Magnitude, Rfft
from tests.ops.case import Case, Inputs, normal, values

SPECTRUM = (1e-5, 2e-5)  # sums of up to a thousand numbers of about 1, rounded some ten times on the way


def case(name: str, op: Op, inputs: Inputs, run: Callable[[Tensor], Tensor]) -> Case:
    return Case(f"{op.name} {name}", op, inputs, run, tolerance=SPECTRUM)


def rfft(name: str, *shape: int, scale: float = 1.0) -> Case:
    return case(
        name, Rfft(scale), normal(shape), lambda x: torch.view_as_real(torch.fft.rfft(x.double()) * scale).float()
    )


def irfft(name: str, *rows: int, n: int, scale: float = 1.0) -> Case:
    def run(x: Tensor) -> Tensor:
        return (torch.fft.irfft(torch.view_as_complex(x.double()), n, norm="forward") * scale).float()

    return case(name, Irfft(n, scale), normal((*rows, n // 2 + 1, 2)), run)


def fft(name: str, *shape: int, inverse: bool = False, scale: float = 1.0) -> Case:
    def run(x: Tensor) -> Tensor:
        z = torch.view_as_complex(x.double())
        return torch.view_as_real((torch.fft.ifft(z, norm="forward") if inverse else torch.fft.fft(z)) * scale).float()

    return case(name, Fft(inverse, scale), normal((*shape, 2)), run)


def magnitude(name: str, inputs: Inputs, squared: bool = False) -> Case:
    def run(x: Tensor) -> Tensor:
        size = torch.view_as_complex(x.double()).abs()
        return (size * size if squared else size).float()

    return Case(f"magnitude {name}", Magnitude(squared), inputs, run, tolerance=(1e-6, 0.0))


CASES = (
    *(rfft(f"of {n}", n) for n in (1, 2, 7, 8, 16, 30)),
    *(rfft(f"of {n}, passes", n) for n in (32, 64, 128, 256, 512, 1024)),
    rfft("rows of 12", 3, 12, scale=0.5),
    rfft("rows of 64", 2, 3, 64, scale=0.125),
    *(irfft(f"of {n}", n=n) for n in (1, 2, 7, 16, 30)),
    *(irfft(f"of {n}, passes", n=n, scale=1 / n) for n in (32, 64, 128, 256, 512, 1024)),
    irfft("rows of 12", 3, n=12, scale=0.5),
    irfft("rows of 64", 2, 3, n=64),
    *(fft(f"of {n}", n) for n in (1, 2, 8, 15)),
    *(fft(f"of {n}, passes", n) for n in (16, 32, 64, 128, 256, 512)),
    *(fft(f"inverse of {n}", n, inverse=True, scale=1 / n) for n in (6, 16, 32)),
    fft("rows of 9", 4, 9, scale=0.5),
    fft("rows of 16", 2, 2, 16, inverse=True),
    magnitude("of a spectrum", normal((3, 9, 2))),
    magnitude("of zero, large and small", values([[0, 0], [3e30, 4e30], [3e-30, -4e-30], [-1e38, 0], [1e-40, 0]])),
    magnitude("squared", normal((5, 2)), squared=True),
)
