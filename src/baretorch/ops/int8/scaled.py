"""The int8 scales that the tensors around an operator need, for the quantizer."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from baretorch.ir.graph import Quant


class Scaled(Enum):
    """How an operator's inputs and outputs are scaled. The scales of constants next to weights are not chosen."""

    LAYER = auto()  # input and output have their own, the weight, input 1, has one per output channel, which is axis 0
    OWN = auto()  # each input and the output has its own
    SUM = auto()  # the same; summands of a softmax's scores are scores
    ALIKE = auto()  # one for all inputs and the output, which is made of their values, or of values between them
    SOFTMAX = auto()  # the output is between 0 and 1; of the input, which is scores, the largest matter
    UNIT = auto()  # the output is between 0 and 1
    SIGNED = auto()  # the output is between -1 and 1
    RECURRENT = auto()  # the hidden state has one at all times, before and after; other states have a fixed point


# Outputs whose range is known.
FIXED: Mapping[Scaled, Quant] = {
    Scaled.SOFTMAX: Quant((1 / 256,), (-128,)),
    Scaled.UNIT: Quant((1 / 256,), (-128,)),
    Scaled.SIGNED: Quant((1 / 128,), (0,)),
}
