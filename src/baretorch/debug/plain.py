"""Write commands for a gdb without Python: one command per layer and tensor, without comparisons."""

from __future__ import annotations

import re
from collections.abc import Iterator

from baretorch.debug.about import DebugInfo

_COMMAND = re.compile(r"[A-Za-z0-9_.-]+")  # what gdb accepts in the name of a command
_C = {"bool": "unsigned char", "int8": "signed char", "uint8": "unsigned char", "int16": "short", "int32": "int"}
_C |= {"int64": "long long", "float32": "float"}


def plain_commands(about: DebugInfo) -> str:
    return "\n".join(
        ["define-prefix break-layer", "define-prefix print-tensor", *_break_commands(about), *_print_commands(about)]
    )


def _break_commands(about: DebugInfo) -> Iterator[str]:
    first = dict[str, int]()
    for step, line in zip(about.plan.steps, about.compiled.c.lines, strict=True):
        for name in (about.layer(step.call.y.name), step.call.y.name):
            first.setdefault(name, line)
    for name, line in first.items():
        if _COMMAND.fullmatch(name):
            yield f"define break-layer {name}\nbreak model.c:{line}\nend"


def _print_commands(about: DebugInfo) -> Iterator[str]:
    known = dict[str, str]()
    for name, one in about.tensors().items():
        place, t = about.place(one.operand), about.plan.graph[name]
        if place is None:
            continue
        scale = f" scale {t.quant.scale[0]!r} zero point {t.quant.zero_point[0]}" if t.quant else ""
        dims = "".join(f"[{n}]" for n in t.shape) or "[1]"
        letter = "f" if t.dtype.label == "float32" else "d"
        title = f"echo {t.dtype.label}{list(t.shape)}{scale}\\n"
        value = f"print/{letter} *({_C[t.dtype.label]} (*){dims})((char *)&{place[0]} + {place[1]})"
        known[about.layer(name)] = known[name] = f"{title}\n{value}"
    for name, body in known.items():
        if _COMMAND.fullmatch(name):
            yield f"define print-tensor {name}\n{body}\nend"
