"""A cluster's GEMM unit computes int8 convolutions with one group, and linear layers, with bias, requantization, limits
and max pool. kernels/gemm/ has the call, machines/cluster/gemm.c the simulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import ceil, prod
from typing import Any

import numpy as np

from baretorch.ops.helpers import cut
from baretorch.ops.helpers.executor import Executor
from baretorch.ops.helpers.kernel import Call, Kernel, Packed, Params, Split, data_of
from baretorch.ops.int8.qconv2d import QConv2d
from baretorch.ops.int8.qlinear import QLinear, as_pixels
from baretorch.targets.features import XCV
from baretorch.targets.parts import Cluster, Gemm
from baretorch.units.types import Unit

GEMM = Executor("gemm")
REGISTERS = 60.0  # cycles of the core that writes them


def gemm_unit(cluster: Cluster, gemm: Gemm) -> Unit:
    """Describe the unit of a chip."""
    products = gemm.rows * gemm.columns * gemm.depth
    return Unit(
        GEMM,
        "GEMM unit",
        gemm.base,
        cluster.scratchpad,
        products,
        f"{gemm.rows} x {gemm.columns} x {gemm.depth}: {products:,} products per cycle",
        f"int8 convolutions of one group with kernels up to {gemm.kernel}x{gemm.kernel}, strides up to {gemm.stride} "
        f"and max pools up to {gemm.pool}x{gemm.pool}, and linear layers; multiples of {gemm.channels} input channels",
        {QConv2d: _kernel(gemm), QLinear: _linear(_kernel(gemm))},
        lambda call: _why_not(as_pixels(call) if isinstance(call.op, QLinear) else call, gemm),
        (gemm.rows, gemm.columns, gemm.depth, gemm.start_cycles),
    )


def _why_not(call: Call[QConv2d], gemm: Gemm) -> str | None:
    """Return why the unit does not compute the call; None if it does."""
    op = call.op
    if any(t.data is None for t in call.inputs[1:]):
        return "its weights are computed"
    _, kernel_h, kernel_w, in_ = call.inputs[1].shape
    limits = (
        (op.bits != 8, f"its weights have {op.bits} bits"),
        (op.groups != 1, f"it has {op.groups} groups"),
        (call.x.shape[0] != 1, f"it has a batch of {call.x.shape[0]}"),
        (op.dilation != (1, 1) and (kernel_h, kernel_w) != (1, 1), "it is dilated"),
        (max(kernel_h, kernel_w) > gemm.kernel, f"its kernel is {kernel_h}x{kernel_w}"),
        (max(op.stride) > gemm.stride, f"its stride is {max(op.stride)}"),
        (max(op.pool) > gemm.pool, f"its pool is {op.pool[0]}x{op.pool[1]}"),
        (in_ % gemm.channels != 0, f"it has {in_} input channels"),
    )
    return next((why for holds, why in limits if holds), None)


def _pack(call: Call[Any]) -> tuple[Packed, ...]:
    """Pack weights, rounded up to words, biases and multipliers as one constant, so that one copy brings them."""
    weight, bias, multiplier = (data_of(call.inputs, i) for i in (1, 2, 3))
    taps = np.ascontiguousarray(weight).reshape(-1)
    words = (np.pad(taps, (0, -taps.size % 4)) if taps.size % 4 else taps).view(np.int32)
    return (Packed("constants", np.concatenate([words, bias, multiplier]).astype(np.int32)),)


def _params(gemm: Gemm) -> Callable[[Call[QConv2d]], Params]:
    """Return a function that computes the values of the unit's registers."""

    def params(call: Call[QConv2d]) -> Params:
        op = call.op
        _, in_h, in_w, in_ = call.x.shape
        _, out_h, out_w, out = call.y.shape
        _, kernel_h, kernel_w, _ = call.inputs[1].shape
        top, _, left, _ = op.padding
        sizes = {"in_h": in_h, "in_w": in_w, "in": in_, "out_h": out_h, "out_w": out_w, "out": out}
        sizes |= {"kernel_h": kernel_h, "kernel_w": kernel_w, "stride_h": op.stride[0], "stride_w": op.stride[1]}
        sizes |= {"pad_top": top, "pad_left": left, "pool_h": op.pool[0], "pool_w": op.pool[1], "y_step": call.y_pitch}
        own = {"x_zero": op.x_zero, "zero": op.zero, "lo": op.lo, "hi": op.hi, "shift": op.shift}
        return Params("bt_gemm", (("unit", gemm.base), *sizes.items(), *own.items()))

    return params


def _cycles(gemm: Gemm) -> Callable[[Call[QConv2d]], float]:
    """Return a function that counts cycles as the simulated unit does, and those of the core that starts it."""

    def cycles(call: Call[QConv2d]) -> float:
        out, kernel_h, kernel_w, in_ = call.inputs[1].shape
        windows = call.y.count // call.y.shape[-1] * prod(call.op.pool)
        block = max(gemm.rows, kernel_h * ceil(kernel_w * in_ / gemm.depth))
        return REGISTERS + gemm.start_cycles + ceil(windows / gemm.rows) * ceil(out / gemm.columns) * block

    return cycles


def _kernel(gemm: Gemm) -> Kernel[QConv2d]:
    return Kernel(
        "bt_gemm_unit",
        "gemm/unit.c",
        _params(gemm),
        XCV,
        lambda call: _why_not(call, gemm) is None,
        _pack,
        splits=cut.rows_and_channels(gemm.columns),
        channels="bt_gemm_unit",
        executor=GEMM,
        begins="bt_gemm_begin",
        awaits="bt_gemm_wait",
        cycles=_cycles(gemm),
    )


def _linear(kernel: Kernel[QConv2d]) -> Kernel[QLinear]:
    """Return the kernel of a linear layer, whose rows are pixels."""

    def splits(call: Call[QLinear]) -> tuple[Split, ...]:
        last = len(call.y.shape) - 1
        return tuple(replace(s, axis=last) for s in kernel.splits(as_pixels(call)) if s.axis == 3)

    return Kernel(
        kernel.symbol,
        kernel.source,
        lambda call: kernel.params(as_pixels(call)),
        kernel.needs,
        lambda call: kernel.fits(as_pixels(call)),
        _pack,
        splits=splits,
        channels=kernel.channels,
        executor=kernel.executor,
        begins=kernel.begins,
        awaits=kernel.awaits,
        cycles=lambda call: kernel.cycles(as_pixels(call)),
    )
