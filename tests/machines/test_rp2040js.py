"""rp2040js agrees with Unicorn on the same UF2 about results, instructions and jumps, and reports its own cycles."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from baretorch import pipeline
from baretorch.cli.tools import TOOLS
from baretorch.errors import CompileError
from baretorch.firmware.types import Image
from baretorch.ir.io import store_inputs
from baretorch.machines import open_machine
from baretorch.machines.frames import RUN as RUN_FRAME
from baretorch.machines.frames import Frame, encode_frame
from baretorch.machines.link import Link
from baretorch.machines.rp2040js import node
from baretorch.machines.rp2040js.machine import Rp2040JsMachine
from baretorch.machines.run import Run, run_on
from baretorch.machines.types import Block, Cores
from baretorch.measure.cycles import Listing, cycles_of, read_listing
from baretorch.options import Console, Io, Options
from baretorch.targets.boards import load_board
from tests.machines.images import RUN, TWO_CORES, image
from tests.machines.test_machines import DATA, FAULTS, fault
from tests.models import compile_model
from tests.zoo.zoo import MODELS, ROOT, check_shortage, lowered

JS, UNICORN = "rp2040js", "unicorn"
CHEAP = (("sine", False, Console.UART), ("ad", True, Console.USB))
FORGETS = (0xB5, 0xBD)  # PUSH with LR, POP with PC: rp2040js does not count that register, the manual does


def ran(emulator: str, made: Image) -> tuple[tuple[bytes, ...], tuple[Block, ...]]:
    machine = open_machine(made, RUN, emulator)
    outputs = Link(machine).run([DATA]).outputs
    blocks = machine.blocks()
    assert machine.instructions() == (sum(b.instructions * b.executed for b in blocks),)
    machine.close()
    return outputs, blocks


def per_instruction(blocks: tuple[Block, ...], listing: Listing) -> Counter[tuple[int, int, str]]:
    """How often each instruction of each site was executed, and something else than the next followed."""
    counts: Counter[tuple[int, int, str]] = Counter()
    for block in blocks:
        *_, last = listing.block(block)
        for i in listing.block(block):
            counts[block.site, i.address, "executed"] += block.executed
        counts[block.site, last.address, "taken"] += block.taken
    return counts


@pytest.mark.parametrize("toolchain", ["gcc", "zig"])
def test_every_instruction_runs_as_often_as_on_unicorn(toolchain: str) -> None:
    made = image("pico", toolchain=toolchain)
    (one, blocks), (other, others) = (ran(e, made) for e in (JS, UNICORN))
    assert one == other
    assert +per_instruction(blocks, read_listing(made)) == +per_instruction(others, read_listing(made))
    sites = [list(dict.fromkeys(b.site for b in found)) for found in (blocks, others)]
    assert sites[0] == sites[1] and len(sites[0]) >= 3


@pytest.mark.parametrize("quad", [True, False])
def test_the_second_stage_reads_flash_as_fast_as_that_can(quad: bool) -> None:
    """It sets the bit QE of a chip that is new, and falls back to one line where that changes nothing."""
    machine = Rp2040JsMachine(image("pico"), RUN, quad)
    Link(machine).run([DATA])
    assert machine.flash_command() == ("EBh" if quad else "03h")
    machine.close()


def test_half_a_frame_is_given_up() -> None:
    """The image sleeps until its timer wakes it: SysTick, whose interrupt the package does not support."""
    machine = open_machine(image("pico"), RUN, JS)
    link = Link(machine)
    link.hello()
    machine.write(encode_frame(Frame(RUN_FRAME, 9, DATA))[:-6])
    time.sleep(1.5)
    assert link.run([DATA]).outputs == (DATA[::-1],)
    machine.close()


BLOCKS = """\
#define REGISTER(address) (*(volatile uint32_t *)(address))
void __attribute__((noinline)) toy_run(const void *from, void *to)
{
    REGISTER(0x4000f000u) = 1u << 2 | 1u << 16; /* DMA and SPI0 out of reset */
    REGISTER(0x50000000u) = (uint32_t)(uintptr_t)from;
    REGISTER(0x50000004u) = (uint32_t)(uintptr_t)to;
    REGISTER(0x50000008u) = INPUT_BYTES / 4;
    REGISTER(0x5000000cu) = 0x3fu << 15 | 1u << 5 | 1u << 4 | 2u << 2 | 1u; /* words, both sides, at once */
    while ((REGISTER(0x5000000cu) & 1u << 24) != 0) {
    }
    REGISTER(0x4003c000u) = 7; /* bytes */
    REGISTER(0x4003c004u) = 2;
    REGISTER(0x4003c008u) = 0x5a;
    while ((REGISTER(0x4003c00cu) & 4u) == 0) {
    }
    ((uint8_t *)to)[0] ^= (uint8_t)REGISTER(0x4003c008u); /* what nobody sent: 0 */
}"""


def test_blocks_that_only_the_package_has() -> None:
    """DMA and SPI, whose time our loop lets pass."""
    machine = open_machine(image("pico", BLOCKS), RUN, JS)
    assert Link(machine).run([DATA], timeout=20).outputs == (DATA,)
    machine.close()


PENDING = """\
#define REGISTER(address) (*(volatile uint32_t *)(address))
void __attribute__((noinline)) toy_run(const void *from, void *to)
{
    __asm__ volatile("cpsid i");
    REGISTER(0xe000e100u) = 1u << 20; /* UART0's interrupt is enabled, and pending */
    REGISTER(0xe000e200u) = 1u << 20;
    __asm__ volatile("wfi");
    REGISTER(0xe000e280u) = 1u << 20;
    __asm__ volatile("cpsie i");
    *(uint8_t *)to = *(const uint8_t *)from;
}"""


def test_who_has_an_interrupt_pending_does_not_sleep() -> None:
    machine = open_machine(image("pico", PENDING), RUN, JS)
    assert Link(machine).run([DATA], timeout=10).outputs[0][:1] == DATA[:1]
    machine.close()


def test_over_usb() -> None:
    """The package's controller, which is of other authors, takes our driver for a serial port. Its interrupts do not
    count as the model's instructions."""
    data = random.Random(0).randbytes(500)
    made = image("pico", inputs=len(data), outputs=len(data), console=Console.USB)
    calls = []
    for emulator in (JS, UNICORN):
        machine = open_machine(made, RUN, emulator)
        link = Link(machine)
        assert [link.run([data]).outputs for _ in range(2)] == [(data[::-1],)] * 2
        calls.append(machine.instructions())
        machine.close()
    assert calls[0] == calls[1] and len(calls[0]) == 2


