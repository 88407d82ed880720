"""Stack bounds: against the compiler's own figures, and against what the emulated core really uses."""

from __future__ import annotations

from pathlib import Path

import pytest
import unicorn
from unicorn import arm_const

from baretorch.firmware import thumb
from baretorch.firmware.elf import Elf, read_elf
from baretorch.firmware.instructions import split
from baretorch.firmware.stack import StackBound, frames_of_clang, frames_of_gcc, stack_bound
from baretorch.firmware.toolchain import find_toolchain
from baretorch.firmware.types import Image
from baretorch.options import Optimize
from baretorch.targets.boards import load_board
from baretorch.targets.linker import linker_script
from tests.firmware.conftest import Build
from tests.machines.images import image as toy
from tests.symbols import symbols_of

SOURCE = Path(__file__).parent / "stack.c"
TOOLCHAINS = ["gcc", "zig"]


def linked(board_name: str, toolchain: str, folder: Path) -> tuple[Elf, dict[str, int | None]]:
    """tests/firmware/stack.c alone as an image."""
    board = load_board(board_name)
    tools = find_toolchain(board, toolchain)
    script, made = folder / "x.ld", folder / "x.o"
    script.write_text(linker_script(board))
    tools.compile(SOURCE, made, (), Optimize.SIZE)
    assert tools.link([made], script, folder / "x.elf", folder / "x.map") is None
    su = made.with_suffix(".su")
    return read_elf((folder / "x.elf").read_bytes()), frames_of_gcc([su.read_text()] if su.exists() else [])


@pytest.mark.parametrize(
    ("board", "toolchain"),
    [
        *((board, toolchain) for board in ("microbit", "mps2-an386", "virt-rv32") for toolchain in TOOLCHAINS),
        ("arduino-uno", "gcc"),
        ("arduino-mega", "gcc"),
    ],
)
def test_chains_recursion_and_pointers(board: str, toolchain: str, tmp_path: Path) -> None:
    elf, frames = linked(board, toolchain, tmp_path)
    clang = frames_of_clang(elf)

    def frame(name: str) -> int:
        found = clang.get(elf.symbol(name).address, frames.get(name))
        assert found is not None
        return found

    assert frame("big_leaf") >= 400
    deepest = frame("chain") + frame("middle") + frame("big_leaf")
    assert stack_bound(elf, "chain", frames) == StackBound(deepest)
    assert stack_bound(elf, "big_leaf", frames) == StackBound(frame("big_leaf"))

    recursive = stack_bound(elf, "ping", frames)
    assert recursive.bytes is None and recursive.reason == "recursion: ping -> pong -> ping"
    for name in ("factorial", "hidden"):  # the assembler leaves no relocation for the second
        itself = stack_bound(elf, name, frames)
        assert itself.bytes is None and itself.reason == f"recursion: {name} -> {name}"
    assert stack_bound(elf, "far_loop", frames) == StackBound(frame("far_loop")), "a jump is no recursion"
    through = stack_bound(elf, "through_pointer", frames)
    assert through.bytes is None and through.reason == "through_pointer calls through a pointer"
    everything = stack_bound(elf, "bt_reset", frames)
    assert everything.bytes is None and everything.reason


@pytest.mark.parametrize("board", ["microbit", "mps2-an386", "virt-rv32", "arduino-uno", "arduino-mega"])
def test_frames_read_from_code_agree_with_the_compiler(board: str, tmp_path: Path) -> None:
    """Functions without the compiler's data are measured by their code: the same here, where both are known."""
    elf, frames = linked(board, "gcc", tmp_path)
    for name in ("chain", "middle", "big_leaf"):
        assert stack_bound(elf, name, {}) == stack_bound(elf, name, frames)


