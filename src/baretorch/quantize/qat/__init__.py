"""Quantization-aware training: train a copy of a module that rounds as int8 will, then convert it.

prepared = prepare_qat(net, (batch,))
...                                    # train it as you trained net
baretorch.compile(convert_qat(prepared), (example,), board="pico2w")

torchao does the work; nothing else of Baretorch needs it.
"""

from __future__ import annotations

import baretorch.quantize.qat.guard  # noqa: F401
from baretorch.quantize.qat.training import convert_qat, prepare_qat, train_qat

__all__ = ["convert_qat", "prepare_qat", "train_qat"]
