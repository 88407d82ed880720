"""Hold what a verb of the command line found, for programs, terminals and notebooks."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import RenderableType

WIDTH = 100  # columns of the text


class Result(Mapping[str, Any]):
    """A result of profile(), fit() or compare(): the object of `--json` as a read-only dict. `print(result)` shows the
    text of the command line, and notebooks show it as well."""

    def __init__(self, data: Mapping[str, Any], screen: RenderableType) -> None:
        self._data, self._screen = dict(data), screen

    def __getitem__(self, key: str) -> Any:
        return self._data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __repr__(self) -> str:
        return f"Result({', '.join(self._data)})"[:200]

    def __str__(self) -> str:
        from rich.console import Console

        text = io.StringIO()
        Console(file=text, width=WIDTH, highlight=False, emoji=False, no_color=True).print(self._screen)
        return "\n".join(row.rstrip() for row in text.getvalue().splitlines())

    def _repr_html_(self) -> str:
        from baretorch.escape import html_text

        return f'<pre style="line-height: 1.25; overflow-x: auto">{html_text(str(self))}</pre>'
