"""[fvp] of a board's TOML: a Fixed Virtual Platform of Arm's. It names a program that is run: only one of Arm's."""

from __future__ import annotations

import re

from baretorch.errors import CompileError
from baretorch.targets.toml import Table
from baretorch.targets.types import Fvp


def read_fvp(table: Table) -> Fvp:
    program, terminal = table.argument("program"), table.argument("terminal")
    if program is None or terminal is None or not program.startswith("FVP_"):
        raise CompileError(
            "[fvp] needs program and terminal",
            at=table.where,
            have=f"program = {program!r}, terminal = {terminal!r}",
            need='such as program = "FVP_Corstone_SSE-320", terminal = "mps4_board.telnetterminal0"',
        )
    found = Fvp(program, terminal, table.argument("npu"), _names(table, "vectors"), _names(table, "on"))
    table.end()
    return found


def _names(table: Table, key: str) -> tuple[str, ...]:
    """Of parameters."""
    names = table.maybe(key, list) or []
    for name in names:
        if not isinstance(name, str) or not re.fullmatch(r"\w[\w.-]{0,99}", name, flags=re.ASCII):
            raise CompileError(f"{key} must be names of parameters", at=table.where, have=repr(name)[:100])
    return tuple(names)
