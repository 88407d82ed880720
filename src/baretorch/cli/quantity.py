"""Types of options that are a number with a unit."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import click

KIB, MIB = 1 << 10, 1 << 20
SIZES = {"kib": KIB, "kb": KIB, "k": KIB, "mib": MIB, "mb": MIB, "m": MIB, "b": 1, "": 1}
TIMES = {"ms": 1.0, "us": 1e-3, "s": 1e3, "": 1.0}  # milliseconds


class Quantity(click.ParamType[float]):
    """A number followed by a unit. The first unit in `units` that matches is used."""

    def __init__(
        self, name: str, kind: type[float], units: Mapping[str, float], least: float, most: float, example: str
    ) -> None:
        self.name, self._kind, self._units, self._example = name, kind, units, example
        self._least, self._most = least, most

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        text = str(value).strip()
        unit = next(unit for unit in self._units if text.lower().endswith(unit))
        found = float("nan")
        with suppress(ValueError):
            found = float(text[: len(text) - len(unit)]) * self._units[unit]
        if not self._least <= found < self._most:
            self.fail(f"{text} is not a valid {self.name}; write {self._example}", param, ctx)
        return self._kind(found)


SIZE = Quantity("size", int, SIZES, 1, 1 << 40, "61440, 60k or 1.5M")
TIME = Quantity("time", float, TIMES, 1e-9, 1e9, "30ms or 1.5s")
