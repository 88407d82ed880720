"""model.h and model.c: the interface, one instance per kind of layer, and the run function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from baretorch import __version__
from baretorch.emit.c import c_type, literal, unique
from baretorch.emit.names import Names, Port, role
from baretorch.ops.kernel import Params
from baretorch.plan.types import Operand, Plan, Step
from baretorch.text import attributes


def banner(plan: Plan, names: Names, what: str) -> str:
    return f"/* {names.model}: {what}\n * Made by Baretorch {__version__} for {plan.cpu}. */"


def model_h(plan: Plan, names: Names) -> str:
    """The interface of the model: shapes, sizes and one call."""
    up = names.upper
    ports = [(p, "input") for p in names.inputs] + [(p, "output") for p in names.outputs]
    about = "\n".join(f" *   {kind:6}  {p.name:8}  {_port_type(plan, p)}" for p, kind in ports)
    sizes = "\n".join(f"#define {p.macro}_COUNT {plan.graph[p.operand.tensor].count} /* elements */" for p, _ in ports)
    slots = "\n".join(f"#define {p.macro} {_slot(plan, names, p)}" for p, _ in ports)
    offsets = "\n".join(
        f"#define {p.macro}_OFFSET {_offset(plan, p.operand)}" for p, _ in ports if not p.operand.constant
    )
    constants = "".join(
        f"extern const {c_type(c.data)} {names.constants[c.name]}[{max(c.data.size, 1)}];\n"
        for c in plan.constants
        if any(o.constant and o.storage == c.name for o in plan.outputs)
    )
    return f"""{banner(plan, names, "interface")}
#ifndef {up}_MODEL_H
#define {up}_MODEL_H

#include <stddef.h>
#include <stdint.h>

/* Inputs and outputs, with their shapes in memory order:
{about}
 */
{sizes}

