"""Renames layers and buffers of an exported program whose names are not valid in Python.

torch writes programs as Python (`self.NAME.weight`), also while it decomposes them, and fails for names that
add_module and ModuleDict accept: keywords, quotes, newlines. The paths in messages stay unchanged.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping
from typing import Any


def plain_names(exported: Any) -> Any:
    """Return the program with valid Python names for parameters, buffers and constants."""
    signature = exported.graph_signature
    specs = [s for s in (*signature.input_specs, *signature.output_specs) if s.target is not None]
    renamed = _renamed([*(s.target for s in specs), *exported.state_dict, *exported.constants])
    if all(old == new for old, new in renamed.items()):
        return exported
    for spec in specs:
        spec.target = renamed[spec.target]
    exported._state_dict = _with(renamed, exported.state_dict)
    exported._constants = _with(renamed, exported.constants)
    return exported


def _renamed(paths: Iterable[str]) -> dict[str, str]:
    """Return a path of valid names for each path; layers keep their names if possible, and no two become equal."""
    layers: dict[str, str] = {}  # the old path of a layer or tensor -> its new path
    taken: set[str] = set()
    parts = {".".join(path.split(".")[: n + 1]): None for path in paths for n in range(path.count(".") + 1)}
    for whole in sorted(parts, key=lambda p: (not all(map(_is_plain, p.split("."))), p.count("."))):
        above, _, name = whole.rpartition(".")
        layers[whole] = _fresh(f"{layers[above]}." if above else "", name, taken)
    return layers


def _fresh(above: str, name: str, taken: set[str]) -> str:
    base = name if _is_plain(name) else "_" + re.sub(r"\W", "_", name, flags=re.ASCII)
    path, n = f"{above}{base}", 1
    while path in taken:
        n += 1
        path = f"{above}{base}_{n}"
    taken.add(path)
    return path


def _is_plain(name: str) -> bool:
    """Report whether a name is valid; a number is the name of a layer in a Sequential."""
    return bool(re.fullmatch(r"\w+", name, flags=re.ASCII)) and not keyword.iskeyword(name)


def _with(renamed: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, Any]:
    return {renamed[name]: value for name, value in values.items()}
