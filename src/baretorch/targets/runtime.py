"""Which files of the device runtime an image for a board is made of."""

from __future__ import annotations

from pathlib import Path

from baretorch.targets.types import Board

RUNTIME = Path(__file__).parent.parent / "runtime"

_BARE = ("start.c", "stack.c", "mem.c")
_ARM = ("arm/startup.c", "arm/fault.c", *_BARE)
_START: dict[str, tuple[str, ...]] = {
    "vectors": _ARM,
    "boot2": ("boot/boot2.S", *_ARM),
    "image_def": ("boot/image_def.c", "boot/qmi.c", *_ARM),
    "image_def_riscv": ("boot/image_def_riscv.S", "boot/qmi.c", "riscv/startup.S", "riscv/trap.c", *_BARE),
    "riscv": ("riscv/startup.S", "riscv/trap.c", *_BARE),
    "avr": ("avr/startup.S", "avr/start.c", "avr/stack.c", "mem.c"),
    "host": ("host/main.c",),
}


def runtime_sources(board: Board, cores: int = 1, watchdog: bool = False, app: bool = False) -> tuple[Path, ...]:
    """The C and assembly files to compile; they include bt_runtime.h (in RUNTIME) and the generated bt_board.h. An
    `app` takes the place of the server of frames."""
    chip = board.chip
    console = f"uart/{chip.uart.driver}.c" if board.usb is None else f"usb/{board.usb.driver}.c"
    hardware = (f"chip/{chip.init}.c", console, f"counter/{chip.counter.driver}.c")
    second = ("arm/core1.c", f"cores/{chip.cores.driver}.c") if cores > 1 and chip.cores else ()
    waits = ("wait.c",) if chip.starts_clocks else ()
    interrupted = chip.uart.irq is not None or board.usb is not None
    sleeps = (f"interrupts/{chip.interrupts.driver}.c",) if chip.interrupts and interrupted else ()
    alarm = (f"alarm/{chip.alarm.driver}.c",) if chip.alarm and sleeps else ()
    dog = (f"watchdog/{chip.watchdog.driver}.c",) if chip.watchdog and watchdog else ()
    npu = (f"npu/{chip.npu.driver}.c",) if chip.npu else ()
    server = () if app else ("serve.c",)
    dma = (f"dma/{chip.dma.driver}.c",) if chip.dma else ()
    names = (
        *_START[chip.boot],
        *hardware,
        *sleeps,
        *alarm,
        *dog,
        *npu,
        *waits,
        "console.c",
        "text.c",
        *server,
        *dma,
        *second,
    )
    return tuple(RUNTIME / name for name in names)
