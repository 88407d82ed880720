"""Tracks the memory of an ExecuTorch program while its instructions are followed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from baretorch.frontends.pte.schema import TensorValue, damaged


@dataclass(frozen=True)
class PlacedValue:
    """A value in memory: its name, and the tensor it was written as."""

    name: str
    tensor: TensorValue


class PteMemory:
    """The value in each range of planned memory. Tensors without a place or without bytes are kept separately."""

    def __init__(self, banks: Sequence[int]) -> None:
        self._banks = banks
        self._starts: list[list[int]] = [[] for _ in banks]  # of the ranges in use, sorted; they never overlap
        self._held: dict[tuple[int, int], PlacedValue] = {}  # by bank and start
        self._alone: dict[int, PlacedValue] = {}

    def write(self, name: str, tensor: TensorValue) -> None:
        """Store a value in the tensor's bytes; every value that shares a byte with it is overwritten."""
        place = self._place(tensor)
        if place is None:
            self._alone[tensor.index] = PlacedValue(name, tensor)
            return
        bank, start = place
        starts = self._starts[bank]
        first = bisect_left(starts, start)
        if first and starts[first - 1] + self._held[bank, starts[first - 1]].tensor.bytes > start:
            first -= 1
        last = bisect_left(starts, start + tensor.bytes)
        for gone in starts[first:last]:
            del self._held[bank, gone]
        starts[first:last] = [start]
        self._held[place] = PlacedValue(name, tensor)

    def read(self, tensor: TensorValue) -> PlacedValue | None:
        """Return the value in the tensor's bytes if it is one whole value of the tensor's type."""
        place = self._place(tensor)
        held = self._alone.get(tensor.index) if place is None else self._held.get(place)
        if held is None or (held.tensor.dtype, held.tensor.bytes) != (tensor.dtype, tensor.bytes):
            return None
        return held

    def _place(self, tensor: TensorValue) -> tuple[int, int] | None:
        if tensor.memory is None or tensor.bytes == 0:
            return None
        bank, start = tensor.memory
        if bank >= len(self._banks) or start + tensor.bytes > self._banks[bank]:
            raise damaged(f"{tensor} is outside the planned memory")
        return tensor.memory
