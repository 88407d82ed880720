"""Whole builds: every board, both compilers, the same bytes everywhere, and errors with figures."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from baretorch.errors import CompileError, InternalError
from baretorch.files.ownership import RECORD
from baretorch.firmware.build import build
from baretorch.firmware.elf import read_elf
from baretorch.firmware.toolchain import Toolchain
from baretorch.firmware.types import Image
from baretorch.options import Optimize
from baretorch.targets.boards import board_names, load_board
from tests.firmware.conftest import DUMMY, SOURCES, Build
from tests.symbols import symbols_of

TOOLCHAINS = ["gcc", "zig"]
SLOW = pytest.param("virt-rv32", "zig", marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("name", "toolchain"),
    [(n, t) for n in board_names() for t in TOOLCHAINS if t == "gcc" or load_board(n).chip.cpu.zig is not None],
)
def test_every_board_builds(image_of: Build, name: str, toolchain: str) -> None:
    image = image_of(name, toolchain)
    chip = image.board.chip
    elf = read_elf(image.elf.read_bytes())
    assert elf.machine == chip.cpu.elf_machine and image.toolchain == toolchain
    symbols = symbols_of(elf)
    assert symbols["dummy_run"] == elf.symbol("dummy_run").address
    assert 0 < symbols["bt_model_returned"] - symbols["bt_model_call"] < 100
    assert (image.uf2 is not None) == (chip.uf2_family is not None)
    assert (image.bin is None) == (image.hex is None) == image.board.hosted
    if not image.board.hosted:
        assert 0 < image.flash.total < chip.memory(chip.code).size
        assert 0 < image.ram.stack < chip.stack_bytes and image.ram.total < chip.memory(chip.data).size


@pytest.mark.parametrize(
    ("board", "toolchain"),
    [("pico", "gcc"), ("pico", "zig"), ("virt-rv32", "gcc"), SLOW, ("host", "gcc")],
)
def test_same_bytes_in_any_folder(
    board: str, toolchain: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, image_of: Build
) -> None:
    """Sources, output and cache are in other folders, and everything is compiled again."""
    first = image_of(board, toolchain)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = tmp_path / "another" / "source"
    shutil.copytree(DUMMY, source)
    sources = [source / path.name for path in SOURCES]
    second = build("dummy", load_board(board), tmp_path / "out", sources, source, "dummy_run", toolchain)
    for kind in ("elf", "bin", "hex", "uf2"):
        ours, theirs = getattr(first, kind), getattr(second, kind)
        assert (ours is None) == (theirs is None)
        assert ours is None or ours.read_bytes() == theirs.read_bytes()


def test_runtime_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    compiled: list[str] = []
    compile_one = Toolchain.compile

    def counting(self: Toolchain, source: Path, *rest: object) -> None:
        compiled.append(source.name)
        compile_one(self, source, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Toolchain, "compile", counting)
    steps: list[tuple[str, int, int]] = []
    for folder in ("a", "b"):
        build(
            "dummy",
            load_board("pico"),
            tmp_path / folder,
            SOURCES,
            DUMMY,
            "dummy_run",
            "gcc",
            Optimize.SPEED,
            lambda *s: steps.append(s),
        )
    assert compiled.count("serve.c") == 1 and compiled.count("model.c") == 2
    total = steps[0][2]
    assert [n for _, n, _ in steps] == [*range(1, total + 1)] * 2
    assert (tmp_path / "a" / "dummy.elf").read_bytes() == (tmp_path / "b" / "dummy.elf").read_bytes()


def test_only_whole_files_remain(image_of: Build) -> None:
    image = image_of("pico", "gcc")
    names = {"bt_board.h", "dummy.ld", "dummy.elf", "dummy.map", "dummy.bin", "dummy.hex", "dummy.uf2"}
    assert {p.name for p in image.elf.parent.iterdir()} == names | {RECORD}


def with_sizes(folder: Path, weights: int, arena: int) -> tuple[Path, ...]:
    """Return the dummy model with more bytes of weights and arena."""
    extra = folder / "extra.c"
    extra.write_text(
        f"""\
