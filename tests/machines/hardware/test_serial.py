"""The other end of a pseudo-terminal plays a board on a serial port."""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
import tty
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
import serial

from baretorch.errors import CompileError
from baretorch.machines.hardware import serial as ports
from baretorch.machines.hardware.serial import SerialMachine, SerialPort, find_port, open_port, serial_ports, touch
from baretorch.machines.link import Link
from baretorch.machines.types import DeviceFault, DeviceHang
from baretorch.options import Console
from baretorch.targets.boards import load_board
from tests.machines.fake import FakeDevice


@pytest.fixture
def board() -> Iterator[tuple[str, FakeDevice]]:
    """The name of a port with a fake board on it."""
    near, far = os.openpty()
    tty.setraw(near)
    device = FakeDevice()
    device.out = b""

    def serve() -> None:
        while True:
            try:
                data = os.read(near, 4096)
            except OSError:
                return
            device.write(data)
            os.write(near, device.out)
            device.out = b""

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield os.ttyname(far), device
    os.close(far)
    thread.join(5)
    os.close(near)


def test_hello_and_run_over_a_real_port(board: tuple[str, FakeDevice]) -> None:
    machine = SerialMachine(board[0], 115200)
    link = Link(machine)
    assert link.hello("tiny").board == "desk"
    assert link.run([b"abcd", b"ef"]).outputs == (b"fedcba",)
    assert (machine.name, machine.instructions()) == ("serial", ())
    machine.close()


def test_silence_ends_in_time(board: tuple[str, FakeDevice]) -> None:
    machine = SerialMachine(board[0], 115200)
    with pytest.raises(DeviceHang, match=r"sent nothing in 0\.1 s"):
        machine.read(0.1)
    machine.close()


def test_an_unplugged_board(monkeypatch: pytest.MonkeyPatch, board: tuple[str, FakeDevice]) -> None:
    machine = SerialMachine(board[0], 115200)

    def gone(*_: object) -> bytes:
        raise serial.SerialException("device disconnected")

    monkeypatch.setattr(machine._port, "read", gone)
    with pytest.raises(DeviceFault, match="is gone"):
        machine.read(0.1)
    machine.close()


def test_no_such_port(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "serial_ports", lambda: (SerialPort("/dev/ttyACM0", "Pico", 0x2E8A),))
    with pytest.raises(CompileError) as error:
        SerialMachine("/dev/ttyNOPE", 115200)
    assert error.value.render() == (
        "error: there is no port /dev/ttyNOPE\n"
        "  have  /dev/ttyACM0 (Pico)\n"
        "  try   plug the board in with a USB cable that carries data"
    )


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (
            errno.EACCES,
            "error: no permission to use port /dev/ttyACM0\n"
            "  try   `sudo usermod -aG dialout $USER`, then log in again",
        ),
        (
            errno.EBUSY,
            "error: port /dev/ttyACM0 is in use\n  try   close the other program, such as a serial monitor",
        ),
    ],
)
def test_a_port_that_cannot_be_opened(monkeypatch: pytest.MonkeyPatch, number: int, text: str) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise serial.SerialException(number, os.strerror(number))

    monkeypatch.setattr(serial, "serial_for_url", refuse)
    with pytest.raises(CompileError) as error:
        SerialMachine("/dev/ttyACM0", 115200)
    assert error.value.render() == text


def test_ports_on_usb_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    pico = {"description": "Pico", "vid": 0x2E8A, "pid": 0x000A}
    found = [
        SimpleNamespace(device="/dev/ttyS0", description="", vid=None, pid=None, serial_number=None),
        SimpleNamespace(device="/dev/ttyACM1", description="ST-LINK", vid=0x0483, pid=0x374B, serial_number=""),
        SimpleNamespace(device="/dev/ttyACM0", manufacturer="Somebody", serial_number=None, **pico),
        SimpleNamespace(device="/dev/ttyACM2", product="mine", serial_number="E660", **pico),
    ]
    found[-1].manufacturer = "Baretorch"
    monkeypatch.setattr(ports.list_ports, "comports", lambda: found)
    assert serial_ports() == (
        SerialPort("/dev/ttyACM0", "Pico", 0x2E8A),
        SerialPort("/dev/ttyACM1", "ST-LINK", 0x0483),
        SerialPort("/dev/ttyACM2", "Pico", 0x2E8A, "mine", "E660"),
        SerialPort("/dev/ttyS0", "/dev/ttyS0"),
    )
    monkeypatch.setattr(sys, "platform", "win32")  # which does not tell who made it: nobody's until somebody says so
    assert [port.board for port in serial_ports()] == ["", None, "", None]


