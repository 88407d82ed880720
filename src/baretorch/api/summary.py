"""Hold what a verb of the command line found, for programs, terminals and notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from baretorch.report.terminal.layout import Screen

WIDTH = 100  # columns of the text


class Summary(Mapping[str, Any]):
    """The result of profile(), fit() or compare(): the object of `--json` as a read-only dict. print() shows the text
    of the command line, and notebooks show it as well."""

    def __init__(self, data: Mapping[str, Any], screen: Screen) -> None:
        self._data, self._screen = dict(data), screen

    def __getitem__(self, key: str) -> Any:
        return self._data[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __repr__(self) -> str:
        return f"Summary({', '.join(self._data)})"[:200]

    def __str__(self) -> str:
        from baretorch.report.terminal.layout import plain_rows

        return "\n".join(plain_rows(self._screen, WIDTH))

    def _repr_html_(self) -> str:
        from baretorch.escape import html_text

        return f'<pre style="line-height: 1.25; overflow-x: auto">{html_text(str(self))}</pre>'
