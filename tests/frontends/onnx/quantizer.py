"""onnxruntime's own quantizer, as its users call it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process


class Samples(CalibrationDataReader):  # type: ignore[misc]
    """Seeded inputs for a model with one."""

    def __init__(self, model: Any, count: int = 8) -> None:
        (x,) = model.graph.input
        shape = [d.dim_value or 1 for d in x.type.tensor_type.shape.dim]
        rng = np.random.default_rng(1)
        self._samples = iter([{x.name: rng.standard_normal(shape).astype(np.float32)} for _ in range(count)])

    def get_next(self) -> dict[str, Any] | None:
        return next(self._samples, None)


def quantized_file(
    folder: Path,
    float_file: Path,
    form: QuantFormat,
    activations: QuantType = QuantType.QInt8,
    weights: QuantType = QuantType.QInt8,
    per_channel: bool = True,
) -> Path:
    prepared, made = folder / "prepared.onnx", folder / f"{float_file.stem}_{form.name.lower()}.onnx"
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        quant_pre_process(float_file, prepared, skip_symbolic_shape=True)
        quantize_static(
            prepared,
            made,
            Samples(onnx.load(prepared)),
            quant_format=form,
            per_channel=per_channel,
            activation_type=activations,
            weight_type=weights,
        )
    finally:
        logging.disable(before)
    return made
