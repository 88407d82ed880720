"""Generates model.h, the interface of the model."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import wrap

from baretorch.emit.c import c_type, literal
from baretorch.emit.cores import uses_core1
from baretorch.emit.names import CNames, CPort, Method
from baretorch.emit.spell import at, banner, input_parameters, parameters, parameters_in, port_tensor, word_count
from baretorch.escape import comment
from baretorch.ops.helpers.executor import NPU
from baretorch.plan.types import InArena


def model_h(names: CNames) -> str:
    """Return the text of model.h: shapes, sizes, and a run function per method."""
    up = names.model.upper()
    methods = "\n".join(_method(names, m) for m in names.methods.values())
    shown = {m.constants[o.storage] for m in names.methods.values() for o in m.plan.outputs if o.constant}
    constants = "".join(
        f"extern const {c_type(c.data)} {name}[{max(c.data.size, 1)}];\n"
        for name, c in names.constants.items()
        if name in shown
    )
    rows = (
        '\n#include "kernels/pull/rows.h"\n' if any(p.pulled for m in names.methods.values() for p in m.inputs) else ""
    )
    arenas = "\n".join(
        f"#define {a.name.upper()}_BYTES {a.bytes}\nextern uint32_t {a.name}[{word_count(a.bytes)}];"
        for a in names.arenas
    )
    return f"""{banner(names, "interface")}
#ifndef {up}_MODEL_H
#define {up}_MODEL_H

#include <stddef.h>
#include <stdint.h>
{rows}
#ifdef __cplusplus
extern "C" {{
#endif

{comment(f"RAM the model works in, {_state_held(names)}.")}
{arenas}
{constants}
{methods}{_cores(names)}{_reset(names)}
#ifdef __cplusplus
}}
#endif

#endif
"""


def _method(names: CNames, method: Method) -> str:
    ports = [(p, "input") for p in method.inputs] + [(p, "output") for p in method.outputs]
    about = [f"  {kind:6}  {p.name:8}  {_type(method, p)}" for p, kind in ports]
    title = f"Inputs and outputs of {method.run}, with their shapes in memory order:"
    sizes = "\n".join(f"#define {p.macro}_COUNT {port_tensor(method, p).count} /* elements */" for p, _ in ports)
    sizes += "".join(_scale(method, p) for p, _ in ports)
    sizes_of = " and ".join(f"{a.name.upper()}_BYTES" for a in method.arenas)
    runs = _wrap(f"Runs the model once.{_null(method)} Not reentrant.")
    npu = any(step.executor == NPU for step in method.plan.steps)
    aligned = "aligned to 16 where the NPU reaches it. Not reentrant: there is one NPU." if npu else "aligned to 4."
    reentrant = "" if uses_core1(names) or npu else " Reentrant."
    elsewhere = _wrap(f"The same with the caller's arena: {sizes_of}, {aligned}{reentrant}{_there(method)}")
    return f"""{comment(title, *about, *_pulling(method))}
{sizes}

{_where(method)}{runs}
void {method.run}({parameters(method)});

{elsewhere}
{_offsets(method)}void {method.run}_in({parameters_in(method)});
{_check(method) if names.checked else ""}"""


def _check(method: Method) -> str:
    """Declare the function that finds NaN and infinity."""
    placed = ", ".join(p.macro for p in method.inputs if not p.direct)
    where = f" Of inputs that are written in place, pass {placed}." if placed else ""
    about = f"Before {method.run}: which input, counted from 1, has NaN or infinite values; 0 if none has.{where}"
    return f"""
{_wrap(about)}
int {method.check}({input_parameters(method)});
"""


def _ports_with_place(method: Method) -> list[CPort]:
    """Return the ports that have a place in the model's memory, in an arena or as constants."""
    return [p for p in method.ports if not (p.pulled or p.direct)]


def _state_held(names: CNames) -> str:
    """State which inputs and outputs are in the arenas."""
    methods = names.methods.values()
    if all(len(_ports_with_place(m)) == len(m.ports) for m in methods):
        return "inputs and outputs included"
    if not any(_ports_with_place(m) for m in methods):
        return "without inputs and outputs"
    return "with the inputs and outputs that have an offset below"


def _scale(method: Method, port: CPort) -> str:
    """Define the scale and zero point of a quantized port, or state how halves are stored."""
    t = port_tensor(method, port)
    if t.dtype.is_half:
        return "\n" + comment(f"{port.name}: bits of {t.dtype.label}")
    if t.quant is None or not t.is_quantized:
        return ""
    return (
        f"\n#define {port.macro}_SCALE {literal(t.quant.scale[0])} /* real = scale * (stored - zero point) */"
        f"\n#define {port.macro}_ZERO_POINT ({t.quant.zero_point[0]})"
    )


