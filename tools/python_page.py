"""Make docs/reference/python.md: the public names of the package, with their signatures and docstrings."""

from __future__ import annotations

import inspect
import re
from typing import Any

import baretorch


def python_page(note: str) -> str:
    """Return the page, with `note` as its first line."""
    lines = [
        note,
        "# Python",
        "",
        "These names are the public interface of `import baretorch`. All others may change in any version.",
        "",
    ]
    for name in sorted(baretorch.__all__, key=str.lower):
        value = getattr(baretorch, name)
        if inspect.isclass(value) or callable(value):
            lines += describe(name, value, "##")
        if inspect.isclass(value) and not issubclass(value, Exception):
            for member, kind in vars(value).items():
                if not member.startswith("_") and (callable(kind) or isinstance(kind, property)) and kind.__doc__:
                    lines += describe(f"{name}.{member}", kind, "###")
    return "\n".join(lines).rstrip() + "\n"


def describe(name: str, value: Any, heading: str) -> list[str]:
    """Return a heading, the signature of a function or class, and its docstring."""
    function = value.fget if isinstance(value, property) else value
    signature = (
        ""
        if isinstance(value, property) or inspect.isclass(value)
        else str(inspect.signature(function)).replace("'", "")
    )
    lines = [f"{heading} `{name}`", ""]
    if signature:
        lines += ["```text", f"{name.rpartition('.')[2]}{signature}", "```", ""]
    about = (inspect.getdoc(function) or "").splitlines()
    return [*lines, *(re.sub(r"^([a-z_\d]+): ", r"- `\1`: ", line).replace("<", "&lt;") for line in about), ""]
