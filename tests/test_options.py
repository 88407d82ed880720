"""Each option is declared once, and the command line, Python and JSON go by that."""

from __future__ import annotations

import inspect
import json
import shlex
from typing import Any

import click
import numpy as np
import pytest

import baretorch
from baretorch.cli import VERBS
from baretorch.cli.flags import gather_options
from baretorch.errors import CompileError
from baretorch.options import DEFAULT, OPTIONS, Io, Option, Options, read_options
from baretorch.quantize.quantize import _natural
from tests.cli.program import baretorch as program


def other(option: Option) -> Any:
    """Return a value that is not the option's default, as JSON has it."""
    if option.choices:
        return next(word for word in option.choices if word != option.plain_default)
    values = {bool: True, int: (option.default or 0) + 2, str: "a=b c", tuple: ["a", "b.0"], dict: {"a=b": "1,3"}}
    return values[option.kind]


OTHER: dict[str, Any] = {name: other(option) for name, option in OPTIONS.items()}


def parsed(words: tuple[str, ...]) -> Options:
    """Parse the words as a command would that has all options."""
    found: list[Options] = []
    params = {param.name: param for verb in VERBS for param in verb.params if param.name in OPTIONS}
    probe = click.Command(
        "run", params=list(params.values()), callback=gather_options(lambda options, **_: found.append(options))
    )
    probe.main(list(words), standalone_mode=False)
    return found[0]


def test_the_command_line_takes_what_python_takes() -> None:
    options = read_options(OTHER)
    assert all(getattr(options, name) != getattr(DEFAULT, name) for name in OPTIONS)
    words = options.words()
    assert parsed(words) == options
    some = Options(trust=True, shape={"x": "1,3"}, keep_float=("a", "b.0"), int8=True, io=Io.INT8, ram=6000)
    assert (
        shlex.join(some.words()) == "--trust --shape x=1,3 --int8 --keep-float a --keep-float b.0 --io int8 --ram 6000"
    )
    assert parsed(()) == DEFAULT and DEFAULT.words() == ()


def test_json_has_all_of_them_by_name() -> None:
    assert json.loads(json.dumps(read_options(OTHER).to_json())) == OTHER


def test_words_in_addition_to_given_ones() -> None:
    given = Options(int8=True, ram=6000)
    assert Options(int8=True, io=Io.INT8, ram=6000).words(given) == ("--io", "int8")
    assert given.words(given) == ()


def test_help_of_python_lists_every_option_and_its_default() -> None:
    parameters = inspect.signature(baretorch.compile).parameters
    own = ["model", "inputs", "board", "name", "calibration"]
    assert list(parameters) == [*own, *(name for name in OPTIONS if name not in own)]
    assert repr(parameters["optimize"].default) == "'speed'" and parameters["ram"].default is None
    text = baretorch.compile.__doc__ or ""
    assert all(option.python_help in text for option in OPTIONS.values())
    assert "Repeatable" not in text and 'as in {"x": (1,3,96,96)}.' in text
    assert '{"sr": 16000} or {"mean": (0.5,0.4,0.4)}.' in text


@pytest.mark.parametrize(
    ("option", "value", "need"),
    [
        ("io", "fast", "'float' or 'int8'"),
        ("optimize", None, "'speed' or 'size'"),
        ("toolchain", "icc", "'gcc' or 'zig'"),
        ("emulator", 1, "a name"),
        ("config", 1, "a path"),
        ("ram", -1, "a whole number, at least 0"),
        ("ram", "6000", "a whole number, at least 0"),
        ("ram", True, "a whole number, at least 0"),
        ("int8", "yes", "True or False"),
        ("keep_float", "conv", "a list of layers"),
        ("keep_float", [1], "a list of layers"),
        ("place", [("a", "SRAM")], "a dict like {'LAYER': 'BANK'}"),
        ("place", {"a": 1}, "a dict like {'LAYER': 'BANK'}"),
    ],
)
def test_a_value_that_an_option_may_not_have(option: str, value: object, need: str) -> None:
    with pytest.raises(CompileError) as caught:
        baretorch.compile("net.pte", board="pico", **{option: value})
    assert (caught.value.what, caught.value.need) == (f"compile(): {option} is {value!r}", (need,))


@pytest.mark.parametrize(
    ("option", "value", "what"),
    [
        ("ram", -(10**5000), "ram is a number of thousands of digits"),
        ("ram", 10**5000, "ram is a number of thousands of digits"),
        ("ram", 10**30, f"ram is {10**30}"),
        ("shape", {"x": (10**5000,)}, "shape is a number of thousands of digits"),
    ],
    ids=["least", "most", "more than JSON has", "size"],
)
def test_numbers_of_any_length(option: str, value: object, what: str) -> None:
    with pytest.raises(CompileError) as caught:
        read_options({option: value})
    assert caught.value.what == f"compile(): {what}"


@pytest.mark.parametrize("option", ["--ram=", "--watchdog=", "--shape=x="])
def test_numbers_of_any_length_on_the_command_line(option: str) -> None:
    result = program("run", "net.onnx", "--board", "pico", option + "9" * 5000)
    assert result.code == 2 and len(result.err) < 1000, result.err


def test_layers_with_very_long_numbers_are_sorted() -> None:
    names = [f"layer.{number}.conv" for number in ("1" + "0" * 5000, "9" * 5000, "10", "2")]
    assert sorted(names, key=_natural) == names[::-1]


def test_numbers_of_numpy_are_numbers() -> None:
    assert read_options({"ram": np.int64(6000)}) == Options(ram=6000)


def test_an_option_that_is_none() -> None:
    with pytest.raises(CompileError) as caught:
        baretorch.compile("net.pte", board="pico", optimise="speed")
    assert caught.value.what == "compile() has no option 'optimise'"
    assert caught.value.try_ == ("did you mean 'optimize'?",)


def test_the_same_words_for_options_that_do_not_go_together() -> None:
    with pytest.raises(CompileError) as in_python:
        baretorch.compile("net.pte", board="pico", observer="minmax")
    with pytest.raises(click.UsageError) as on_the_command_line:
        parsed(("--observer", "minmax"))
    assert (
        in_python.value.what
        == on_the_command_line.value.message
        == "--keep-float, --observer and --calibration go with --int8"
    )
