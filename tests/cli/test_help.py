"""`--help` works for every verb, fits the terminal and imports little. docs/reference/cli.md holds its words."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from baretorch.cli import GOALS, VERBS, WISHES
from baretorch.cli.verb import HEADINGS, show, whole_lines
from tests.cli.program import baretorch


def check_help(*verb: str) -> str:
    result = baretorch(*verb, "--help")
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith(" ".join(["Usage: baretorch", *verb, "[OPTIONS]"]))
    wide = [line for line in result.out.splitlines() if len(line) > 80]
    assert all(re.fullmatch(r"  --\w+ \[[\w|-]+\]", line) for line in wide), wide  # click does not break choices
    return result.out


@pytest.mark.parametrize("verb", [v.name for v in VERBS])
def test_help_of_each_verb(verb: str) -> None:
    text = check_help(verb)
    assert "--json" in text and "--debug" in text


def test_help() -> None:
    listed = check_help().split()
    assert all(verb.name in listed for verb in VERBS)


def test_verbs_are_listed_by_goal() -> None:
    text = check_help()
    places = [text.index(f"\n{goal}:\n") for goal in GOALS]
    assert places == sorted(places)
    assert all(re.search(rf"^  {verb.name} +\S.*\.$", text, re.MULTILINE) for verb in VERBS), "a text that is cut"


def test_options_are_under_headings() -> None:
    text = check_help("run")
    sections = re.split(r"^(\S.*):\n", text, flags=re.MULTILINE)
    found = dict(zip(sections[1::2], sections[2::2], strict=True))
    assert list(found) == ["Options", *HEADINGS, "Output"]
    assert "--keep-float" in found["int8"] and "--board" in found["Options"] and "--json" in found["Output"]
    params = {param.name for verb in VERBS for param in verb.params}
    assert {name for names in HEADINGS.values() for name in names} <= params


def test_without_a_verb_it_says_what_one_can_do() -> None:
    result = baretorch()
    assert (result.code, result.err) == (0, "")
    verbs = {verb.name: verb for verb in VERBS}
    for wish, command in WISHES:
        assert f"{wish} " in result.out and result.out.count(command) == 1
        program, verb, *words = command.split()
        assert program == "baretorch"
        known = {flag for param in verbs[verb].params for flag in param.opts}
        assert {word for word in words if word.startswith("--")} <= known


def test_version() -> None:
    assert baretorch("--version").out.startswith("baretorch 0.")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["run", "--help"], ["boards", "--json"], ["completion", "bash"], ["doctor", "--json"]]
)
def test_torch_stays_out(arguments: list[str]) -> None:
    """Neither `import baretorch` nor a verb that reads no model imports torch."""
    code = (
        "import sys, baretorch\n"
        "from baretorch.cli import run_command\n"
        f"code = run_command({arguments!r})\n"
        "heavy = {'torch', 'executorch', 'unicorn', 'matplotlib'} & set(sys.modules)\n"
        "sys.exit(f'imported: {heavy}' if heavy else code)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_nearest_verb() -> None:
    result = baretorch("inspekt", "model.py")
    assert result.code == 2
    assert "No such command 'inspekt'. Did you mean 'inspect'?" in result.err


def test_usage_errors_in_json() -> None:
    result = baretorch("run", "model.py", "--json")
    assert result.code == 2
    assert "--board" in result.json()["error"]
    assert result.err == ""


def test_usage_errors_look_like_all_errors() -> None:
    result = baretorch("run", "net.py")
    assert result.code == 2
    assert result.err.endswith("\nerror: Missing option '--board'. `baretorch boards` lists them\n")


@pytest.mark.parametrize("size", ["1x", "0", "1e400"])
def test_sizes_that_are_none(size: str) -> None:
    result = baretorch("run", "net.py", "--board", "pico2w", "--ram", size)
    assert result.code == 2
    assert result.err.endswith(f"'--ram': {size} is not a valid size; write 61440, 60k or 1.5M\n")


def test_texts_for_other_programs_are_not_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    text = f"{'word ' * 60}end"
    show(whole_lines(f"{text}\nnext"))
    assert capsys.readouterr().out == f"{text}\nnext\n"