#include "model.h"
#include <stdint.h>
extern const uint8_t extra_weights[];
extern uint8_t extra_arena[];
const uint8_t extra_weights[{weights}] __attribute__((used, section(".rodata.bt_weights_extra"), aligned(16))) = {{1}};
uint8_t extra_arena[{arena}] __attribute__((used, section(".bss.bt_arena_extra"), aligned(16)));
"""
    )
    glue = folder / "glue.c"
    text = (DUMMY / "glue.c").read_text()
    declared = "extern const unsigned char extra_weights[];\nextern unsigned char extra_arena[];\n"
    text = text.replace(
        "void bt_model_call(void)\n{", declared + "void bt_model_call(void)\n{\n    extra_arena[0] = extra_weights[0];"
    )
    glue.write_text(text)
    return (DUMMY / "model.c", DUMMY / "weights.c", extra, glue)


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_what_does_not_fit_is_reported_to_the_byte(toolchain: str, tmp_path: Path) -> None:
    board = load_board("microbit")
    flash, ram = board.chip.memory(board.chip.code), board.chip.memory(board.chip.data)

    def attempt(weights: int, arena: int) -> Image:
        sources = with_sizes(tmp_path, weights, arena)
        return build("dummy", board, tmp_path / "out", sources, DUMMY, "dummy_run", toolchain)

    small = attempt(16, 16)
    elf = read_elf(small.elf.read_bytes())
    data_end = max(s.address + s.size for s in elf.sections if s.name in (".data", ".bss", ".arena"))
    room = (flash.size - small.flash.total) // 16 * 16
    space = (ram.origin + ram.size - board.chip.stack_bytes - data_end) // 16 * 16
    full = attempt(16 + room, 16 + space)
    assert flash.size - full.flash.total < 16 and full.flash.weights == 32 + room and full.ram.arena == 256 + 16 + space

    need = small.flash.total + room + 16
    with pytest.raises(CompileError) as caught:
        attempt(16 + room + 16, 16)
    error = caught.value
    assert error.what == f"the image does not fit microbit: {flash.name} is {need - flash.size} bytes too small"
    code = small.flash.code
    assert error.have == (f"{flash.name} {flash.size} bytes",)
    assert error.need == (f"{flash.name} {need} bytes: {48 + room} of weights, {code} of code",)
    assert error.try_[0].startswith("`baretorch fit MODEL --board microbit` finds options that make it fit")

    over = data_end + space + 4096 - (ram.origin + ram.size - board.chip.stack_bytes)
    with pytest.raises(CompileError) as caught:
        attempt(16, 16 + space + 4096)
    error = caught.value
    assert error.what == f"the image does not fit microbit: {ram.name} is {over} bytes too small"
    (needed,) = error.need
    assert needed.startswith(f"{ram.name} {ram.size + over} bytes: {256 + 16 + space + 4096} of arena, ")
    assert needed.endswith(f"{board.chip.stack_bytes} of stack")

    with pytest.raises(
        CompileError, match=rf"{flash.name} is \d+ bytes too small and {ram.name} is \d+ bytes too small"
    ):
        attempt(1 << 20, 1 << 20)
    assert (tmp_path / "out" / "dummy.elf").read_bytes() == full.elf.read_bytes()  # the last good one stays
    assert [p.name for p in (tmp_path / "out").iterdir() if p.name.startswith(".")] == [RECORD]


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_our_own_mistakes_are_internal_errors(toolchain: str, tmp_path: Path) -> None:
    def attempt(name: str, text: str) -> None:
        path = tmp_path / name
        path.write_text(text)
        sources = [path if path.name == s.name else s for s in SOURCES]
        build("dummy", load_board("mps2-an386"), tmp_path / "out", sources, DUMMY, "dummy_run", toolchain)

    model, glue = (DUMMY / "model.c").read_text(), (DUMMY / "glue.c").read_text()
    with pytest.raises(InternalError, match=r"does not compile model.c\n(.|\n)*error"):
        attempt("model.c", model.replace("return a * 3;", "return a * 3.5f;"))
    with pytest.raises(InternalError, match=r"does not link the image\n(.|\n)*dummy_unrelated"):
        attempt("model.c", model.replace("int dummy_unrelated(int a)", "int renamed(int a);\nint renamed(int a)"))
    with pytest.raises(InternalError, match="before bt_model_returned is not the call of dummy_run"):
        attempt("glue.c", glue.replace("dummy_arena + 8, 3);", "dummy_arena + 8, 3);\n    kept = 7;"))
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_return_label_is_checked_on_riscv_too(toolchain: str, tmp_path: Path) -> None:
    path = tmp_path / "glue.c"
    path.write_text(
        (DUMMY / "glue.c").read_text().replace("dummy_arena + 8, 3);", "dummy_arena + 8, 3);\n    kept = 7;")
    )
    with pytest.raises(InternalError, match="before bt_model_returned is not the call of dummy_run"):
        build("d", load_board("virt-rv32"), tmp_path / "out", [*SOURCES[:2], path], DUMMY, "dummy_run", toolchain)
