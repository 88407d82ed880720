"""Generates model.c: one instance per kind of layer, and the run functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import indent

from baretorch.emit.c import c_type, literal, unique
from baretorch.emit.cores import ask_core1, core1, helpers, job, meet, part, shares
from baretorch.emit.names import CNames, CPort, Method
from baretorch.emit.spell import (
    at,
    banner,
    copy_call,
    copy_headers,
    input_parameters,
    parameters,
    parameters_in,
    port_tensor,
    word_count,
)
from baretorch.escape import comment
from baretorch.ir.graph import DType
from baretorch.ir.text import attributes
from baretorch.ops.helpers.executor import CORE0, NPU, Executor
from baretorch.ops.helpers.kernel import Params
from baretorch.options import Optimize
from baretorch.plan.guards import shared_start
from baretorch.plan.schedule import Guard, Operand, Step
from baretorch.plan.types import FromStream, InArena, InFlash, Place, WithCaller

INDENT = "    "

_ELSEWHERE = """
/* The same in another bank of RAM. */
#define IN(arena, type, offset) ((type *)(void *)((uint8_t *)(arena) + (offset)))
"""


def included_name(source: str) -> str:
    """Return the name of a kernel's file that model.c includes, because SDKs compile every .c file that they find."""
    return source.removesuffix(".c") + ".inc" if source.endswith(".c") else source


@dataclass(frozen=True)
class ModelC:
    """The file's text, and for each method the lines (from 1) of the calls that are its steps on core 0, in order."""

    text: str
    lines: Mapping[str, tuple[int, ...]]


def model_c(names: CNames, optimize: Optimize) -> ModelC:
    """Generate model.c. When optimizing for speed, each kind of layer is an instance of its kernel with literal
    parameters."""
    inline = optimize == Optimize.SPEED
    ports = {p.name for m in names.methods.values() for p in m.ports}
    writer = _Writer(names, inline, taken={*names.globals, *ports})
    methods = "\n".join(_method(names, m, writer) for m in names.methods.values())
    steps = [step for m in names.methods.values() for step in m.plan.steps]
    sources = sorted({included_name(s.kernel.source) if inline else s.kernel.header for s in steps})
    includes = "\n".join(f'#include "kernels/{s}"' for s in sources)
    define = "#define BT_INLINE_KERNELS\n" if inline else ""
    definitions = "\n".join(writer.definitions)
    npu = " __attribute__((aligned(16)))" if any(step.executor == NPU for step in steps) else ""
    arenas = "\n".join(f"BT_ARENA({a.section}){npu} uint32_t {a.name}[{word_count(a.bytes)}];" for a in names.arenas)
    elsewhere = _ELSEWHERE if len(names.arenas) > 1 else ""
    own = dict.fromkeys([*(["finite.h"] if names.checked else []), *helpers(names), *copy_headers(names)])
    helpful = "".join(f'#include "kernels/{header}"\n' for header in own)
    text = f"""{banner(names, "the computation")}
{define}#include "kernels/bt.h"
{helpful}{includes}

#include "model.h"
#include "weights.h"

{arenas}

/* The tensor at `offset` bytes in the arena. */
#define AT(type, offset) ((type *)(void *)((uint8_t *)arena + (offset)))
{elsewhere}
{definitions}
{job(names)}{methods}{core1(names)}{_reset(names)}"""
    return ModelC(text, {key: _lines(text, m, writer.written[m.run]) for key, m in names.methods.items()})


def _lines(text: str, method: Method, steps: Sequence[str]) -> tuple[int, ...]:
    """Return the lines of the steps with these texts."""
    found, at, line = [], 0, 1
    for piece in (f"void {method.run}_in(", *steps):
        end = text.index(piece, at) + len(piece)
        line += text.count("\n", at, end)
        at = end
        found.append(line)
    return tuple(found[1:])


