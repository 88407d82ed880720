"""Make the files of executorch/: models that ExecuTorch lowered for an Ethos-U, their inputs, and the results of
PyTorch for the quantized model.

    python -m tests.npu.keep_executorch

They were made by executorch 1.4.1 with ethos-u-vela 5.2.0, tosa-tools 2026.5.0 and ml_dtypes 0.5.1, in an environment
of their own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

FOLDER = Path(__file__).parent / "executorch"


class Image(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.fc = torch.nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> Any:
        return self.fc(self.conv(x).relu().mean((2, 3)))


class Pair(torch.nn.Module):
    """Two inputs and two outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(6, 5)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        return self.fc(x) + y, torch.sigmoid(y)


def keep(name: str, model: torch.nn.Module, inputs: tuple[torch.Tensor, ...], target: str, segments: bool) -> None:
    from executorch.backends.arm.ethosu import EthosUCompileSpec, EthosUPartitioner
    from executorch.backends.arm.quantizer import EthosUQuantizer, get_symmetric_quantization_config
    from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge_transform_and_lower
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    spec = EthosUCompileSpec(target)
    quantizer = EthosUQuantizer(spec)
    quantizer.set_global(get_symmetric_quantization_config())
    prepared = prepare_pt2e(torch.export.export(model.eval(), inputs).module(check_guards=False), quantizer)
    for _ in range(8):
        prepared(*map(torch.randn_like, inputs))  # which keeps the memory format
    converted = convert_pt2e(prepared)
    answers = converted(*inputs)
    lowered = to_edge_transform_and_lower(
        torch.export.export(converted, inputs),
        partitioner=[EthosUPartitioner(spec)],
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    )
    program = lowered.to_executorch(ExecutorchBackendConfig(extract_delegate_segments=segments))
    (FOLDER / f"{name}.pte").write_bytes(program.buffer)
    flat = answers if isinstance(answers, (tuple, list)) else [answers]
    xs = {f"x{i}": x.detach().numpy() for i, x in enumerate(inputs)}
    np.savez(FOLDER / f"{name}.answers.npz", **xs, **{f"y{i}": y.detach().numpy() for i, y in enumerate(flat)})


def main() -> None:
    torch.manual_seed(17)
    picture = torch.randn(1, 3, 12, 12)
    keep("image", Image(), (picture,), "ethos-u55-256", segments=False)
    keep("channels_last", Image(), (picture.to(memory_format=torch.channels_last),), "ethos-u55-256", segments=True)
    keep("pair", Pair(), (torch.randn(2, 6), torch.randn(2, 5)), "ethos-u55-256", segments=False)
    keep("u85", Image(), (picture,), "ethos-u85-256", segments=True)


if __name__ == "__main__":
    main()