def test_nothing_is_sent_to_what_is_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """An image that talks over USB says who it is. On a UART anything may be between, such as an adapter."""
    opened: list[str] = []
    monkeypatch.setattr(serial, "serial_for_url", lambda name, **_: opened.append(name))
    found = (
        SerialPort("/dev/ttyACM0", "A printer", 0x1234),
        SerialPort("/dev/ttyACM1", "Pico", 0x2E8A, "pico", "E660"),
    )
    monkeypatch.setattr(ports, "serial_ports", lambda: found)
    pico = load_board("pico")
    with pytest.raises(CompileError) as error:
        open_port("/dev/ttyACM0", pico.with_console(Console.USB))
    assert error.value.render() == (
        "error: no image of Baretorch talks on port /dev/ttyACM0\n"
        "  have  A printer, which was left alone\n"
        "  need  a board that runs one, on its USB cable\n"
        "  try   `baretorch flash` puts one there\n"
        "        `--console uart` if this is an adapter at the board's UART"
    )
    assert opened == []
    open_port("/dev/ttyACM1", pico.with_console(Console.USB))
    open_port("socket://localhost:1", pico.with_console(Console.USB))
    open_port("/dev/ttyACM0", pico.with_console(Console.UART))
    open_port("E660", pico.with_console(Console.USB))
    assert opened == ["/dev/ttyACM1", "socket://localhost:1", "/dev/ttyACM0", "/dev/ttyACM1"]


def test_a_link_names_its_port(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    device, link = tmp_path / "ttyACM5", tmp_path / "usb-Baretorch_pico-if00"
    device.touch()
    link.symlink_to(device)
    monkeypatch.setattr(ports, "serial_ports", lambda: (SerialPort(str(device), "Pico", 0x2E8A, "pico"),))
    assert find_port(str(link)) == find_port(str(device)) == SerialPort(str(device), "Pico", 0x2E8A, "pico")
    assert find_port(str(tmp_path)) is None


@pytest.mark.parametrize(
    ("number", "is_error"), [(errno.EACCES, True), (errno.EBUSY, True), (errno.ENOENT, True), (errno.EIO, False)]
)
def test_touch(monkeypatch: pytest.MonkeyPatch, number: int, is_error: bool) -> None:
    """The port goes away while it is opened: that is the purpose."""
    rates: list[int] = []

    def refuse(*_: object, baudrate: int) -> None:
        rates.append(baudrate)
        raise serial.SerialException(number, os.strerror(number))

    monkeypatch.setattr(serial, "serial_for_url", refuse)
    with pytest.raises(CompileError) if is_error else nullcontext():
        touch("/dev/ttyACM0")
    assert rates == [1200]


def test_a_long_write_may_take_longer_than_a_stuck_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """pyserial's time limit is for a whole write: an input of 115 KB at 115,200 baud takes more than 10 s."""
    monkeypatch.setattr(ports, "WRITE_SECONDS", 0.4)
    near, far = os.openpty()
    tty.setraw(near)
    data, got = bytes(40 * 4096), bytearray()

    def read_slowly() -> None:
        while len(got) < len(data):
            time.sleep(0.02)
            got.extend(os.read(near, 4096))

    thread = threading.Thread(target=read_slowly, daemon=True)
    thread.start()
    machine = SerialMachine(os.ttyname(far), 115200)
    began = time.monotonic()
    machine.write(data)
    assert time.monotonic() - began > 0.5
    thread.join(5)
    assert got == data
    with pytest.raises(DeviceHang, match="takes no data"):
        machine.write(data)
    machine.close()
    os.close(far)
    os.close(near)
