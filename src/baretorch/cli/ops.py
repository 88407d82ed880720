"""baretorch ops: list the supported operators."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from baretorch.cli.verb import Answer, board_name_option, verb

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from baretorch.explore.support import OpSupport


@verb("ops")
@click.argument("name", required=False)
@board_name_option("List the kernels that this board uses, and what its accelerators support.")
def ops(as_json: bool, name: str | None, board: str | None) -> Answer:
    """List operators, or show one (also by its ATen name)."""
    from baretorch.explore.support import aten_names, support
    from baretorch.measure.units import npu_takes
    from baretorch.targets.boards import load_board
    from baretorch.units import units_of

    chip = load_board(board).chip if board else None
    rows = support(chip)
    takes = {unit.name: unit.takes for unit in units_of(chip)} | npu_takes(chip) if chip else {}
    more = {"units": takes} if chip else {}
    if name is None:
        data = {"operators": [row.to_json() for row in rows], "aten": list(aten_names())} | more
        return Answer(data, _with_units(_table(rows), takes))
    plain = name.removeprefix("aten::").removeprefix("aten.")
    found = [row for row in rows if row.name == plain] or [row for row in rows if plain in row.aten]
    known = bool(found) or plain in aten_names()
    apart = not known and _is_taken_apart(plain)
    if not known and not apart:
        raise _unknown(name, _near(plain, rows))
    data = {"name": plain, "operators": [row.to_json() for row in found], "decomposed": apart} | more
    near = f"\nsupported operators with similar names: {', '.join(_near(plain, rows))}" if _near(plain, rows) else ""
    return Answer(data, f"{plain} {APART}{near}" if apart else _with_units(_details(plain, found), takes))


def _with_units(table: RenderableType, takes: dict[str, str]) -> RenderableType:
    """Add below the table what the chip's units support."""
    from rich.console import Group

    return Group(table, *(f"\n{unit} takes {what}" for unit, what in takes.items())) if takes else table


APART = (
    "is not an operator of Baretorch. torch.export replaces it by other operators: a model with it compiles if all of "
    "them are supported; otherwise `baretorch compile MODEL` lists the unsupported ones."
)
ELSEWHERE = "docs/reference/onnx.md, tflite.md and tinygrad.md list the operators of other models"


def _is_taken_apart(plain: str) -> bool:
    """Report whether torch, if it is installed, makes this operator of others."""
    import importlib.util

    if importlib.util.find_spec("torch") is None:
        return False
    from baretorch.frontends.pt2.reader import decomposed_operators

    return f"aten::{plain}" in decomposed_operators()


def _near(plain: str, rows: tuple[OpSupport, ...]) -> list[str]:
    """Return supported operators whose names are similar."""
    from difflib import get_close_matches

    from baretorch.explore.support import aten_names

    return get_close_matches(plain, sorted({row.name for row in rows} | set(aten_names())), n=3)


def _unknown(name: str, near: list[str]) -> Exception:
    from baretorch.errors import CompileError

    return CompileError(
        f"operator {name!r} is not supported",
        try_=[f"did you mean {', '.join(near)}?"] * bool(near) + ["`baretorch ops` lists what is supported", ELSEWHERE],
    )


def _table(rows: tuple[OpSupport, ...]) -> Table:
    from baretorch.explore.support import types_of
    from baretorch.report.terminal.layout import columns

    table = columns("operator", "types", "kernels", "from PyTorch")
    table.columns[0].no_wrap = table.columns[2].no_wrap = True
    table.columns[1].max_width, table.columns[3].min_width = 20, 28
    for row in rows:
        types = sorted({t for k in row.kernels for t in types_of(k)})
        variants = "\n".join(k.unit or (f"{k.variant} ({k.needs})" if k.needs else k.variant) for k in row.kernels)
        table.add_row(row.name, ", ".join(types) or "any", variants or "none: a view", ", ".join(row.aten))
    return table


def _details(name: str, rows: list[OpSupport]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    from baretorch.explore.support import types_of
    from baretorch.report.terminal.layout import label_grid

    if not rows:
        return f"{name} needs no operator: it leaves the values as they are"
    parts: list[RenderableType] = []
    if any(row.name != name for row in rows):
        parts.append(f"{name} becomes {', '.join(row.name for row in rows)}\n")
    for row in rows:
        table = label_grid(0)
        table.add_row("operator", f"[bold]{row.name}[/]")
        whole = re.sub(r"(\S)\n(?=[^\s-])", r"\1 ", row.meaning)  # rich wraps paragraphs to the width of the screen
        table.add_row("meaning", Text(whole))
        for k in row.kernels:
            need = f"the unit {k.unit}" if k.unit else f"needs {k.needs}" if k.needs else "any CPU"
            table.add_row("kernel", f"{k.symbol}  {', '.join(types_of(k))}; {need}")
        if row.aten:
            table.add_row("from", ", ".join(row.aten))
        parts.append(table)
    return Group(*parts)
