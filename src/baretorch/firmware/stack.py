"""Compute a bound on the stack: the compiler's frame sizes along the deepest chain of calls.

- Library functions have no such data, and compilers do not count what inline assembly pushes. So all instructions of a
  function that lower the stack pointer are added up, and the larger of both sizes counts. That is enough unless one of
  them is in a loop, which compilers do not generate.
- A function whose address is taken counts as called there. This includes a trap handler that start-up code installs.
- Interrupts are not part of a function's bound. The one handler of an image has its own bound, with the registers that
  the core saves before it. The first function of another core has a stack of its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from baretorch.firmware import avr, riscv, thumb
from baretorch.firmware.calls import DECODERS
from baretorch.firmware.elf import ARM, AVR, EXECUTE, FUNC, LOCAL, NOTYPE, RISCV, Elf
from baretorch.firmware.instructions import Instruction, split
from baretorch.firmware.reach import references

SAVED, SAVED_FLOATS = 36, 72  # bytes: eight registers and a word to align the stack; 17 of the FPU's and an unused one


@dataclass(frozen=True)
class StackBound:
    """A bound in bytes, or None with the reason why there is no bound."""

    bytes: int | None
    reason: str = ""


@dataclass(frozen=True)
class CFunction:
    name: str
    address: int
    end: int


@dataclass(frozen=True)
class _Body:
    """Facts from a function's instructions."""

    growth: int | None  # of the stack, by all instructions; None if a register has the number
    pointer: bool  # calls through a pointer
    calls: frozenset[int]  # addresses called


def _sum(moves: Iterable[int | None]) -> int | None:
    total = 0
    for move in moves:
        if move is None:
            return None
        total += move
    return total


def frames_of_gcc(files: Iterable[str]) -> dict[str, int | None]:
    """Return frame sizes by function name from the texts of .su files; None if the size depends on the input.

    Clones (f.constprop.0) and equal names of static functions are joined under the plain name: the largest counts.
    """
    frames: dict[str, int | None] = {}
    for text in files:
        for line in text.splitlines():
            place, size, kind = line.split("\t")
            name = _plain(place.rpartition(":")[2])
            bounded = kind != "dynamic"
            known = frames.get(name, 0)
            frames[name] = max(known, int(size)) if bounded and known is not None else None
    return frames


def frames_of_clang(elf: Elf) -> dict[int, int]:
    """Return frame sizes by address from the section .stack_sizes: pairs of an address and a LEB128 number."""
    frames: dict[int, int] = {}
    width = elf.bits // 8
    for section in elf.sections:
        if section.name != ".stack_sizes":
            continue
        at = 0
        while at + width < len(section.data):
            address = int.from_bytes(section.data[at : at + width], "little") & (~1 if elf.machine == ARM else ~0)
            at += width
            size = shift = 0
            while at < len(section.data):
                byte = section.data[at]
                size |= (byte & 0x7F) << shift
                shift, at = shift + 7, at + 1
                if byte < 0x80:
                    break
            frames[address] = size
    return frames


def _plain(name: str) -> str:
    return name.split(".")[0] or name


