"""Start-up code with a single mistake in it: a step left out, or two neighbours in the wrong order.

Steps are the statements of the functions that bring a chip up: register writes, waits, and calls of such functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import takewhile
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from time import process_time

from baretorch.emit import KERNELS
from baretorch.errors import CompileError
from baretorch.firmware.boot import sign_boot2
from baretorch.firmware.toolchain import Toolchain, find_toolchain
from baretorch.firmware.types import Image
from baretorch.machines.link import Link
from baretorch.machines.types import DeviceHang, Machine
from baretorch.machines.unicorn.machine import UnicornMachine
from baretorch.options import Console, Optimize
from baretorch.targets.linker import linker_script
from baretorch.targets.runtime import RUNTIME, board_header, runtime_sources
from tests.machines.images import GLUE, RUN, image

BOARDS = ("pico", "pico2", "nucleo-wb55rg", "nucleo-h743zi", "microbit")
OVER_USB = " over USB"
USB_BOARDS = ("pico over USB", "pico2 over USB")  # of these what USB needs besides
KINDS = ("chip", "uart", "usb", "counter")  # folders
ONLY_FIRST_CHIPS = ("bt_usb_after_reset",)  # its steps go by way of pins, whose effect on USB is not emulated
SECONDS = 1.0  # in which a machine says something, or has failed
PATIENCE = 250_000  # instructions to start: less than one wait in vain takes
DATA = bytes(range(16))
BODY = """\
__attribute__((noinline)) void toy_run(const void *from, void *to)
{
    const uint8_t *x = from;
    uint8_t *y = to;
    for (volatile uint32_t i = 0; i < 20000; i++) {
    }
    for (uint32_t i = 0; i < OUTPUT_BYTES; i++) {
        y[i] = x[INPUT_BYTES - 1 - i];
    }
}"""
# What another program may have left on chips where a reset by a debugger reaches the cores alone: other rates.
_RP = {
    "RESETS.RESET": 0,
    "PADS_BANK0.GPIO0": 0xD6,
    "XOSC.CTRL": 0x00FABAA0,
    "XOSC.STATUS": 1 << 31,
    "PLL_SYS.CS": 1 << 31 | 2,
    "PLL_SYS.PWR": 0x04,
    "PLL_SYS.FBDIV": 133,
    "PLL_SYS.PRIM": 3 << 16 | 2 << 12,
    "CLOCKS.CLK_REF_CTRL": 2,
    "CLOCKS.CLK_REF_SELECTED": 1 << 2,
    "CLOCKS.CLK_SYS_SELECTED": 1 << 1,
    "CLOCKS.CLK_PERI_CTRL": 1 << 11 | 4 << 5,
    "PLL_USB.CS": 1 << 31 | 1,
    "PLL_USB.PWR": 0x04,
    "PLL_USB.FBDIV": 100,
    "PLL_USB.PRIM": 5 << 16 | 5 << 12,
    "CLOCKS.CLK_USB_CTRL": 1 << 11 | 1 << 5,
    "UART.IBRD": 72,
    "UART.FBRD": 11,
    "UART.LCR_H": 0x60,
    "UART.CR": 0x301,
}
_ON_PLL, _ON_CRYSTAL = {"CLOCKS.CLK_SYS_CTRL": 1}, {"CLOCKS.CLK_SYS_CTRL": 3 << 5 | 1}
LEFT: dict[str, tuple[dict[str, int], ...]] = {
    chip: tuple(
        {**_RP, "RESETS.RESET_DONE": done, **{f"CLOCKS.CLK_{name}_DIV": 2 << shift for name in divided}, **on}
        for on in (_ON_PLL, _ON_CRYSTAL)
    )
    for chip, done, shift, divided in (
        ("rp2040", 0x01FFFFFF, 8, ("REF", "SYS", "USB")),
        ("rp2350", 0x1FFFFFFF, 16, ("REF", "SYS", "USB", "PERI")),
    )
}
QUIET = "".join(f'#pragma GCC diagnostic ignored "-Wunused-{what}"\n' for what in ("function", "parameter", "variable"))
# Of each file, or of a file on a board, what is no mistake and why. The first of a pair is what then comes earlier.
PINS = "pins and what they are connected to do not depend on each other"
ENABLES = "clock enables do not depend on each other, nor do reads of them"
BEFORE_THE_SWITCH = "either is only needed before the core's clock is switched"
NOBODY_SLEEPS = "the interrupt is for when the core sleeps, which is later"
SETTINGS = "both are settings of something that is still off"
FREE: dict[str, dict[str, tuple[tuple[str, ...], ...]]] = {
    "nrf51822.c": {
        PINS: (
            ("GPIO_OUTSET", "bt_wait(EVENTS_HFCLKSTARTED"),
            ("GPIO_PIN_CNF(RX_PIN)", "GPIO_PIN_CNF(TX_PIN)"),
            ("UART_PSELTXD", "GPIO_PIN_CNF(RX_PIN)"),
            ("UART_PSELRXD", "UART_PSELTXD"),
        ),
    },
    "nrf_uart.c": {
        SETTINGS: (("ENABLE", "BAUDRATE"),),
        "two directions": (("TASKS_STARTTX", "TASKS_STARTRX"),),
        NOBODY_SLEEPS: (("INTENSET", "TASKS_STARTTX"),),
    },
    "nrf_timer.c": {SETTINGS: (("PRESCALER", "BITMODE"),)},
    "rp.h": {
        BEFORE_THE_SWITCH: (
            ("XOSC_CTRL", "bt_wait(CLK_SYS_SELECTED"),
            ("CLK_REF_CTRL", "rp_start_pll"),
            ("CLK_REF_DIV", "CLK_REF_CTRL"),
            ("CLK_SYS_DIV", "CLK_REF_DIV"),
            ("CLK_SYS_CTRL", "CLK_SYS_DIV"),
        ),
        "USB is in reset meanwhile": (("rp_out_of_reset(pll_reset)", "RESETS_SET"), ("CLK_USB_CTRL", "rp_start_pll")),
        SETTINGS: (
            ("PLL_FBDIV(pll)", "PLL_CS(pll)"),
            ("PLL_PRIM(pll)", "bt_wait(pll"),
            ("rp_undivide_peri", "CLK_PERI_CTRL"),
            ("rp_out_of_reset(reset)", "rp_undivide_peri"),
            ("CLK_USB_DIV", "CLK_USB_CTRL"),
            ("rp_out_of_reset(usb_reset)", "CLK_USB_DIV"),
        ),
        PINS: (
            ("PAD(0u)", "rp_out_of_reset(reset)"),
            ("PAD(1u)", "PAD(0u)"),
            ("GPIO_CTRL(0u)", "PAD(1u)"),
            ("GPIO_CTRL(1u)", "GPIO_CTRL(0u)"),
        ),
    },
    "rp2040.c": {"console and tick do not depend on each other": (("rp_start_uart(RESET_UART0)", "WATCHDOG_TICK"),)},
    "rp2350.c": {
        "console and tick do not depend on each other": (("rp_start_uart(RESET_UART0)", "TICKS_TIMER0_CTRL"),),
        "flash is only read more slowly; tests/machines/test_flash_port.py looks at that": (
            ("bt_flash_fast",),
            ("bt_flash_fast", "rp_start_clocks"),
            ("TICKS_TIMER0_CYCLES", "bt_flash_fast"),
        ),
        "a tick of no cycles is none": (("TICKS_TIMER0_CTRL", "TICKS_TIMER0_CYCLES"),),
    },
    "rp.c": {
        SETTINGS: (
            ("USB_PWR", "USB_MUXING"),
            ("MAIN_CTRL", "USB_PWR"),
            ("INTE", "MAIN_CTRL"),
            ("bt_interrupt_enable", "INTE"),
            ("USB_MUXING", "for"),
        ),
        "a bus reset clears all that is used": (("for",), ("for", "bt_usb_start")),
        "hosts take longer than that to look": (("SIE_CTRL", "bt_interrupt_enable"),),
    },
    "rp.h on pico": {"only the RP2350 has that divider": (("rp_undivide_peri",),)},
    "pl011.c": {
        SETTINGS: (("FBRD", "IBRD"),),
        "1.2 % less than the rate at most, which every receiver takes": (("FBRD",), ("LCR_H", "FBRD")),
        NOBODY_SLEEPS: (("IMSC", "CR"),),
    },
    "stm32wb55.c": {
        BEFORE_THE_SWITCH: (
            ("FLASH_ACR", "bt_wait(RCC"),
            ("RCC_EXTCFGR", "bt_wait(FLASH"),
            ("RCC_PLLCFGR", "bt_wait(RCC"),
        ),
        "the switch is done once the PLL is ready": (("RCC_CFGR", "RCC_CR"),),
        ENABLES: (
            ("RCC_AHB2ENR", "start_clocks"),
            ("RCC_APB2ENR", "RCC_AHB2ENR"),
            ("(void)RCC_AHB2ENR", "RCC_APB2ENR"),
            ("(void)RCC_APB2ENR", "(void)RCC_AHB2ENR"),
            ("GPIOB_PUPDR", "(void)RCC_APB2ENR"),
        ),
        PINS: (("GPIOB_AFRL", "GPIOB_PUPDR"),),
    },
    "dwt.c on nucleo-wb55rg": {
        "only the Cortex-M7 locks the unit": (("DWT_LAR",), ("DWT_LAR", "DEMCR"), ("DWT_CTRL", "DWT_LAR")),
    },
    "stm32h743.c": {
        "either is only needed before RAM is used": (("if", "for"),),
        SETTINGS: (("MPU_RASR", "MPU_RBAR"), ("SCB_ICIALLU", "for")),
        "wait states and memory protection do not depend on each other": (("close_external_memory", "bt_wait(FLASH"),),
        ENABLES: (
            ("RCC_AHB4ENR", "enable_caches"),
            ("RCC_APB1LENR", "RCC_AHB4ENR"),
            ("(void)RCC_AHB4ENR", "RCC_APB1LENR"),
            ("(void)RCC_APB1LENR", "(void)RCC_AHB4ENR"),
            ("GPIOD_PUPDR", "(void)RCC_APB1LENR"),
        ),
        PINS: (("GPIOD_AFRH", "GPIOD_PUPDR"),),
    },
}
FUNCTION = re.compile(
    r"^(?:static inline |static )?(?:void|int) (\w+)\([^)]*\)\n\{\n(.*?)^\}\n", re.MULTILINE | re.DOTALL
)
CONSOLE_AND_COUNTER = ("bt_console_init", "bt_counter_init")  # of drivers' files; of chips' files all functions are


def _image(board: str) -> Image:
    console = Console.USB if board.endswith(OVER_USB) else Console.UART
    return image(board.removesuffix(OVER_USB), BODY, console=console)


@dataclass(frozen=True)
class Mutant:
    """A source file's text with a mistake, what the mistake is, and the step that is missing or the two exchanged."""

    file: Path
    function: str
    what: str
    steps: tuple[str, ...]
    text: str


