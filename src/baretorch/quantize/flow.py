"""Calibrate a module with data and convert it to int8; torchao's pt2e does the work."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from baretorch.errors import CompileError
from baretorch.frontends.executorch_export import fold_batch_norms
from baretorch.frontends.torch_export import export_module, flat_inputs
from baretorch.quantize.quantizer import Int8Quantizer

RANDOM_SAMPLES = 16


@dataclass(frozen=True)
class Quantized:
    """The converted module, which computes as an int8 model would, and what the user should know."""

    module: Any
    warnings: tuple[str, ...]


def quantize_module(
    module: Any,
    inputs: Sequence[Any],
    samples: Iterable[Sequence[Any]] | None,
    keep_float: Sequence[str] = (),
    observer: str = "histogram",
    progress: Callable[[str, int, int], None] | None = None,
) -> Quantized:
    """int8 by post-training quantization with these calibration samples; None: seeded random data, with a warning."""
    notes: list[str] = []
    if samples is None:
        notes.append(
            "calibration: the model file has no calibration(), so random data was used: scales do not fit real inputs"
        )
        samples = random_samples(inputs)
    folded, _ = fold_batch_norms(module, {"forward": inputs})
    exported = export_module(folded, inputs).module(check_guards=False)
    quantizer = Int8Quantizer(keep_float, observer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        prepared = prepare_pt2e(exported, quantizer)
        missing = set(keep_float) - quantizer.kept
        if missing:
            raise CompileError(
                f"--keep-float {', '.join(sorted(missing))}: no such layer",
                have=", ".join(sorted(name for name, _ in module.named_modules() if name)),
            )
        count, constant = _calibrate(prepared, inputs, samples, progress)
        converted = convert_pt2e(prepared)
    if constant:
        notes.append(f"calibration: all {count} samples are constant, so scales do not fit real inputs")
    return Quantized(converted, tuple(notes))


def random_samples(inputs: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
    generator = torch.Generator().manual_seed(0)
    for _ in range(RANDOM_SAMPLES):
        yield tuple(
            torch.randn(x.shape, generator=generator) if x.is_floating_point() else x for x in flat_inputs(inputs)
        )


def _calibrate(
    prepared: Any,
    inputs: Sequence[Any],
    samples: Iterable[Sequence[Any]],
    progress: Callable[[str, int, int], None] | None,
) -> tuple[int, bool]:
    """Show every sample to the observers; (how many, whether none of them had two different values)."""
    wanted = [(tuple(x.shape), x.dtype) for x in flat_inputs(inputs)]
    count, constant = 0, True
    with torch.no_grad():
        for sample in samples:
            arguments = tuple(sample) if isinstance(sample, (tuple, list)) else (sample,)
            tensors = flat_inputs(arguments)
            have = [(tuple(x.shape), x.dtype) for x in tensors]
            if have != wanted:
                raise CompileError(
                    f"calibration: sample {count} differs in shape or type from inputs()",
                    have=_types(have),
                    need=_types(wanted),
                )
            if any(x.is_floating_point() and not bool(torch.isfinite(x).all()) for x in tensors):
                raise CompileError(f"calibration: sample {count} has NaN or infinite values", need="finite numbers")
            constant = constant and all(x.numel() < 2 or bool((x == x.flatten()[0]).all()) for x in tensors)
            prepared(*arguments)
            count += 1
            if progress is not None:
                progress("calibrate", count, 0)
    if count == 0:
        raise CompileError("calibration: calibration() gives no samples", need="at least one tuple of inputs")
    single = all(len(shape) == 0 or torch.Size(shape).numel() == 1 for shape, _ in wanted)
    return count, constant and not single


def _types(types: Sequence[tuple[tuple[int, ...], Any]]) -> str:
    return ", ".join(f"{str(dtype).removeprefix('torch.')}{list(shape)}" for shape, dtype in types)
