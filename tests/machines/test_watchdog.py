"""A watchdog restarts a chip whose program hangs, and nothing else does."""

from __future__ import annotations

import pytest

from baretorch.errors import CompileError
from baretorch.firmware.build import check_watchdog
from baretorch.machines.frames import RUN as RUN_FRAME
from baretorch.machines.frames import Frame, encode_frame
from baretorch.machines.link import Link
from baretorch.machines.types import DeviceFault, DeviceHang
from baretorch.machines.unicorn.machine import UnicornMachine
from baretorch.machines.unicorn.usb.host import Steps
from baretorch.machines.unicorn.usb.port import TRANSACTION_US
from baretorch.options import Console
from baretorch.targets.boards import board_names, load_board
from tests.machines.images import RUN, image
from tests.machines.usb import drive, port

DATA = bytes(range(60, 76))
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("pico2", "nucleo-h743zi")]
BOARDS = ["pico", "nucleo-wb55rg", "microbit", *SLOW]
MS = 250
# Hangs if the first byte is 0, asleep if it is 1; takes nearly as long as it may if it is 3.
BODY = """\
__attribute__((noinline)) void toy_run(const void *from, void *to)
{
    const volatile uint8_t *x = from;
    while (x[0] == 0) {
    }
    while (x[0] == 1) {
        __asm__ volatile("cpsid i\\n wfi");
    }
    if (x[0] == 3) {
        const uint32_t before = bt_counter_read();
        while (bt_counter_read() - before < LONG) {
        }
    }
    for (uint32_t i = 0; i < OUTPUT_BYTES; i++) {
        ((uint8_t *)to)[i] = x[INPUT_BYTES - 1 - i];
    }
}"""


def start(board: str) -> tuple[UnicornMachine, list[str]]:
    long = load_board(board).chip.counter.hz * MS * 9 // 10 // 1000
    return UnicornMachine(image(board, f"#define LONG {long}u\n" + BODY, watchdog=MS), RUN, timed=False), []


def hung(first: int) -> bytes:
    return bytes([first]) + DATA[1:]


@pytest.mark.parametrize("board", BOARDS)
def test_it_bites(board: str) -> None:
    """The host receives the report at once, and the next run equals the first."""
    machine, heard = start(board)
    link = Link(machine, heard.append)
    assert not link.hello().restarted
    for first in (0, 1):
        assert link.run([DATA]).outputs == (DATA[::-1],)
        with pytest.raises(DeviceFault, match="its watchdog restarted it"):
            link.run([hung(first)])
        assert Link(machine).hello().restarted
    assert link.run([DATA]).outputs == (DATA[::-1],)
    ready = f"baretorch: toy on {board}, ready\n"
    assert "".join(heard).startswith(f"{ready}baretorch: the watchdog restarted the chip\n")


@pytest.mark.parametrize("board", ["pico", "pico2"])
def test_a_start_by_the_boot_rom_is_no_bite(board: str) -> None:
    """After a UF2 is copied, the boot ROM restarts the chip by its watchdog, and REASON records that from then on."""
    machine, heard = start(board)
    machine._state.watchdog.bit = 1
    link = Link(machine, heard.append)
    assert not link.hello().restarted and "watchdog" not in "".join(heard)
    with pytest.raises(DeviceFault, match="its watchdog restarted it"):
        link.run([hung(0)])
    assert Link(machine).hello().restarted


def test_it_bites_over_usb() -> None:
    """Output before the host has found the device again is lost, but the hello reports the reset."""
    machine = UnicornMachine(
        image("pico", "#define LONG 1u\n" + BODY, watchdog=MS, console=Console.USB), RUN, timed=False
    )
    link = Link(machine)
    assert link.run([DATA]).outputs == (DATA[::-1],)
    with pytest.raises(DeviceFault, match="its watchdog restarted it"):
        link.run([hung(0)])
    assert Link(machine).hello().restarted
    assert link.run([DATA]).outputs == (DATA[::-1],)


def test_it_leaves_alone_whose_host_does_not_read() -> None:
    """A program holds the port open and is busy for longer than the watchdog waits: the answer waits for it, and so
    does the image."""
    made = image("pico", "#define LONG 1u\n" + BODY, outputs=3000, watchdog=MS, console=Console.USB)
    machine = UnicornMachine(made, RUN, timed=False)
    link = Link(machine)
    link.hello()
    _, host = port(machine)

    def ask_and_wait() -> Steps[None]:
        while not host.send_packet(2, encode_frame(Frame(RUN_FRAME, 1, DATA))):
            yield True
        yield from (True for _ in range(3 * MS * 1000 // int(TRANSACTION_US)))

    drive(machine, ask_and_wait())
    assert not Link(machine).hello().restarted
    assert len(machine.instructions()) == 1


@pytest.mark.parametrize("board", BOARDS)
def test_it_leaves_alone_who_waits_or_takes_his_time(board: str) -> None:
    machine, heard = start(board)
    link = Link(machine, heard.append)
    link.hello()
    for _ in range(3):
        with pytest.raises(DeviceHang):  # minutes pass
            machine.read(0.3)
        assert link.run([hung(3)]).outputs == (hung(3)[::-1],)
    machine.write(b"BTR")  # half a frame
    with pytest.raises(DeviceHang):
        while True:
            machine.read(0.3)
    assert link.run([DATA]).outputs == (DATA[::-1],)
    assert "watchdog" not in "".join(heard)


@pytest.mark.parametrize("board", board_names())
def test_who_has_one(board: str) -> None:
    """The chips are those in the error's text, with the longest time of each."""
    longest = {
        "rp2040": 8388,
        "rp2350": 16777,
        "rp2350-riscv": 16777,
        "stm32wb55": 32760,
        "stm32h743": 32760,
        "nrf51822": 131_071_999,
    }
    chip = load_board(board).chip
    dog = chip.watchdog
    assert (None if dog is None else dog.longest_ms) == longest.get(chip.name)
    check_watchdog(load_board(board), None)
    if dog is None:
        with pytest.raises(CompileError, match="no watchdog that is known here"):
            check_watchdog(load_board(board), 1000)
    else:
        check_watchdog(load_board(board), dog.longest_ms)
        assert dog.count(dog.longest_ms) <= dog.most < dog.count(dog.longest_ms + 10)
