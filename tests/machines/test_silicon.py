"""Clocks, resets and supplies of emulated chips: what they allow, and what becomes of images when parts are broken."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

import pytest

from baretorch.firmware.build import build
from baretorch.firmware.types import Image
from baretorch.machines.link import Link
from baretorch.machines.types import DeviceFault, DeviceHang
from baretorch.machines.unicorn.device import Stopped
from baretorch.machines.unicorn.drivers import device_blocks, device_rules
from baretorch.machines.unicorn.machine import UnicornMachine
from baretorch.machines.unicorn.silicon import ChipModel
from baretorch.machines.unicorn.wiring import TOLERANCE, line
from baretorch.options import Console
from baretorch.targets.boards import load_board
from baretorch.targets.parts import Uart
from baretorch.targets.silicon import load_silicon, parse_factors, silicon_names
from tests.machines.images import GLUE, REVERSE, RUN, image
from tests.machines.mutants import BOARDS, Impatient

DATA = bytes(range(16))


class Bench:
    """A chip whose registers are written by name."""

    def __init__(self, board: str) -> None:
        chip = load_board(board).chip
        assert chip.silicon is not None
        self.model = ChipModel(chip.silicon, device_blocks(chip), device_rules(chip))
        self._at = {name: at for at, (name, alias) in self.model.places().items() if alias == 0}

    def write(self, name: str, value: int, alias: int = 0) -> None:
        self.model.write(self._at[name] + alias, value)
        self.model.read_back(self._at[name])
        self.model.settle()

    def wait(self, microseconds: float) -> None:
        self.model.now += microseconds
        self.model.settle()


@pytest.mark.parametrize("name", silicon_names())
def test_every_file_names_its_sources(name: str) -> None:
    silicon = load_silicon(name)
    assert name in {load_board(board).chip.name for board in BOARDS}, "or nobody starts it"
    parts = (*silicon.blocks, *silicon.clocks, *silicon.signals, *silicon.rules)
    assert all(part.source for part in parts)


def test_rp2350_starts_on_its_auxiliary_source() -> None:
    """This was a fault of our start-up code: one write moved AUXSRC to a PLL that is off."""
    bench = Bench("pico2")
    assert bench.model.read("CLOCKS.CLK_SYS_CTRL") == 0x41
    with pytest.raises(Stopped, match=r"CLK_SYS_CTRL\.AUXSRC changes while it is in use") as stopped:
        bench.write("CLOCKS.CLK_SYS_CTRL", 0)
    assert any("DS 8.1.3.2" in text for text in stopped.value.have)


def test_the_right_way_off_an_auxiliary_source() -> None:
    bench = Bench("pico2")
    bench.write("CLOCKS.CLK_SYS_CTRL", 1, alias=0x3000)
    assert bench.model.read("CLOCKS.CLK_SYS_SELECTED") == 2  # it takes its time
    bench.wait(2)
    assert bench.model.read("CLOCKS.CLK_SYS_SELECTED") == 1
    bench.write("CLOCKS.CLK_SYS_CTRL", 0)
    assert bench.model.hz("clk_sys") == 11e6


def test_a_clock_that_does_not_run_stops_the_core() -> None:
    bench = Bench("pico")
    bench.write("CLOCKS.CLK_REF_CTRL", 2)
    with pytest.raises(Stopped, match=r"CLK_REF_CTRL\.SRC selects xosc") as stopped:
        bench.wait(2)
    assert "XOSC.STATUS.STABLE" in " ".join(stopped.value.have)
    assert bench.model.last_write == "0x2 written to CLOCKS.CLK_REF_CTRL (0x40008030)"


def test_stm32_waits_for_a_clock_that_is_not_ready() -> None:
    bench = Bench("nucleo-wb55rg")
    bench.write("RCC.CFGR", 2)
    bench.wait(10)
    assert (bench.model.number("RCC.CFGR.SWS"), bench.model.hz("hclk1")) == (0, 4e6)
    bench.write("RCC.EXTCFGR", 0x80)
    bench.write("FLASH.ACR", 0x703)
    bench.write("RCC.CR", 0x00010061)
    bench.wait(1000)
    bench.wait(2)
    assert (bench.model.number("RCC.CFGR.SWS"), bench.model.hz("hclk1")) == (2, 32e6)


@pytest.mark.parametrize(("wait_states", "fails"), [(0, True), (1, False)])
def test_flash_needs_wait_states(wait_states: int, fails: bool) -> None:
    bench = Bench("nucleo-wb55rg")
    bench.write("FLASH.ACR", 0x700 | wait_states)
    bench.write("RCC.EXTCFGR", 0x80)
    bench.write("RCC.CR", 0x00010061)
    bench.wait(1000)
    bench.write("RCC.CFGR", 2)
    if not fails:
        bench.wait(2)
        assert bench.model.hz("hclk1") == 32e6
        return
    with pytest.raises(Stopped, match="flash needs a wait state above 18 MHz in range 1") as stopped:
        bench.wait(2)
    assert "hclk1 <= 18,000,000" in stopped.value.have[0]


def test_a_block_in_reset_reads_zero_and_forgets() -> None:
    bench = Bench("pico")
    bench.write("PLL_SYS.FBDIV", 125)
    assert (bench.model.read("PLL_SYS.FBDIV"), bench.model.read("PLL_SYS.PRIM")) == (0, 0)
    bench.write("RESETS.RESET", 1 << 12, alias=0x3000)
    bench.wait(2)
    assert (bench.model.read("PLL_SYS.FBDIV"), bench.model.read("PLL_SYS.PRIM")) == (0, 0x77000)
    bench.write("PLL_SYS.FBDIV", 125)
    assert bench.model.read("PLL_SYS.FBDIV") == 125
    bench.write("RESETS.RESET", 1 << 12, alias=0x2000)
    assert bench.model.read("PLL_SYS.FBDIV") == 0


def test_a_pll_locks_after_its_time_and_within_its_range() -> None:
    bench = Bench("pico")
    bench.write("RESETS.RESET", 1 << 12, alias=0x3000)
    bench.write("XOSC.CTRL", 0x00FABAA0)
    bench.wait(5000)
    bench.write("PLL_SYS.FBDIV", 50)  # 600 MHz is too slow
    bench.write("PLL_SYS.PWR", 0x0C)
    bench.wait(1000)
    assert bench.model.number("PLL_SYS.CS.LOCK") == 0
    bench.write("PLL_SYS.PWR", 0x2D)
    bench.write("PLL_SYS.FBDIV", 125)
    bench.write("PLL_SYS.PWR", 0x0C)
    bench.wait(99)
    assert bench.model.number("PLL_SYS.CS.LOCK") == 0
    bench.wait(2)
    assert bench.model.number("PLL_SYS.CS.LOCK") == 1


def test_a_line_whose_ends_differ() -> None:
    same = list(range(256))
    assert line(1 + 0.99 * TOLERANCE) == line(1 - 0.99 * TOLERANCE) == same
    assert all(a != b for ratio in (1.03, 0.97) for a, b in zip(line(ratio), same, strict=True))
    for ratio in (1.5, 0.1, 30.0):
        assert sum(a == b for a, b in zip(line(ratio), same, strict=True)) < 10


@pytest.mark.parametrize(("percent", "understood"), [(2, True), (3, False)])
def test_a_wrong_uart_clock_garbles_the_console(percent: int, understood: bool) -> None:
    """The image divides a clock that the chip does not have; the MPS3's start-up code once did."""
    board = load_board("pico")
    clock = board.chip.uart.clock_hz * (100 + percent) // 100
    made = built_for(replace(board.chip.uart, clock_hz=clock))
    heard: list[str] = []
    link = Link(Impatient(UnicornMachine(made, RUN)), heard.append)
    if understood:
        assert link.hello().model == "toy"
    else:
        with pytest.raises(DeviceHang):
            link.hello()
        assert heard and "toy" not in "".join(heard)


