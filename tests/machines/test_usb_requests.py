"""Requests to the USB device, as chapter 9 of USB 2.0 has them: what it answers, refuses and survives."""

from __future__ import annotations

import pytest

from baretorch.machines.unicorn.machine import UnicornMachine
from baretorch.machines.unicorn.usb.bus import Handshake
from baretorch.machines.unicorn.usb.host import (
    CONFIGURATION,
    DEVICE,
    QUALIFIER,
    SET_LINE_CODING,
    STRING,
    SetupPacket,
    Stalled,
    Steps,
    get_descriptor,
    line_coding,
    set_address,
    set_configuration,
)
from tests.machines.usb import (
    CHIPS,
    GET_LINE_CODING,
    answers,
    clear_halt,
    cleared,
    drive,
    is_refused,
    over_usb,
    set_halt,
    up,
)


@pytest.fixture(scope="module", params=CHIPS)
def machine(request: pytest.FixtureRequest) -> UnicornMachine:
    return over_usb(request.param)


def test_as_much_as_is_asked_for(machine: UnicornMachine) -> None:
    host = up(machine)
    for kind, whole in ((DEVICE, 18), (CONFIGURATION, 75)):
        full = drive(machine, host.control(get_descriptor(kind, 0, whole)))
        assert len(full) == whole
        for length in (0, 1, 9, 18, 63, 64, 65, 75, 128, 65535):
            assert drive(machine, host.control(get_descriptor(kind, 0, length))) == full[:length], length


def test_a_host_may_read_less_than_it_asked_for(machine: UnicornMachine) -> None:
    host = up(machine)
    whole = drive(machine, host.control(get_descriptor(CONFIGURATION, 0, 255)))
    for packets in (0, 1, 2):
        assert (
            drive(machine, host.control(get_descriptor(CONFIGURATION, 0, 255), packets=packets))
            == whole[: 64 * packets]
        )
        assert drive(machine, host.control(get_descriptor(DEVICE, 0, 18))) != b""


@pytest.mark.parametrize(
    "request_",
    [
        get_descriptor(QUALIFIER, 0, 10),
        get_descriptor(15, 0, 5),  # BOS
        get_descriptor(DEVICE, 1, 18),
        get_descriptor(CONFIGURATION, 1, 9),
        get_descriptor(STRING, 4, 255),
        get_descriptor(STRING, 0xEE, 18),
        SetupPacket(0x81, 6, 0x2200, 0, 64),  # a report of an HID
        set_configuration(2),
        set_address(128),
        SetupPacket(0x00, 3, 1, 0, 0),  # remote wake-up
        SetupPacket(0x00, 7, 0x100, 0, 0),  # SET_DESCRIPTOR
        SetupPacket(0x01, 11, 1, 0, 0),  # SET_INTERFACE: there is no second setting
        SetupPacket(0x01, 11, 0, 2, 0),
        SetupPacket(0x81, 10, 0, 2, 1),
        SetupPacket(0x82, 12, 0, 0x82, 2),  # SYNCH_FRAME
        SetupPacket(0x02, 1, 1, 0x82, 0),  # no such feature
        set_halt(0x83),
        clear_halt(0x01),
        SetupPacket(0x82, 0, 0, 0x83, 2),
        SetupPacket(0x21, 0x23, 100, 0, 0),  # SEND_BREAK
        SetupPacket(0x21, 0x22, 3, 1, 0),  # of the other interface
        SetupPacket(0x21, 0x20, 0, 0, 6),
        SetupPacket(0x21, 0x20, 0, 0, 8),
        SetupPacket(0x00, 9, 1, 0, 4),  # takes no data
        SetupPacket(0xC0, 1, 0, 0, 4),  # somebody's own
        SetupPacket(0x40, 1, 0, 0, 0),
        SetupPacket(0xA0, 0, 0, 0, 4),
    ],
    ids=str,
)
def test_what_it_does_not_know_is_refused(machine: UnicornMachine, request_: SetupPacket) -> None:
    host = up(machine)
    assert drive(machine, is_refused(host, request_))
    assert drive(machine, host.control(get_descriptor(DEVICE, 0, 18)))[:2] == b"\x12\x01", "the next one is served"


def test_status_configuration_and_interface(machine: UnicornMachine) -> None:
    host = up(machine)
    asked = {
        SetupPacket(0x80, 0, 0, 0, 2): b"\0\0",
        SetupPacket(0x81, 0, 0, 0, 2): b"\0\0",
        SetupPacket(0x82, 0, 0, 0x82, 2): b"\0\0",
        SetupPacket(0x82, 0, 0, 0x00, 2): b"\0\0",
        SetupPacket(0x80, 8, 0, 0, 1): b"\1",
        SetupPacket(0x81, 10, 0, 1, 1): b"\0",
        SetupPacket(0x01, 11, 0, 1, 0): b"",
    }
    for request, answer in asked.items():
        assert drive(machine, host.control(request)) == answer, request


def test_line_coding(machine: UnicornMachine) -> None:
    host = up(machine)
    drive(machine, host.control(SET_LINE_CODING, line_coding(57_600)))
    assert drive(machine, host.control(GET_LINE_CODING)) == line_coding(57_600)

    def too_short() -> Steps[bool]:
        try:
            yield from host.control(SET_LINE_CODING, b"\1\2\3")
        except Stalled:
            return True
        return False

    assert drive(machine, too_short())
    assert drive(machine, host.control(GET_LINE_CODING)) == line_coding(57_600)


def test_transfers_that_are_given_up(machine: UnicornMachine) -> None:
    """A new request ends a transfer in any state."""
    host = up(machine)

    def given_up() -> Steps[None]:
        yield from host.setup(get_descriptor(CONFIGURATION, 0, 255))  # no data are read
        yield from host.setup(SET_LINE_CODING)  # no data are sent
        yield from host.setup(set_address(99))  # no status: it stays where it is
        yield from host.setup(get_descriptor(QUALIFIER, 0, 10))  # refused, and not looked at
        yield from host.setup(get_descriptor(CONFIGURATION, 0, 255))
        yield from host._data_in(get_descriptor(CONFIGURATION, 0, 255), 1)  # no status
        yield from host.setup(get_descriptor(DEVICE, 0, 18))
        yield from host.setup(get_descriptor(DEVICE, 0, 18))

    drive(machine, given_up())
    assert len(drive(machine, host.control(get_descriptor(DEVICE, 0, 18)))) == 18
    assert answers(machine)


def test_without_a_configuration_there_are_no_endpoints() -> None:
    machine = over_usb("pico")
    host = up(machine)

    def without() -> Steps[list[object]]:
        yield from host.control(set_configuration(0))
        seen: list[object] = [(yield from host.control(SetupPacket(0x80, 8, 0, 0, 1)))]
        seen.append((yield from is_refused(host, clear_halt(0x82))))
        seen.append((yield from is_refused(host, GET_LINE_CODING)))
        seen.append(host.bus.take(host.address, 2).kind)
        yield from host.control(set_configuration(1))
        cleared(host, 0x02)
        cleared(host, 0x82)
        return seen

    assert drive(machine, without()) == [b"\0", True, True, Handshake.SILENCE]
    assert answers(machine)
