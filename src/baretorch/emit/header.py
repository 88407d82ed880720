"""model.h: the interface of the model."""

from __future__ import annotations

from baretorch.emit.c import c_type, literal
from baretorch.emit.names import Method, Names, Port
from baretorch.emit.spell import arena_parameters, banner, offset, parameters, tensor_of, words
from baretorch.ir import DType


def model_h(names: Names) -> str:
    """Shapes, sizes, and one call per method."""
    up = names.model.upper()
    methods = "\n".join(_method(names, m) for m in names.methods.values())
    shown = {m.constants[o.storage] for m in names.methods.values() for o in m.plan.outputs if o.constant}
    constants = "".join(
        f"extern const {c_type(c.data)} {name}[{max(c.data.size, 1)}];\n"
        for name, c in names.constants.items()
        if name in shown
    )
    rows = '\n#include "kernels/pull/rows.h"\n' if any(m.sources for m in names.methods.values()) else ""
    arenas = "\n".join(
        f"#define {a.name.upper()}_BYTES {a.bytes}\nextern uint32_t {a.name}[{words(a.bytes)}];" for a in names.arenas
    )
    lying = any(not (p.pulled or p.direct) for m in names.methods.values() for p in m.ports)
    included = ", inputs and outputs included" if lying else ", without inputs and outputs"
    return f"""{banner(names, "interface")}
#ifndef {up}_MODEL_H
#define {up}_MODEL_H

#include <stddef.h>
#include <stdint.h>
{rows}
/* RAM the model works in{included}. */
{arenas}
{constants}
{methods}{_reset(names)}
#endif
"""


def _method(names: Names, method: Method) -> str:
    ports = [(p, "input") for p in method.inputs] + [(p, "output") for p in method.outputs]
    about = "\n".join(f" *   {kind:6}  {p.name:8}  {_type(method, p)}" for p, kind in ports)
    sizes = "\n".join(f"#define {p.macro}_COUNT {tensor_of(method, p).count} /* elements */" for p, _ in ports)
    sizes += "".join(_scale(method, p) for p, _ in ports)
    lying = [p for p, _ in ports if not (p.pulled or p.direct)]
    slots = "\n".join(f"#define {p.macro} {_slot(names, method, p)}" for p in lying)
    offsets = "\n".join(
        f"#define {p.macro}_OFFSET {offset(method.plan, p.operand)}" for p in lying if not p.operand.constant
    )
    sizes_of = " and ".join(f"{a.name.upper()}_BYTES" for a in method.arenas)
    return f"""/* Inputs and outputs of {method.run}, with their shapes in memory order:
{about}
{_pulling(method)} */
{sizes}

{_where(slots)}
/* Runs the model once.{_null(method)} Not reentrant. */
void {method.run}({parameters(method)});

/* The same with the caller's arena: {sizes_of}, aligned to 4. Reentrant.{" There they lie at" if offsets else ""} */
{offsets}
void {method.run}_in({arena_parameters(method)}, {parameters(method)});
"""


def _scale(method: Method, port: Port) -> str:
    """How int8 at the border stands for real numbers."""
    t = tensor_of(method, port)
    if t.dtype is not DType.INT8 or t.quant is None:
        return ""
    return (
        f"\n#define {port.macro}_SCALE {literal(t.quant.scale[0])} /* real = scale * (stored - zero point) */"
        f"\n#define {port.macro}_ZERO_POINT ({t.quant.zero_point[0]})"
    )


def _where(slots: str) -> str:
    if not slots:
        return ""
    return f"""/* Where they lie. Write an input there and pass NULL for it, and nothing is copied; read an output there
 * after the run. The bytes of an input are reused during the run. */
{slots}
"""


def _null(method: Method) -> str:
    """Which pointers must be given."""
    given = [p.name for p in method.ports if p.direct]
    if not given:
        return " Each pointer may be NULL: see above."
    return f" It works in the caller's buffers, aligned to 4: {', '.join(given)} must not be NULL."


def _pulling(method: Method) -> str:
    lines = ""
    for p in (p for p in method.inputs if p.pulled):
        height, width, channels = tensor_of(method, p).shape[1:]
        lines += (
            f" * The {height} rows of {p.name}, {width * channels} elements each, are asked for as they are needed:\n"
            f" * see kernels/pull/rows.h. {p.name} must not be NULL.\n"
        )
    return lines


def _reset(names: Names) -> str:
    plan = names.first.plan
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


def _type(method: Method, port: Port) -> str:
    t = tensor_of(method, port)
    return f"{t.dtype.c}[{', '.join(map(str, t.shape))}]"


def _slot(names: Names, method: Method, port: Port) -> str:
    c = tensor_of(method, port).dtype.c
    if port.operand.constant:
        return f"((const {c} *){method.constants[port.operand.storage]})"
    bank = method.plan.buffer(port.operand.storage).bank
    arena = next(a.name for a in names.arenas if a.bank == bank)
    return f"(({c} *)(void *)((uint8_t *){arena} + {offset(method.plan, port.operand)}))"
