"""A row of the ATen table: what a PyTorch operator becomes, and how it is quantized."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from baretorch.frontends.lowering import Result
from baretorch.ir.graph import Op


class Scales(Enum):
    """Which int8 scales the inputs and outputs of an operator get."""

    LAYER = auto()  # an input, a weight with a scale per output channel, which is axis 0, and a bias
    TRANSPOSED = auto()  # the same, with the output channels along axis 1 of the weight
    OWN = auto()  # one for the first input, one for the output
    PAIR = auto()  # one for each of two inputs, of which one may be a number, and one for the output
    SUM = auto()  # the same; summands of scores are scores
    ALIKE = auto()  # one for all inputs and the output, which is made of them
    SAME = auto()  # the output has the first input's: it is made of its values, or of values between them
    PARTS = auto()  # the same, in several parts
    COPIED = auto()  # the output has the last input's
    LIMITS = auto()  # a clamp, which the operator before can take along
    NORM = auto()  # as OWN; while a model is trained, the layer before takes it along
    SOFTMAX = auto()  # the output is between 0 and 1; of the input, which is scores, the largest matter
    UNIT = auto()  # the output is between 0 and 1
    SIGNED = auto()  # the output is between -1 and 1
    ATTENTION = auto()  # one for each of the first three inputs, and one for the output
    RECURRENT = auto()  # results 0 and 1 are hidden states; cell states have a fixed point of their own
    CELL = auto()  # the same, and only result 0 is a hidden state


@dataclass(frozen=True)
class AtenRow:
    """`build` is a function of the lowering and the ATen operator's arguments in schema order: tensors arrive as names
    of Graph tensors, everything else as it is. It returns the name of the result, or one per result.

    `makes` are the Graph's operators that compute the result. What is moved or cast on the way, or computed of
    constants, is named only where nothing else is. Without `scales` the operator stays float in an int8 model. A row
    that is `refused` only says why."""

    build: Callable[..., Result]
    makes: tuple[type[Op], ...] = ()
    scales: Scales | None = None
    refused: bool = False
