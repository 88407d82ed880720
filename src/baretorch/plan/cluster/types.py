"""Tiles of a plan for a cluster, for reports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class LayerTiles:
    """The tiles of a layer, which is named by the tensor that it computes.

    The axis is `rows`, `channels` (of its output), `input channels`, or empty if the layer is not cut. `buffers` are
    the bytes of the buffers of one tile, and `cycles` estimates the time of all tiles.
    """

    layer: str
    axis: str
    count: int
    buffers: int
    cycles: int

    def to_json(self) -> dict[str, object]:
        own = {"layer": self.layer, "axis": self.axis or None, "tiles": self.count}
        return {**own, "buffer_bytes": self.buffers, "cycles": self.cycles}


@dataclass(frozen=True)
class Tiles:
    """The tiles in which data comes to a scratchpad during a run.

    Weights come in tiles of at most `limit` bytes, copied `ahead` phases early, or one more. Activations in slower
    memory come in tiles of `rows` bytes at most. There are `copies`, of `copied` bytes of weights and `moved` bytes of
    activations, and a run takes about `cycles`. `tried` lists both limits, phases ahead and cycles of all candidates
    that fit and might have been better.
    """

    limit: int
    rows: int
    ahead: int
    copies: int
    copied: int
    moved: int
    cycles: int
    layers: tuple[LayerTiles, ...]
    tried: tuple[tuple[int, int, int, int], ...] = ()

    def to_json(self) -> dict[str, object]:
        names = ("limit", "rows", "ahead", "cycles")
        tried = [dict(zip(names, one, strict=True)) for one in self.tried]
        return {**vars(self), "layers": [layer.to_json() for layer in self.layers], "tried": tried}

    def __str__(self) -> str:
        moved = f", {self.moved:,} bytes of activations in tiles of rows" if self.moved else ""
        return f"{self.copied:,} bytes of weights in tiles of at most {self.limit:,} bytes{moved}"
