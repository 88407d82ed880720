"""Decode weights, which are compressed and in the order in which the NPU's units need them."""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from dataclasses import astuple, dataclass, fields
from functools import cache

import numpy as np

from baretorch.machines.hooks import shared_library
from baretorch.machines.npu.faults import FaultKind, NpuFault
from baretorch.machines.npu.registers import Int64s, Window
from baretorch.npu.accelerators import Accelerator, Family

_WRONG = {
    -1: "a stream of weights ends early",
    -2: "there are more weights than the layer has",
    -3: "a stream of weights is damaged",
}
_MOST = 1 << 28  # places in a stream of weights
_KEPT = 256  # layers


@dataclass
class _Order:
    """The order of weights in a stream: the fields of order_t in npu_weights.c, in its order."""

    outputs: int
    rows: int
    columns: int
    inputs: int
    block: int
    input_block: int
    unit: int
    input_unit: int
    sub_rows: int
    sub_columns: int
    round: int
    stride_y: int
    stride_x: int
    padding: int
    part_kernel: bool
    depthwise: bool
    sparse: bool
    core: int
    cores: int

    def encode(self) -> ctypes.Array[ctypes.c_int32]:
        """Return order_t, whose fields are all int32_t."""
        return (ctypes.c_int32 * len(fields(self)))(*astuple(self))


@dataclass(frozen=True)
class LayerShape:
    """The properties of a layer that determine the order of its weights."""

    outputs: int
    inputs: int  # 1 for depthwise layers
    window: Window
    block: int  # depth of an output block
    wide: bool  # inputs of 16 bits
    depthwise: bool
    fast: bool = False  # U85: which decoder
    sparse: bool = False  # U85: two of four weights are 0
    unit: int = 8  # U85: depth of an output unit


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(str(shared_library("npu_weights.c")))


_kept: OrderedDict[tuple[Accelerator, LayerShape, tuple[bytes, ...]], Int64s] = OrderedDict()


def decode_weights(accelerator: Accelerator, layer: LayerShape, streams: tuple[bytes, ...]) -> Int64s:
    """Return weights [output, row, column, input] from a stream per core, or one stream of the fast decoder."""
    key = accelerator, layer, streams
    if key not in _kept:
        _kept[key] = _decode(accelerator, layer, streams)
        if len(_kept) > _KEPT:
            _kept.popitem(last=False)
    _kept.move_to_end(key)
    return _kept[key]


def _decode(accelerator: Accelerator, layer: LayerShape, streams: tuple[bytes, ...]) -> Int64s:
    w = layer.window
    shape = (layer.outputs, w.height, w.width, layer.inputs)
    new = accelerator.family is Family.U85
    order = _order_u85 if new else _order_u55
    place = _library().bt_npu_order_u85 if new else _library().bt_npu_order_u55
    orders = [order(accelerator, layer, core) for core in range(accelerator.cores)]
    if layer.block < accelerator.cores or (layer.fast and layer.depthwise) or _places(layer, orders[0]) > _MOST:
        raise NpuFault(FaultKind.PARSE, f"a layer of {shape} weights, in blocks of {layer.block}")
    made = np.zeros(shape, np.int16)
    empty = np.zeros(1, np.int16)
    counts = [place(o.encode(), _pointer(empty), 0, _pointer(made)) for o in orders]
    numbers = (
        _decode_fast(layer, orders, counts, streams[0])
        if layer.fast
        else [_decode_standard(count, stream) for count, stream in zip(counts, streams, strict=True)]
    )
    for o, count, found in zip(orders, counts, numbers, strict=True):
        _check(place(o.encode(), _pointer(found), count, _pointer(made)))
    return made.astype(np.int64)


