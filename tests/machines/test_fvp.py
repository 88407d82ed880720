"""Arm's FVPs, by a stand-in: it takes the arguments that Arm's program documents, and has QEMU run the image."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from baretorch.errors import CompileError
from baretorch.machines import choose_emulator, fvp, open_machine
from baretorch.machines.link import Link
from baretorch.machines.types import DeviceFault
from baretorch.targets.boards import load_board
from tests.machines.images import RUN, image
from tests.machines.test_open import on_board

BOARDS = {
    "corstone-300": (
        "FVP_Corstone_SSE-300_Ethos-U55",
        [
            "mps3_board.telnetterminal0.start_telnet=0",
            "mps3_board.telnetterminal0.mode=raw",
            "mps3_board.telnetterminal0.quiet=0",
            "mps3_board.visualisation.disable-visualisation=1",
            "cpu0.INITSVTOR=0x10000000",
            "ethosu.num_macs=256",
        ],
    ),
    "corstone-320": (
        "FVP_Corstone_SSE-320",
        [
            "mps4_board.telnetterminal0.start_telnet=0",
            "mps4_board.telnetterminal0.mode=raw",
            "mps4_board.telnetterminal0.quiet=0",
            "mps4_board.visualisation.disable-visualisation=1",
            "vis_hdlcd.disable_visualisation=1",
            "mps4_board.subsystem.cpu0.INITSVTOR=0x11000000",
            "mps4_board.subsystem.iotss3_systemcontrol.INITSVTOR_RST=0x11000000",
            "mps4_board.subsystem.ethosu.num_macs=256",
        ],
    ),
}

STAND_IN = """\
#!{python}
import os, socket, sys
options = {options!r}
asked = sys.argv[1:]
if asked[:1] != ["-a"] or asked[2:] != [word for each in options for word in ("-C", each)]:
    sys.exit(f"Error: unknown parameters {{asked}}")
if not os.path.isfile(asked[1]):
    sys.exit("Error: no image")
at = socket.create_server(("127.0.0.1", 0))
port = at.getsockname()[1]
print("Fast Models: a stand-in", flush=True)
print(f"telnetterminal5: Listening for serial connection on port {{port + 1}}", flush=True)
{body}
"""
LISTENING = 'print(f"telnetterminal0: Listening for serial connection on port {port}", flush=True)\n'
ANSWERED = LISTENING + "line = at.accept()[0]\n"
QEMU = (
    ANSWERED
    + """\
os.dup2(line.fileno(), 0), os.dup2(line.fileno(), 1)
os.execvp("qemu-system-arm", ["qemu-system-arm", "-M", "mps3-an547", "-nodefaults", "-display", "none", "-kernel",
          asked[1], "-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console", "-icount", "shift=6"])
"""
)  # without icount a core of QEMU 7.2 may go on sleeping on a busy machine although an interrupt is pending


def stand_in(folder: Path, monkeypatch: pytest.MonkeyPatch, board: str, body: str) -> None:
    program, options = BOARDS[board]
    path = folder / program
    path.write_text(STAND_IN.format(python=sys.executable, options=options, body=body))
    path.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


def test_an_image_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "corstone-300", QEMU)
    machine = open_machine(image("corstone-300"), RUN, "fvp")
    try:
        data = bytes(range(16))
        assert Link(machine).run([data]).outputs == Link(open_machine(image("host"), RUN)).run([data]).outputs
        assert machine.name == "fvp" and machine.instructions() == () and machine.blocks() == ()
    finally:
        machine.close()


def test_an_image_that_waits_is_spoken_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even when the platform itself will say nothing any more."""
    stand_in(tmp_path, monkeypatch, "corstone-300", ANSWERED + "os.close(1)\nline.sendall(line.recv(1)); os._exit(0)\n")
    monkeypatch.setattr(fvp, "READY_SECONDS", 0.1)
    machine = open_machine(on_board("corstone-300"), RUN, "fvp")
    machine.write(b"x")
    assert machine.read(10) == b"x"
    machine.close()


@pytest.mark.parametrize("board", BOARDS)
def test_output_of_the_image_is_received(board: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = 'line.sendall(b"\\nFAULT: the NPU did not end in time\\nstatus 0x1\\nEND OF FAULT\\n"); line.recv(1)\n'
    stand_in(tmp_path, monkeypatch, board, ANSWERED + fault)
    machine = open_machine(on_board(board), RUN, "fvp")
    with pytest.raises(DeviceFault, match="the device stopped: FAULT: the NPU did not end in time"):
        Link(machine).hello()
    machine.close()


def test_who_missed_its_first_words_speaks_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fvp, "READY_SECONDS", 0.05)
    stand_in(tmp_path, monkeypatch, "corstone-320", ANSWERED + 'line.sendall(line.recv(2) + b"!"); line.recv(100)\n')
    machine = open_machine(on_board("corstone-320"), RUN, "fvp")
    machine.write(b"BT")
    assert machine.read(10) == b"BT!"
    machine.close()


@pytest.mark.parametrize(
    ("body", "what", "have"),
    [
        ("sys.exit(3)\n", "the image's process ended with exit status 3", "Fast Models: a stand-in"),
        ('sys.exit("no licence")\n', "the image's process ended with exit status 1", "no licence"),
        (ANSWERED + "line.close(); sys.exit(4)\n", "the image's process ended with exit status 4", "telnetterminal0"),
        (
            LISTENING.replace("{port}", "{port + 1}"),
            "FVP_Corstone_SSE-320's terminal does not respond",
            "Connection refused",
        ),
    ],
)
def test_one_that_ends(body: str, what: str, have: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "corstone-320", body)
    with pytest.raises(DeviceFault) as fault:
        Link(open_machine(on_board("corstone-320"), RUN, "fvp")).hello()
    assert fault.value.what == what and have in fault.value.render()


def test_one_that_never_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fvp, "START_SECONDS", 0.3)
    stand_in(tmp_path, monkeypatch, "corstone-320", "at.accept()\n")
    with pytest.raises(DeviceFault, match="FVP_Corstone_SSE-320 does not report where its terminal is"):
        open_machine(on_board("corstone-320"), RUN, "fvp")


def test_one_with_other_parameters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, monkeypatch, "corstone-300", "")
    other = on_board("corstone-300")
    npu = other.board.chip.npu
    assert npu is not None
    chip = replace(other.board.chip, npu=replace(npu, accelerator="ethos-u55-128"))
    with pytest.raises(DeviceFault, match="exit status 1") as fault:
        open_machine(replace(other, board=replace(other.board, chip=chip)), RUN, "fvp")
    assert "ethosu.num_macs=128" in fault.value.render()


def test_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CompileError) as error:
        open_machine(on_board("corstone-320"), RUN, "fvp")
    assert error.value.render() == (
        "error: board corstone-320: Arm's FVP is not installed\n"
        "  need  the program FVP_Corstone_SSE-320 on PATH\n"
        "  try   download it from Arm (Ecosystem FVPs), or leave --emulator out"
    )


def test_it_is_taken_where_qemu_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    stand_in(tmp_path, monkeypatch, "corstone-320", "")
    assert choose_emulator(load_board("corstone-320")) == "fvp"
