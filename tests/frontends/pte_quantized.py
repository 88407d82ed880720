"""Models quantized by others: pt2e with ExecuTorch's XNNPACKQuantizer, and its Cortex-M passes."""

from __future__ import annotations

import sys
import warnings
from importlib.machinery import ModuleSpec
from typing import Any
from unittest.mock import MagicMock

import torch
from pte_cases import exact, numbers
from torch import nn

# The Cortex-M passes import a TOSA serializer and never call it.
if "tosa_serializer" not in sys.modules:
    sys.modules["tosa_serializer"] = MagicMock(__spec__=ModuleSpec("tosa_serializer", None))

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import executorch.kernels.quantized  # noqa: F401  (out variants of q/dq)
    from executorch.backends.xnnpack.quantizer.xnnpack_quantizer import (
        XNNPACKQuantizer,
        get_symmetric_quantization_config,
    )
    from executorch.exir import EdgeCompileConfig, to_edge
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

aten = torch.ops.aten
WHOLE = [aten.linear.default, aten.hardsigmoid.default, aten.hardswish.default, aten.silu.default]


class Mixed(nn.Module):
    """A model for the Cortex-M passes: convolutions, pools, a sum, a gate and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.depth = nn.Conv2d(3, 4, 3, stride=2), nn.Conv2d(4, 4, 3, padding=1, groups=4)
        self.gate = nn.Conv2d(4, 4, 1)
        self.fc = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.first(nn.functional.pad(x, (0, 1, 0, 1))))
        x = x + torch.relu(self.depth(x))
        x = nn.functional.max_pool2d(x, 2)
        x = x * torch.sigmoid(self.gate(x))
        x = nn.functional.avg_pool2d(x, 2)
        return torch.softmax(self.fc(x.flatten(1)), -1)


def mixed() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    module = exact(Mixed()).to(memory_format=torch.channels_last)
    return module, (numbers(1, 3, 16, 16).to(memory_format=torch.channels_last),)


def converted(module: nn.Module, inputs: tuple[torch.Tensor, ...], quantizer: Any) -> Any:
    """The module after pt2e with this quantizer, calibrated with the inputs and their negatives."""
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        prepared = prepare_pt2e(torch.export.export(module, inputs).module(check_guards=False), quantizer)
        prepared(*inputs)
        prepared(*(-x for x in inputs))
        return convert_pt2e(prepared)


def xnnpack(module: nn.Module, inputs: tuple[torch.Tensor, ...], **options: Any) -> Any:
    options = {"is_per_channel": True, **options}
    return converted(module, inputs, XNNPACKQuantizer().set_global(get_symmetric_quantization_config(**options)))


def cortex_m(module: nn.Module, inputs: tuple[torch.Tensor, ...], cpu: str) -> bytes:
    """The `.pte` that ExecuTorch's Cortex-M passes make."""
    return lower_cortex_m(quantize_cortex_m(module, inputs), inputs, cpu)


def quantize_cortex_m(module: nn.Module, inputs: tuple[torch.Tensor, ...], **options: Any) -> Any:
    """Return the module as ExecuTorch's Cortex-M quantizer converts it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer
    return converted(module, inputs, CortexMQuantizer(**options))


def lower_cortex_m(quantized: Any, inputs: tuple[torch.Tensor, ...], cpu: str | None, **options: Any) -> bytes:
    """Lower a converted module by the Cortex-M passes; before ExecuTorch 1.3, these passes do not know CPUs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from executorch.backends.cortex_m.passes.cortex_m_pass_manager import CortexMPassManager

        if cpu is not None:
            from executorch.backends.cortex_m.target_config import CortexM, CortexMTargetConfig

            options["target_config"] = CortexMTargetConfig(cpu=CortexM[cpu])
        config = EdgeCompileConfig(
            preserve_ops=WHOLE, _check_ir_validity=False, _core_aten_ops_exception_list=[aten.max_pool2d.default]
        )
        edge = to_edge(torch.export.export(quantized, inputs), compile_config=config)
        edge._edge_programs["forward"] = CortexMPassManager(edge.exported_program(), **options).transform()
        return bytes(edge.to_executorch().buffer)
