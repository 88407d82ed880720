"""Compile and build a model to measure the memory that its image needs on a board, whether it fits there or not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from baretorch.errors import CompileError
from baretorch.firmware.sizes import with_large_memories
from baretorch.firmware.types import Image
from baretorch.options import Options, UseNpu, Weights
from baretorch.pipeline import Compiled, LoweredModel, build_image, compile_lowered
from baretorch.targets.parts import MemoryBank
from baretorch.targets.types import Board


@dataclass(frozen=True)
class MemoryUse:
    """The need of a memory, including the reserved stack, and the larger `items` of it."""

    memory: MemoryBank
    need: int
    items: tuple[tuple[str, int], ...] = ()

    @property
    def room(self) -> int:
        """The number of bytes left; negative if the memory is too small."""
        return self.memory.size - self.need

    @property
    def used(self) -> int:
        """Return the bytes of all items."""
        return sum(count for _, count in self.items)

    def to_json(self) -> dict[str, Any]:
        return {"memory": self.memory.name, "size": self.memory.size, "need": self.need, "room": self.room}


def compile_for_sizes(model: LoweredModel, board: Board, options: Options) -> tuple[Compiled, bool]:
    """Compile a model for a board as for an image, with blank weights, without its NPU, and without copies of weights
    that are only made where there is room. If it does not fit, compile it for the board with larger memories, without a
    limit of RAM. Return also whether it fits so far."""
    weights = Weights.FLASH if board.chip.cluster is None else options.weights  # a cluster reads them in its scratchpad
    options = replace(options, npu=UseNpu.OFF, weights=weights)
    try:
        return compile_lowered(model, board, options, blank=True), True
    except CompileError:
        return compile_lowered(model, with_large_memories(board), replace(options, ram=None), blank=True), False


def build_for_sizes(compiled: Compiled, folder: Path) -> Image:
    """Build an image for the board with larger memories, so that it always links."""
    return build_image(replace(compiled, board=with_large_memories(compiled.board)), folder)