def mutants(board: str) -> Iterator[Mutant]:
    """Yield all mutants, each with the file that it changes."""
    for path in _files(board):
        text = path.read_text()
        for match in FUNCTION.finditer(text):
            is_usb = path.parent.name == "usb" or any(match.start() in part for part in _for_usb(text))
            if is_usb != board.endswith(OVER_USB) or match[1] in ONLY_FIRST_CHIPS:
                continue
            if path.parent.name != "chip" and match[1] not in CONSOLE_AND_COUNTER:
                continue
            parts = list(_steps(match[2]))
            for what, steps, body in _changes(parts):
                yield Mutant(path, match[1], what, steps, text[: match.start(2)] + body + text[match.end(2) :])


def _for_usb(text: str) -> list[range]:
    """The parts of a file that only images with that console have."""
    return [
        range(m.start(), m.end()) for m in re.finditer(r"^#ifdef BT_USB_BASE\n.*?^#(?:else|endif)\n", text, re.M | re.S)
    ]


def _files(board: str) -> list[Path]:
    sources = [path for path in runtime_sources(_image(board).board) if path.parent.name in KINDS]
    included = [p.parent / name for p in sources for name in re.findall('^#include "(rp.h)"', p.read_text(), re.M)]
    return included + sources


def _steps(body: str) -> Iterator[str]:
    """A function's body in statements, each with its lines; barriers stay with what they follow."""
    done: list[str] = []
    lines, depth = "", 0
    for line in body.splitlines(keepends=True):
        lines += line
        code = line.split("/*")[0]
        depth += code.count("{") - code.count("}")
        if depth == 0 and code.rstrip().endswith((";", "}")):
            done.append(lines)
            lines = ""
    for i, part in enumerate(done):
        if not _is_barrier(part):
            yield part + "".join(takewhile(_is_barrier, done[i + 1 :]))