class CallGraph:
    """The functions of an image, their frames and their calls."""

    def __init__(
        self, elf: Elf, by_name: Mapping[str, int | None], by_address: Mapping[int, int], apart: frozenset[int]
    ) -> None:
        """Build the graph. `apart` are addresses of functions that run on another stack than their callers, or are
        counted separately."""
        self.elf = elf
        self._by_name = by_name
        self._by_address = by_address
        self._apart = apart

    def bound(self, root: int) -> StackBound:
        """Return the deepest stack of the function at an address, including its own frame."""
        if self.elf.machine not in (ARM, RISCV, AVR):
            return StackBound(None, "programs for the host use the host's stack")
        start = self.function_at(root)
        if start is None:
            return StackBound(None, f"no function at {root:#x}")
        return self._deepest(start, {}, [])

    def function_at(self, address: int) -> CFunction | None:
        i = bisect_right(self._starts, address) - 1
        return self.functions[i] if i >= 0 and address < self.functions[i].end else None

    @cached_property
    def functions(self) -> tuple[CFunction, ...]:
        """Return the functions by address, without labels inside functions. One without a size (assembly) ends where
        the next begins."""
        code = {s.index: s for s in self.elf.sections if s.flags & EXECUTE}
        labels = [s for s in self.elf.symbols if s.section in code and not s.name.startswith("$")]
        typed = {s.address: s for s in labels if s.type == FUNC}
        plain = {s.address: s for s in labels if s.type == NOTYPE and s.binding != LOCAL}
        starts = sorted({**plain, **typed}.items())
        found: list[CFunction] = []
        for i, (address, symbol) in enumerate(starts):
            if found and address not in typed and address < found[-1].end:
                continue
            section = code[symbol.section]
            limit = section.address + section.size
            if i + 1 < len(starts):
                limit = max(address, min(limit, starts[i + 1][0]))
            found.append(CFunction(symbol.name, address, address + symbol.size if symbol.size else limit))
        return tuple(found)

    @cached_property
    def _starts(self) -> tuple[int, ...]:
        return tuple(f.address for f in self.functions)

    @cached_property
    def _bodies(self) -> dict[CFunction, _Body]:
        return {f: self._read_body(f) for f in self.functions}

    def _read_body(self, f: CFunction) -> _Body:
        decoder = DECODERS[self.elf.machine]
        found = [i for at, raw in self._code(f) for i in split(raw, at, decoder.is_long)]
        pairs = list(zip([None, *found], found, strict=False))
        targets = (decoder.call_target(before, i) for before, i in pairs)
        return _Body(
            growth=self._growth(found, pairs),
            pointer=any(decoder.is_indirect_call(before, i) for before, i in pairs),
            calls=frozenset(t for t in targets if t is not None),
        )

    def _growth(
        self, found: Sequence[Instruction], pairs: Iterable[tuple[Instruction | None, Instruction]]
    ) -> int | None:
        """Return the growth of the stack. On AVR it includes the return address, as in gcc's figures."""
        if self.elf.machine == AVR:
            return avr.stack_growth(found, avr.RETURN_BYTES[self.elf.flags & 0x7F], self._saves)
        growth = thumb.stack_growth if self.elf.machine == ARM else riscv.stack_growth
        return _sum(growth(before, i) for before, i in pairs)

    @cached_property
    def _saves(self) -> range:
        """Return the addresses of libgcc's function that saves registers on AVR."""
        return next((range(f.address, f.end) for f in self.functions if f.name == "__prologue_saves__"), range(0))

    @cached_property
    def _calls(self) -> dict[CFunction, set[CFunction]]:
        """Return the calls of each function: call instructions, and every other reference to a function, because its
        address may be called. Jumps within a function do not count."""
        calls: dict[CFunction, set[CFunction]] = {f: set() for f in self.functions}
        for f, body in self._bodies.items():
            far = range(f.address + 1, f.end)  # Armv6-M jumps with a call if the target is too far for a branch
            called = (self.function_at(at) for at in body.calls if at not in far)
            calls[f].update(g for g in called if g is not None and g.address not in self._apart)
        for r in references(self.elf):
            source, target = self.function_at(r.source), self.function_at(r.target)
            if source is not None and target is not None and source != target and target.address not in self._apart:
                calls[source].add(target)
        return calls

    def _frame(self, f: CFunction) -> StackBound:
        body = self._bodies[f]
        if body.pointer:
            return StackBound(None, f"{f.name} calls through a pointer")
        if f.address in self._by_address:
            return StackBound(max(self._by_address[f.address], body.growth or 0))
        if _plain(f.name) in self._by_name:
            frame = self._by_name[_plain(f.name)]
            if frame is None:
                return StackBound(None, f"{f.name} has a frame of variable size")
            return StackBound(max(frame, body.growth or 0))
        return StackBound(body.growth, "" if body.growth is not None else f"{f.name} has no stack data")

    def _code(self, f: CFunction) -> list[tuple[int, bytes]]:
        """Return the function's instructions; on Arm without the literals between them."""
        section = self.elf.section_at(f.address)
        if section is None:
            return []
        start, end = f.address, min(f.end, section.address + len(section.data))
        marks = [(a, kind) for a, kind in self._marks if start < a < end]
        before = bisect_right(self._marks, (start, "$~")) - 1
        kind = self._marks[before][1] if before >= 0 else "$t"
        ranges: list[tuple[int, bytes]] = []
        for (a, k), (b, _) in zip([(start, kind), *marks], [*marks, (end, "")], strict=True):
            if k != "$d":
                ranges.append((a, section.data[a - section.address : b - section.address]))
        return ranges

    @cached_property
    def _marks(self) -> list[tuple[int, str]]:
        """Return the addresses where Arm's code ($t) and data ($d) begin."""
        if self.elf.machine != ARM:
            return []
        return sorted({(s.value, s.name[:2]) for s in self.elf.symbols if s.name[:2] in ("$t", "$d")})

    def _deepest(self, f: CFunction, known: dict[CFunction, StackBound], path: list[CFunction]) -> StackBound:
        if f in path:
            return StackBound(None, f"recursion: {' -> '.join(g.name for g in [*path[path.index(f) :], f])}")
        if f not in known:
            own = self._frame(f)
            below = 0
            for callee in sorted(self._calls[f], key=lambda g: g.address):
                bound = self._deepest(callee, known, [*path, f]) if own.bytes is not None else own
                if bound.bytes is None:
                    own = bound
                    break
                below = max(below, bound.bytes)
            known[f] = own if own.bytes is None else StackBound(own.bytes + below)
        return known[f]


def stack_bound(
    elf: Elf, root: str, by_name: Mapping[str, int | None] | None = None, apart: Iterable[str] = ()
) -> StackBound:
    """Return the stack that the function `root` needs. `by_name` is gcc's data; clang's is in the image. `apart` are
    the entry points of other cores, and interrupt handlers."""
    graph = CallGraph(elf, by_name or {}, frames_of_clang(elf), frozenset(elf.symbol(f).address for f in apart))
    return graph.bound(elf.symbol(root).address)


def interrupt_bound(elf: Elf, handler: str, by_name: Mapping[str, int | None], fpu: bool) -> StackBound:
    """Return the stack that an interrupt needs: the aligned registers that a Cortex-M saves, with those of its FPU if
    it has one, and the handler. An AVR saves the return address, as for a call."""
    bound = stack_bound(elf, handler, by_name)
    if elf.machine == AVR:
        return bound
    return StackBound(bound.bytes + SAVED + (SAVED_FLOATS if fpu else 0)) if bound.bytes is not None else bound
