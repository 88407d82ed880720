"""PyTorch models written by torch.onnx: its exporter, and the one before it."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from pathlib import Path
from typing import Any

import torch


def exported(model: Any, inputs: tuple[Any, ...], file: Path, dynamo: bool) -> Path:
    """The file that torch.onnx.export writes."""
    options: dict[str, Any] = {"dynamo": True, "external_data": False} if dynamo else {"dynamo": False}
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            torch.onnx.export(model, inputs, str(file), verbose=False, opset_version=18 if dynamo else 17, **options)
    finally:
        logging.disable(before)
    return file