def _is_barrier(lines: str) -> bool:
    return lines.strip() == "barrier();" or "__asm__" in lines


def _is_step(lines: str) -> bool:
    return not _brief(lines).startswith(("const ", "return"))


def _changes(parts: list[str]) -> Iterator[tuple[str, tuple[str, ...], str]]:
    for i, part in enumerate(parts):
        if not _is_step(part):
            continue
        yield f"without {_brief(part)}", (_name(part),), "".join(parts[:i] + parts[i + 1 :])
        if i + 1 < len(parts) and _is_step(parts[i + 1]) and part != parts[i + 1]:
            swapped = [*parts[:i], parts[i + 1], part, *parts[i + 2 :]]
            names = _name(parts[i + 1]), _name(part)
            yield f"{_brief(parts[i + 1])} before {_brief(part)}", names, "".join(swapped)


def _brief(part: str) -> str:
    code = re.sub(r"/\*.*?\*/|barrier\(\);", "", part, flags=re.DOTALL)
    return " ".join(code.split()).removesuffix(";")


def _name(part: str) -> str:
    """The register or function, to recognise a step by."""
    found = re.match(r"(?:if \(!)?(bt_wait\(\w+|\(void\)\w+|\w+(?:\(\w+\))?)", _brief(part))
    assert found is not None, part
    return found[1]