def test_variable_frames_are_unknown() -> None:
    frames = frames_of_gcc(["a.c:1:1:f\t16\tstatic\na.c:2:1:g.constprop\t32\tdynamic\na.c:3:1:h\t8\tdynamic,bounded\n"])
    assert frames == {"f": 16, "g": None, "h": 8}
    assert frames_of_gcc(["a.c:1:1:f\t16\tstatic\n", "b.c:1:1:f.part.0\t24\tstatic\n"]) == {"f": 24}


def used_by_run(image: Image) -> int:
    """Bytes of stack that one call of the run function takes on an emulated core."""
    chip = image.board.chip
    core = unicorn.Uc(unicorn.UC_ARCH_ARM, unicorn.UC_MODE_THUMB | unicorn.UC_MODE_MCLASS)
    assert chip.cpu.unicorn is not None
    core.ctl_set_cpu_model(getattr(arm_const, chip.cpu.unicorn))
    for bank in (chip.memory(chip.code), chip.memory(chip.data)):
        core.mem_map(bank.origin, bank.size)
    assert image.bin is not None
    core.mem_write(chip.memory(chip.code).origin, image.bin.read_bytes())
    symbols = symbols_of(image.elf)
    top, back = symbols["bt_stack_top"], symbols["bt_reset"]
    lowest = top

    def watch(uc: unicorn.Uc, *_: object) -> None:
        nonlocal lowest
        lowest = min(lowest, uc.reg_read(arm_const.UC_ARM_REG_SP))

    core.hook_add(unicorn.UC_HOOK_CODE, watch)
    arena = symbols["dummy_arena"]
    for register, value in (("SP", top), ("LR", back | 1), ("R0", arena), ("R1", arena + 32), ("R2", 3)):
        core.reg_write(getattr(arm_const, f"UC_ARM_REG_{register}"), value)
    core.emu_start(symbols["dummy_run"] | 1, back, count=100_000)
    return top - lowest


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
@pytest.mark.parametrize("board", ["pico", "mps2-an385", "mps2-an386"])
def test_bound_holds_on_the_core(image_of: Build, board: str, toolchain: str) -> None:
    """pico has soft float from a library without data; its bound must hold all the same, and not by much."""
    image = image_of(board, toolchain)
    used = used_by_run(image)
    elf = read_elf(image.elf.read_bytes())
    decoded = stack_bound(elf, "dummy_run")  # with gcc from the code alone
    assert decoded.bytes is not None
    assert 32 <= used <= decoded.bytes <= used + 64
    assert used <= image.ram.stack < 400


DEEP = """\
void __attribute__((noinline)) toy_run(const void *from, void *to)
{
    volatile uint8_t room[512];
    room[*(const uint8_t *)from] = 1;
    *(uint8_t *)to = room[0];
}
"""


@pytest.mark.parametrize("toolchain", TOOLCHAINS)
def test_the_server_leaves_the_stack_to_the_model(toolchain: str) -> None:
    """Three functions are below a model that runs, and keep little: what frames need is gone by then."""
    made = toy("mps2-an386", DEEP, toolchain=toolchain)
    assert made.run_stack is not None and made.run_stack >= 512
    assert made.ram.stack - made.run_stack <= 24


@pytest.mark.parametrize(
    ("code", "bytes_"),
    [
        ("6c466ff30304a546", 12),  # mov r4, sp; bfc r4, #0, #4; mov sp, r4: to a multiple of 16
        ("e8466ff30408c546", 28),  # r8, and 32
        ("6c466ff30305a546", 0),  # bfc r5: another register
        ("6c466ff34304a546", 0),  # bfc r4, #1, #3: bits that are not the lowest
        ("64466ff30304", 0),  # mov r4, ip
    ],
)
def test_what_a_function_that_aligns_its_stack_may_take(code: str, bytes_: int) -> None:
    found = list(split(bytes.fromhex(code), 0x1000, thumb.is_long))
    assert sum(thumb.stack_growth(*pair) or 0 for pair in zip([None, *found], found, strict=False)) == bytes_
