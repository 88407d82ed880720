"""Flash is read as fast as its chip can be, and safely where it is another one than expected; wrong code fails."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from baretorch.errors import CompileError
from baretorch.firmware.types import Image
from baretorch.machines.link import Link
from baretorch.machines.types import DeviceFault
from baretorch.machines.unicorn.flash_chip import OTHERS, READS, WRITE_US, FlashChip, FlashKind, FlashRequest, Format
from baretorch.machines.unicorn.machine import UnicornMachine
from baretorch.machines.unicorn.usb.host import STRING, get_descriptor, read_string
from baretorch.targets.runtime import RUNTIME
from tests.machines.images import RUN, image
from tests.machines.mutants import Impatient, workshop
from tests.machines.usb import drive, up

BOOT2, QMI = RUNTIME / "boot" / "boot2.S", RUNTIME / "boot" / "qmi.c"
DATA = bytes(range(16))
ALL = dict(FlashKind().reads)
SERIAL = {0x03: 50e6}
KINDS = {
    "as on the Pico": FlashKind(),
    "QE not set": FlashKind(quad=False),
    "QE cannot be set": FlashKind(quad=False, quad_is_writable=False),
    "no quad read": FlashKind(reads={k: hz for k, hz in ALL.items() if k != 0xEB}),
    "serial read alone": FlashKind(reads=SERIAL, others=frozenset()),
    "no second status register": FlashKind(quad=False, others=OTHERS - {0x35}),
    "no continuous mode": FlashKind(continuous=False),
    "up to 60 MHz": FlashKind(reads=dict.fromkeys(ALL, 60e6)),
    "very slow": FlashKind(reads={**ALL, 0xEB: 1e6}),
}
QUAD, EVERY_TIME, DUAL, FAST, PLAIN = "quad", "quad with a command every time", "dual", "fast", "serial"
# How the second stage of the RP2040, and the start-up code of the RP2350, leave the controller.
LEAVES = {
    "pico": (("SSI.SPI_CTRLR0", "SSI.BAUDR"), {QUAD: (0xA0002022, 2), PLAIN: (0x03000218, 4)}),
    "pico2": (
        ("QMI.M0_RFMT", "QMI.M0_TIMING"),
        {
            QUAD: (0x000482A8, 0x40001202),
            EVERY_TIME: (0x000492A8, 0x60007203),
            DUAL: (0x00009154, 0x60007203),
            PLAIN: (0x00001000, 0x60007203),
        },
    ),
}
EXPECTED = {
    ("pico", "as on the Pico"): QUAD,
    ("pico", "QE not set"): QUAD,
    ("pico", "QE cannot be set"): PLAIN,
    ("pico", "no quad read"): PLAIN,
    ("pico", "serial read alone"): PLAIN,
    ("pico", "no second status register"): PLAIN,
    ("pico", "no continuous mode"): PLAIN,
    ("pico", "very slow"): PLAIN,
    ("pico2", "as on the Pico"): QUAD,
    ("pico2", "QE not set"): DUAL,
    ("pico2", "no quad read"): DUAL,
    ("pico2", "serial read alone"): PLAIN,
    ("pico2", "no continuous mode"): EVERY_TIME,
    ("pico2", "up to 60 MHz"): EVERY_TIME,
}


def reading(made: Image, kind: FlashKind) -> str:
    """How flash is read once the image answers."""
    machine = UnicornMachine(made, RUN, flash=kind)
    assert machine._wiring is not None
    chip = machine._wiring.flash_chip
    chip.status = [0x1C, 0x41 | chip.status[1]]  # also protection, and a bit that locks it
    try:
        assert Link(Impatient(machine)).run([DATA]).outputs == (DATA[::-1],)
        assert chip.status in ([0x1C, 0x41], [0x1C, 0x43]), "the rest of it stays as it was"
        assert not (kind.quad and chip.writes), "it is written once in its life"
        if made.board.usb is not None:
            host = up(machine)
            text = read_string(drive(machine, host.control(get_descriptor(STRING, 3, 255))))
            assert text == kind.number.hex().upper()
        registers, modes = LEAVES[made.board.name]
        left = tuple(map(machine._wiring.model.read, registers))
    finally:
        machine.close()
    return next((mode for mode, value in modes.items() if value == left), str(left))


@pytest.mark.parametrize(("board", "kind"), EXPECTED)
def test_flash_is_read_as_fast_as_its_chip_can_be(board: str, kind: str) -> None:
    assert reading(workshop(board).image, KINDS[kind]) == EXPECTED[board, kind]


def test_too_fast_for_its_chip() -> None:
    """The second stage cannot see that: the core's clock is slow while it runs."""
    with pytest.raises(DeviceFault) as caught:
        reading(image("pico"), KINDS["up to 60 MHz"])
    assert caught.value.have[0] == "flash cannot be read: 62.5 MHz are too fast for the flash chip's EBh"


def test_code_in_flash_must_not_change_how_it_is_read() -> None:
    text = QMI.read_text().replace('section(".ramcode.bt_flash_fast"), ', "")
    with pytest.raises(DeviceFault, match="code in flash changes how flash is read"):
        reading(workshop("pico2").with_text(QMI, text), FlashKind())