def free(board: str, mutant: Mutant) -> str | None:
    """Return why a change is not a mistake: the chip's documents allow any order, or the step is for other chips."""
    tables = [FREE.get(mutant.file.name, {}), FREE.get(f"{mutant.file.name} on {board}", {})]
    return next((why for table in tables for why, steps in table.items() if mutant.steps in steps), None)


class Workshop:
    """Builds the image of a board with one of its files changed."""

    def __init__(self, board: str) -> None:
        self.image = _image(board)
        self._tools: Toolchain = find_toolchain(self.image.board, "gcc")
        self._folder = Path(mkdtemp(prefix="baretorch-mutants-"))
        (self._folder / "bt_board.h").write_text(board_header(self.image.board))
        (self._folder / "toy.ld").write_text(linker_script(self.image.board))
        glue = self._folder / "glue.c"
        glue.write_text(GLUE.format(body=BODY, inputs=16, outputs=16))
        sources = (*runtime_sources(self.image.board), glue)
        self._objects = {path: self._compile(path, f"{path.parent.name}_{path.stem}") for path in sources}

    def build(self, mutant: Mutant) -> Image:
        with TemporaryDirectory() as temporary:
            source, replaced = self._changed(mutant, Path(temporary))
            return self._link(replaced, self._compile(source, "mutant"))

    def with_text(self, source: Path, text: str) -> Image:
        """Replace the text of one of the runtime's files."""
        with TemporaryDirectory() as temporary:
            changed = Path(temporary) / source.name
            changed.write_text(text)
            return self._link(source, self._compile(changed, "changed"))

    def _link(self, replaced: Path, made: Path) -> Image:
        objects = self._objects | {replaced: made}
        elf = self._folder / "mutant.elf"
        complaint = self._tools.link(list(objects.values()), self._folder / "toy.ld", elf, self._folder / "toy.map")
        assert complaint is None, complaint
        if self.image.board.chip.boot == "boot2":
            elf.write_bytes(sign_boot2(elf.read_bytes()))
        return replace(self.image, elf=elf, uf2=None)

    def _changed(self, mutant: Mutant, folder: Path) -> tuple[Path, Path]:
        """The source to compile, and which it stands for: a header is compiled by the chip's file."""
        (folder / mutant.file.name).write_text(QUIET + mutant.text)
        if mutant.file.suffix == ".c":
            return folder / mutant.file.name, mutant.file
        user = RUNTIME / "chip" / f"{self.image.board.chip.init}.c"
        (folder / user.name).write_text(user.read_text())
        return folder / user.name, user

    def _compile(self, source: Path, name: str) -> Path:
        output = self._folder / f"{name}.o"
        includes = (self._folder, source.parent, RUNTIME, RUNTIME / "chip", KERNELS)
        self._tools.compile(source, output, includes, Optimize.SIZE)
        return output