def _where(method: Method) -> str:
    placed = _ports_with_place(method)
    if not placed:
        return ""
    write = "To avoid a copy, write an input there and pass NULL for it"
    reused = "The bytes of an input are reused during the run."
    if all(p in method.outputs for p in placed):
        how = "To avoid a copy, pass NULL for an output and read it there after the run."
    elif all(p in method.inputs for p in placed):
        how = f"{write}. {reused}"
    else:
        how = f"{write}; read an output there after the run. {reused}"
    slots = "".join(f"#define {p.macro} {_slot(method, p)}\n" for p in placed)
    return f"{_wrap(f'Addresses of {_list_names(method, placed)}. {how}')}\n{slots}\n"


def _there(method: Method) -> str:
    """Return the comment before the offsets."""
    placed = [p for p in _ports_with_place(method) if not p.operand.constant]
    if not placed:
        return ""
    return f" Offsets of {_list_names(method, placed)}:"


def _offsets(method: Method) -> str:
    lines = ""
    for p in _ports_with_place(method):
        if isinstance(p.place, InArena):
            arena = method.arena(p.place.bank)
            note = "" if arena is method.arenas[0] else comment(f"in {arena.parameter}", indent=" ")
            lines += f"#define {p.macro}_OFFSET {p.place.offset}{note}\n"
    return lines


def _list_names(method: Method, ports: Sequence[CPort]) -> str:
    return "inputs and outputs" if len(ports) == len(method.ports) else ", ".join(p.name for p in ports)


def _wrap(text: str) -> str:
    return comment(*wrap(text, 104, break_long_words=False, break_on_hyphens=False))


def _null(method: Method) -> str:
    """State which pointers are required."""
    direct = ", ".join(p.name for p in method.ports if p.direct)
    given = ", ".join(p.name for p in method.ports if p.direct or p.pulled)
    free = ", ".join(p.name for p in _ports_with_place(method))
    if not given:
        return " Each pointer may be NULL: see above."
    rest = f"; {free} may be: see above" if free else ""
    works = f" It works in {direct}: align them to 4." if direct else ""
    return f" {given} must not be NULL{rest}.{works}"


def _pulling(method: Method) -> list[str]:
    lines: list[str] = []
    for p in (p for p in method.inputs if p.pulled):
        height, width, channels = port_tensor(method, p).shape[1:]
        lines += [
            f"The {height} rows of {p.name}, {width * channels} elements each, are requested when they are needed:",
            "see kernels/pull/rows.h.",
        ]
    return lines


def _reset(names: CNames) -> str:
    plan = names.first.plan
    if not plan.state:
        return ""
    kept = [f"  {s.operand.tensor}  {plan.graph[s.operand.tensor].type}" for s in plan.state]
    reset = "Reset it before the first run, and to start a new sequence."
    return f"""
{comment("State that the model keeps between runs:", *kept, reset)}
void {names.model}_reset(void);
void {names.model}_reset_in(void *arena);
"""


def _cores(names: CNames) -> str:
    """Describe how an application uses both cores."""
    model, launch = names.model, f"multicore_launch_core1({names.model}_core1) of the pico-sdk"
    if not uses_core1(names):
        return ""
    if names.team:
        text = (
            "All cores of the cluster compute a run, which core 0 starts. Each other core calls this function with its "
            "number, from 1; it serves the model and never returns. A run that starts earlier waits for them."
        )
        return f"""
{_wrap(text)}
void {model}_core(uint32_t core);
"""
    serve = f"Run this function on core 1, as {launch} does: it serves the model and never returns."
    if not names.alone:
        text = f"Both cores compute a run, which core 0 starts. {serve} A run that starts earlier waits for it."
        return f"""
{_wrap(text)}
void {model}_core1(void);
"""
    starts = "".join(f"void {m.prefix}_start({parameters(m)});\n" for m in names.methods.values())
    about = f"The model runs on core 1, and the application on core 0. {serve}"
    asks = (
        "Start a run on core 1 from core 0, and query whether it is done: then the outputs are valid, and another "
        "run may start. Until then, do not touch inputs, outputs and arena."
    )
    return f"""
{_wrap(about)}
void {model}_core1(void);

{_wrap(asks)}
{starts}int {model}_done(void);
"""


def _type(method: Method, port: CPort) -> str:
    t = port_tensor(method, port)
    return f"{t.dtype.c}[{', '.join(map(str, t.shape))}]"


def _slot(method: Method, port: CPort) -> str:
    c = port_tensor(method, port).dtype.c
    if not isinstance(port.place, InArena):
        return f"((const {c} *){at(method, port.place, c)})"
    return f"(({c} *)(void *)((uint8_t *){method.arena(port.place.bank).name} + {port.place.offset}))"