# --- mistakes in the second stage ---------------------------------------------------------------------------------

# What can be left out: it is for silicon's sake, or for chips that are otherwise than the emulated one.
HARMLESS = {
    "str r0, [r3, #PADS_SCLK]": "edges of the pins are not emulated",
    "str r0, [r3, #PADS_SD0]": "nor is how long an input takes",
    "str r0, [r3, #PADS_SD0 + 4]": "",
    "str r0, [r3, #PADS_SD0 + 8]": "",
    "str r0, [r3, #PADS_SD0 + 12]": "",
    "str r0, [r3, #CTRLR1]": "the boot ROM leaves it so",
    "beq serial": "the emulated chip is done with a write in time",
}


def without_a_line(text: str) -> Iterator[tuple[str, str]]:
    """Each store and call left out."""
    head, body = text.split("boot2:\n")
    lines = body.splitlines(keepends=True)
    for i, line in enumerate(lines):
        code = line.split("/*")[0].strip()
        if code.startswith(("str ", "strb ", "bl ", "bcs ", "bne ", "beq ")):
            yield code, head + "boot2:\n" + "".join([*lines[:i], *lines[i + 1 :]])


def goes_wrong(text: str) -> bool:
    """On the usual chip, on one whose QE must be set first, or on one whose quad read does not work; or a host hears
    another number than the chip's."""
    made = workshop("pico over USB").with_text(BOOT2, text)
    try:
        found = [reading(made, KINDS[kind]) for kind in ("as on the Pico", "QE not set", "very slow")]
    except (CompileError, AssertionError):
        return True
    return found != [QUAD, QUAD, PLAIN]


def test_the_second_stage_as_it_is() -> None:
    assert not goes_wrong(BOOT2.read_text())


def unnoticed(some: slice) -> list[str]:
    found = list(without_a_line(BOOT2.read_text()))[some]
    assert found
    return [code for code, text in found if not goes_wrong(text) and code not in HARMLESS]


def test_some_lines_are_needed() -> None:
    assert unnoticed(slice(7, None, 12)) == []


@pytest.mark.slow
def test_every_line_is_needed() -> None:
    assert unnoticed(slice(None)) == []


# --- the flash chip itself ------------------------------------------------------------------------------------------


def send(chip: FlashChip, *sent: int, now: float = 0.0) -> list[int]:
    answer = [chip.exchange(byte, now) for byte in sent]
    chip.deselect(now)
    return answer


def test_status_is_written_only_if_that_is_allowed() -> None:
    chip = FlashChip(KINDS["QE not set"])
    send(chip, 0x01, 0x00, 0x02)
    assert send(chip, 0x35, 0)[1] == 0
    send(chip, 0x06)
    assert send(chip, 0x05, 0)[1] == 2
    send(chip, 0x01, 0x00, 0x02)
    assert send(chip, 0x05, 0)[1] == 1, "busy"
    assert send(chip, 0x35, 0)[1] == 0xFF
    assert send(chip, 0x35, 0, now=WRITE_US)[1] == 2
    send(chip, 0x06, now=WRITE_US)
    send(chip, 0x01, 0x00, now=WRITE_US)
    assert send(chip, 0x35, 0, now=2 * WRITE_US)[1] == 0, "one byte clears the second register"


def quad(command: int | None, mode: int) -> FlashRequest:
    return FlashRequest(command, READS[0xEB], mode, 60e6)


def test_continuous_mode_takes_commands_for_addresses() -> None:
    chip = FlashChip(FlashKind())
    assert chip.refuses(quad(None, 0xA0), 0) == "the flash chip expects a command"
    chip.read(quad(0xEB, 0xA0), 0)
    assert chip.refuses(quad(None, 0xA0), 0) == ""
    assert chip.refuses(quad(0xEB, 0xA0), 0).startswith("the flash chip is in continuous mode")
    assert send(chip, 0x05, 0) == [0xFF, 0xFF]
    assert chip.continuous is not None
    send(chip, 0xFF)
    assert chip.refuses(quad(0xEB, 0xA0), 0) == ""
    chip.read(quad(0xEB, 0x00), 0)
    assert chip.continuous is None


@pytest.mark.parametrize(
    ("kind", "request_", "why"),
    [
        ("QE not set", quad(0xEB, 0xA0), "the flash chip's bit QE is not set"),
        ("no quad read", quad(0xEB, 0xA0), "the flash chip does not know the command EBh"),
        ("as on the Pico", FlashRequest(0x03, READS[0x03], None, 60e6), "60 MHz are too fast for the flash chip's 03h"),
        ("as on the Pico", FlashRequest(0xEB, Format(4, 4, True, 2), 0xA0, 60e6), "the flash chip expects"),
    ],
)
def test_reads_that_a_chip_refuses(kind: str, request_: FlashRequest, why: str) -> None:
    assert FlashChip(KINDS[kind]).refuses(request_, 0).startswith(why)
