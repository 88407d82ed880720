"""weights.h and weights.c: the constants, in flash."""

from __future__ import annotations

from baretorch.emit.c import c_type, values
from baretorch.emit.model import banner
from baretorch.emit.names import Names
from baretorch.plan.types import Plan


def weights_h(plan: Plan, names: Names) -> str:
    rows = "\n".join(
        f"extern const {c_type(c.data)} {names.constants[c.name]}[{max(c.data.size, 1)}];" for c in plan.constants
    )
    return f"""{banner(plan, names, "its constants")}
#ifndef {names.upper}_WEIGHTS_H
#define {names.upper}_WEIGHTS_H

#include <stdint.h>

{rows}

#endif
"""


def weights_c(plan: Plan, names: Names) -> str:
    parts = [f'{banner(plan, names, "its constants")}\n#include "kernels/bt.h"\n\n#include "weights.h"\n']
    for c in plan.constants:
        name = names.constants[c.name]
        shape = ", ".join(map(str, c.data.shape))
        parts.append(
            f"/* {c.name}: {c.data.dtype.name}[{shape}], {c.data.nbytes} bytes */\n"
            f"BT_WEIGHTS({name}) const {c_type(c.data)} {name}[{max(c.data.size, 1)}] = {{\n{values(c.data)}\n}};\n"
        )
    return "\n".join(parts)
