"""Reads the choices that a Python model file offers: `WIDTHS` and `SIZES` list numbers for model(width=…, size=…). Its
other functions get those that they have a parameter for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from baretorch.errors import CompileError

LISTS = {"width": "WIDTHS", "size": "SIZES"}
SIZED = ("inputs", "calibration", "evaluate")  # functions whose data has the size of the model's input
FUNCTIONS = ("model", *SIZED, "train")
MOST = 1 << 20

Arguments: TypeAlias = Mapping[str, int | float]


@dataclass(frozen=True)
class Offer:
    """The offered numbers by parameter, and the defaults."""

    choices: Mapping[str, tuple[int | float, ...]] = field(default_factory=dict)
    default: Arguments = field(default_factory=dict)

    def check(self, path: Path, asked: Arguments) -> None:
        """Raise CompileError if these choices are not offered."""
        for name, value in asked.items():
            if value not in self.choices.get(name, ()):
                have = f"{LISTS[name]} = {self.choices[name]}" if name in self.choices else f"no {LISTS[name]}"
                raise CompileError(
                    f"--config: {name} = {value}: the model file does not offer that",
                    at=path.name,
                    have=have,
                    need="a number of that list, as when the configuration was made",
                )


def read_offer(path: Path, file: ModuleType) -> Offer:
    """Return the choices that an imported file offers. Raises CompileError if its functions do not take them."""
    choices: dict[str, tuple[int | float, ...]] = {}
    default: dict[str, int | float] = {}
    for name, listed in LISTS.items():
        if hasattr(file, listed):
            choices[name] = _numbers(path, listed, getattr(file, listed))
            default[name] = _default(path, file, name, choices[name])
    return Offer(choices, default)


def choices_for(function: Callable[..., Any], asked: Arguments) -> dict[str, int | float]:
    """Return the choices that a function has a parameter for."""
    return {name: value for name, value in asked.items() if name in inspect.signature(function).parameters}


def is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= MOST


def _numbers(path: Path, listed: str, given: Any) -> tuple[int | float, ...]:
    if isinstance(given, (tuple, list)) and given and all(map(is_number, given)) and len({*given}) == len(given):
        return tuple(given)
    raise CompileError(
        f"{listed} is not a list of choices",
        at=path.name,
        have=f"{given!r:.60}",
        need=f"numbers above 0, each once: {listed} = (0.5, 1)",
    )


def _default(path: Path, file: ModuleType, name: str, choices: tuple[int | float, ...]) -> int | float:
    """Return the default of model(), which must be the same in all functions."""
    found: dict[str, Any] = {}
    for function in FUNCTIONS:
        parameters = inspect.signature(getattr(file, function)).parameters if hasattr(file, function) else None
        if parameters is not None and name in parameters:
            found[function] = parameters[name].default
        elif function == "model" or (name == "size" and function in SIZED and parameters is not None):
            raise CompileError(
                f"the file has {LISTS[name]}, and {function}() takes no {name}",
                at=path.name,
                need=f"a parameter {name}={choices[0]}",
            )
    for function, value in found.items():
        if not is_number(value) or value not in choices or value != found["model"]:
            none = value is inspect.Parameter.empty
            raise CompileError(
                f"{name} of {function}() has " + ("no default" if none else f"the default {value!r:.40}"),
                at=path.name,
                have=f"{LISTS[name]} = {choices}",
                need="the same default everywhere, from that list",
            )
    return found["model"]  # type: ignore[no-any-return]
