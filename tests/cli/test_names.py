"""Nothing that a model, a file or a board is called, or says of itself, runs, breaks a text or leaves its place."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import baretorch as api
from baretorch import escape, frontends, pipeline
from baretorch.errors import CompileError
from baretorch.ir.graph import interpret
from baretorch.measure.facts import compare
from baretorch.measure.profile import make_profile
from baretorch.options import Buffers, Compiler, Options
from baretorch.passes.order import lower_graph
from baretorch.report.findings import Report
from baretorch.report.page.html import el
from baretorch.report.page.write import make_page
from baretorch.targets.boards import load_board
from tests.cli.program import baretorch, check_golden
from tests.models import compile_model, int8_model

LAYERS = {
    "class": "class",
    "code": "a */ extern int injected; /* b",
    "comment": "a*/b",
    "newline": "a\nb",
    "quote": 'a"b',
    "markup": "[/] [bold]a[link=x]",
    "terminal": "\x1b[2J\x9b1m\u202e",
    "html": "</code><script>x</script>&amp;",
    "python": 'a"), print("ran"), ("',
    "alike": "a_b",
    "number": "1",
}


class Odd(nn.Module):
    """Layers and buffers of these names, one after the other."""

    def __init__(self, names: list[str]) -> None:
        super().__init__()
        self.names = names
        for name in names:
            layer = nn.Linear(3, 3)
            layer.register_buffer(name, torch.full((1, 3), 0.25))
            self.add_module(name, layer)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for name in self.names:
            layer = self._modules[name]
            x = torch.tanh(layer(x) + layer._buffers[name])
            layer._buffers[name].copy_(x)
        return x


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.l = nn.Linear(4, 3)

    def forward(self, asm: torch.Tensor, unused: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.l(asm))


def source_of(names: list[str]) -> frontends.Source:
    torch.manual_seed(0)
    return frontends.from_module(Odd(names), (torch.randn(1, 3),), "odd")


@pytest.mark.parametrize(
    "case", [pytest.param(c, marks=() if c in ("code", "newline", "python") else pytest.mark.slow) for c in LAYERS]
)
def test_a_layer_may_be_called_anything(case: str) -> None:
    source = source_of([LAYERS[case]])
    graph = lower_graph(source.graph)
    assert source.expected is not None
    (have,) = interpret(graph, source.examples).values()
    np.testing.assert_allclose(have, source.expected[0], rtol=1e-5, atol=1e-6)
    assert LAYERS[case] in {t.origin.path for t in graph.tensors.values()}, "people are told the name that they gave"


@pytest.mark.parametrize(("board", "toolchain"), [("host", "gcc"), ("mps2-an386", "zig")])
def test_such_layers_run_right(board: str, toolchain: str, tmp_path: Path) -> None:
    compiled = compile_model(
        source_of(list(LAYERS.values())), load_board(board), Options(toolchain=Compiler(toolchain))
    )
    image = pipeline.build_image(compiled, tmp_path)
    assert compare(compiled, image, pipeline.run_image(compiled, image)).max_error < 1e-6


@pytest.mark.parametrize("options", [Options(), Options(buffers=Buffers.CALLER)], ids=["arena", "caller"])
def test_an_input_called_asm_and_an_unused_one(options: Options, tmp_path: Path) -> None:
    source = frontends.from_module(Named(), (torch.randn(1, 4), torch.randn(1, 4)), "named")
    compiled = compile_model(source, load_board("host"), options)
    image = pipeline.build_image(compiled, tmp_path)
    assert compare(compiled, image, pipeline.run_image(compiled, image)).max_error < 1e-6


def test_int8_layers_may_be_called_anything() -> None:
    class Pair(nn.Sequential):
        pass

    module = Pair()
    for name in LAYERS.values():
        module.add_module(name, nn.Linear(3, 3))
    source = frontends.from_module(module, (torch.ones(1, 3),), "pair")
    done = int8_model(source, [(torch.rand(1, 3),)], keep_float=(LAYERS["quote"],))
    paths = {t.origin.path for t in done.graph.tensors.values()}
    assert set(LAYERS.values()) <= paths


@pytest.mark.parametrize(
    "name", ["../../outside", "/outside", "a/b", "..", "", "x\0y", "%s%n", "n" * 10_000, "é", "a b", "-x", "1x", "a\nb"]
)
def test_models_from_python_have_plain_names(name: str) -> None:
    with pytest.raises(CompileError) as caught:
        api.compile(nn.Linear(4, 2), (torch.ones(1, 4),), board="host", name=name)
    shown = name if len(name) <= 40 else "n" * 40 + "…"
    assert caught.value.render() == (
        f"error: {shown!r} is not a valid model name\n  need  at most 100 letters, digits and _, the first a letter"
    )


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ('a"b $c\n.py', "a_b__c"),
        ("n" * 200 + ".py", "n" * 60),
        ("../x/..py", "model"),
        ("é.py", "model"),
        ("1.py", "model_1"),
    ],
)
def test_models_from_files_are_called_by_what_is_plain(file: str, name: str) -> None:
    assert frontends._name(Path(file)) == name


MODEL = """import torch
def model(): return torch.nn.Linear(2, 1)
def inputs(): return (torch.ones(1, 2),)
"""


@pytest.mark.parametrize("odd", ["a b\n\"c'", "$HOME `id`", "a=b,c", "é%s", "-x", "[bold]"])
def test_folders_may_be_called_anything(odd: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model's folder, that of the results, the current one and that of temporary files."""
    here = folder / odd
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("TMPDIR", str(here))
    Path(f"{odd}.py").write_text(MODEL)
    result = baretorch("build", "--board", "mps2-an386", "--out", f"./{odd}.out", "--json", "--", f"./{odd}.py")
    assert result.code == 0, result.err
    assert Path(result.json()["files"]["elf"]).is_file()


