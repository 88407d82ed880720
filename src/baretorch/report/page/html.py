"""HTML and SVG from Python, escaped by construction: plain text becomes Html only by way of `el`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from baretorch.escape import html_text


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


Attribute: TypeAlias = str | int | float | None


def el(tag: str, *children: str, **attributes: Attribute) -> Html:
    """An element. Children that are not Html are text; an attribute that is None is left out. `class_` is written
    without its underscore, and other underscores are hyphens."""
    pairs = (f' {_name(name)}="{html_text(_value(v))}"' for name, v in attributes.items() if v is not None)
    return Html(f"<{tag}{''.join(pairs)}>{joined(children)}</{tag}>")


def joined(children: Iterable[str]) -> Html:
    """Join elements; what is not Html is text."""
    return Html("".join(c if isinstance(c, Html) else html_text(c) for c in children))


def svg(width: float, height: float, label: str, *children: Html) -> Html:
    """A drawing with a description for those who do not see it."""
    box = f"0 0 {_value(width)} {_value(height)}"
    return el("svg", *children, viewBox=box, width=width, height=height, role="img", aria_label=label)


def rect(x: float, y: float, width: float, height: float, *children: Html, **attributes: Attribute) -> Html:
    return el("rect", *children, x=x, y=y, width=max(width, 0), height=max(height, 0), **attributes)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Html:
    return el("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def text(x: float, y: float, content: str, class_: str | None = None, **attributes: Attribute) -> Html:
    return el("text", content, x=x, y=y, class_=class_, **attributes)


def _name(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _value(value: str | int | float) -> str:
    """Coordinates need no more than a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
