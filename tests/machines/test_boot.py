"""Unicorn's machines boot as the chips do: what a boot ROM or a core refuses does not run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from baretorch.errors import CompileError
from baretorch.firmware.types import Image
from baretorch.machines import open_machine
from baretorch.machines.link import Link
from baretorch.machines.types import DeviceFault
from baretorch.targets.types import Board
from tests.machines.images import RUN, image

DATA = bytes(range(16))


def with_uf2(made: Image, change: tuple[int, bytes], folder: Path) -> Image:
    """The image with some bytes of its UF2 file changed, the ELF as it was."""
    assert made.uf2 is not None
    data, (at, new) = bytearray(made.uf2.read_bytes()), change
    data[at : at + len(new)] = new
    (folder / "changed.uf2").write_bytes(data)
    return replace(made, uf2=folder / "changed.uf2")


def test_the_uf2_file_is_what_runs(tmp_path: Path) -> None:
    """Changing the model's name in the UF2 file alone changes what the image says."""
    made = image("pico")
    assert made.uf2 is not None
    at = made.uf2.read_bytes().index(b"toy\0")
    assert Link(open_machine(with_uf2(made, (at, b"joy"), tmp_path), RUN)).hello().model == "joy"


def test_rp2040_needs_the_checksum_of_boot2(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="checksum of its second stage"):
        open_machine(with_uf2(image("pico"), (32 + 252, b"\0\0\0\0"), tmp_path), RUN)


def test_rp2350_needs_an_image_def(tmp_path: Path) -> None:
    made = image("pico2")
    assert made.uf2 is not None
    at = made.uf2.read_bytes().index(0xFFFFDED3.to_bytes(4, "little"))
    with pytest.raises(CompileError, match="RP2350 would not start this image"):
        open_machine(with_uf2(made, (at, b"\0"), tmp_path), RUN)


def test_ram_is_not_zero_after_power_up() -> None:
    body = """\
static uint8_t later[4] __attribute__((section(".bss.bt_arena")));
__attribute__((noinline)) void toy_run(const void *from, void *to)
{
    (void)from;
    ((volatile uint8_t *)to)[0] = ((volatile uint8_t *)later)[1];
}"""
    assert Link(open_machine(image("pico", body), RUN)).run([DATA]).outputs[0][0] == 0xA5


def test_a_write_to_flash_stops_the_image() -> None:
    body = """\
__attribute__((noinline)) void toy_run(const void *from, void *to)
{
    (void)from;
    (void)to;
    *(volatile uint32_t *)0x10000200u = 1;
}"""
    with pytest.raises(DeviceFault, match="bad write of 4 bytes at 0x10000200"):
        Link(open_machine(image("pico", body), RUN)).run([DATA])


def test_waiting_for_an_event_is_passed_over() -> None:
    body = """\
__attribute__((noinline)) void toy_run(const void *from, void *to)
{
    (void)from;
    __asm__ volatile("wfe" ::: "memory");
    *(volatile uint8_t *)to = 7;
}"""
    assert Link(open_machine(image("pico", body), RUN)).run([DATA]).outputs[0][0] == 7


# Instructions that only some cores have. (Both emulators let DSP instructions pass on a Cortex-M3.)
OPCODES = {
    "movw r0, #1": ".short 0xf240, 0x0001",
    "udiv r0, r0, r1": ".short 0xfbb0, 0xf0f1",
    "smlad r0, r0, r1, r2": ".short 0xfb20, 0x2001",
    "vadd.f32 s0, s0, s0": ".short 0xee30, 0x0a00",
    "vadd.f64 d0, d0, d0": ".short 0xee30, 0x0b00",
}
HAS = {
    "microbit": 0,
    "mps2-an385": 3,
    "mps2-an386": 4,
    "mps2-an505": 4,
    "mps2-an500": 5,
}


@pytest.mark.parametrize("emulator", ["unicorn", "qemu"])
@pytest.mark.parametrize("board", HAS)
@pytest.mark.parametrize("name", OPCODES)
def test_a_core_refuses_what_it_does_not_have(board: str, emulator: str, name: str) -> None:
    body = f"""\
__attribute__((noinline)) void toy_run(const void *from, void *to)
{{
    (void)from;
    __asm__ volatile("{OPCODES[name]}" ::: "r0", "r1", "memory");
    *(volatile uint8_t *)to = 7;
}}"""
    machine = open_machine(image(board, body), RUN, emulator)
    link = Link(machine)
    if list(OPCODES).index(name) < HAS[board]:
        assert link.run([DATA]).outputs[0][0] == 7
    else:
        with pytest.raises(DeviceFault):
            link.run([DATA])
    machine.close()


def test_an_unknown_console() -> None:
    made = image("pico")
    chip = replace(made.board.chip, uart=replace(made.board.chip.uart, driver="lpuart"))
    board: Board = replace(made.board, chip=chip)
    with pytest.raises(CompileError, match="the silicon file of rp2040 goes with other drivers"):
        open_machine(replace(made, board=board), RUN)
    board = replace(board, chip=replace(chip, silicon=None))
    with pytest.raises(CompileError, match="no model of rp2040's driver lpuart"):
        open_machine(replace(made, board=board), RUN)