def _method(names: CNames, method: Method, writer: _Writer) -> str:
    body = writer.body(method, CORE0)
    copies_in = "\n".join(_copy_in(method, p) for p in method.inputs if not (p.pulled or p.direct))
    copies_out = "\n".join(_copy_out(method, p) for p in method.outputs if not p.direct)
    arenas = ", ".join(a.name for a in method.arenas)
    arguments = "".join(f", {p.name}" for p in method.ports)
    unused = "".join(f"    (void){name};\n" for name in _idle(method))
    before, begin = "", ""
    if shares(method):
        others = method.plan.schedule.cores[1:]
        before = "".join(part(names, method, core.number, writer.body(method, core)) for core in others)
        begin = ask_core1(names, method)
        body += f"\n{meet(names, 0)}  {comment('all are done' if names.team else 'both are done')}"
    return f"""{before}void {method.run}_in({parameters_in(method)})
{{
{unused}{copies_in}
{begin}{body}

{copies_out}
}}

void {method.run}({parameters(method)})
{{
    {method.run}_in({arenas}{arguments});
}}
{_check(method) if names.checked else ""}"""


def _check(method: Method) -> str:
    """Return the function that finds NaN and infinity among the inputs, before a run."""
    lines = []
    for i, p in enumerate(method.inputs, 1):
        if port_tensor(method, p).dtype is DType.FLOAT32:
            lines += [f"    if (!bt_all_finite({p.name}, {p.macro}_COUNT))", f"        return {i};"]
        else:
            lines.insert(0, f"    (void){p.name};")
    body = "\n".join([*lines, "    return 0;"])
    return f"""
int {method.check}({input_parameters(method)})
{{
{body}
}}
"""


def _idle(method: Method) -> Iterator[str]:
    """Yield casts for parameters that the run function does not use, because C compilers warn about them."""
    copied = [p.operand for p in method.ports if not (p.direct or p.pulled)]
    layout = method.plan.layout
    steps = [step for step in method.plan.steps if not step.is_empty]
    conditions = [guard.condition for step in method.plan.steps for guard in step.guards]
    places: list[Place] = [layout.place(o) for o in (*copied, *conditions, *(o for step in steps for o in step.uses))]
    places += [layout.scratch(step.scratch) for step in steps if step.scratch]
    places += [layout.place(o) for step in steps for o in step.operands if o.buffer]
    places += [layout.place(o) for c in method.plan.schedule.copies.values() for o in (c.source, c.target)]
    banks = {place.bank for place in places if isinstance(place, InArena)}
    yield from (a.parameter for a in method.arenas if a.bank not in banks)
    used = {place.buffer for place in places if isinstance(place, WithCaller)}
    used |= {place.input for place in places if isinstance(place, FromStream)}
    yield from (p.name for name, p in method.callers.items() if name not in used)


def _reset(names: CNames) -> str:
    """Return the reset function. All methods have the same state at the same place."""
    method = names.first
    if not method.plan.state:
        return ""
    lines = []
    for s in method.plan.state:
        t = method.plan.graph[s.operand.tensor]
        target = at(method, method.plan.layout.place(s.operand), "void")
        if s.initial is None:
            lines.append(f"    __builtin_memset({target}, 0, {t.bytes});")
        else:
            lines.append(f"    __builtin_memcpy({target}, {method.constants[s.initial]}, {t.bytes});")
    body = "\n".join(lines)
    return f"""
void {names.model}_reset_in(void *arena)
{{
{body}
}}

void {names.model}_reset(void)
{{
    {names.model}_reset_in({names.arenas[0].name});
}}
"""


def _copy_in(method: Method, port: CPort) -> str:
    t = port_tensor(method, port)
    target = at(method, port.place, t.dtype.c)
    return f"    if ({port.name} != NULL)\n        __builtin_memcpy({target}, {port.name}, {t.bytes});"


def _copy_out(method: Method, port: CPort) -> str:
    t = port_tensor(method, port)
    source = at(method, port.place, t.dtype.c)
    return f"    if ({port.name} != NULL)\n        __builtin_memcpy({port.name}, {source}, {t.bytes});"