@cache
def workshop(board: str) -> Workshop:
    return Workshop(board)


class Impatient:
    """A machine that is given up soon; later where this process hardly gets its turn."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.name = machine.name
        self.write, self.instructions = machine.write, machine.instructions
        self.cores, self.blocks, self.close = machine.cores, machine.blocks, machine.close

    def read(self, timeout: float) -> bytes:
        began = process_time()
        while True:
            try:
                return self._machine.read(min(timeout, SECONDS))
            except DeviceHang as hang:
                if not hang.what.startswith("the image sent nothing") or process_time() - began > SECONDS / 2:
                    raise


def noticed(made: Image) -> str | None:
    """How the image behaves otherwise than it should, in a few words; None if it does not. It starts from power-up, and
    where a reset leaves clocks and peripherals as they are, once more after another program."""
    for left in (None, *LEFT.get(made.board.chip.name, ())):
        if (wrong := behaves_otherwise(made, left)) is not None:
            return wrong if left is None else f"after another program: {wrong}"
    return None


def behaves_otherwise(made: Image, left: Mapping[str, int] | None) -> str | None:
    chip = made.board.chip
    emulated = UnicornMachine(made, RUN, left)
    machine = Impatient(emulated)
    heard: list[str] = []
    try:
        link = Link(machine, heard.append)
        link.hello()
        start = int(emulated.core.state.instructions)
        reply = link.run([DATA])
    except DeviceHang:
        return "hangs"
    except CompileError as error:
        return error.what
    finally:
        instructions = machine.instructions()
        machine.close()
    if "".join(heard) != f"baretorch: toy on {made.board.name}, ready\n":
        return "says: " + "".join(heard).splitlines()[0].removeprefix("baretorch: ").split(",")[0]
    if reply.outputs != (DATA[::-1],):
        return "answers wrongly"
    if left and emulated._wiring is not None and emulated._wiring.model.number("RESETS.RESET_DONE.DMA"):
        return "DMA still does what it did"
    if start > PATIENCE:
        return f"takes {start / 1e6:.1f} million instructions to start"
    expected = instructions[-1] * chip.counter.hz / chip.clock_hz
    if not 0.97 < reply.ticks / expected < 1.03:
        return f"the counter runs {reply.ticks / expected:.2g} times as fast as it should"
    return None


@dataclass(frozen=True)
class Outcome:
    """The outcome of a mutant: how it was noticed, or why it need not be."""

    place: str
    what: str
    noticed: str | None
    free: str | None


def outcomes(board: str, every: int = 1) -> list[Outcome]:
    """Return the outcomes of every n-th mutant."""
    made = workshop(board)
    return [
        Outcome(f"{m.file.name}, {m.function}", m.what, noticed(made.build(m)), free(board, m))
        for i, m in enumerate(mutants(board))
        if i % every == 0
    ]