def built_for(uart: Uart) -> Image:
    board = load_board("pico").with_console(Console.UART)
    folder = Path(mkdtemp(prefix="baretorch-test-"))
    (folder / "glue.c").write_text(GLUE.format(body=REVERSE, inputs=16, outputs=16))
    changed = replace(board, chip=replace(board.chip, uart=uart))
    return build("toy", changed, folder, [folder / "glue.c"], folder, RUN)


def broken(made: Image, signal: str) -> Image:
    """The image on a chip where that never comes."""
    silicon = made.board.chip.silicon
    assert silicon is not None
    signals = tuple(replace(s, after=parse_factors(10**12)) if s.field == signal else s for s in silicon.signals)
    assert signals != silicon.signals
    chip = replace(made.board.chip, silicon=replace(silicon, signals=signals))
    return replace(made, board=replace(made.board, chip=chip))


@pytest.mark.parametrize(
    ("board", "signal", "missing"),
    [
        ("pico", "XOSC.STATUS.STABLE", "the crystal"),
        ("pico", "PLL_SYS.CS.LOCK", "the PLL"),
        ("pico2", "XOSC.STATUS.STABLE", "the crystal"),
        ("pico2", "PLL_SYS.CS.LOCK", "the PLL"),
        ("nucleo-wb55rg", "RCC.CR.HSERDY", "the crystal"),
        ("nucleo-wb55rg", "RCC.CR.PLLRDY", "the PLL"),
        ("microbit", "CLOCK.EVENTS_HFCLKSTARTED.EVENT", "the crystal"),
    ],
)
def test_what_does_not_start_is_reported_and_done_without(board: str, signal: str, missing: str) -> None:
    made = broken(image(board), signal)
    heard: list[str] = []
    machine = UnicornMachine(made, RUN)
    link = Link(machine, heard.append)
    hello = link.hello()
    told = f"baretorch: {missing} does not start, this is slow\n"
    assert "".join(heard) == f"{told}baretorch: toy on {board}, ready\n"
    assert hello.counter_hz == made.board.chip.counter.fallback_hz
    assert link.run([DATA]).outputs == (DATA[::-1],)
    machine.close()


