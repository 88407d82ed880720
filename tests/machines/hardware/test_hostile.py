"""Devices that lie, flood and never end: what they report is an error that can be read, and nothing hangs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from baretorch.errors import CompileError
from baretorch.machines import link as link_module
from baretorch.machines.frames import Frame
from baretorch.machines.hardware import serial as ports
from baretorch.machines.hardware.serial import SerialMachine
from baretorch.machines.link import HEARD_CHARACTERS, Link
from baretorch.machines.types import DeviceFault
from tests.cli.program import baretorch
from tests.machines.fake import FakeDevice
from tests.machines.hardware.hostile import CASES, ENDLESS, NOTHING, answers, attached, hello

GOOD = ("good", "nan", "text_between", "zero_hz")
PTE = Path(__file__).parents[2] / "frontends" / "data" / "sine.pte"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link_module, "HELLO_SECONDS", 0.2)
    monkeypatch.setattr(link_module, "FAULT_SECONDS", 0.2)


def talk(port: str) -> CompileError | None:
    """Return the first error of three runs."""
    machine = SerialMachine(port, 115200)
    link = Link(machine, outputs=[4])
    try:
        link.hello("sine")
        for _ in range(3):
            assert len(link.run([b"1234"], timeout=0.3).outputs[0]) == 4
    except CompileError as error:
        return error
    finally:
        assert link._decoder.limit == 0xFFFF, "what a device announces is not believed"
        machine.close()
    return None


def check_text(error: CompileError) -> None:
    """It can be shown, in a few lines."""
    text = error.render()
    assert all(c.isprintable() or c == "\n" for c in text)
    assert len(text) < 2 * HEARD_CHARACTERS and text.count("\n") < 80
    assert all(c.isprintable() or c in "\t" for part in (error.what, *error.have, *error.need) for c in part)


@pytest.mark.parametrize("name", CASES)
def test_answers(name: str) -> None:
    with attached(CASES[name]) as port:
        error = talk(port)
    assert (error is None) == (name in GOOD)
    if error is not None:
        check_text(error)


@pytest.mark.parametrize("answer", [NOTHING, answers()], ids=["silent", "answering"])
@pytest.mark.parametrize("name", ENDLESS)
def test_a_device_that_never_stops_sending(name: str, answer: Callable[[Frame], bytes]) -> None:
    """One that answers between all that may even be right."""
    with attached(answer, ENDLESS[name]) as port:
        error = talk(port)
    assert error is not None or answer is not NOTHING
    if error is not None:
        check_text(error)


def test_a_device_that_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "WRITE_SECONDS", 0.2)
    with attached(NOTHING, reads=False) as port:
        error = talk(port)
    assert error is not None
    check_text(error)


def test_a_fault_message_that_never_ends() -> None:
    """However fast it comes, and though nothing is ever silent."""
    device = FakeDevice()
    link = Link(device)
    link.hello()

    def endless(timeout: float) -> bytes:
        return b"FAULT: x\npc 0x00001234\n" if not link._heard.endswith("pc 0x00001234\n") else b"pc 0x00001234\n"

    device.read = endless  # type: ignore[method-assign]
    with pytest.raises(DeviceFault, match="the device stopped: FAULT: x") as error:
        link.run([b"abcd", b"ef"])
    assert 1 <= len(error.value.have) <= link_module.FAULT_LINES


def test_a_fault_message_is_longer_than_what_is_kept() -> None:
    device = FakeDevice()
    link = Link(device)
    link.hello()
    device.answer = lambda frame: b"FAULT: x\n" + b"y" * 3 * HEARD_CHARACTERS  # type: ignore[method-assign]
    with pytest.raises(DeviceFault, match="the device stopped: FAULT: x"):
        link.run([b"abcd", b"ef"])


def test_unknown_sizes_are_limited() -> None:
    with attached(answers(hello(outputs=(0xFFFFFFF0,)))) as port:
        machine = SerialMachine(port, 115200)
        with pytest.raises(DeviceFault) as error:
            Link(machine).hello()
        machine.close()
    assert error.value.render() == (
        "error: the device announces outputs that do not fit on it\n"
        "  have  4,294,967,280 bytes\n"
        "  need  at most 16,777,216 bytes"
    )


def test_another_version_of_the_model() -> None:
    with attached(CASES["hello_huge_outputs"]) as port:
        error = talk(port)
    assert error is not None and error.render() == (
        "error: another version of sine runs on the board\n"
        "  have  outputs of 4294967280 bytes\n"
        "  need  outputs of 4 bytes\n"
        "  try   `baretorch flash` puts this version on the board"
    )


@pytest.mark.parametrize("name", ["hello_escapes_in_utf8", "error_escapes", "fault_escapes", "hello_other_outputs"])
def test_monitor(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with attached(CASES[name]) as port:
        result = baretorch("monitor", str(PTE), "--board", "pico", "--port", port)
    assert result.code == 1, result.err
    assert all(c.isprintable() or c == "\n" for c in result.out + result.err)


def test_a_port_whose_name_looks_like_markup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with attached(CASES["good"]) as port:
        os.symlink(port, "[red]")
        result = baretorch("monitor", str(PTE), "--board", "pico", "--port", "[red]", "--count", "1")
    assert result.out.startswith("sine on pico, on port [red]: 1 inputs\n"), result.err