/* RAM the model works in, inputs and outputs included. */
#define {up}_ARENA_BYTES {plan.arena}
extern uint32_t {names.arena}[{max(plan.arena // 4, 1)}];
{constants}
/* Where inputs and outputs lie. Write an input there and pass NULL for it, and nothing is copied; read an
 * output there after the run. The bytes of an input are reused during the run. */
{slots}

/* Runs the model once. Each pointer may be NULL: see above. Not reentrant. */
void {names.run}({_parameters(plan, names)});

/* The same with the caller's arena: {up}_ARENA_BYTES, aligned to 4. Reentrant. Inputs and outputs lie at */
{offsets}
void {names.run}_in(void *arena, {_parameters(plan, names)});
{_reset_h(plan, names)}
#endif
"""


def model_c(plan: Plan, names: Names, optimize: str) -> str:
    """The run function. For speed each kind of layer is an instance of its kernel with literal parameters."""
    inline = optimize == "speed"
    writer = _Writer(plan, names, inline)
    body = "\n".join(writer.step(step) for step in plan.steps)
    sources = sorted({s.kernel.source if inline else s.kernel.header for s in plan.steps})
    includes = "\n".join(f'#include "kernels/{s}"' for s in sources)
    define = "#define BT_INLINE_KERNELS\n" if inline else ""
    definitions = "\n".join(writer.definitions)
    copies_in = "\n".join(_copy_in(plan, p) for p in names.inputs)
    copies_out = "\n".join(_copy_out(plan, names, p) for p in names.outputs)
    arguments = ", ".join(p.name for p in (*names.inputs, *names.outputs))
    return f"""{banner(plan, names, "the computation")}
{define}#include "kernels/bt.h"
{includes}

#include "model.h"
#include "weights.h"

/* The tensor that lies `offset` bytes into the arena. */
#define AT(type, offset) ((type *)(void *)((uint8_t *)arena + (offset)))

{definitions}
void {names.run}_in(void *arena, {_parameters(plan, names)})
{{
{copies_in}
{body}

{copies_out}
}}

BT_ARENA({names.model}) uint32_t {names.arena}[{max(plan.arena // 4, 1)}];

void {names.run}({_parameters(plan, names)})
{{
    {names.run}_in({names.arena}, {arguments});
}}
{_reset_c(plan, names)}"""


def _reset_h(plan: Plan, names: Names) -> str:
    if not plan.state:
        return ""
    lines = "\n".join(f" *   {s.operand.tensor}  {plan.graph[s.operand.tensor].type}" for s in plan.state)
    return f"""
/* The model remembers between runs:
{lines}
 * Reset it before the first run, and whenever it should forget. */
void {names.model}_reset(void);
void {names.model}_reset_in(void *arena);
"""


def _reset_c(plan: Plan, names: Names) -> str:
    if not plan.state:
        return ""
    lines = []
    for s in plan.state:
        t = plan.graph[s.operand.tensor]
        target = f"AT(void, {_offset(plan, s.operand)})"
        if s.initial is None:
            lines.append(f"    __builtin_memset({target}, 0, {t.bytes});")
        else:
            lines.append(f"    __builtin_memcpy({target}, {names.constants[s.initial]}, {t.bytes});")
    body = "\n".join(lines)
    return f"""
void {names.model}_reset_in(void *arena)
{{
{body}
}}

void {names.model}_reset(void)
{{
    {names.model}_reset_in({names.arena});
}}
"""


def glue_c(plan: Plan, names: Names) -> str:
    """What ties the model to the image's server: see runtime/bt_runtime.h."""

    def rows(ports: tuple[Port, ...]) -> str:
        return ", ".join(f"{{ (void *){p.macro}, {plan.graph[p.operand.tensor].bytes}u }}" for p in ports)

    nulls = ", ".join(["NULL"] * (len(names.inputs) + len(names.outputs)))
    return f"""{banner(plan, names, "its place in the image")}
#include "bt_runtime.h"
#include "model.h"

static const bt_buffer inputs[] = {{ {rows(names.inputs)} }};
static const bt_buffer outputs[] = {{ {rows(names.outputs)} }};

const bt_model bt_the_model = {{
    .name = "{names.model}",
    .inputs = inputs,
    .outputs = outputs,
    .input_count = {len(names.inputs)},
    .output_count = {len(names.outputs)},
}};

/* Emulators count instructions from {names.run} to the label behind its call. */
__attribute__((noinline)) void bt_model_call(void)
{{
    {names.run}({nulls});
    __asm__ volatile(".globl bt_model_returned\\nbt_model_returned:" ::: "memory");
}}

void bt_model_reset(void)
{{
    {f"{names.model}_reset();" if plan.state else "/* it remembers nothing */"}
}}
"""


@dataclass
class _Writer:
    plan: Plan
    names: Names
    inline: bool
    definitions: list[str] = field(default_factory=list)
    instances: dict[tuple[str, Params], str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def step(self, step: Step) -> str:
        call, out = step.call, step.call.y
        shapes = ", ".join(t.type for t in call.inputs if t.data is None)
        what = f"{call.op.name} {attributes(call.op)}".strip()
        comment = f"    /* {str(out.origin) or out.name}: {what}: {shapes} -> {out.type} */"
        arguments = ", ".join(self.argument(o) for o in step.operands)
        if step.scratch:
            arguments += f", AT(void, {self.plan.buffer(step.scratch.name).offset})"
        if self.inline:
            return f"{comment}\n    {self.instance(step)}({arguments});"
        return f"{comment}\n    {step.kernel.symbol}(&{self.parameters(step)}, {arguments});"

    def argument(self, operand: Operand) -> str:
        if operand.constant:
            return self.names.constants[operand.storage]
        t = self.plan.graph[operand.tensor]
        return f"AT({t.dtype.c}, {_offset(self.plan, operand)})"

    def instance(self, step: Step) -> str:
        """The function that is this kernel with these parameters; equal layers share it."""
        key = (step.kernel.symbol, step.params)
        if key not in self.instances:
            name = unique(f"{step.call.op.name}_{len(self.instances) + 1}", self.taken)
            self.instances[key] = name
            arguments = list(self.arguments(step))
            declared = ", ".join(f"{kind} *{arg}" for kind, arg in arguments)
            passed = ", ".join(arg for _, arg in arguments)
            self.definitions.append(
                f"BT_LAYER void {name}({declared})\n{{\n    static const {_struct(step.params, 'p', 4)}\n"
                f"    {step.kernel.symbol}(&p, {passed});\n}}\n"
            )
        return self.instances[key]

    def parameters(self, step: Step) -> str:
        """The constant parameter struct of this step; equal ones are shared."""
        key = (step.params.struct, step.params)
        if key not in self.instances:
            name = unique(f"{step.call.op.name}_{len(self.instances) + 1}", self.taken)
            self.instances[key] = name
            self.definitions.append(f"static const {_struct(step.params, name, 0)}\n")
        return self.instances[key]

    def arguments(self, step: Step) -> Iterator[tuple[str, str]]:
        """Type and name of each argument of an instance."""
        taken: set[str] = {"p"}
        outputs = {t.name for t in step.call.outputs}
        for o in step.operands:
            if o.constant:
                yield f"const {c_type(self.plan.constant(o.storage).data)}", unique(role(o.tensor), taken)
            elif o.tensor in outputs:
                yield self.plan.graph[o.tensor].dtype.c, unique("y", taken)
            else:
                yield f"const {self.plan.graph[o.tensor].dtype.c}", unique("x", taken)
        if step.scratch:
            yield "void", unique("scratch", taken)


def _struct(params: Params, name: str, indent: int) -> str:
    pad = " " * indent
    fields = "".join(f"{pad}    .{f} = {literal(v)},\n" for f, v in params.fields)
    return f"{params.struct} {name} = {{\n{fields}{pad}}};"


def _parameters(plan: Plan, names: Names) -> str:
    inputs = [f"const {plan.graph[p.operand.tensor].dtype.c} *{p.name}" for p in names.inputs]
    outputs = [f"{plan.graph[p.operand.tensor].dtype.c} *{p.name}" for p in names.outputs]
    return ", ".join(inputs + outputs) or "void"


def _port_type(plan: Plan, port: Port) -> str:
    t = plan.graph[port.operand.tensor]
    return f"{t.dtype.c}[{', '.join(map(str, t.shape))}]"


def _offset(plan: Plan, operand: Operand) -> int:
    return plan.buffer(operand.storage).offset + operand.offset


def _slot(plan: Plan, names: Names, port: Port) -> str:
    c = plan.graph[port.operand.tensor].dtype.c
    if port.operand.constant:
        return f"((const {c} *){names.constants[port.operand.storage]})"
    return f"(({c} *)(void *)((uint8_t *){names.arena} + {_offset(plan, port.operand)}))"


def _copy_in(plan: Plan, port: Port) -> str:
    t = plan.graph[port.operand.tensor]
    target = f"AT({t.dtype.c}, {_offset(plan, port.operand)})"
    return f"    if ({port.name} != NULL)\n        __builtin_memcpy({target}, {port.name}, {t.bytes});"


def _copy_out(plan: Plan, names: Names, port: Port) -> str:
    t = plan.graph[port.operand.tensor]
    if port.operand.constant:
        source = names.constants[port.operand.storage]
    else:
        source = f"AT({t.dtype.c}, {_offset(plan, port.operand)})"
    return f"    if ({port.name} != NULL)\n        __builtin_memcpy({port.name}, {source}, {t.bytes});"
