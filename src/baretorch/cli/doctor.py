"""baretorch doctor: list the tools that are installed or missing, their purpose, and how to install them."""

from __future__ import annotations

from baretorch.cli.verb import Answer, verb


@verb("doctor")
def doctor(as_json: bool) -> Answer:
    """List installed and missing tools, with install commands."""
    from rich.table import Table

    from baretorch.cli.tools import TOOLS, version
    from baretorch.escape import markup

    found = [(tool, version(tool)) for tool in TOOLS]
    ready = all(v is not None for tool, v in found if tool.needed)
    table = Table.grid(padding=(0, 2))
    for i in range(4):
        table.add_column(no_wrap=i < 3, overflow="fold")
    for tool, v in found:
        mark = "[green]ok[/]" if v is not None else "[red]missing[/]" if tool.needed else "[yellow]-[/]"
        remedy = f"[cyan]{markup(tool.get)}[/]" if v is None else ""
        table.add_row(mark, tool.name, markup(v or ""), f"{tool.purpose}{': ' if remedy else ''}{remedy}")
    data = {
        "ready": ready,
        "tools": [
            {"name": t.name, "kind": t.kind, "version": v, "purpose": t.purpose, "needed": t.needed, "get": t.get}
            for t, v in found
        ],
    }
    return Answer(data, table, 0 if ready else 1)
