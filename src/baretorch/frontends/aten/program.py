"""The ATen program that every PyTorch frontend produces, before it becomes a Graph.

`frontends/torch/` makes one from an ExportedProgram, `frontends/pte/` from an ExecuTorch file; `table.py` turns
either into the same Graph. Values are named; arguments stand in the order of the ATen schema, complete,
without `out` arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType
from typing import TypeAlias, Union

from baretorch.escape import graph_name, line
from baretorch.frontends.untrusted import ROOM, Made, check_folded, most_bytes, too_large
from baretorch.ir.graph import NOWHERE, Array, DType, Origin, Shape

BOUND = (bool, int, float, str, NoneType)  # among example inputs: what torch.export makes a constant of


@dataclass(frozen=True)
class Ref:
    """The value called `name`: an input, a constant or the result of a call."""

    name: str


Arg: TypeAlias = Union[Ref, int, float, complex, bool, str, tuple["Arg", ...], None]  # noqa: UP007 (a forward reference)


@dataclass(frozen=True)
class AtenCall:
    """One ATen operator: `results` names its results, with None for one that is never read."""

    target: str  # "aten::linear", without overload and without "_copy" or "_" suffixes of its out and view variants
    args: tuple[Arg, ...]
    results: tuple[str | None, ...]
    shapes: tuple[Shape | None, ...]  # of the results, as the frontend knows them; checked against the Graph's
    origin: Origin = NOWHERE

    @property
    def between(self) -> bool:
        """Report whether it only rounds values between layers."""
        return self.target.startswith("quantized_decomposed::")


@dataclass(frozen=True)
class AtenInput:
    """An input as the caller sees it. `shape` and `order` together give the memory format: `order` lists the
    dimensions from outermost to innermost in memory: (0, 1, 2, 3) contiguous, (0, 2, 3, 1) channels last."""

    name: str
    shape: Shape
    dtype: DType
    order: tuple[int, ...]

    @property
    def stored(self) -> Shape:
        """Return the shape in memory."""
        return tuple(self.shape[d] for d in self.order)


@dataclass(frozen=True)
class AtenState:
    """A buffer that the program changes: `constants[name]` is its initial value, `next` its value after a run."""

    name: str
    next: str


@dataclass(frozen=True)
class AtenProgram:
    """A program. `outputs` name values; an output may be an input or a constant. `constants` hold contiguous data."""

    name: str
    inputs: tuple[AtenInput, ...]
    constants: Mapping[str, Array]
    calls: tuple[AtenCall, ...]
    outputs: tuple[str, ...]
    output_orders: tuple[tuple[int, ...], ...]  # memory format of each output, as `AtenInput.order`
    state: tuple[AtenState, ...] = ()
    labels: tuple[str, ...] = ()  # names of the outputs, if the program has some
    notes: tuple[str, ...] = field(default=())  # notes of the reader for the user
    file: str = ""  # the file that it was read from, which may be damaged
    halves: tuple[DType | None, ...] = ()  # for each output its type if that is float16 or bfloat16; empty: none is

    @property
    def quantized(self) -> bool:
        """Report whether the program was already quantized."""
        return any(call.target.startswith(("quantized_decomposed::", "cortex_m::")) for call in self.calls)

    def layer(self, call: AtenCall) -> Origin:
        """Return the origin of a call in the user's model. A call between layers belongs to the layer that computed its
        value, or to the first that reads it."""
        makers = {name: c for c in self.calls for name in c.results}
        takers = {ref.name: c for c in reversed(self.calls) for ref in refs(c.args)}
        before: AtenCall | None = call
        while before is not None and before.between:
            before = next((makers[ref.name] for ref in refs(before.args) if ref.name in makers), None)
        after: AtenCall | None = call
        while after is not None and after.between:
            after = takers.get(after.results[0] or "")
        return next((c.origin for c in (before, after) if c is not None), call.origin)

    def text(self) -> str:
        """Print one line per call."""
        lines = [f"input  {graph_name(i.name)}: {i.dtype.label}{list(i.shape)}" for i in self.inputs]
        for name, data in self.constants.items():
            kind = "state" if name in {s.name for s in self.state} else "const"
            lines.append(f"{kind}  {graph_name(name)}: {data.dtype.name}{list(data.shape)}")
        for call in self.calls:
            results = ", ".join(graph_name(r) if r else "_" for r in call.results)
            where = f"  # {line(str(call.origin))}" if str(call.origin) else ""
            lines.append(f"{results} = {call.target}({', '.join(map(show, call.args))}){where}")
        lines.append(f"output {', '.join(map(graph_name, self.outputs))}")
        lines += [f"next   {graph_name(s.name)} = {graph_name(s.next)}" for s in self.state]
        return "\n".join(lines)


def refs(args: Sequence[Arg]) -> Iterator[Ref]:
    """Yield the values among arguments."""
    for a in args:
        if isinstance(a, Ref):
            yield a
        elif isinstance(a, tuple):
            yield from refs(a)


def show(arg: Arg) -> str:
    """Format an argument."""
    if isinstance(arg, Ref):
        return graph_name(arg.name)
    if isinstance(arg, tuple):
        return f"[{', '.join(map(show, arg))}]"
    return repr(arg)


def check_program_sizes(program: AtenProgram) -> None:
    """Raise CompileError if a value of the program, or one computed from constants, is unreasonably large."""
    sizes = [max((most_bytes(shape) for shape in c.shapes if shape is not None), default=0) for c in program.calls]
    for call, size in zip(program.calls, sizes, strict=True):
        if size > ROOM:
            raise too_large(f"{call.target} makes {size:,} bytes", str(call.origin), trust=True)
    for i in program.inputs:
        if (size := most_bytes(i.shape)) > ROOM:
            raise too_large(f"input {i.name} has {size:,} bytes", trust=True)
    made = (Made(c.results, [r.name for r in refs(c.args)], size) for c, size in zip(program.calls, sizes, strict=True))
    known = set(program.constants) - {s.name for s in program.state}
    check_folded(made, known, sum(c.nbytes for c in program.constants.values()))
