"""Suggests replacements for operators that cannot be compiled."""

from __future__ import annotations

import re

_FIXED = "shapes must be known before the image is built"

INSTEAD = {  # by a pattern for the whole name
    "nonzero": f"instead of nonzero: torch.where(mask, x, 0): {_FIXED}",
    "masked_select": f"instead of x[mask]: torch.where(mask, x, 0): {_FIXED}",
    "unique.*": f"instead of unique: nothing; {_FIXED}",
    "quantized_decomposed::choose_qparams": "instead of dynamic quantization: calibrated scales (is_dynamic=False)",
    "rand.*|normal.*|bernoulli|multinomial|poisson": "instead of random numbers in the model: pass them as an input",
    "item": "instead of .item() and .tolist(): the tensor itself, which can be computed with as it is",
    ".*linalg_.*|.*lstsq": "instead of a matrix decomposition: pass its result as an input, or iterate with matmul; "
    "of parameters alone it is computed when the model is compiled",
    "cumprod": "instead of cumprod: torch.exp(torch.cumsum(torch.log(x), dim)), for x > 0",
    "logcumsumexp": "instead of logcumsumexp: torch.log(torch.cumsum(torch.exp(x), dim))",
    "cummax|cummin": "instead of cummax and cummin: max_pool1d of the padded input",
    "searchsorted|bucketize": "instead of searchsorted and bucketize: (x[..., None] > edges).sum(-1)",
    "histc|bincount": "instead of histc and bincount: (x[:, None] == torch.arange(bins)).sum(0)",
    "trace": "instead of trace: x.diagonal().sum()",
}


def usual_name(target: str) -> str:
    """Return the name that users know an operator by."""
    name = target.removeprefix("aten::")
    return "item" if name == "_local_scalar_dense" else name.lstrip("_")


def instead_of(name: str) -> str | None:
    """Return a replacement for an operator, if there is one."""
    return next((text for pattern, text in INSTEAD.items() if re.fullmatch(pattern, name)), None)
