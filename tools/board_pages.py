"""The pages of docs/boards: what the TOML files and benchmarks/boards.json say, and what people know of each board."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baretorch.options import Console
from baretorch.report.numbers import capacity, figure, frequency
from baretorch.targets.boards import board_names, load_board
from baretorch.targets.types import Board

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "benchmarks" / "boards.json"
SINE = "examples/sine/model.py"
COUNT_CYCLES = ("simavr", "cluster")  # other emulators count instructions
STARTUP = {"pico": "pico", "pico4ml": "pico", "pico2": "pico2", "pico2w": "pico2"}  # whose table is whose


@dataclass(frozen=True)
class Notes:
    """What no file of ours says of a board: what is connected where, how the image gets there, what to try first, and
    what was looked at, in (what, how) rows."""

    wiring: tuple[str, ...]
    flashing: tuple[str, ...]
    console: tuple[str, ...]
    first: tuple[str, ...]
    verified: tuple[tuple[str, str], ...]


NEVER = "Nobody has tried an image of ours on this board yet. Whoever does knows more than this page."
PLUG = (
    "Hold BOOTSEL while plugging in. A drive appears; `baretorch flash {sine} --board {board}` builds the image",
    "and copies its UF2 there. The drive goes away and the image runs. A debug probe works too (`pip install -e",
    "'.[flash]'`). However wrong an image is, BOOTSEL brings the drive back.",
)
PICO_WIRES = (
    "| adapter, 3.3 V levels | board |",
    "|---|---|",
    "| RX | GP0, pin 1 |",
    "| TX | GP1, pin 2 |",
    "| GND | GND, pin 3 |",
)
ADAPTER = (
    "UART0 at 115,200 baud through the adapter: `baretorch monitor {sine} --board {board} --port PORT`, where PORT is",
    "`/dev/ttyUSB0`, `/dev/cu.usbserial-…` or `COM3`.",
)
USB_WIRES = ("The USB cable, nothing else. For an image with `--console uart`:", "")
USB_PORT = (
    "The serial port of the USB cable: `baretorch monitor {sine} --board {board} --port PORT`, where PORT is",
    "`/dev/ttyACM0`, `/dev/cu.usbmodem…` or `COM3`, or of several boards the number of one, which messages tell.",
    "With `--console uart` it is the adapter's.",
)
USB_FLASHING = (
    "From then on `baretorch flash` needs no button: it asks the running image for the boot loader over USB.",
    "Windows does not tell what is on a port, so name it there: `--port COM3`.",
)
USB_FIRST = (
    "the sine: a serial port appears. If none does, flash an image with `--console uart`: its console says "
    "`baretorch: sine on {board}, ready` where start-up is well and USB is not",
    "the same on Linux, macOS and Windows, behind a hub and without, and again after the cable was out",
    "`baretorch flash` a second time, without the button",
)
USB_IF_ASKED = (
    "An image built with `--console usb` talks over the USB cable instead, as the serial port `/dev/ttyACM0`,",
    "`/dev/cu.usbmodem…` or `COM3`.",
)
USB_VERIFIED = (
    "USB",
    "a strict host of ours on an emulated controller: chapter 9 of USB 2.0, losses, resets, as Linux and Windows ask",
)
USB_JS = "; rp2040js's controller, of other authors"
PROBE = (
    "`pip install -e '.[flash]'`, plug the board in, `baretorch flash {sine} --board {board}`: pyOCD writes the image",
    "through the probe on the board.",
)
PROBE_PORT = (
    "The serial port of the same USB cable, at 115,200 baud: `baretorch monitor {sine} --board {board} --port PORT`,",
    "where PORT is `/dev/ttyACM0`, `/dev/cu.usbmodem…` or `COM3`.",
)
READY = "the console says `baretorch: sine on {board}, ready` after a reset; nothing at all means that start-up failed"
MONITOR = "`baretorch monitor {sine} --board {board} --port PORT`: the same answers, to the bit, as without `--port`"
EVALUATE = (
    "`make mnist` once, then `baretorch evaluate examples/mnist/model.py --board {board} --port PORT`: the emulator's "
    "accuracy"
)
RP_FIRST = (
    "the sine: " + READY + ". Then BOOTSEL and another program tell whether the board is well",
    MONITOR,
    "a cold start (unplug, wait, plug in) and a reset by RUN, ten times each: clocks and flash start from both",
    "`baretorch flash zoo/kws.py --int8 --cores 2 --board {board}`, then `monitor`: core 1 starts and both agree",
    "a timer around the run function in a program of yours: within the range above?",
    EVALUATE,
)
RP_START = (
    "clocks, resets, pins",
    "emulated chip with rules from data sheet and SDK; [each mistake one can make](../reference/startup.md#{startup}); "
    "values compared with pico-sdk 2.2.0",
)
UF2 = (
    "UF2 file",
    "compared with the checks in the boot ROM's source; the second stage's checksum at every emulated start",
)
KERNELS = (
    "kernels",
    "each operator's cases on an emulated core that has the same kernels: int8 bit for bit as the NumPy reference, "
    "float within a stated tolerance",
)
SILICON = ("on the board itself", "nothing yet")


def _pico(wiring: tuple[str, ...], first: tuple[str, ...] = (), verified: tuple[tuple[str, str], ...] = ()) -> Notes:
    return Notes(
        wiring,
        PLUG,
        ADAPTER,
        RP_FIRST + first,
        (
            RP_START,
            (
                "second stage, quad reads of flash",
                "two emulators with a flash chip each, new and unwilling ones too; values are those of pico-sdk 2.2.0",
            ),
            UF2,
            KERNELS,
            ("core 1", "two emulators, with boot ROMs of ours"),
            (
                "instructions and cycles",
                "Unicorn and rp2040js, of other authors, count the same instructions; rp2040js's cycles differ by the "
                "one of PUSH with LR and POP with PC that it leaves out",
            ),
            (
                "time that flash takes",
                "a model of cache and controller by the data sheet: not measured by anybody here",
            ),
            *verified,
            SILICON,
        ),
    )


def _pico2() -> Notes:
    return Notes(
        PICO_WIRES,
        PLUG,
        ADAPTER,
        RP_FIRST,
        (
            RP_START,
            ("quad reads of flash", "emulated QMI and flash chip; values are those of pico-sdk 2.2.0"),
            ("UF2 and IMAGE_DEF", "compared with the boot ROM's source, and checked before every emulated start"),
            KERNELS,
            ("core 1", "one emulator, with a boot ROM of ours"),
            ("instructions", "Unicorn, which agrees with QEMU on `mps2-an505`, a Cortex-M33"),
            (
                "cycles, time that flash takes",
                "assumed: no table of the Cortex-M33 is published, no board was measured",
            ),
            SILICON,
        ),
    )


def _nucleo(port: str, source: str, *flashing: str) -> Notes:
    return Notes(
        (f"None: {port} is wired to the ST-LINK on the board. Use that one's USB socket, not the chip's.",),
        (*PROBE, *flashing),
        PROBE_PORT,
        (
            "the sine: " + READY,
            MONITOR,
            "ten resets and ten cold starts: oscillator, PLL and supply start from both",
            "a timer around the run function in a program of yours: within the range above?",
            EVALUATE,
        ),
        (
            (
                "clocks, supply, flash wait states, pins",
                "emulated chip with rules from ST's documents, and [each mistake one can make]"
                f"(../reference/startup.md#{{startup}}); values compared with {source}",
            ),
            KERNELS,
            ("instructions", "Unicorn, which agrees with QEMU on the MPS2 board with this core"),
            ("cycles, time that flash takes", "Arm's table, or an assumption on the Cortex-M7; no board was measured"),
            SILICON,
        ),
    )


def _machine(name: str, core: str) -> Notes:
    return Notes(
        ("None: it is a machine of QEMU. The real board is an FPGA, where this image was never tried.",),
        (f"Not needed: `baretorch run` starts QEMU. By hand: `qemu-system-arm -M {name} -nographic -kernel my.elf`.",),
        ("UART0, which QEMU connects to its standard input and output; the board's first serial port.",),
        (
            f"`baretorch run {SINE} --board {{board}}`",
            "on a real MPS board: the sine, and whether the console says that it is ready; the clock of its FPGA image "
            "may be another than the one below, and the baud rate with it",
        ),
        (
            ("start-up, UART, counter", "QEMU's machine, which is of other authors" + core),
            KERNELS,
            ("on the board itself", "nothing yet"),
        ),
    )


def _arduino(reset: str) -> Notes:
    return Notes(
        ("The USB cable, nothing else: a chip on the board turns USART0 into a serial port.",),
        (
            "`apt-get install avrdude`, plug the board in, `baretorch flash {sine} --int8 --board {board}`: avrdude",
            "writes the HEX file through the board's boot loader, on the serial port whose maker is Arduino. With",
            "several, or a board of another maker, `--port PORT` names it: nothing else is opened unasked.",
            reset,
        ),
        (
            "The serial port of the same cable, at 115,200 baud; the chip's divider makes 117,647 of it, 2.1 % more.",
            "`baretorch monitor {sine} --int8 --board {board} --port PORT`, where PORT is `/dev/ttyACM0`,",
            "`/dev/ttyUSB0` or `COM3`. Opening the port resets the board.",
        ),
        (
            "the sine: " + READY,
            MONITOR,
            "a USB adapter of another maker at the serial pins: does it bear the 2.1 %?",
            "the counter's ticks beside `cycles` above: the same but for the call around it and its interrupts",
        ),
        (
            ("start-up, USART, timer", "libsimavr, which is of other authors"),
            (
                "kernels",
                "each operator's int8 cases that fit `arduino-mega`, bit for bit as the NumPy reference",
            ),
            (
                "instructions and cycles",
                "libsimavr counts, and our table by the instruction set manual gives the same number, to the cycle",
            ),
            ("avrdude", "a program that looks like it"),
            SILICON,
        ),
    )


UNICORN_TOO = "; Unicorn counts the same instructions"
FVP_VERIFIED = (
    "Arm's FVP",
    "by a stand-in that takes the arguments and the line of the real one: nobody here has the program",
)


def _corstone(differs: str, npu: str) -> Notes:
    return Notes(
        ("None: a Fixed Virtual Platform (FVP) of Arm's, or an FPGA board.",),
        ("Not needed: `baretorch run` starts QEMU, or with `--emulator fvp` Arm's FVP, if it is on `PATH`.",),
        ("UART0.",),
        (
            f"`baretorch run {SINE} --board {{board}}`; then the same with `--emulator fvp`",
            "an int8 model with `--npu require` in the FVP, whose NPU is Arm's",
        ),
        (
            ("start-up code, console, counter, kernels", f"QEMU's machine `mps3-an547`{differs}"),
            (
                "NPU",
                f"an Ethos-{npu} of ours beside QEMU: registers, interrupt and every command, [bit for bit as TOSA "
                "says](../how-to/use-an-npu.md); it takes no time, and reaches SRAM only",
            ),
            FVP_VERIFIED,
            ("on the board itself", "nothing yet"),
        ),
    )


CLUSTER = Notes(
    ("None: the chip exists as a simulation only.",),
    ("Not needed: `baretorch run` simulates it.",),
    ("A UART of which only the registers are there: bytes pass at once.",),
    (f"`baretorch run {SINE} --board {{board}}`: cycles are exact",),
    (
        (
            "the core's instructions and cycles",
            "the core's own RTL under Verilator: each access of 100,000 random instructions in the same cycle, on one "
            "core and on eight",
        ),
        ("memories, event unit, DMA, GEMM", "invented, as the chip's TOML says: there is nothing to hold them against"),
    ),
)
NOTES: dict[str, Notes] = {
    "arduino-mega": _arduino("Its boot loader speaks STK500v2, which avrdude calls `wiring`."),
    "arduino-uno": _arduino("Its boot loader is optiboot, which avrdude calls `arduino`."),
    "cluster4-soc": CLUSTER,
    "cluster8": CLUSTER,
    "corstone-300": _corstone(
        ", an FPGA image of Corstone-300: it has more SRAM than we use, and its clocks and protection units need no "
        "set-up",
        "U55",
    ),
    "corstone-320": _corstone(
        ", an FPGA image of Corstone-300. That differs: its core is a Cortex-M55, which has the instructions that we "
        "use of the M85; where the ROM is it has RAM, and the core is led there from its own first address; caches, "
        "clocks and protection units need no set-up",
        "U85",
    ),
    "host": Notes(
        ("None.",),
        ("Not needed: the image is a program.",),
        ("Standard input and output.",),
        (f"`baretorch run {SINE} --board host`: the fastest way to see whether a model is right",),
        (("kernels", "portable C, with sanitizers, bit for bit as the NumPy reference says"),),
    ),
    "microbit": Notes(
        ("None: the chip's UART is wired to the debug probe on the board, DAPLink.",),
        PROBE,
        PROBE_PORT,
        (
            "the sine: " + READY,
            MONITOR,
            "a reset by the button at the back, ten times",
            "a model that fills most of the 16 KiB of RAM, such as `zoo/kws.py --int8`",
        ),
        (
            (
                "clock, pins, UART",
                "emulated chip with rules from Nordic's documents, and [each mistake one can make]"
                "(../reference/startup.md#microbit); QEMU's micro:bit, of other authors; compared with nrfx",
            ),
            KERNELS,
            ("instructions", "QEMU and Unicorn count the same"),
            SILICON,
        ),
    ),
    "mps2-an385": _machine("mps2-an385", UNICORN_TOO),
    "mps2-an385-v6m": _machine("mps2-an385", UNICORN_TOO + ". No such board: code for a Cortex-M0+ on its Cortex-M3"),
    "mps2-an386": _machine("mps2-an386", UNICORN_TOO),
    "mps2-an500": _machine("mps2-an500", UNICORN_TOO),
    "mps2-an505": _machine("mps2-an505", UNICORN_TOO),
    "mps3-an547": _machine("mps3-an547", ""),
    "nucleo-h743zi": _nucleo("USART3 (PD8, PD9)", "STM32CubeH7 and errata ES0392"),
    "nucleo-wb55rg": _nucleo(
        "USART1 (PB6, PB7)",
        "STM32CubeWB and the CMSIS header",
        "pyOCD does not know the chip by itself: once, `pyocd pack install stm32wb55rgvx`.",
    ),
    "pico": _pico(PICO_WIRES),
    "pico2": _pico2(),
    "pico2-riscv": Notes(
        PICO_WIRES,
        (
            *PLUG[:1],
            "and copies its UF2, of the family for RISC-V, there. The boot ROM starts the RISC-V cores for it.",
        ),
        ADAPTER,
        (
            "the sine: " + READY,
            MONITOR,
            "half a frame: an error frame must come after a second, which tells that its timer wakes the hart",
            "an image for `pico2` afterwards: the boot ROM starts the Arm cores again",
        ),
        (
            (
                "start-up, clocks, fast flash",
                "built from the files of `pico2`, whose emulated chip is strict about them",
            ),
            ("the image's block, UF2", "read back word by word, against the datasheet's format"),
            (
                "reset, traps, timer, interrupts of these cores",
                "review against the datasheet only: nothing emulates them",
            ),
            ("kernels", "all cases of operators, as code for this core on QEMU's machine `virt-hazard3`"),
        ),
    ),
    "pico2w": _pico2(),
    "pico4ml": _pico(
        (
            "An adapter of 3.3 V levels: its RX to GP0, its TX to GP1, and GND. Camera and display are for",
            "[applications](../how-to/your-own-application.md), as [the demo's](../../examples/pico4ml/README.md) is.",
        ),
        (
            "`baretorch flash examples/pico4ml/digits.py --board pico4ml --int8 --weights ram --app "
            "examples/pico4ml/firmware`: the display shows what the camera sees, and reads digits; a digit in front of "
            "it looks upright and not mirrored; the console tells what fails",
        ),
        (
            (
                "camera and display",
                "models of ours at the pins of rp2040js; values of registers are those of ArduCAM's and Arm's examples",
            ),
        ),
    ),
    "virt-hazard3": Notes(
        ("None: it is a machine of QEMU, and no board.",),
        ("Not needed: `baretorch run` starts QEMU.",),
        ("Its UART, which QEMU connects to its standard input and output.",),
        (f"`baretorch run {SINE} --board virt-hazard3`: what `pico2-riscv` would answer",),
        (
            ("start-up, UART, counter", "QEMU's machine, which is of other authors"),
            ("Zba, Zbb, Zbs", "QEMU has them; of Zbkb no use is made, and gcc 12 is not asked for Zbs"),
            KERNELS,
        ),
    ),
    "virt-rv32": Notes(
        ("None: it is a machine of QEMU, and no board.",),
        ("Not needed: `baretorch run` starts QEMU.",),
        ("Its UART, which QEMU connects to its standard input and output.",),
        (f"`baretorch run {SINE} --board virt-rv32`",),
        (("start-up, UART, counter", "QEMU's machine, which is of other authors"), KERNELS),
    ),
}


def index_page(note: str) -> str:
    rows = [(f"[`{b.name}`]({b.name}.md)", b.title, b.chip.cpus, _runs_on(b)) for b in map(load_board, board_names())]
    text = [
        note,
        "# Board by board",
        "",
        "For each board: what to connect, how the image gets there, where it speaks, what three models take, what was",
        "verified how, and what to try first if you have one. [The reference](../reference/boards.md) has all memory",
        "maps in one table. No image has been tried on a physical board yet: if you have one, you can be the first.",
        "",
        *_table(("board", "what it is", "CPU", "emulated by"), rows),
    ]
    return "\n".join(text) + "\n"


def board_page(name: str, note: str) -> str:
    board = load_board(name)
    notes = NOTES[name]
    words = {"board": name, "sine": SINE, "startup": STARTUP.get(name, name)}

    def told(lines: tuple[str, ...]) -> list[str]:
        return [line.format_map(words) for line in lines]

    wiring, flashing, port, first, verified = notes.wiring, notes.flashing, notes.console, notes.first, notes.verified
    if board.chip.usb is not None:
        own = board.console is Console.USB
        if own:
            wiring, flashing, port = USB_WIRES + wiring, flashing + USB_FLASHING, USB_PORT
            first = (*USB_FIRST, *first[1:])
        else:
            port += USB_IF_ASKED
        what, how = USB_VERIFIED
        *others, last = verified
        verified = (*others, (what, how + (USB_JS if "rp2040js" in board.emulators else "")), last)

    real = bool(board.flash_methods)
    text = [
        note,
        f"# {board.title}",
        "",
        f"`--board {name}`: {board.chip.cpus} at {frequency(board.chip.clock_hz)}, chip `{board.chip.name}`.",
        f"{board.notes[0].upper()}{board.notes[1:]}.",
        *(["", NEVER] if real else []),
        "",
        "## Wiring",
        "",
        *told(wiring),
        "",
        "## Flashing",
        "",
        *told(flashing),
        "",
        "## Console",
        "",
        *told(port),
        "",
        "## Memory",
        "",
        *_memory(board),
        "",
        *_pins(board),
        "## Three models",
        "",
        *_figures(board),
        "",
        "## What was verified, and how",
        "",
        *_table(("what", "how"), [tuple(told(row)) for row in verified]),
        "",
        "## What to try first",
        "",
        *(f"{n}. {_sentence(line)}" for n, line in enumerate(told(first), 1)),
    ]
    return "\n".join(text) + "\n"


def _sentence(text: str) -> str:
    return text if text[0] == "`" else text[0].upper() + text[1:]


def _runs_on(board: Board) -> str:
    return ", ".join(board.emulators) or "nothing: it can only be built"


def _memory(board: Board) -> list[str]:
    chip = board.chip
    if board.hosted:
        return ["That of this computer."]
    holds = {chip.code: "the image", chip.data: "data, arena, stack"}
    rows = [
        (m.name, m.kind, f"`0x{m.origin:08x}`", capacity(m.size), holds.get(m.name, "weights and arena, if asked to"))
        for m in chip.memories
    ]
    slow = [f"{m.name} is {m.slow}." for m in chip.memories if m.slow]
    return [*_table(("bank", "kind", "origin", "size", "holds"), rows, "lllrl"), *(["", *slow] if slow else [])]


def _pins(board: Board) -> list[str]:
    if not board.pins:
        return []
    rows = [(part, name, f"GP{pin}", f"`BT_PIN_{part}_{name}`".upper()) for part, name, pin in board.pins]
    return ["## Pins", "", *_table(("part", "for", "pin", "in C"), rows), ""]


def _figures(board: Board) -> list[str]:
    if board.hosted:
        return ["Nothing is counted on this computer."]
    found = [row for row in json.loads(FIGURES.read_text()) if row["board"] == board.name]
    how = (
        "In int8, built by gcc, run by `baretorch run MODEL --board {} --int8 --io int8`; `make bench` measures again."
        if board.emulators
        else "In int8, built by gcc. Nothing that can be installed here runs them, so there are sizes only."
    )
    ranges = [row["time_ms_range"] for row in found if row.get("time_ms_range")]
    if any(row.get("emulator") in COUNT_CYCLES for row in found):
        times = ["Times are of the cycles that the emulator counts, which are the chip's."]
    else:
        span = "with their range" if any(low < high for low, high in ranges) else "by Arm's table, which has no range"
        times = [f"Times are [estimates](../how-to/find-what-is-slow.md#how-far-to-trust-the-time) {span}."]
        times = times if ranges else []
    if board.chip.npu and board.emulators:
        times = ["Instructions are the core's, beside what the NPU computes; no time is told of that."]
    titles = ("model", "flash", "RAM", "instructions", "time in ms", "of that waiting for flash")
    return [*_table(titles, [_row(row) for row in found], "lrrrrr"), "", how.format(board.name), *times]


def _row(row: dict[str, Any]) -> tuple[str, ...]:
    if "misfit" in row:
        return row["model"], "–", "–", "–", f"does not fit: {row['misfit'].rpartition(': ')[2]}", "–"
    sizes = (row["model"], f"{row['flash']:,}", f"{row['ram']:,}")
    if row.get("instructions") is None:
        return *sizes, "–", "–", "–"
    if row["time_ms_range"] is None:
        return *sizes, f"{row['instructions']:,}", "–", "–"
    low, high = map(figure, row["time_ms_range"])
    time = figure(row["time_ms"]) if low == high else f"{figure(row['time_ms'])} ({low} to {high})"
    waits = row.get("flash_cycles")
    flash = "–" if waits is None else figure(1e3 * waits / row["clock_hz"])
    return *sizes, f"{row['instructions']:,}", time, flash


def _table(titles: tuple[str, ...], rows: list[tuple[str, ...]], align: str = "") -> list[str]:
    rule = "|".join("--:" if side == "r" else "---" for side in align.ljust(len(titles), "l"))
    return [f"| {' | '.join(titles)} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)]
