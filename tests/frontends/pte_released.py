"""Models whose `.pte` files are kept for several released versions of ExecuTorch, with PyTorch's results."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pte_cases import Depthwise, Recurrent, Window, exact, export, numbers
from torch import nn

RUNS = 3
LIBRARY = torch.library.Library("aten", "FRAGMENT")
Tensors = tuple[torch.Tensor, ...]


class Net(nn.Module):
    """Layers of every kind that portable files have: convolution, norm, pools, linear and softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.fc = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.max_pool2d(torch.relu(self.norm(self.conv(x))), 2)
        x = nn.functional.avg_pool2d(x, 2, ceil_mode=True)
        return torch.softmax(self.fc(x.flatten(1)), -1)


class Pair(nn.Module):
    """Two methods over one layer."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(8, 3)

    def encode(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.layer(x))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.layer(x)) * 2


class Sum(nn.Module):
    """The only int8 operator of ExecuTorch 1.0's Cortex-M passes is a sum."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(6, 8), nn.Linear(6, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.a(x) + self.b(x) * 3


class Pools(nn.Module):
    """Pools with and without ceil_mode, and a transposed convolution."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.up = nn.Conv2d(2, 4, 1), nn.ConvTranspose2d(4, 3, 2, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.avg_pool2d(self.first(x), 2, 2, ceil_mode=True)
        x = self.up(nn.functional.max_pool2d(x, 2))
        return nn.functional.avg_pool2d(x, (2, 1), (2, 1))


class Images(nn.Module):
    """Operators of ExecuTorch 1.5's explicit layout, whose images are NHWC for PyTorch, too."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.depth = nn.Conv2d(2, 4, 3), nn.Conv2d(4, 4, 3, padding=1, groups=4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.depth(torch.relu(self.first(x))))
        return nn.functional.avg_pool2d(nn.functional.max_pool2d(x, 2, 2), 2, 1)


