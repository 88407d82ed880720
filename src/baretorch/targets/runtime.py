"""Select the files of the device runtime for a board's image."""

from __future__ import annotations

from pathlib import Path

from baretorch.targets.types import Board

RUNTIME = Path(__file__).parent.parent / "runtime"

_BARE = ("mem.c", "start.c", "stack.c")  # what models call is beside them, where short calls reach
_ARM = (*_BARE, "arm/startup.c", "arm/fault.c")
_RISCV = (*_BARE, "riscv/startup.S", "riscv/trap.c")
_START: dict[str, tuple[str, ...]] = {
    "vectors": _ARM,
    "boot2": (*_ARM, "boot/boot2.S"),
    "image_def": (*_ARM, "boot/image_def.c", "boot/qmi.c"),
    "image_def_riscv": (*_RISCV, "boot/image_def_riscv.S", "boot/qmi.c"),
    "riscv": _RISCV,
    "avr": ("mem.c", "avr/startup.S", "avr/start.c", "avr/stack.c"),
    "host": ("host/main.c",),
}


def runtime_sources(board: Board, cores: int = 1, watchdog: bool = False, app: bool = False) -> tuple[Path, ...]:
    """Return the C and assembly files to compile. They include bt_runtime.h (in RUNTIME) and the generated bt_board.h.
    An `app` replaces the server of frames."""
    chip = board.chip
    console = f"uart/{chip.uart.driver}.c" if board.usb is None else f"usb/{board.usb.driver}.c"
    hardware = (f"chip/{chip.init}.c", console, f"counter/{chip.counter.driver}.c")
    second = ("arm/core1.c", f"cores/{chip.cores.driver}.c") if cores > 1 and chip.cores else ()
    copies = ("cluster/dma.c",) if (cluster := chip.cluster) and cluster.dma else ()
    team = ("cluster/reset.S", "cluster/team.c") if cores > 1 and chip.is_team else ()
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
        *copies,
        *team,
    )
    return tuple(RUNTIME / name for name in names)
