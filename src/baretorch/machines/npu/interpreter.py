"""Run a command stream, one command after the other, and strictly.

The hardware overlaps operations, and a stream contains waits where it must not. An operation that reads what another
one may not have written yet is a fault, although everything is computed in order here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from baretorch.machines.npu import dma, u55, u85
from baretorch.machines.npu.commands import Command, Do, decode_commands
from baretorch.machines.npu.core import NpuCore
from baretorch.machines.npu.faults import FaultKind, NpuFault
from baretorch.machines.npu.memory import INTERNAL, NpuMemory, NpuRegion
from baretorch.machines.npu.overlap import Queues
from baretorch.machines.npu.registers import Int64s
from baretorch.npu.accelerators import Accelerator, Family
from baretorch.npu.payload import FAST, INPUT, OUTPUT, SCRATCH, WEIGHTS, Payload

KERNELS = (Do.CONV, Do.DEPTHWISE, Do.POOL, Do.ELEMENTWISE, Do.RESIZE)

Watch = Callable[[Command, Int64s], None]  # called with each operation and the feature map that it wrote


def run_stream(
    accelerator: Accelerator,
    words: bytes,
    memory: NpuMemory,
    layers: Mapping[int, str] | None = None,
    watch: Watch | None = None,
) -> None:
    """Run all operations of a stream in order. An NpuFault has the position of the failure.

    `layers` are the names of layers by the position of their first command.
    """
    core = NpuCore(accelerator, memory)
    queues = Queues(accelerator.family)
    kernels = u85.run if accelerator.family is Family.U85 else u55.run
    at = 0
    try:
        for command in decode_commands(words, accelerator.family):
            at = command.at
            what = command.what
            if not isinstance(what, Do):
                core.registers.set(what, command.carries)
            elif what in KERNELS:
                memory.begin()
                kernels(core, what, command.parameter)
                queues.kernel(core, memory.touched, what, command.parameter)
                if watch is not None and memory.touched.made is not None:
                    watch(command, memory.touched.made)
            elif what is Do.DMA_START:
                memory.begin()
                dma.run(core)
                queues.dma(memory.touched)
            elif what is Do.DMA_WAIT:
                queues.wait_dma(command.parameter)
            elif what is Do.KERNEL_WAIT:
                queues.wait_kernel(command.parameter)
            elif what is Do.BRANCH:
                target = command.carries >> 16
                if target % 4 or target >= len(words):
                    raise NpuFault(FaultKind.BRANCH, f"a branch to {target:#x} in a stream of {len(words):#x} bytes")
                raise NpuFault(FaultKind.MODEL, "a branch in a command stream")
    except NpuFault as fault:
        raise fault.at_position(at, _layer_at(layers, at)) from None


def _layer_at(layers: Mapping[int, str] | None, at: int) -> str | None:
    if not layers:
        return None
    before = [position for position in layers if position <= at]
    return layers[max(before)] if before else None


def payload_memory(payload: Payload) -> NpuMemory:
    """Return the memory before a stream runs: constants and uninitialized memory."""
    scratch = _new_region(payload.scratch, SCRATCH)
    regions = {
        WEIGHTS: NpuRegion(np.frombuffer(payload.weights, np.uint8), constant=True),
        SCRATCH: scratch,
        FAST: _new_region(payload.fast, FAST) if payload.fast else scratch,
        INPUT: _new_region(payload.room(INPUT), INPUT),
        OUTPUT: _new_region(payload.room(OUTPUT), OUTPUT),
        INTERNAL: internal_memory(payload.accelerator),
    }
    return NpuMemory(regions)


def internal_memory(accelerator: Accelerator) -> NpuRegion:
    """Return the internal memory that holds tables."""
    return _new_region(accelerator.internal, INTERNAL)


def _new_region(size: int, space: int) -> NpuRegion:
    return NpuRegion(np.full(size, 0xA5, np.uint8), np.zeros(size, np.bool_), space=space)


def run_payload(
    payload: Payload, inputs: Sequence[bytes], layers: Mapping[int, str] | None = None, watch: Watch | None = None
) -> list[bytes]:
    """Run a graph and return its outputs. Inputs and outputs have their memory order."""
    memory = payload_memory(payload)
    for slot, data in zip(payload.inputs, inputs, strict=True):
        if len(data) != slot.size:
            raise NpuFault(FaultKind.BUS, f"an input has {len(data)} bytes, and the stream needs {slot.size}")
        memory.write_bytes(slot.region, slot.offset, data, "an input")
    run_stream(payload.accelerator, payload.commands, memory, layers, watch)
    return [memory.read_bytes(slot.region, slot.offset, slot.size, "an output") for slot in payload.outputs]