def _places(layer: LayerShape, o: _Order) -> int:
    """Return the maximum length of a stream."""
    w = layer.window
    elements = w.height * w.width * (o.round + o.padding)
    inputs = 1 if layer.depthwise else -(-layer.inputs // o.input_block) * o.input_block
    return (layer.outputs + o.block + o.unit) * elements * inputs


def _decode_standard(count: int, stream: bytes) -> np.ndarray[tuple[int], np.dtype[np.int16]]:
    found = np.zeros(max(count, 1), np.int16)
    if not stream and not count:
        return found
    made = _check(_library().bt_npu_decode(stream, len(stream), _pointer(found), count))
    if made != count:
        raise NpuFault(FaultKind.DECODER, f"there are {made} weights, and the layer has {count}")
    return found


def _decode_fast(
    layer: LayerShape, orders: list[_Order], counts: list[int], stream: bytes
) -> list[np.ndarray[tuple[int], np.dtype[np.int16]]]:
    """Decode one stream for all cores, which take its blocks in turn."""
    found = np.zeros(max(sum(counts), 1), np.int16)
    _check(_library().bt_npu_decode_fast(stream, len(stream), _pointer(found), sum(counts)))
    cores = len(counts)
    if cores == 1:
        return [found]
    o = orders[0]
    size = o.unit * o.input_unit * o.round // cores
    if len(set(counts)) > 1 or counts[0] % size:
        raise NpuFault(FaultKind.MODEL, "fast weights that cores do not share evenly")
    shares = found.reshape(-1, cores, size)
    return [np.ascontiguousarray(shares[:, core]).reshape(-1) for core in range(cores)]


def _order_u55(accelerator: Accelerator, layer: LayerShape, core: int) -> _Order:
    w = layer.window
    order = _common_order(accelerator, layer, core)
    order.input_block = 16 if w.part_kernel or layer.wide else 32
    order.unit = 4 if accelerator.macs == 32 else 8
    order.input_unit = 8
    order.round = 4 if layer.depthwise else 1 if not w.part_kernel else 2 if layer.wide else 4
    return order


def _order_u85(accelerator: Accelerator, layer: LayerShape, core: int) -> _Order:
    w = layer.window
    order = _common_order(accelerator, layer, core)
    order.unit = layer.unit
    order.padding = 0 if not layer.wide and accelerator.macs <= 256 else 2 if accelerator.macs <= 512 else 6
    order.sparse = layer.sparse
    if layer.depthwise:
        order.input_block, order.input_unit, order.round = layer.block, 1, 10
    elif w.part_kernel:
        order.input_block = 16
        order.input_unit = 8 if layer.wide and not layer.sparse else 16
        order.round = 10 if layer.wide or layer.sparse else 5
    else:
        narrow = accelerator.macs in (128, 256) and layer.unit == 16 and not layer.sparse
        order.input_block = 32 if narrow else 128 if layer.sparse and not layer.wide else 64
        order.input_unit, order.round = order.input_block, 1
        order.stride_y = order.stride_x = 1
    return order


def _common_order(accelerator: Accelerator, layer: LayerShape, core: int) -> _Order:
    """Return the order with zeros where the families differ."""
    w = layer.window
    return _Order(
        outputs=layer.outputs,
        rows=w.height,
        columns=w.width,
        inputs=layer.inputs,
        block=layer.block,
        input_block=0,
        unit=0,
        input_unit=0,
        sub_rows=8 // w.dilation_y,
        sub_columns=8 // w.dilation_x,
        round=0,
        stride_y=w.stride_y,
        stride_x=w.stride_x,
        padding=0,
        part_kernel=w.part_kernel,
        depthwise=layer.depthwise,
        sparse=False,
        core=core,
        cores=accelerator.cores,
    )


def _check(result: int) -> int:
    if result < 0:
        raise NpuFault(FaultKind.DECODER, _WRONG[result])
    return result


def _pointer(values: np.ndarray[tuple[int, ...], np.dtype[np.int16]]) -> ctypes.c_void_p:
    return ctypes.c_void_p(values.ctypes.data)