@dataclass
class _Writer:
    """Writes steps and collects the definitions that they need; methods share them."""

    names: CNames
    inline: bool
    definitions: list[str] = field(default_factory=list)
    instances: dict[tuple[object, ...], str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    written: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # core 0's steps of run functions

    def body(self, method: Method, executor: Executor) -> str:
        """Return the steps of an executor in order; steps with the same guards share their ifs."""
        lines: list[str] = []
        open_: tuple[Guard, ...] = ()
        for step in method.plan.schedule.on(executor):
            if not isinstance(step, Step):
                lines += [f"{INDENT * depth}}}" for depth in range(len(open_), 0, -1)]
                lines.append(meet(self.names, executor.number) if step is None else copy_call(self.names, method, step))
                open_ = ()
                continue
            shared = shared_start(open_, step.guards)
            lines += [f"{INDENT * depth}}}" for depth in range(len(open_), shared, -1)]
            for depth, guard in enumerate(step.guards[shared:], shared + 1):
                holds = "" if guard.holds else "!"
                lines.append(f"{INDENT * depth}if ({holds}*{self.argument(method, guard.condition)}) {{")
            open_ = step.guards
            lines.append(indent(self.step(method, step), INDENT * len(open_)))
            if executor == CORE0:
                self.written[method.run].append(lines[-1])
        lines += [f"{INDENT * depth}}}" for depth in range(len(open_), 0, -1)]
        return "\n".join(lines)

    def step(self, method: Method, step: Step) -> str:
        call, out = step.call, step.call.y
        shapes = ", ".join(t.type for t in call.inputs if t.data is None)
        what = f"{call.op.name} {attributes(call.op)}".strip()
        about = comment(f"{str(out.origin) or out.name}: {what}: {shapes} -> {out.type}", indent="    ")
        if step.is_empty:
            return about
        arguments = ", ".join(self.argument(method, o) for o in step.operands)
        if step.scratch:
            arguments += f", {at(method, method.plan.layout.scratch(step.scratch), 'void')}"
        if self.inline:
            return f"{about}\n    {self.instance(method, step)}({arguments});"
        function, given = step.function, self.parameters(step)
        if not self.names.flash:
            return f"{about}\n    {function}(&{given}, {arguments});"
        copy = f"const {step.params.struct} p = {given};"  # kernels take them in RAM, as those of activations
        return f"{about}\n    {{\n        {copy}\n        {function}(&p, {arguments});\n    }}"

    def argument(self, method: Method, operand: Operand) -> str:
        if operand.constant and operand.buffer:
            kind = c_type(method.plan.layout.constant(operand.storage).data)
            return at(method, method.plan.layout.place(operand), f"const {kind}")
        tensor = method.plan.graph.tensors.get(operand.tensor)  # packed constants are none
        return at(method, method.plan.layout.place(operand), tensor.dtype.c if tensor else "void")

    def instance(self, method: Method, step: Step) -> str:
        """Return the function for this kernel with these parameters; equal layers share it."""
        key = (step.function, step.params, tuple(kind for kind, _ in self.arguments(method, step)))
        if key not in self.instances:
            name = unique(f"{step.call.op.name}_{len(self.instances) + 1}", self.taken)
            self.instances[key] = name
            arguments = list(self.arguments(method, step))
            declared = ", ".join(f"{kind} *{arg}" for kind, arg in arguments)
            passed = ", ".join(arg for _, arg in arguments)
            self.definitions.append(
                f"BT_LAYER void {name}({declared})\n{{\n    static const {_struct(step.params, 'p', 4)}\n"
                f"    {step.function}(&p, {passed});\n}}\n"
            )
        return self.instances[key]

    def parameters(self, step: Step) -> str:
        """Return the constant parameter struct of this step; equal ones are shared."""
        key = (step.params.struct, step.params)
        if key not in self.instances:
            name = unique(f"{step.call.op.name}_{len(self.instances) + 1}", self.taken)
            self.instances[key] = name
            self.definitions.append(f"static const {self.names.flash}{_struct(step.params, name, 0)}\n")
        return self.instances[key]

    def arguments(self, method: Method, step: Step) -> Iterator[tuple[str, str]]:
        """Yield type and name of each argument of an instance."""
        taken = {"p", *self.names.globals}
        outputs = {t.name for t in step.call.outputs}
        plan = method.plan
        for o in step.operands:
            if o.constant:
                space = self.names.flash if isinstance(plan.layout.place(o), InFlash) else ""
                yield f"const {space}{c_type(plan.layout.constant(o.storage).data)}", unique(o.role, taken)
            elif o.tensor in outputs:
                yield plan.graph[o.tensor].dtype.c, unique("y", taken)
            elif isinstance(plan.layout.place(o), FromStream):
                yield "const bt_row_source", unique("x", taken)
            else:
                yield f"const {plan.graph[o.tensor].dtype.c}", unique("x", taken)
        if step.scratch:
            yield "void", unique("scratch", taken)


def _struct(params: Params, name: str, indent: int) -> str:
    pad = " " * indent
    fields = "".join(f"{pad}    .{f} = {literal(v)},\n" for f, v in params.fields)
    return f"{params.struct} {name} = {{\n{fields}{pad}}};"
