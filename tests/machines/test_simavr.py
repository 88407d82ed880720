"""AVR chips on libsimavr: cycles that two tables agree on, and what ends an emulation."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from baretorch.errors import CompileError
from baretorch.machines import open_machine, simavr
from baretorch.machines.link import Link
from baretorch.machines.run import Run, collect_figures
from baretorch.machines.types import DeviceFault
from baretorch.measure.cycles import time_of
from baretorch.targets.boards import load_board
from tests.cli.program import baretorch
from tests.machines.images import REVERSE, RUN, image
from tests.symbols import symbols_of

BOARDS = ("arduino-uno", "arduino-mega")
DATA = bytes(range(100, 116))

# Longer than the counter's 16 bits, so that its interrupt comes on the way; with all kinds of branches and skips.
LONG = """\
void __attribute__((noinline)) toy_run(const void *from, void *to)
{
    const uint8_t *x = from;
    uint8_t *y = to;
    volatile uint32_t sum = 0;
    for (uint16_t i = 0; i < 3000; i++) {
        sum += (uint32_t)x[i % INPUT_BYTES] * i;
        if (sum & 1) {
            sum /= 3;
        }
    }
    for (uint16_t i = 0; i < OUTPUT_BYTES; i++) {
        y[i] = (uint8_t)(sum >> (i & 3) * 8);
    }
}
"""

DEEP = """\
static uint8_t dig(volatile uint8_t *above, uint16_t depth)
{
    volatile uint8_t frame[32];
    frame[0] = (uint8_t)(above[0] + depth);
    return depth ? (uint8_t)(dig(frame, depth - 1) + frame[0]) : frame[0];
}

void __attribute__((noinline)) toy_run(const void *from, void *to)
{
    uint8_t x = *(const uint8_t *)from;
    *(uint8_t *)to = dig(&x, 100);
}
"""

# Its frame is larger than what the chip reserves by itself, so large that Y goes forth and back in it, and it has calls
# with more arguments than registers have room for.
WIDE = """\
static uint8_t __attribute__((noinline)) mixed(
    uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t e, uint32_t f, uint32_t g)
{
    return (uint8_t)(a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g);
}

void __attribute__((noinline)) toy_run(const void *from, void *to)
{
    const uint8_t *x = from;
    uint8_t *y = to;
    volatile uint8_t first[2], frame[FRAME], last[2];
    first[1] = last[1] = 0;
    for (uint16_t i = 0; i < FRAME; i++) {
        frame[i] = x[i % INPUT_BYTES];
    }
    for (uint16_t i = 0; i < OUTPUT_BYTES; i++) {
        first[1] = mixed(frame[i], last[1], i, first[1], 1, 2, 3);
        last[1] = mixed(i, first[1], frame[FRAME - 1 - i], 1, 2, 3, last[1]);
        y[i] = (uint8_t)(first[1] + last[1]);
    }
}
"""


def run(board: str, body: str) -> tuple[Run, int]:
    """Its figures, and ticks of the chip's own counter."""
    made = image(board, body=body)
    machine = open_machine(made, RUN)
    try:
        link = Link(machine)
        link.run([DATA])
        reply = link.run([DATA])
        return collect_figures(machine, reply, (), ()), reply.ticks
    finally:
        machine.close()


@pytest.mark.parametrize("board", BOARDS)
def test_cycles_are_those_of_the_manual(board: str) -> None:
    """Ours are counted from executed blocks by the manual's table, simavr's instruction by instruction; the chip's
    counter has the call around them, and the interrupts in between, too."""
    found, ticks = run(board, LONG)
    time = time_of(image(board, body=LONG), found)
    assert time is not None and found.emulator_cycles is not None and found.instructions is not None
    assert time.core.best == time.core.expected == time.core.worst == found.emulator_cycles
    assert sum(block.executed * block.instructions for block in found.blocks) == found.instructions
    assert found.emulator_cycles > 10 * 65536
    handlers = 40 * (found.emulator_cycles // 65536 + 1)
    assert found.emulator_cycles < ticks < found.emulator_cycles + handlers + 200


def test_a_stack_too_deep() -> None:
    with pytest.raises(DeviceFault) as error:
        run("arduino-uno", DEEP)
    assert error.value.have == ("the stack has overflowed its limit",)


def test_the_stack_is_as_large_as_its_bound() -> None:
    """The chip's reserve is the minimum: an image that needs more gets it, and not much more than it uses."""
    body = WIDE.replace("FRAME", "600")
    made = image("arduino-uno", body=body)
    assert load_board("arduino-uno").chip.stack_bytes < 600 < made.ram.stack <= made.board.chip.stack_bytes
    found, _ = run("arduino-uno", body)
    assert found.stack_peak is not None
    assert made.ram.stack - 24 <= found.stack_peak <= made.ram.stack


def test_a_stack_that_does_not_fit() -> None:
    with pytest.raises(CompileError) as error:
        image("arduino-uno", body=WIDE.replace("FRAME", "2010"))
    assert error.value.what.startswith("the image does not fit arduino-uno: SRAM is ")
    assert any("of stack" in line for line in error.value.need)


@pytest.mark.slow
def test_a_sine_on_an_uno(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its goals: 12,000 cycles, and 300 bytes of RAM with stack."""
    monkeypatch.chdir(tmp_path)
    model = Path(__file__).parents[2] / "examples/sine/model.py"
    said = baretorch("run", str(model), "--int8", "--io", "int8", "--board", "arduino-uno", "--json")
    assert said.code == 0, said.err
    run = json.loads(said.out)
    assert 0 < run["cycles"] == run["emulator_cycles"] <= 12_000
    assert 0 < run["ram"]["total"] <= 300 and run["max_lsb"] == 0


@pytest.mark.slow
def test_what_is_reported_about_a_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is an estimate, and flash is not slow."""
    monkeypatch.chdir(tmp_path)
    model = Path(__file__).parents[2] / "zoo/streaming_gru.py"
    said = baretorch("run", str(model), "--int8", "--board", "arduino-uno")
    assert said.code == 0, said.err
    assert "copied at start-up, because their kernels read RAM" in said.out
    assert "ms at 16 MHz\n" in said.out and "estimated" not in said.out


def test_a_wrong_rate(tmp_path: Path) -> None:
    """An image whose UART is 8 % off says nothing that anybody could read."""
    made = image("arduino-uno", body=REVERSE)
    assert made.bin is not None
    raw = bytearray(made.bin.read_bytes())
    start = symbols_of(made.elf)["bt_console_init"]
    divider = raw.index(bytes.fromhex("80e1"), start)  # ldi r24, 16: the divider less one
    assert divider < start + 40
    raw[divider] = 0x82
    wrong = tmp_path / "toy.bin"
    wrong.write_bytes(raw)
    from dataclasses import replace

    machine = open_machine(replace(made, bin=wrong), RUN)
    with pytest.raises(DeviceFault) as error:
        machine.read(10.0)
    assert error.value.have == ("the console's rate is more than 2.5 % off",)


def test_simavr_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simavr, "HEADERS", ())
    with pytest.raises(CompileError) as error:
        open_machine(image("arduino-uno"), RUN)
    assert error.value.render() == (
        "error: board arduino-uno needs simavr\n"
        "  need  the library libsimavr and its headers\n"
        "  try   `apt-get install libsimavr-dev`"
    )