def work(cores: Cores) -> list[int]:
    """Return the work of each core without waiting: the number of polls depends on timing."""
    return [cores.critical_path - waiting for waiting in cores.waiting]


def test_both_cores_do_what_they_do_on_unicorn() -> None:
    found = []
    for emulator in (JS, UNICORN):
        machine = open_machine(image("pico", TWO_CORES, cores=2), RUN, emulator)
        outputs = [Link(machine).run([DATA]).outputs for _ in range(2)]
        cores = machine.cores()
        machine.close()
        assert cores is not None
        found.append((outputs, work(cores), cores.critical_path))
    (*js, path), (*unicorn, other) = found
    assert js == unicorn
    assert abs(path - other) < 10 * 3  # in three meetings


@pytest.mark.parametrize(
    "statement",
    [
        *FAULTS.values(),
        "*(volatile uint32_t *)(x + 1)",
        "*(volatile uint16_t *)(x + 1) = 1",
        "*(volatile uint32_t *)0x10000000u = 1",
    ],
)
def test_a_fault_ends_in_the_images_own_handler(statement: str) -> None:
    error = fault("pico", JS, statement)
    assert error.what.startswith("the device stopped: FAULT:")
    assert any(line.startswith("pc 0x") for line in error.have)


def test_a_fault_of_the_handler_is_a_lock_up() -> None:
    spoil = "*(volatile uint32_t *)0xe000ed08u = 0x90000000u; *(volatile uint32_t *)0x90000000u"  # VTOR
    assert "locked up" in fault("pico", JS, spoil).render()


def run(compiled: pipeline.Compiled, made: Image, emulator: str) -> Run:
    """It may take minutes: floating point without an FPU, and a busy machine."""
    with closing(open_machine(made, compiled.c.run, emulator)) as machine:
        return run_on(machine, compiled.graph, store_inputs(compiled.graph, compiled.source.examples), timeout=1800)