class _Structure(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@given(st.text(min_size=1), st.text())
def test_html_keeps_its_structure(text: str, attribute: str) -> None:
    page = _Structure(el("p", el("code", text), data_tip=attribute))
    assert page.tags == [("p", ("data-tip",)), ("code", ())]
    str(el("p", text, data_tip=attribute)).encode("utf-8")
    if text.isprintable():
        assert "".join(page.texts) == text


def page_of(names: list[str], folder: Path, board: str) -> str:
    compiled = compile_model(source_of(names), load_board(board))
    image = pipeline.build_image(compiled, folder)
    facts = compare(compiled, image, pipeline.run_image(compiled, image))
    return make_page(Report(facts, make_profile(compiled, image, facts.run)))


EVIL = "*/ #error ran /* </title><script>x</script> ' \\\" \\n\\\\\\n [/] \\u001b[2J \\u202e"
BOARD = """
title = "{title}"
chip = "mps2-an386"
emulators = ["unicorn", "qemu"]
qemu_machine = "mps2-an386"
flash_methods = []
notes = "{title}"
"""


def test_a_report_has_the_same_structure_whatever_names_say(tmp_path: Path) -> None:
    """The board's title too, which is also in C and in the linker script."""
    for name, title in (("plain", "Plain"), ("evil", EVIL)):
        (tmp_path / f"{name}.toml").write_text(BOARD.replace("{title}", title))
    plain = page_of(["one", "two"], tmp_path / "1", str(tmp_path / "plain.toml"))
    evil = page_of([LAYERS["html"], LAYERS["terminal"]], tmp_path / "2", str(tmp_path / "evil.toml"))
    assert _Structure(plain).tags == _Structure(evil).tags
    assert "\x1b" not in evil and "\u202e" not in evil
    shown = baretorch("boards", str(tmp_path / "evil.toml"))
    assert shown.code == 0 and "</title><script>" in shown.out and shown.out.replace("\n", "").isprintable()


def test_terminals_get_no_control_letters(folder: Path) -> None:
    names = [LAYERS[c] for c in ("terminal", "markup", "newline")]  # three: as many as the noisiest that are told
    text = f"import torch\nfrom torch import nn\nNAMES = {names!r}\n"
    text += (
        "def model():\n    m = nn.Sequential()\n    for n in NAMES: m.add_module(n, nn.Linear(3, 3))\n    return m\n"
    )
    Path("odd.py").write_text(text + "def inputs(): return (torch.ones(1, 3),)\n")
    for command in (
        ["inspect"],
        ["inspect", "--stage", "graph"],
        ["inspect", "--stage", "aten"],
        ["inspect", "--stage", "plan"],
    ):
        result = baretorch(command[0], "odd.py", *command[1:])
        assert result.code == 0, result.err
        assert result.out.replace("\n", "").isprintable()
        assert "a\nb" not in result.out, "a name stays on its line"
    result = baretorch("run", "odd.py", "--board", "host", "--int8")
    assert result.code == 0, result.err
    assert result.out.replace("\n", "").isprintable()
    assert r"\x1b[2J\x9b1m\u202e" in result.out and "[/] [bold]a[link=x]" in result.out


def test_errors_stay_on_their_lines() -> None:
    error = CompileError("a\n  try   rm -rf /", at="\x1b[2Jlayer", have="b\rc")
    assert error.render() == "error: a\\n  try   rm -rf /\n  at    \\x1b[2Jlayer\n  have  b\\rc"
    assert error.to_json()["error"] == "a\n  try   rm -rf /"


def test_a_missing_file_with_an_odd_name() -> None:
    result = baretorch("run", "\x1b[31m[/]\n.py", "--board", "host")
    check_golden("error_missing_odd", result.err)


@given(st.text() | st.text("\\\\[]/a= "))
def test_markup_is_text(text: str) -> None:
    """Whatever is around it."""
    from rich.text import Text

    shown = escape.line(text)
    assert Text.from_markup(f"[bold]{escape.markup(text)}[/]").plain == shown
    assert Text.from_markup(escape.markup(text)).plain == shown
    assert Text.from_markup(f"{escape.markup(text)} ]").plain == f"{shown} ]"


def test_every_name_of_these_is_used() -> None:
    """The names above are odd to all that reads them."""
    assert not any(re.fullmatch(r"[a-z_]\w*", name) for case, name in LAYERS.items() if case not in ("class", "alike"))
