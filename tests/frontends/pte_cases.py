"""Models, exports and an evaluator that the `.pte` tests share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from baretorch.frontends.aten.program import Arg, AtenProgram, Ref

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from executorch.exir import ExecutorchBackendConfig, to_edge


class Sine(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


class Cnn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.conv2 = nn.Conv2d(4, 3, 3, bias=False)
        self.fc, self.norm2 = nn.Linear(12, 5), nn.BatchNorm1d(5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.max_pool2d(torch.relu(self.norm1(self.conv1(x))), 2)
        x = torch.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.norm2(self.fc(x.flatten(1)))


class Depthwise(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.depth, self.point = nn.Conv2d(4, 4, 3, groups=4, padding=1), nn.Conv2d(4, 6, 1)
        self.fc = nn.Linear(6, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.hardtanh(self.point(torch.relu(self.depth(x))), 0.0, 6.0)
        x = nn.functional.avg_pool2d(x, 2)
        return torch.softmax(self.fc(nn.functional.adaptive_avg_pool2d(x, 1).flatten(1)), -1)


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 3, 3, padding=1), nn.Conv2d(3, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x + self.b(torch.relu(self.a(x))))


class Curves(nn.Module):
    """Several outputs, one of them an input's view, and numbers that become tensors."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = torch.relu(x).reshape(2, 12)
        return torch.tanh(y.reshape(4, 6)), x.reshape(24) * 2.5 + 1, x.reshape(6, 4), torch.sigmoid(y)


class Recurrent(nn.Module):
    """Unrolled by export: memory reuse, lists of tensors and many views."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(2, 3, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(x)[0]


class Types(nn.Module):
    """Factories and casts, whose type an `out` variant does not say."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return torch.ones(2, 3) + x, torch.full_like(x, 3.0) * x, x.to(torch.int32), torch.cat([x, x], 1), x.mean(1)


class Window(nn.Module):
    """The last three inputs and a level, both of which begin as something; the level is seen before and after."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer("level", torch.full((1, 4), 0.5))
        self.register_buffer("window", torch.arange(12.0).reshape(3, 4))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        before = self.level.clone()
        self.level.copy_(torch.tanh(self.layer(x) + self.level))
        self.window.copy_(torch.cat([self.window[1:], x]))
        return self.level * 2, self.window.reshape(12) + 1, before


class Swap(nn.Module):
    """Each state becomes the other, and the last input is kept without being read."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("a", torch.tensor([1.0, 2.0]))
        self.register_buffer("b", torch.tensor([3.0, 4.0]))
        self.register_buffer("last", torch.tensor([5.0, 6.0]))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        a, b = self.a.clone(), self.b.clone()
        self.a.copy_(b)
        self.b.copy_(a)
        self.last.copy_(x)
        return x + a, a, b


