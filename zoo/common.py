"""Share seeded weights, seeded inputs and a few blocks among the models of the zoo."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.ConvTranspose2d)


def seeded(build: Callable[[], nn.Module], seed: int = 0) -> nn.Module:
    """A network with random weights, the same every time, that keeps the scale of its signal from layer to layer;
    BatchNorm has statistics as if it had been trained. PyTorch's own random state stays as it is."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = build()
        for m in net.modules():
            if isinstance(m, LAYERS):
                nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
                if m.bias is not None:
                    nn.init.normal_(m.bias, std=0.1)
            elif isinstance(m, _BatchNorm):
                nn.init.uniform_(m.weight, 0.6, 1.4)
                nn.init.normal_(m.bias, std=0.2)
                nn.init.normal_(m.running_mean, std=0.2)
                nn.init.uniform_(m.running_var, 0.5, 1.5)
    return net.eval().requires_grad_(False)


def seeded_images(build: Callable[[], nn.Module], seed: int = 0) -> nn.Module:
    """Return seeded inputs for networks on images: channels last in memory, as the kernels want them."""
    return seeded(build, seed).to(memory_format=torch.channels_last)


def values(*shape: int, seed: int = 1) -> torch.Tensor:
    """An input of normally distributed numbers, the same every time."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def image(channels: int, height: int, width: int, seed: int = 1) -> torch.Tensor:
    """One image, channels last in memory."""
    return values(1, channels, height, width, seed=seed).to(memory_format=torch.channels_last)


def picture(channels: int, height: int, width: int, seed: int) -> torch.Tensor:
    """An image as cameras see the world, large shapes with ever fainter detail, with mean and deviation of `image`."""
    layers = [
        nn.functional.interpolate(values(1, channels, n, n, seed=seed * 31 + n), (height, width), mode="bilinear") / n
        for n in (2, 4, 8, 16)
    ]
    return standardized(sum(layers, image(channels, height, width, seed) / 16))


def signal(channels: int, length: int, seed: int) -> torch.Tensor:
    """Sensor readings over time, one row per channel: three tones and a little noise."""
    draw = torch.Generator().manual_seed(seed)
    pace, phase, size = torch.rand(3, 3, channels, 1, generator=draw)
    tones = (size * torch.sin(torch.arange(length) * pace + 6 * phase)).sum(0)
    return standardized(tones + torch.randn(tones.shape, generator=draw) / 10).unsqueeze(0)


def standardized(x: torch.Tensor) -> torch.Tensor:
    """Return numbers with mean 0 and standard deviation 1."""
    return (x - x.mean()) / x.std()


def samples(make: Callable[[int], torch.Tensor], count: int = 16) -> list[tuple[torch.Tensor, ...]]:
    """Calibration data: what `make` gives for that many seeds."""
    return [(make(seed),) for seed in range(2, 2 + count)]


def conv_bn(
    in_: int, out: int, kernel: int | tuple[int, int], stride: int = 1, groups: int = 1, act: nn.Module | None = None
) -> nn.Sequential:
    """Convolution with "same" padding as TensorFlow means it, BatchNorm, and an activation if there is one.

    With a stride the padding is asymmetric for even image sizes, more below and to the right: padded first, then
    convolved, which the compiler makes one."""
    kh, kw = (kernel, kernel) if isinstance(kernel, int) else kernel
    layers: list[nn.Module] = []
    padding: tuple[int, int] = (kh // 2, kw // 2)
    if stride == 2 and max(kh, kw) > 1:
        layers.append(nn.ZeroPad2d((0, kw - 2, 0, kh - 2)))
        padding = (0, 0)
    layers += [nn.Conv2d(in_, out, (kh, kw), stride, padding, groups=groups, bias=False), nn.BatchNorm2d(out)]
    return nn.Sequential(*layers, *([act] if act is not None else []))
