"""Chooses the C names of a model, once for all its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from baretorch.emit.c import unique
from baretorch.escape import c_name, c_prefix, is_limit
from baretorch.ir.graph import Array, Graph, numbered
from baretorch.plan.schedule import Operand
from baretorch.plan.types import Bank, FromStream, Place, Plan, WithCaller

OF_METHODS = ("run", "run_in", "check", "start", *(f"part{core}" for core in range(1, 8)))  # functions
OF_MODELS = ("reset", "reset_in", "core", "core1", "done", "job", "meeting", "runs")  # functions and variables
MORE = ("_COUNT", "_OFFSET", "_SCALE", "_ZERO_POINT")  # macros of model.h beside a port's own


@dataclass(frozen=True, eq=False)
class CPort:
    """An input or output of a method: its parameter name, its macro, and its place."""

    name: str
    macro: str
    operand: Operand
    place: Place

    @property
    def pulled(self) -> bool:
        """Report whether the caller supplies its rows on request."""
        return isinstance(self.place, FromStream)

    @property
    def direct(self) -> bool:
        """Report whether the tensor stays in the caller's buffer."""
        return isinstance(self.place, WithCaller)


@dataclass(frozen=True)
class Arena:
    """The array in one bank of RAM: its C name, its name inside a run function, and its section."""

    bank: str
    name: str
    parameter: str
    section: str
    bytes: int


@dataclass(frozen=True)
class Method:
    """One run function: its plan, and the names of its parts. The first of the arenas is the main one."""

    plan: Plan
    arenas: tuple[Arena, ...]
    prefix: str
    inputs: tuple[CPort, ...]
    outputs: tuple[CPort, ...]
    constants: Mapping[str, str]  # the plan's constant -> its C array

    @property
    def run(self) -> str:
        return f"{self.prefix}_run"

    @property
    def check(self) -> str:
        return f"{self.prefix}_check"

    @cached_property
    def callers(self) -> dict[str, CPort]:
        """Return by buffer the ports whose memory belongs to the caller, and the inputs that are read row by row."""
        return {p.operand.storage: p for p in self.ports if p.direct or p.pulled}

    @cached_property
    def written(self) -> frozenset[str]:
        """Return the parameters that a run writes to."""
        return frozenset(p.name for p in self.outputs)

    def arena(self, bank: str) -> Arena:
        return next(a for a in self.arenas if a.bank == bank)

    @property
    def ports(self) -> tuple[CPort, ...]:
        return (*self.inputs, *self.outputs)


@dataclass(frozen=True)
class StoredArray:
    """A C array of constants, the bank of RAM that it is copied to at start-up, if any, and its alignment."""

    data: Array
    bank: str
    align: int = 0


@dataclass(frozen=True)
class CNames:
    """The names of a model. Its methods share the arenas and the constants; equal constants are one array."""

    model: str
    arenas: tuple[Arena, ...]
    methods: Mapping[str, Method]
    constants: Mapping[str, StoredArray]  # by the C array
    globals: frozenset[str]  # all functions and arrays
    checked: bool = False  # methods have a function that checks their inputs
    command: str = ""  # that makes this C, if it is known
    alone: bool = False  # the model has core 1 for itself
    team: bool = False  # cores are those of a cluster

    @property
    def flash(self) -> str:
        """Return the qualifier before the type of constants in flash: a macro on chips where flash has its own address
        space."""
        return "BT_FLASH " if self.first.plan.layout.flash_apart else ""

    @property
    def first(self) -> Method:
        return next(iter(self.methods.values()))


def make_names(name: str, plans: Mapping[str, Plan], checked: bool = False) -> CNames:
    """Choose names for a model with these methods. A model with one method uses the model's name alone."""
    model = c_prefix(name)
    arenas = _arenas(model, [bank for plan in plans.values() for bank in plan.layout.banks])
    globals_ = {f"{model}_{own}" for own in (*OF_METHODS, *OF_MODELS)} | {a.name for a in arenas}
    prefixes = {key: _prefix(model, key, globals_) if len(plans) > 1 else model for key in plans}
    arrays: dict[str, StoredArray] = {}
    by_content: dict[tuple[str, str, bytes], str] = {}
    constants: dict[str, dict[str, str]] = {key: {} for key in plans}
    for key, plan in plans.items():
        for c in plan.layout.constants:
            content = (plan.layout.copies.get(c.name, ""), c.data.dtype.name, c.data.tobytes())
            if content not in by_content:
                by_content[content] = unique(f"{model}_{c.name}", globals_)
                arrays[by_content[content]] = StoredArray(c.data, plan.layout.copies.get(c.name, ""))
            constants[key][c.name] = stored = by_content[content]
            arrays[stored] = replace(arrays[stored], align=max(arrays[stored].align, c.align))
    up = model.upper()
    macros = {f"{up}_MODEL_H", f"{up}_WEIGHTS_H", *(f"{a.name}_bytes".upper() for a in arenas)}
    methods = {}
    for key, plan in plans.items():
        own = {bank.name for bank in plan.layout.banks}
        taken = {a.parameter for a in arenas} | globals_
        prefix = prefixes[key]
        inputs = tuple(_port(plan, prefix, o, o.tensor, taken, macros) for o in plan.inputs)
        labelled = zip(plan.outputs, output_labels(plan.graph), strict=True)
        outputs = tuple(_port(plan, prefix, operand, label, taken, macros) for operand, label in labelled)
        there = tuple(a for a in arenas if a.bank in own)
        methods[key] = Method(plan, there, prefix, inputs, outputs, constants[key])
    return CNames(model, arenas, methods, arrays, frozenset(globals_), checked)


def _prefix(model: str, method: str, taken: set[str]) -> str:
    """Return the prefix of a method's functions, and reserve their names."""
    prefixes = numbered(c_prefix(f"{model}_{method}"))
    prefix = next(p for p in prefixes if taken.isdisjoint(f"{p}_{own}" for own in OF_METHODS))
    taken |= {f"{prefix}_{own}" for own in OF_METHODS}
    return prefix


def _arenas(model: str, banks: Sequence[Bank]) -> tuple[Arena, ...]:
    """Return one arena per bank, as large as the method that needs most. The first, the main one of all methods, is
    "the arena"."""
    arenas: list[Arena] = []
    for bank in {b.name: b for b in banks}.values():
        suffix = f"_{c_name(bank.name.lower())}" if arenas else ""
        section = model if bank.home else f"{bank.name}.{model}"
        size = max(b.size for b in banks if b.name == bank.name)
        arenas.append(Arena(bank.name, f"{model}_arena{suffix}", f"arena{suffix}", section, size))
    return tuple(arenas)


def output_labels(graph: Graph) -> tuple[str, ...]:
    """Return the names of the outputs: the model's own names, else y, or y0, y1 …"""
    single = len(graph.outputs) == 1
    return graph.labels or tuple("y" if single else f"y{i}" for i in range(len(graph.outputs)))


def _port(plan: Plan, prefix: str, operand: Operand, text: str, taken: set[str], macros: set[str]) -> CPort:
    name = unique(text, taken)
    free = (m for m in numbered(f"{prefix}_{name}".upper()) if macros.isdisjoint(f"{m}{more}" for more in ("", *MORE)))
    macro = next(m for m in free if not is_limit(m))
    macros |= {f"{macro}{more}" for more in ("", *MORE)}
    return CPort(name, macro, operand, plan.layout.place(operand))
