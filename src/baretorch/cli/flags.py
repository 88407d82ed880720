"""Makes the flags of the command line from the declarations of Options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import click

from baretorch.cli.quantity import SIZE
from baretorch.cli.verb import Answer, Body, complete_emulators
from baretorch.errors import CompileError
from baretorch.escape import line
from baretorch.options import OPTIONS, Option, Options

INT8 = ("int8", "calibration", "keep_float", "config", "observer", "io")
MEMORY = ("ram", "input", "buffers", "weights", "place")
COMPILE = ("optimize", *INT8, *MEMORY, "check_inputs")
CORES = ("cores", "core")
BUILD = ("toolchain", "console", "code")


def model_argument(body: Body, metavar: str = "MODEL", required: bool = True) -> Body:
    """Add MODEL, a path that may end in `::method`, and the options for reading it."""
    argument = click.argument("model", metavar=metavar, type=click.Path(), required=required)
    return argument(flags("trust", "shape", "state", "fix")(body))


def model_or_image_argument(body: Body) -> Body:
    return model_argument(body, "MODEL_OR_IMAGE")


def optional_model_argument(body: Body) -> Body:
    return model_argument(body, "[MODEL]", required=False)


def takes(*names: str) -> Callable[[Body], Body]:
    """Add these flags; the verb's body gets them together as `options`."""
    return lambda body: flags(*names)(gather_options(body))


def flags(*names: str) -> Callable[[Body], Body]:
    """Add these flags in this order, for verbs with other flags between them: use `gather_options` as well."""

    def decorate(body: Body) -> Body:
        for name in reversed(names):
            body = _flag(OPTIONS[name])(body)
        return body

    return decorate


def gather_options(body: Body) -> Body:
    """Collect the arguments that are fields of Options into one argument `options`."""

    @wraps(body)
    def with_options(*arguments: Any, **given: Any) -> Answer:
        values = {name: _value(option, given.pop(name)) for name, option in OPTIONS.items() if name in given}
        try:
            options = Options(**values)
        except CompileError as error:  # invalid values, or flags that exclude each other
            raise click.UsageError(line(error.what)) from None
        return body(*arguments, options=options, **given)

    return with_options


def _flag(option: Option) -> Callable[[Body], Body]:
    if option.kind is bool:
        return click.option(option.flag, is_flag=True, help=option.about.help)
    if option.kind is int:
        number = SIZE if option.about.metavar == "SIZE" else click.IntRange(min=option.about.least)
        return click.option(
            option.flag, type=number, metavar=option.about.metavar, default=option.default, help=option.about.help
        )
    if option.kind is str:
        kind = click.Path() if option.is_path else click.STRING
        return click.option(
            option.flag,
            type=kind,
            metavar=option.about.metavar,
            help=option.about.help,
            shell_complete=complete_emulators if option.name == "emulator" else None,
        )
    if option.choices:
        return click.option(
            option.flag,
            type=click.Choice(option.choices),
            default=option.plain_default,
            show_default=not option.optional,
            help=option.about.help,
        )
    return click.option(option.flag, multiple=True, metavar=option.about.metavar, help=option.about.help)


def _value(option: Option, given: Any) -> Any:
    """Convert a value from click to the type in Options."""
    if option.kind is dict:
        return _pairs(option, given)
    return option.kind(given) if given is not None else None


def _pairs(option: Option, given: Sequence[str]) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for word in given:
        key, _, value = word.rpartition("=")
        if not key or not value:
            raise click.UsageError(f"{option.flag} takes {option.about.metavar}, not {word}")
        if key in pairs:
            raise click.UsageError(f"{option.flag} has two values for {key}: {pairs[key]} and {value}")
        pairs[key] = value
    return pairs
