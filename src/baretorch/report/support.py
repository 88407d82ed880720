"""What is supported, read off the tables of operators and of ATen rows, so that it cannot be stale."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any

from baretorch.frontends.aten import TABLE
from baretorch.frontends.aten_fft import COMPLEX
from baretorch.frontends.lowering import Lowering
from baretorch.ir import DType, Op
from baretorch.ops import OPS
from baretorch.ops.fft import Fft, Irfft, Magnitude
from baretorch.ops.kernel import Kernel
from baretorch.targets.features import Needs

# As the symbols of kernels spell them.
_TYPES = {
    "f32": DType.FLOAT32,
    "s8": DType.INT8,
    "u8": DType.UINT8,
    "s32": DType.INT32,
    "s64": DType.INT64,
    "bool": DType.BOOL,
}


@dataclass(frozen=True)
class KernelSupport:
    """One C function: the element types it computes and the CPU features it needs."""

    symbol: str
    source: str
    dtypes: tuple[str, ...]
    needs: Needs

    @property
    def variant(self) -> str:
        """`ref`, `fpu`: the file it stands in."""
        return self.source.rpartition("/")[2].removesuffix(".c")


@dataclass(frozen=True)
class OpSupport:
    """An operator of the Graph: its meaning, its kernels and the ATen operators that become it."""

    name: str
    meaning: str
    kernels: tuple[KernelSupport, ...]
    aten: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        kernels = [
            {"symbol": k.symbol, "source": k.source, "dtypes": list(k.dtypes), "needs": k.needs.names()}
            for k in self.kernels
        ]
        return {"name": self.name, "meaning": self.meaning, "kernels": kernels, "aten": list(self.aten)}


def support() -> tuple[OpSupport, ...]:
    """All operators, in the order of OPS."""
    made = {target.removeprefix("aten::"): _ops_in(row) for target, row in TABLE.items()}
    for target, row in COMPLEX.items():
        made[target.removeprefix("aten::")] |= _ops_in(row) & {Fft, Irfft, Magnitude}  # not what these are made of
    return tuple(
        OpSupport(
            row.op.name,
            inspect.getdoc(row.op) or "",
            tuple(_kernel(k) for k in row.kernels),
            tuple(sorted(target for target, ops in made.items() if row.op in ops)),
        )
        for row in OPS
    )


def aten_names() -> tuple[str, ...]:
    """Every ATen operator that can be read, those that vanish (clone, dropout) included."""
    return tuple(sorted(target.removeprefix("aten::") for target in TABLE))


def _kernel(kernel: Kernel[Any]) -> KernelSupport:
    parts = kernel.symbol.split("_")
    dtypes = tuple(t.label for part, t in _TYPES.items() if part in parts)
    return KernelSupport(kernel.symbol, kernel.source, dtypes, kernel.needs)


def _ops_in(row: Callable[..., Any]) -> set[type[Op]]:
    """The Op classes that a row of the ATen table names, itself or through functions it calls. What the lowering
    does on the side (permuting weights and images) counts only for a row that does nothing else."""
    return set(_named(row, methods=False)) or set(_named(row, methods=True))


def _named(row: Callable[..., Any], methods: bool) -> Iterator[type[Op]]:
    seen: set[CodeType] = set()
    waiting: list[object] = [row]
    while waiting:
        found = waiting.pop()
        if isinstance(found, type) and issubclass(found, Op):
            yield found
        elif isinstance(found, FunctionType) and found.__module__.startswith(
            ("baretorch.frontends.", "baretorch.ops.")
        ):
            if found.__code__ not in seen:
                waiting += _mentions(found, methods)
            seen.add(found.__code__)


def _mentions(function: FunctionType, methods: bool) -> Iterator[object]:
    """What a function's code names: globals, members of global modules, and methods of the lowering."""
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        codes += [c for c in code.co_consts if isinstance(c, CodeType)]  # comprehensions and lambdas
        previous: object = None
        for step in dis.get_instructions(code):
            if step.opname == "LOAD_GLOBAL":
                previous = function.__globals__.get(step.argval)
                yield previous
                continue
            if step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
                if isinstance(previous, ModuleType):
                    yield getattr(previous, step.argval, None)
                elif methods:
                    yield getattr(Lowering, step.argval, None)
            previous = None
