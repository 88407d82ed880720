"""Rows of the TFLite table: the custom operators of TensorFlow Lite Micro's audio front end."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.lowering import Result
from baretorch.frontends.tflite.call import TfliteCall
from baretorch.frontends.tflite.lowering import TfliteLowering, TfliteRow
from baretorch.frontends.tflite.schema import damaged
from baretorch.frontends.untrusted import ROOM, most_bytes
from baretorch.ops.filter_bank import (
    SignalFilterBank,
    SignalLog,
    SignalPcan,
    SignalSpectralSubtraction,
    SignalSquareRoot,
)
from baretorch.ops.layout import Unfold
from baretorch.ops.move import Cat, Slice
from baretorch.ops.signal import SignalAutoScale, SignalEnergy, SignalOp, SignalRfft, SignalWindow


def simple(op: type[SignalOp], remark: str = "") -> TfliteRow:
    """Return the row of an operator whose fields are attributes of the file's operator."""
    return TfliteRow(lambda g, call: g.b.add_many(_make_op(op, call), *call.given()), (op,), remark)


def _make_op(op: type[SignalOp], call: TfliteCall) -> SignalOp:
    return op(*(call.attribute(f.name) for f in fields(op)))


def filter_bank(g: TfliteLowering, call: TfliteCall) -> str:
    _need_channels(call, g.shape(call.x(3))[0] - 1 if g.shape(call.x(3)) else 0)
    return g.b.add(SignalFilterBank(), *call.given())


def spectral_subtraction(g: TfliteLowering, call: TfliteCall) -> Result:
    """Lower the subtraction of noise. The estimate of the noise, its second result, is state."""
    _need_channels(call, call.y.count)
    if len(call.outputs) != 2:
        raise damaged(f"{call.name} has {len(call.outputs)} results instead of 2")
    kept = g.variable(f"t{call.outputs[1].index}", call.outputs[1])
    y, kept.now = g.b.add_many(_make_op(SignalSpectralSubtraction, call), call.x(), kept.now)
    return y, kept.now


def _need_channels(call: TfliteCall, found: int) -> None:
    if call.attribute("num_channels") != found:
        raise damaged(f"{call.name} has {found} channels, but states {call.attribute('num_channels')}")


def delay(g: TfliteLowering, call: TfliteCall) -> str:
    """Lower a delay of each row by some samples."""
    joined = _after_last(g, call, call.attribute("delay_length"))
    axis = len(g.shape(joined)) - 1
    return g.b.add(Slice(axis, 0, g.shape(call.x())[-1]), joined)


def framer(g: TfliteLowering, call: TfliteCall) -> Result:
    """Lower frames that overlap. Zeros come before the first samples, so that every frame is valid."""
    size, step = call.attribute("frame_size"), call.attribute("frame_step")
    if not call.attribute("prefill") or not 0 < step <= size:
        raise CompileError(
            f"{call.name}: frames of {size}, {step} apart, with prefill {call.attribute('prefill')}, are not supported",
            need="prefill 1, and a step from 1 to the size of a frame",
        )
    joined = _after_last(g, call, size - step)
    frames = g.b.add(Unfold(len(g.shape(joined)) - 1, size, step), joined)
    return frames, g.b.const("valid", np.array(True))


def _after_last(g: TfliteLowering, call: TfliteCall, count: int) -> str:
    """Return each row of x after the last `count` samples of the row in the runs before, which are state."""
    x, (*rows, length) = call.x(), g.shape(call.x())
    if not length > 0 or not count >= 0 or most_bytes((*rows, count)) > ROOM:
        raise CompileError(f"{call.name}: {count} samples before rows of {length} are not supported")
    if not count:
        return x
    past = replace(call.y, name=f"{call.y.name}_past", shape=(*rows, count), type=g[x].dtype.label)
    kept = g.variable(f"t{call.y.index}", past)
    joined = g.b.add(Cat(len(rows)), kept.now, x)
    kept.now = g.b.add(Slice(len(rows), length, length + count), joined)
    return joined


ROWS: dict[str, TfliteRow] = {
    "SignalDelay": TfliteRow(delay, (), "state"),
    "SignalEnergy": simple(SignalEnergy),
    "SignalFftAutoScale": simple(SignalAutoScale),
    "SignalFilterBank": TfliteRow(filter_bank, (SignalFilterBank,)),
    "SignalFilterBankLog": simple(SignalLog),
    "SignalFilterBankSpectralSubtraction": TfliteRow(spectral_subtraction, (SignalSpectralSubtraction,), "state"),
    "SignalFilterBankSquareRoot": simple(SignalSquareRoot),
    "SignalFramer": TfliteRow(framer, (Unfold,), "state; with prefill"),
    "SignalPCAN": simple(SignalPcan),
    "SignalRfft": simple(SignalRfft, "int16, a power of 2"),
    "SignalWindow": simple(SignalWindow),
}
