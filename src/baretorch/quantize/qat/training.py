"""Prepare a module for training in int8, and convert it afterwards."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from torchao.quantization.pt2e import move_exported_model_to_eval, move_exported_model_to_train
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_qat_pt2e

from baretorch.errors import CompileError
from baretorch.frontends.torch.export import check_module, flat_inputs
from baretorch.frontends.torch.norms import fold_norms
from baretorch.frontends.torch.plain import copied, evaluation_answers
from baretorch.ir.equivalence import Reference, check
from baretorch.quantize.qat.quantizer import Int8Quantizer


def prepare_qat(module: Any, inputs: Sequence[Any], keep_float: Sequence[str] = ()) -> Any:
    """A trainable copy of the module whose layers see their weights and inputs rounded to int8. `inputs` are a batch of
    two or more; batches may then have any size. BatchNorm behind a convolution goes on learning; behind a linear layer
    it is folded into it first."""
    if any(x.dim() == 0 or x.shape[0] < 2 for x in flat_inputs(inputs)):
        raise CompileError(
            "prepare_qat() needs a batch as example",
            have=", ".join(str(list(x.shape)) for x in flat_inputs(inputs)),
            need="two or more samples along the first dimension",
        )
    check_module(module, {"forward": inputs})
    batch = torch.export.Dim.AUTO
    shapes = torch.utils._pytree.tree_map(lambda x: {0: batch}, tuple(inputs))
    quantizer = Int8Quantizer(keep_float)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exported = torch.export.export(deepcopy(module).train(), tuple(inputs), dynamic_shapes=shapes)
        except Exception as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise CompileError("torch.export cannot export this model for training", have=reason[:200]) from error
        training = exported.module(check_guards=False)
        _fold_behind_linear(training, inputs)
        prepared = prepare_qat_pt2e(training, quantizer)
    return train_qat(prepared)


def _fold_behind_linear(training: Any, inputs: Sequence[Any]) -> None:
    """Fold each BatchNorm behind a linear layer of a program for training, as it would be in evaluation."""
    before = copied(training)
    reference = Reference(evaluation_answers(before, inputs), 1, lambda seed: evaluation_answers(before, inputs, seed))
    if fold_norms([training], layers=(torch.ops.aten.linear.default,), training=True):
        check("the folding of BatchNorm", evaluation_answers(training, inputs), reference)


def train_qat(prepared: Any, mode: bool = True) -> Any:
    """Put a prepared module into training mode, or with False into evaluation; it has no train() and eval() itself."""
    return (move_exported_model_to_train if mode else move_exported_model_to_eval)(prepared)


def convert_qat(prepared: Any) -> Any:
    """The int8 module that a trained prepared module stands for; `baretorch.compile` takes it as it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return convert_pt2e(train_qat(prepared, False))
