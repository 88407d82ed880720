"""Pack the constants of a plan the way kernels want them, and store each once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from baretorch.ir.graph import Array, numbered
from baretorch.ops.helpers.kernel import Call, Kernel, Packed
from baretorch.plan.memory.packing import ALIGNMENT
from baretorch.plan.schedule import Operand
from baretorch.plan.types import Constant

_Pack: TypeAlias = Callable[[Call[Any]], tuple[Packed, ...]]


@dataclass
class Packs:
    """Packed constants, and where some are found in others: a search over plans asks for the same ones repeatedly."""

    of: dict[tuple[Call[Any], _Pack], tuple[Packed, ...]] = field(default_factory=dict)
    places: dict[tuple[bytes, bytes], int] = field(default_factory=dict)

    def pack(self, call: Call[Any], pack: _Pack) -> tuple[Packed, ...]:
        """Return the constants of a call as its kernel wants them."""
        if (call, pack) not in self.of:
            self.of[call, pack] = pack(call)
        return self.of[call, pack]

    def find(self, raw: bytes, within: bytes) -> int:
        """Return where some bytes first are in others; -1 if they are not."""
        if (raw, within) not in self.places:
            self.places[raw, within] = within.find(raw)
        return self.places[raw, within]


@dataclass
class Constants:
    """The constants of a plan, each stored once: layers that share weights share them in flash.

    `apart`: flash is in another address space than RAM. Kernels read packed constants from flash; constants that they
    take like activations are in RAM. `slices`: a constant that is a part of another constant of its layer is not stored
    again. Several plans may share `packs`.
    """

    apart: bool = False
    slices: bool = False
    known: dict[str, Constant] = field(default_factory=dict)
    as_they_are: set[str] = field(default_factory=set)
    packs: Packs = field(default_factory=Packs)
    _by_content: dict[tuple[bool, str, bytes], str] = field(default_factory=dict)
    _stems: dict[str, list[tuple[str, str, bytes]]] = field(default_factory=dict)  # names, types and bytes

    @property
    def bytes(self) -> int:
        return sum(constant.data.nbytes for constant in self.known.values())

    def store_plain(self, name: str, data: Array, align: int = 0) -> Operand:
        """Store a tensor of the graph unpacked. A layer may already have stored it packed under the same name. Every
        tensor begins at a multiple of ALIGNMENT, because kernels rely on that."""
        kept = self.known.setdefault(name, Constant(name, data))
        same = kept.data is data or _content(kept.data) == _content(data)
        packed = self.apart and kept.data is not data and name not in self.as_they_are
        storage = name if same and not packed else self._store(name, Packed("", data), packed=False)
        self.as_they_are.add(storage)
        least = ALIGNMENT if data.itemsize < ALIGNMENT else 0
        self.known[storage] = replace(self.known[storage], align=max(self.known[storage].align, align, least))
        return Operand(name, storage, data.nbytes, constant=True, role=name.rpartition(".")[2])

    def store_packed(self, packed: Packed, layer: str) -> Operand:
        """Store a packed constant, named after the layer that uses it: `<layer>.weight`."""
        stem = f"{layer}.{packed.role}"
        if self.slices and (found := self._find_within(stem, packed)) is not None:
            return found
        name = self._store(stem, packed)
        return Operand(name, name, packed.data.nbytes, constant=True, role=packed.role)

    def _find_within(self, stem: str, packed: Packed) -> Operand | None:
        """Find a constant in one that is stored under this name, or under another of the same stem."""
        kind, raw = packed.content
        for name, known_kind, known in self._stems.get(stem, ()):
            at = self.packs.find(raw, known) if known_kind == kind else -1
            if at >= 0 and at % max(4, packed.data.itemsize) == 0:
                return Operand(name, name, packed.data.nbytes, at, constant=True, role=packed.role)
        return None

    def _store(self, stem: str, what: Packed, packed: bool = True) -> str:
        """Return the name of these bytes: `stem`, unless other bytes have it, or these are stored already."""
        content = (packed or not self.apart, *what.content)
        if content not in self._by_content:
            name = self._by_content[content] = next(n for n in numbered(stem) if n not in self.known)
            self._stems.setdefault(stem, []).append((name, *what.content))
            self.known[name] = Constant(name, what.data)
        return self._by_content[content]


def _content(data: Array) -> tuple[str, bytes]:
    return data.dtype.name, data.tobytes()


def constants_of(call: Call[Any], kernel: Kernel[Any], constants: Constants) -> list[Operand]:
    """Store the constants of a call, and return their operands in order."""
    kept = call.inputs[: kernel.as_they_are] if kernel.pack else call.inputs
    found = [constants.store_plain(t.name, t.data, call.op.alignment) for t in kept if t.data is not None]
    if kernel.pack:
        own = call.op.layer(call.y) == call.y.name  # a layer in parts has several weights
        layer = (call.y.origin.path if own else "") or call.y.name
        found += [constants.store_packed(p, layer) for p in constants.packs.pack(call, kernel.pack)]
    return found
