"""Images whose command stream or weights are not what was compiled."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path

from baretorch.firmware.types import Image
from baretorch.ops.delegate import Delegate
from baretorch.pipeline import Compiled


def constants_of(compiled: Compiled) -> tuple[bytes, bytes]:
    """The commands and the weights of the model's only delegate."""
    graph = compiled.plan.graph
    (node,) = (n for n in graph.nodes if isinstance(n.op, Delegate))
    commands, weights = (t.data for t in graph.of(node.inputs[1:]))
    assert commands is not None and weights is not None
    return commands.tobytes(), weights.tobytes()


def damaged(image: Image, compiled: Compiled, folder: Path, old: bytes, new: bytes, hidden: bool = False) -> Image:
    """The image with `new` for `old`, its commands or its weights; `hidden` by a checksum that fits."""
    whole = image.elf.read_bytes()
    assert whole.count(old) == 1 and len(old) == len(new)
    whole = whole.replace(old, new)
    if hidden:
        parts = constants_of(compiled)
        before, after = (_crc(*p).to_bytes(4, "little") for p in (parts, [new if p == old else p for p in parts]))
        assert whole.count(before) == 1
        whole = whole.replace(before, after)
    path = folder / "damaged.elf"
    path.write_bytes(whole)
    return replace(image, elf=path)


def _crc(commands: bytes, weights: bytes) -> int:
    return zlib.crc32(commands + weights)