@pytest.mark.parametrize(("board", "signal"), [("pico", "XOSC.STATUS.STABLE"), ("nucleo-wb55rg", "RCC.CR.HSERDY")])
def test_the_alarm_knows_how_slow_the_core_is(board: str, signal: str) -> None:
    """Else a frame is waited for twenty times too long, and a watchdog that ticks for itself is not fed in time."""
    made = broken(image(board), signal)
    machine = UnicornMachine(made, RUN)
    Link(machine).hello()
    machine.write(b"BTR")
    with pytest.raises(DeviceHang):
        while True:
            machine.read(0.3)
    assert machine._cores[0].state.alarm.reload + 1 == made.board.chip.uart.fallback_hz // 100  # 10 ms of the core
    machine.close()


def test_ram_cannot_be_written_before_its_supply() -> None:
    """The image does not wait for ever for a supply that never becomes valid."""
    made = broken(image("nucleo-h743zi"), "PWR.CSR1.ACTVOSRDY")
    with pytest.raises(DeviceFault, match="bad write of 4 bytes at 0x2407") as caught:
        UnicornMachine(made, RUN).read(5)
    assert "AXISRAM cannot be written yet: it needs PWR.CSR1.ACTVOSRDY = 0x1, and it is 0x0" in caught.value.have


def test_a_report_names_register_rule_and_source() -> None:
    body = """\
__attribute__((noinline)) void toy_run(const void *from, void *to)
{
    (void)from;
    (void)to;
    *(volatile uint32_t *)0x40028004u = 0x2du;
}"""
    machine = UnicornMachine(image("pico", body), RUN)
    with pytest.raises(DeviceFault, match="the chip stopped: the core's clock stopped") as caught:
        Link(machine).run([DATA])
    have = caught.value.have
    assert have[0] == "after 0x2d written to PLL_SYS.PWR (0x40028004)"
    assert have[1].startswith("pll_sys_vco needs PLL_SYS.PWR.PD = 0x0, and it is 0x1")
    assert any("in toy_run" in text for text in have)


def test_a_console_without_clock_is_reported() -> None:
    body = """\
__attribute__((noinline)) void toy_run(const void *from, void *to)
{
    (void)from;
    (void)to;
    *(volatile uint32_t *)0x4000e000u = 1u << 22; /* UART0 goes into reset */
}"""
    link = Link(Impatient(UnicornMachine(image("pico", body), RUN)))
    with pytest.raises(DeviceHang) as caught:
        link.run([DATA])
    assert "it needs RESETS.RESET_DONE.UART0 = 0x1, and it is 0x0" in caught.value.have


def test_the_counter_keeps_time() -> None:
    """A timer of 1 MHz and a core of 125 MHz give 125 instructions per tick."""
    machine = UnicornMachine(image("pico"), RUN)
    link = Link(machine)
    ticks = link.run([DATA]).ticks
    assert abs(ticks - machine.instructions()[-1] / 125) < 3


def test_the_boot_rom_of_later_rp2350s_leaves_a_divided_reference() -> None:
    """DS 8.3.1: the ring oscillator runs four times as fast, and clk_ref divides it. With the divider left alone the
    microsecond timer would count every fourth microsecond."""
    bench = Bench("pico2")
    assert (bench.model.hz("clk_sys"), bench.model.hz("clk_ref")) == (44e6, 11e6)
    machine = UnicornMachine(image("pico2"), RUN)
    link = Link(machine)
    ticks = link.run([DATA]).ticks
    assert abs(ticks - machine.instructions()[-1] / 150) < 3
