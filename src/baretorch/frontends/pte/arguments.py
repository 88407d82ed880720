"""Operators and arguments of a `.pte` as the plain ATen operators have them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from baretorch.frontends.aten.program import Arg
from baretorch.frontends.pte.schema import Items, TensorValue, Value, damaged, is_contiguous, memory_order

_FACTORIES = {"aten::full": 2, "aten::full_like": 2, "aten::arange": 3, "aten::scalar_tensor": 1}


def kind_of(value: Value) -> str:
    """Return what kind of value it is, as schemas call it."""
    match value:
        case TensorValue():
            return "Tensor"
        case Items():
            return f"{value.of}[]"
        case tuple():
            return f"{type(value[0]).__name__}[]" if value else "[]"
    return "None" if value is None else type(value).__name__


def plain_operator(operator: str, args: tuple[Arg, ...], results: Sequence[TensorValue]) -> tuple[str, tuple[Arg, ...]]:
    """Return the operator's plain name, and its arguments in the order of the plain schema.

    An `out` variant takes the type of a new tensor from `out`; the plain one has an argument for it.
    """
    if operator == "executorch_prim::et_view":
        return "aten::view", args
    namespace, _, plain = operator.partition("::")
    if operator == "dim_order_ops::_clone_dim_order":
        return "aten::clone", (args[0], args[2])
    if plain in ("_to_dim_order_copy", "_to_copy") and args and results:
        return "aten::to", (args[0], results[0].dtype.computed.label, args[1], True, args[2])
    if namespace != "aten":
        return operator, args
    plain = plain.removesuffix("_copy") if plain.endswith("_copy") else plain.removesuffix("_")
    target = f"aten::{plain}"
    if target in _FACTORIES and results:
        at = _FACTORIES[target]
        args = (*args[:at], results[0].dtype.computed.label, None, None, None, *args[at:])
    return target, args


def padding_of(x: Value, before: Arg, after: Arg, padded: TensorValue) -> tuple[Arg, ...]:
    """Convert cortex_m::pad's four dimensions, in memory order, to constant_pad_nd's, from the last to the first. If a
    dimension is 1, several orders have the same layout: the shapes select the one that was meant."""
    if not isinstance(x, TensorValue) or not isinstance(before, tuple) or not isinstance(after, tuple):
        raise damaged("cortex_m::pad has other arguments than a tensor and two lists")
    rank = len(x.shape)
    for order in (memory_order(x.shape, x.order), (0, 2, 3, 1), (0, 1, 2, 3)):
        if not len(order) == len(padded.shape) == rank <= len(before) == len(after):
            continue
        at = [order.index(d) - rank for d in range(rank)]
        sides = [(before[place], after[place]) for place in at]
        if all(
            isinstance(a, int) and isinstance(b, int) and n + a + b == to
            for (a, b), n, to in zip(sides, x.shape, padded.shape, strict=True)
        ):
            return tuple(side for both in reversed(sides) for side in both)
    raise damaged("cortex_m::pad does not make a tensor of its result's shape")


def keeps_elements(sources: Sequence[Value], args: Sequence[Arg], results: Sequence[TensorValue]) -> bool:
    """Report whether as_strided(x, size, strides, offset) is a plain view. Export makes such calls where a dimension is
    1 and several strides are equivalent, as after a channels-last pool to 1 x 1."""
    if len(args) != 4 or len(results) != 1 or not isinstance(args[2], tuple):
        return False
    (source,), (result,) = sources, results
    if not isinstance(source, TensorValue):
        return False
    plain = [prod(result.shape[d + 1 :]) for d in range(len(result.shape))]
    same = len(args[2]) == len(plain) and all(
        n == 1 or a == b for n, a, b in zip(result.shape, args[2], plain, strict=True)
    )
    whole = args[1] == result.shape and prod(source.shape) == prod(result.shape) and not args[3]
    return same and whole and is_contiguous(source) and is_contiguous(result)