def compared(name: str, int8: bool, folder: Path, console: Console = Console.USB) -> Run:
    """Run the same image on both emulators: bits, instructions and stack are equal, and the cycle table of rp2040js is
    ours."""
    compiled = compile_model(lowered(name, int8), load_board("pico"), Options(console=console))
    made = pipeline.build_image(compiled, folder)
    js, unicorn = (run(compiled, made, emulator) for emulator in (JS, UNICORN))
    assert [a.tobytes() for a in (*js.first, *js.outputs)] == [a.tobytes() for a in (*unicorn.first, *unicorn.outputs)]
    assert js.instructions == unicorn.instructions
    assert 0 < js.stack_peak <= made.ram.stack and 0 < unicorn.stack_peak <= made.ram.stack
    # USB interrupts at any depth, and when the host asks is the host's affair.
    assert console is Console.USB or js.stack_peak == unicorn.stack_peak
    assert unicorn.emulator_cycles is None and isinstance(js.emulator_cycles, int)
    assert js.ticks == pytest.approx(js.emulator_cycles / 125, rel=0.01, abs=3)  # microseconds, at 125 MHz
    listing = read_listing(made)
    timing = made.board.chip.cpu.timing
    assert timing is not None
    ours, same = (cycles_of(run.blocks, listing, timing) for run in (js, unicorn))
    assert ours == same
    assert js.emulator_cycles + forgotten(js.blocks, listing) == ours.expected
    return js


def forgotten(blocks: tuple[Block, ...], listing: Listing) -> int:
    """Cycles that rp2040js does not count, one for each."""
    opcodes = ((listing.elf.bytes_at(i.address, 2)[1], b.executed) for b in blocks for i in listing.block(b))
    return sum(executed for high, executed in opcodes if high in FORGETS)


@pytest.mark.parametrize(("name", "int8", "console"), CHEAP)
def test_cheap_models_of_the_zoo(name: str, int8: bool, console: Console, tmp_path: Path) -> None:
    compared(name, int8, tmp_path, console)


@pytest.mark.slow
@pytest.mark.parametrize("int8", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_all_models_of_the_zoo_that_fit(name: str, int8: bool, tmp_path: Path) -> None:
    try:
        compared(name, int8, tmp_path)
    except CompileError as error:
        assert int8 or (check_shortage(error, name, "pico") is None)
        assert "too small" in error.what


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kws", "ic"])
def test_models_on_both_cores(name: str, tmp_path: Path) -> None:
    compiled = compile_model(lowered(name, True), load_board("pico"), Options(io=Io.INT8, cores=2))
    made = pipeline.build_image(compiled, tmp_path)
    js, unicorn = (run(compiled, made, emulator) for emulator in (JS, UNICORN))
    assert [a.tobytes() for a in js.outputs] == [a.tobytes() for a in unicorn.outputs]
    assert js.cores is not None and unicorn.cores is not None
    assert work(js.cores) == work(unicorn.cores)
    assert js.cores.critical_path == pytest.approx(unicorn.cores.critical_path, rel=1e-3)


REMEDY = """\
  try   `apt-get install nodejs npm`
        `npm install --global rp2040js@1.4.1`; where you may not, add `--prefix` and the folder of your venv"""


def error_of(made: Image) -> str:
    with pytest.raises(CompileError) as caught:
        open_machine(made, RUN, JS)
    return caught.value.render()


def test_without_node(monkeypatch: pytest.MonkeyPatch) -> None:
    made = image("pico")
    monkeypatch.setenv("PATH", "")
    assert error_of(made) == (
        f"error: the emulator rp2040js needs Node.js\n  need  the program node, version 18 or later\n{REMEDY}"
    )
    assert not node.is_installed()


def test_without_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A package in the current folder is not used, because it may be foreign code."""
    fake_package(tmp_path / "node_modules", "1.4.1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(node, "package_roots", lambda: (tmp_path / "elsewhere",))
    assert error_of(image("pico")) == (
        f"error: the emulator rp2040js needs the npm package of that name\n  need  version 1.4.1\n{REMEDY}"
    )
    monkeypatch.undo()
    assert tmp_path not in [folder for root in node.package_roots() for folder in root.parents]


def test_another_version_of_the_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_package(tmp_path, "1.4.0")
    monkeypatch.setattr(node, "package_roots", lambda: (tmp_path,))
    assert error_of(image("pico")) == (
        "error: the emulator rp2040js needs version 1.4.1 of its npm package\n"
        "  have  version 1.4.0\n"
        f"  need  version 1.4.1, which our additions were written for\n{REMEDY}"
    )


def fake_package(root: Path, version: str) -> None:
    (root / "rp2040js").mkdir(parents=True)
    (root / "rp2040js" / "package.json").write_text(json.dumps({"version": version}))


def test_the_set_up_installs_the_version_that_is_needed() -> None:
    package = f"{node.PACKAGE}@{node.VERSION}"
    assert package in (ROOT / "tools" / "setup.sh").read_text()
    assert package in next(tool.get for tool in TOOLS if tool.kind == "npm")
