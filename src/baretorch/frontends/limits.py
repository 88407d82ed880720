"""How much memory a file may ask for. A few bytes can name any size; nothing is allocated before it was added up."""

from __future__ import annotations

from math import prod

from baretorch.errors import CompileError
from baretorch.frontends.aten.program import AtenProgram, Ref

ROOM = 64 << 20  # bytes of one value, and of all that is computed from constants; no microcontroller has so much


def check_sizes(program: AtenProgram) -> None:
    """CompileError if a value of the program, or what it makes of constants, is larger than any that can be meant."""
    known = set(program.constants) - {s.name for s in program.state}
    folded = 0
    for call in program.calls:
        size = max((_bytes(shape) for shape in call.shapes if shape is not None), default=0)
        if size > ROOM:
            raise too_large(f"{call.target} makes {size:,} bytes", str(call.origin), trust=True)
        if all(name in known for name in _names(call.args)):
            folded += size
            known |= {name for name in call.results if name is not None}
    for i in program.inputs:
        if _bytes(i.shape) > ROOM:
            raise too_large(f"input {i.name} has {_bytes(i.shape):,} bytes", trust=True)
    if folded > ROOM + 4 * sum(c.nbytes for c in program.constants.values()):
        raise too_large(f"constants make {folded:,} bytes of constants", trust=True)


def _bytes(shape: tuple[int, ...]) -> int:
    return 4 * prod(shape)


def _names(args: object) -> list[str]:
    if isinstance(args, Ref):
        return [args.name]
    return [name for a in args for name in _names(a)] if isinstance(args, tuple) else []


def too_large(what: str, at: str = "", trust: bool = False) -> CompileError:
    """With `trust`, the user may allow it."""
    return CompileError(
        f"the model is too large to be meant for a microcontroller: {what}",
        at=at or None,
        need=f"at most {ROOM:,} bytes",
        try_="--trust (in Python trust=True), if that is what you want" if trust else None,
    )