class Coder(nn.Module):
    """Methods over one layer and one level: one changes it, one sees it, and one does not know it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 3)
        self.register_buffer("level", torch.tensor([[1.0, 2.0, 3.0]]))

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        self.level.copy_(torch.tanh(self.level + self.layer(x)))
        return self.level * 2

    def score(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x) + self.level * 3

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(x))


def exact(module: nn.Module) -> nn.Module:
    """The module, ready for export, with weights of 1/8 and 3/8. PyTorch's own random numbers differ in their last
    bits from CPU to CPU; these, their sums and products do not, and none is half a step of int8 off another."""
    draw = torch.Generator().manual_seed(0)
    module = module.eval().requires_grad_(False)
    for value in module.parameters():
        odd = 2 * torch.randint(-2, 2, value.shape, generator=draw) + 1
        value.copy_(odd / 8)
    for norm in module.modules():
        if isinstance(norm, nn.modules.batchnorm._BatchNorm):
            norm.running_mean.copy_(torch.randint(-2, 3, norm.running_mean.shape, generator=draw) / 4)
            norm.running_var.copy_(torch.randint(2, 9, norm.running_var.shape, generator=draw) / 4)
            norm.weight.mul_(4)
    return module


def numbers(*shape: int) -> torch.Tensor:
    """Return numbers from -2 to 2 that are exact in binary."""
    return torch.randint(-64, 65, shape, generator=torch.Generator().manual_seed(1)) / 32


def coder() -> tuple[nn.Module, dict[str, tuple[torch.Tensor, ...]]]:
    x = (numbers(1, 8),)
    return exact(Coder()), {"encode": x, "score": x, "forward": x}


@dataclass(frozen=True)
class Case:
    name: str
    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    channels_last: bool = False

    def module(self) -> nn.Module:
        module = exact(self.make())
        return module.to(memory_format=torch.channels_last) if self.channels_last else module

    def inputs(self) -> tuple[torch.Tensor, ...]:
        x = numbers(*self.shape)
        return (x.to(memory_format=torch.channels_last) if self.channels_last else x,)


CASES = (
    Case("sine", Sine, (1, 1)),
    Case("cnn", Cnn, (1, 2, 12, 12)),
    Case("cnn_batch", Cnn, (2, 2, 12, 12)),
    Case("cnn_channels_last", Cnn, (1, 2, 12, 12), channels_last=True),
    Case("depthwise", Depthwise, (1, 4, 6, 6)),
    Case("depthwise_channels_last", Depthwise, (1, 4, 6, 6), channels_last=True),
    Case("residual", Residual, (1, 3, 5, 5)),
    Case("curves", Curves, (2, 3, 4)),
    Case("recurrent", Recurrent, (1, 2, 2)),
    Case("types", Types, (2, 3)),
)


STATEFUL = (Case("window", Window, (1, 4)), Case("swap", Swap, (2,)))


QUICK = {"sine", "cnn_channels_last", "curves", "recurrent"}
SOME = [pytest.param(c, id=c.name, marks=() if c.name in QUICK else pytest.mark.slow) for c in CASES]


def case(name: str) -> Case:
    return next(c for c in (*CASES, *STATEFUL) if c.name == name)


def export(module: nn.Module, inputs: tuple[Any, ...], config: Any = None, **export_options: Any) -> bytes:
    """ExecuTorch's default path: to_edge without options."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        edge = to_edge(torch.export.export(module, inputs, **export_options))
        return bytes(edge.to_executorch(config or ExecutorchBackendConfig()).buffer)


def eager(module: nn.Module, inputs: tuple[torch.Tensor, ...]) -> list[np.ndarray]:
    result = module(*inputs)
    return [t.numpy() for t in (result if isinstance(result, tuple) else (result,))]


def evaluate(
    program: AtenProgram, inputs: Sequence[torch.Tensor], memory: dict[str, torch.Tensor] | None = None
) -> list[np.ndarray]:
    """Run an ATen program with PyTorch's own operators; the shapes that it states are checked. `memory` holds its
    state from call to call; it is empty before the first."""
    values = {i.name: x.contiguous() for i, x in zip(program.inputs, inputs, strict=True)}
    values |= {name: torch.from_numpy(data.copy()) for name, data in program.constants.items()}
    values |= memory or {}
    for call in program.calls:
        made = _apply(call.target, [_torch(a, values) for a in call.args])
        results = made if isinstance(made, (tuple, list)) else (made,)
        for name, shape, result in zip(call.results, call.shapes, results, strict=True):
            assert name is None or tuple(result.shape) == shape, call
            if name is not None:
                assert name not in values, f"{name} is written twice"
                values[name] = result
    if memory is not None:
        memory |= {s.name: values[s.next] for s in program.state}
    return [values[name].numpy() for name in program.outputs]


def _torch(arg: Arg, values: dict[str, torch.Tensor]) -> Any:
    if isinstance(arg, Ref):
        return values[arg.name]
    if isinstance(arg, tuple):
        return [_torch(a, values) for a in arg]
    return getattr(torch, arg) if isinstance(arg, str) else arg


def _apply(target: str, args: list[Any]) -> Any:
    if target == "aten::to":
        return args[0].to(args[1])
    if target == "aten::clone":
        return args[0].clone()
    packet = getattr(torch.ops.aten, target.removeprefix("aten::"))
    for name in packet.overloads():
        overload = getattr(packet, name)
        schema = overload._schema.arguments
        if "out" in name or len(schema) != len(args):
            continue
        named = {p.name: a for p, a in zip(schema, args, strict=True) if p.kwarg_only}
        try:
            return overload(*args[: len(args) - len(named)], **named)
        except (RuntimeError, TypeError):
            continue
    raise AssertionError(f"no overload of {target} takes {len(args)} such arguments")