class Quotient(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.relu(x) / (torch.relu(y) + 1)


@dataclass(frozen=True)
class Made:
    """A file, and the modules that compute what it should, by method."""

    data: bytes
    methods: Mapping[str, Callable[..., Any]]
    inputs: Tensors


def made_files(version: tuple[int, ...]) -> dict[str, Made]:
    """Return the files that this version of ExecuTorch can write, by name."""
    found = {
        "net": _portable(exact(Net()), (numbers(1, 2, 8, 8),)),
        "lstm": _portable(exact(Recurrent()), (numbers(1, 2, 2),)),
        "half": _portable(exact(Net()).half(), (numbers(1, 2, 8, 8).half(),)),
        "state": _stateful(),
        "methods": _several(),
        "quantized": _xnnpack(exact(Depthwise()), (numbers(1, 4, 6, 6),)),
    }
    if version < (1, 1):
        return found | {"cortex_m": _sum()}
    cpu = "M55" if version >= (1, 3) else None
    found["cortex_m"] = _cortex_m(*(_mixed() if cpu else _sums()), cpu)
    found["cortex_m_pools"] = _cortex_m(*_pools(), cpu)
    if version >= (1, 5):
        from pte_quantized import quantize_cortex_m

        explicit = partial(quantize_cortex_m, use_explicit_layout=True)
        images = exact(Images()), (numbers(1, 2, 8, 8),)
        found["cortex_m_nhwc"] = _cortex_m(*images, cpu, explicit, use_explicit_layout=True)
        found["cortex_m_div"] = _cortex_m(Quotient(), (numbers(1, 3, 5), numbers(5, 3, 1).reshape(1, 3, 5)), cpu)
    return found


def expected(made: Made) -> dict[str, np.ndarray]:
    """Return inputs and outputs of consecutive runs of each method: `forward.0.in0`, `forward.0.out0` and so on."""
    found = {}
    for method, run in made.methods.items():
        for i in range(RUNS):
            inputs = tuple(x * (1 - 0.75 * i) for x in made.inputs)
            with torch.no_grad():
                results = run(*(x.clone() for x in inputs))
            for j, x in enumerate(inputs):
                found[f"{method}.{i}.in{j}"] = x.contiguous().numpy()
            for j, y in enumerate(results if isinstance(results, (tuple, list)) else (results,)):
                found[f"{method}.{i}.out{j}"] = y.contiguous().numpy()
    return found


def _portable(module: nn.Module, inputs: Tensors) -> Made:
    return Made(export(module, inputs), {"forward": module}, inputs)


def _stateful() -> Made:
    from executorch.exir import ExecutorchBackendConfig
    from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass

    stored = ExecutorchBackendConfig(passes=[InitializedMutableBufferPass([""])])
    module, inputs = exact(Window()), (numbers(1, 4),)
    return Made(export(module, inputs, stored), {"forward": module}, inputs)


def _several() -> Made:
    from executorch.exir import to_edge

    module, inputs = exact(Pair()), (numbers(1, 8),)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        forward = torch.export.export(module, inputs)
        encode = torch.export.export(_Only(module.encode, module.layer), inputs)
        data = bytes(to_edge({"forward": forward, "encode": encode}).to_executorch().buffer)
    return Made(data, {"forward": module, "encode": module.encode}, inputs)


class _Only(nn.Module):
    """A module whose forward is a method of another one."""

    def __init__(self, method: Callable[..., Any], layer: nn.Module) -> None:
        super().__init__()
        self.method, self.layer = method, layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.method(x)


def _xnnpack(module: nn.Module, inputs: Tensors) -> Made:
    from pte_quantized import xnnpack

    quantized = xnnpack(module, inputs)
    return Made(export(quantized, inputs), {"forward": quantized}, inputs)


def _sum() -> Made:
    """Return a file of ExecuTorch 1.0's two passes for Cortex-M."""
    from executorch.backends.cortex_m.passes.quantized_op_fusion_pass import QuantizedOpFusionPass
    from executorch.backends.cortex_m.passes.replace_quant_nodes_pass import ReplaceQuantNodesPass
    from executorch.exir import to_edge
    from pte_quantized import xnnpack

    inputs = (numbers(1, 6),)
    quantized = xnnpack(exact(Sum()), inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        edge = to_edge(torch.export.export(quantized, inputs))
        edge = edge.transform([QuantizedOpFusionPass(), ReplaceQuantNodesPass()])
        return Made(bytes(edge.to_executorch().buffer), {"forward": quantized}, inputs)


def _mixed() -> tuple[nn.Module, Tensors]:
    from pte_quantized import mixed

    return mixed()


def _sums() -> tuple[nn.Module, Tensors]:
    """Return a model for versions that flatten channels-last images in the wrong order."""
    return exact(Sum()), (numbers(1, 6),)


def _pools() -> tuple[nn.Module, Tensors]:
    last = {"memory_format": torch.channels_last}
    return exact(Pools()).to(**last), (numbers(1, 2, 8, 8).to(**last),)


def _cortex_m(
    module: nn.Module, inputs: Tensors, cpu: str | None, quantize: Callable[..., Any] | None = None, **options: Any
) -> Made:
    from pte_quantized import lower_cortex_m, quantize_cortex_m

    quantized = (quantize or quantize_cortex_m)(module, inputs)
    return Made(lower_cortex_m(quantized, inputs, cpu, **options), {"forward": quantized}, inputs)


def complete_torch() -> None:
    """Give an older ExecuTorch what it misses in a newer torch: the name of an overload, which 1.1 and 1.2 never call,
    and the `out` variants of quantized_decomposed. Their library is one of the installed version, whose schemas are the
    same, because an older one does not load."""
    import executorch
    import executorch.kernels.quantized

    if not hasattr(torch.ops.aten.transpose, "Dimname"):
        LIBRARY.define("transpose.Dimname(Tensor self, str dim0, str dim1) -> Tensor")
    if not hasattr(torch.ops.quantized_decomposed.quantize_per_tensor, "out"):
        *_, installed = executorch.__path__
        (library,) = Path(installed).glob("kernels/quantized/libquantized_ops_aot_lib.*")
        torch.ops.load_library(library)
