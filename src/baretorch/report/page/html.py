"""Make HTML and SVG, escaped by construction: plain text becomes Html only through `el`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import TypeAlias

from baretorch.escape import html_text
from baretorch.version import __version__


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


Attribute: TypeAlias = str | int | float | None


def el(tag: str, *children: str, **attributes: Attribute) -> Html:
    """Return an element. Children that are not Html are text; attributes that are None are omitted. `class_` is written
    without its underscore, and other underscores become hyphens."""
    pairs = (f' {_name(name)}="{html_text(_value(v))}"' for name, v in attributes.items() if v is not None)
    return Html(f"<{tag}{''.join(pairs)}>{joined(children)}</{tag}>")


def joined(children: Iterable[str]) -> Html:
    """Join elements. Children that are not Html are text."""
    return Html("".join(c if isinstance(c, Html) else html_text(c) for c in children))


def table(titles: Sequence[str], rows: Iterable[Html]) -> Html:
    """Return a table that sorts by a click on a title. Titles that begin with # head columns of numbers."""
    heads = (
        el("th", el("button", t.removeprefix("#") or "step", type="button"), class_="num" if t[0] == "#" else None)
        for t in titles
    )
    return el("table", el("thead", el("tr", *heads)), el("tbody", *rows), class_="sortable")


def number_cell(shown: str, value: float, **attributes: Attribute) -> Html:
    """Return a cell of a table with a number to sort by."""
    return el("td", shown, class_="num", data_value=value, **attributes)


def count_cell(value: float | None) -> Html:
    """Return a cell with a whole number; empty if it is zero or not known."""
    return number_cell(f"{value:,}" if value else "", value or 0)


def fill_template(name: str, parts: Mapping[str, str]) -> str:
    """Fill a page of template/ with the parts, the style sheet and the version."""
    folder = files("baretorch.report.page") / "template"
    css = (folder / "page.css").read_text("utf-8")
    return Template((folder / name).read_text("utf-8")).substitute(parts, css=css, version=joined([__version__]))


def svg(width: float, height: float, label: str, *children: Html) -> Html:
    """Return a drawing with a description for screen readers."""
    box = f"0 0 {_value(width)} {_value(height)}"
    return el("svg", *children, viewBox=box, width=width, height=height, role="img", aria_label=label)


def rect(x: float, y: float, width: float, height: float, *children: Html, **attributes: Attribute) -> Html:
    return el("rect", *children, x=x, y=y, width=max(width, 0), height=max(height, 0), **attributes)


def line_element(x1: float, y1: float, x2: float, y2: float, class_: str) -> Html:
    return el("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def text(x: float, y: float, content: str, class_: str | None = None, **attributes: Attribute) -> Html:
    return el("text", content, x=x, y=y, class_=class_, **attributes)


def _name(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _value(value: str | int | float) -> str:
    """Format a value. A tenth of a pixel is precise enough for coordinates."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
