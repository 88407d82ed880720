"""Generates watched.c: constants that are read when the program starts, and the places of inputs and outputs; see
runtime/host/watch.c."""

from __future__ import annotations

from collections.abc import Iterable

from baretorch.emit.c import c_type
from baretorch.emit.names import CNames, CPort, Method
from baretorch.emit.spell import banner, port_tensor, word_count


def watched_c(names: CNames) -> str:
    method = names.first
    arrays = [_array(c_type(c.data), name, c.data.size) for name, c in names.constants.items()]
    arrays += [_array("uint32_t", _place(p), word_count(_bytes(method, p))) for p in method.ports if p.direct]
    arguments = ", ".join(f"(void *){_place(p)}" if p.direct else "0" for p in method.ports)
    parts = (
        _parts("bt_constants", ((name, c.data.nbytes) for name, c in names.constants.items())),
        _parts("bt_inputs", ((_place(p), _bytes(method, p)) for p in method.inputs)),
        _parts("bt_outputs", ((_place(p), _bytes(method, p)) for p in method.outputs)),
    )
    lines = "\n".join(arrays)
    return f"""{banner(names, "what is watched of it")}
#include "watch.h"

#include "model.h"

{lines}

{"".join(parts)}
void bt_watched_reset(void)
{{
    {f"{names.model}_reset();" if method.plan.state else "/* the model has no state */"}
}}

void bt_watched_run(void)
{{
    {method.run}({arguments});
}}
"""


def _array(type_: str, name: str, count: int) -> str:
    return f"{type_} {name}[{max(count, 1)}] __attribute__((aligned(16)));"


def _place(port: CPort) -> str:
    return f"bt_memory_{port.name}" if port.direct else port.macro


def _bytes(method: Method, port: CPort) -> int:
    return port_tensor(method, port).bytes


def _parts(name: str, rows: Iterable[tuple[str, int]]) -> str:
    """Return a table, which may be empty; C has no empty arrays."""
    known = list(rows)
    listed = "\n".join(f"    {{ (void *){place}, {size}u }}," for place, size in known)
    body = f"static const bt_part {name}_parts[] = {{\n{listed}\n}};\n" if known else ""
    return f"{body}const bt_parts {name} = {{ {f'{name}_parts' if known else '0'}, {len(known)}u }};\n"
