"""Generates weights.h and weights.c: the constants, in flash, or copied to RAM at start-up."""

from __future__ import annotations

from baretorch.emit.c import c_type, values_in_parts
from baretorch.emit.names import CNames, StoredArray
from baretorch.emit.spell import banner
from baretorch.escape import comment

_ONE_MEMORY = """#if defined(__AVR__) /* its kernels read constants from flash */
#error "compiled for another chip: --board arduino-uno or arduino-mega makes C for AVR"
#endif

"""


def weights_h(names: CNames) -> str:
    rows = "\n".join(
        f"extern const {space(names, c)}{c_type(c.data)} {name}[{max(c.data.size, 1)}];"
        for name, c in names.constants.items()
    )
    return f"""{banner(names, "its constants")}
#ifndef {names.model.upper()}_WEIGHTS_H
#define {names.model.upper()}_WEIGHTS_H

#include <stdint.h>

{_ONE_MEMORY if names.constants and not names.flash else ""}{rows}

#endif
"""


def space(names: CNames, constant: StoredArray) -> str:
    """Return the qualifiers before a constant's type."""
    return "" if constant.bank else names.flash


def weights_c(names: CNames, blank: bool = False) -> str:
    """Return the constants; with `blank`, zeros of the same size."""
    copies = [(m, copy.source) for m in names.methods.values() for copy in m.plan.schedule.copies.values()]
    streamed = {m.constants[source.storage] for m, source in copies if source.constant}
    text = f'{banner(names, "its constants")}\n#include "kernels/bt.h"\n\n#include "weights.h"\n'
    for name, constant in names.constants.items():
        data = constant.data
        section = f"BT_WEIGHTS_IN({constant.bank}, {name})" if constant.bank else f"BT_WEIGHTS({name})"
        align = max(constant.align, 4 if name in streamed else 0)  # copies are of words
        section += f" __attribute__((aligned({align})))" if align else ""
        shape = ", ".join(map(str, data.shape))
        text += f"\n{comment(f'{data.dtype.name}[{shape}], {data.nbytes} bytes')}\n"
        text += f"{section} const {space(names, constant)}{c_type(data)} {name}[{max(data.size, 1)}] = {{\n"
        for part in ["0"] if blank else values_in_parts(data):
            text += part  # grows in place, where a join would hold the text twice
        text += "\n};\n"
    return text
