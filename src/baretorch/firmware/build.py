"""Builds a firmware image from C files and a board."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum, auto
from pathlib import Path
from time import sleep

from baretorch.errors import CompileError, InternalError
from baretorch.files.write import open_folder, ready_folder, scratch, write_scratch
from baretorch.firmware.app import app_sources, uncalled_model, wrong_app
from baretorch.firmware.boot import sign_boot2
from baretorch.firmware.cache import fingerprint, recall, remember
from baretorch.firmware.calls import LABEL, check_return_label
from baretorch.firmware.chunks import encode_bin, encode_hex, load_chunks
from baretorch.firmware.elf import Elf, read_elf
from baretorch.firmware.reach import parse_map
from baretorch.firmware.sizes import measure, misfit, with_large_memories
from baretorch.firmware.stack import frames_of_gcc, interrupt_bound, stack_bound
from baretorch.firmware.toolchain import Toolchain, find_toolchain
from baretorch.firmware.tools import stop_tools
from baretorch.firmware.types import Image
from baretorch.firmware.uf2 import encode_uf2
from baretorch.options import CodeIn, Optimize
from baretorch.targets.linker import linker_script
from baretorch.targets.runtime import RUNTIME, board_header, runtime_sources
from baretorch.targets.types import Board

KERNELS = Path(__file__).parent.parent / "kernels"
ENTRY = "bt_reset"
CORE1 = "bt_core1_entry"
TEAM = "bt_team_entry"  # of a cluster's other cores
INTERRUPT = "bt_usb_interrupt"
OVERFLOW = "bt_counter_interrupt"
MODEL_ON_CORE1 = "bt_core1_main"
MODEL_ON_TEAM = "bt_core_main"
JOBS = 2
SHORTEST_MS = 100  # the core wakes in half of that to feed the watchdog

Progress = Callable[[str, int, int], None]


class _Whose(Enum):
    """The owner of a source file. Objects of the runtime are cached between builds; warnings in the user's application
    are not shown."""

    RUNTIME = auto()
    MODEL = auto()
    APP = auto()


@dataclass(frozen=True)
class _Unit:
    """A source file, the path of its object, and how it is compiled."""

    source: Path
    output: Path
    optimize: Optimize
    whose: _Whose


def build(
    name: str,
    board: Board,
    folder: Path,
    model_sources: Sequence[Path],
    include: Path,
    run_symbol: str,
    toolchain: str | None = None,
    optimize: Optimize = Optimize.SPEED,
    progress: Progress | None = None,
    checked: bool = False,
    cores: int = 1,
    watchdog: int | None = None,
    code: CodeIn = CodeIn.FLASH,
    debug: bool = False,
    app: Path | None = None,
) -> Image:
    """Compile the model and the board's runtime, link them, and write <name>.elf, .map, .bin, .hex and .uf2.

    The files appear in `folder` whole or not at all, together with bt_board.h and the linker script. If the model is
    `checked`, its inputs are checked before a run. With two `cores`, core 1 is started and calls bt_core1_main.
    If the image neither transfers a byte nor waits for one for `watchdog` milliseconds, the chip restarts.
    The model's `code` may be in RAM. With `debug`, the ELF contains debug information. The C files of the
    folder `app` are an application that uses the model, on all cores of the chip that the model does not use.
    """
    _check_cores(board, cores)
    own = app_sources(app, board) if app is not None else ()
    used = board.chip.core_count if own else cores
    check_watchdog(board, watchdog)
    if code is CodeIn.RAM:
        _check_slow(board)
    tools = replace(find_toolchain(board, toolchain), debug=debug)
    with scratch(".build-", ready_folder(folder)) as work:
        files = _Files(work, name)
        runtime = runtime_sources(board, used, watchdog is not None, app=bool(own))
        header = board_header(board, checked, used, watchdog, app=bool(own))
        # The model comes first, because GNU ld leaves longer calls on RISC-V after code that it has shortened.
        units = [(source.resolve(), optimize, _Whose.MODEL) for source in model_sources]
        units += [(source, Optimize.SIZE, _Whose.RUNTIME) for source in runtime]
        units += [(source.resolve(), optimize, _Whose.APP) for source in own]
        plan = [_Unit(s, work / f"{i:02}_{s.stem}.o", level, whose) for i, (s, level, whose) in enumerate(units)]
        folders = (work.resolve(), include.resolve(), RUNTIME, KERNELS, *([app.resolve()] if app else []))
        objects = _compile(tools, work, header, plan, folders, progress)
        in_ram = _in_ram(objects[: len(model_sources)]) if code is CodeIn.RAM else ()
        elf = _link(board, tools, files, objects, used, in_ram, bool(own))
        frames = frames_of_gcc(o.with_suffix(".su").read_text() for o in objects if o.with_suffix(".su").exists())
        stack, own_stack, other_stack = _stacks(board, elf, frames, used)
        larger = _with_stack(board, own_stack, other_stack if used > 1 else 0)
        if larger != board:
            board = larger
            elf = _link(board, tools, files, objects, used, in_ram, bool(own))
        if not board.hosted:
            if own and not any(s.name == run_symbol and s.defined for s in elf.symbols):
                raise uncalled_model(run_symbol)
            if not own or any(s.name == LABEL and s.defined for s in elf.symbols):
                check_return_label(elf, run_symbol)
            _write_formats(board, elf, files)
        run_stack = stack_bound(elf, run_symbol, frames).bytes
        flash, ram = measure(
            board,
            elf,
            parse_map(files.map.read_text()),
            _roots(run_symbol, cores, board.chip.is_team),
            stack,
        )
        done = {path.name: folder / path.name for path in files.existing()}
        with open_folder(folder) as target:
            target.put({path.name: path for path in files.existing()})
    return Image(
        name=name,
        board=board,
        toolchain=tools.name,
        elf=done[files.elf.name],
        bin=done.get(files.bin.name),
        hex=done.get(files.hex.name),
        uf2=done.get(files.uf2.name),
        map=done[files.map.name],
        flash=flash,
        ram=ram,
        cores=used,
        run_stack=run_stack,
    )


def _roots(run_symbol: str, cores: int, team: bool) -> tuple[str, ...]:
    """Return the functions by which the cores enter the model."""
    return (run_symbol, *((MODEL_ON_TEAM if team else MODEL_ON_CORE1,) if cores > 1 else ()))


def _check_cores(board: Board, cores: int) -> None:
    there = board.chip.core_count
    if not 1 <= cores <= there:
        raise CompileError(
            f"an image of {cores} cores cannot be built for {board.name}",
            have=f"{board.chip.name} with {there} core{'s' if there > 1 else ''}",
            need="1" if there == 1 else f"1 to {there}",
        )


def check_watchdog(board: Board, ms: int | None) -> None:
    """Raise CompileError if the board has no watchdog, or its longest time is too short."""
    dog = board.chip.watchdog
    if ms is None:
        return
    if dog is None:
        raise CompileError(
            f"--watchdog: {board.name} has no watchdog that is known here",
            need="a chip whose TOML has [watchdog], as those of pico, pico2, nucleo-wb55rg and microbit do",
            try_="leave it out",
        )
    if not SHORTEST_MS <= ms <= dog.longest_ms:
        time = "short" if ms < SHORTEST_MS else "long"
        raise CompileError(
            f"--watchdog {ms}: that of {board.chip.name} cannot wait so {time} a time",
            need=f"{SHORTEST_MS} to {dog.longest_ms} milliseconds",
        )


def _check_slow(board: Board) -> None:
    if board.chip.flash_path is None:
        raise CompileError(
            f"--code ram gains nothing on {board.name}",
            have=f"{board.chip.memory(board.chip.code).name} is as fast as RAM",
            need="a chip with a [flash_path] in its TOML",
            try_="leave it out",
        )


def _in_ram(objects: Sequence[Path]) -> tuple[str, ...]:
    """Return the object files of the model, and those with compiler support routines."""
    model = (o.name for o in objects if not o.name.endswith("_glue.o"))
    return (*model, "*_mem.o", "*libgcc.a:*", "*compiler_rt.o")


class _Files:
    """The names of a build's files."""

    def __init__(self, work: Path, name: str) -> None:
        self.header = work / "bt_board.h"
        self.script = work / f"{name}.ld"
        self.elf = work / f"{name}.elf"
        self.map = work / f"{name}.map"
        self.bin = work / f"{name}.bin"
        self.hex = work / f"{name}.hex"
        self.uf2 = work / f"{name}.uf2"

    def existing(self) -> list[Path]:
        return [path for path in vars(self).values() if path.exists()]


def _compile(
    tools: Toolchain,
    work: Path,
    header: str,
    plan: Sequence[_Unit],
    includes: Sequence[Path],
    progress: Progress | None,
) -> list[Path]:
    """Return object files in a fixed order, so that the same input links to the same bytes."""
    write_scratch(work / "bt_board.h", header)
    shared = [header, *(p.read_text() for p in sorted((*RUNTIME.rglob("*.h"), *KERNELS.glob("*.h"))))]

    def make(unit: _Unit) -> str:
        if unit.whose is _Whose.RUNTIME:
            _compile_once(tools, unit, includes, shared)
        elif unit.whose is _Whose.APP:
            said = tools.try_compile(unit.source, unit.output, includes, unit.optimize)
            if said is not None:
                raise wrong_app(f"{tools.name} does not compile {unit.source.name}", said)
        else:
            tools.compile(unit.source, unit.output, includes, unit.optimize)
        return unit.source.name

    with ThreadPoolExecutor(JOBS) as pool:
        jobs: list[Future[str]] = []
        try:  # from here on, because a signal may arrive between two jobs
            for unit in plan:
                jobs.append(pool.submit(make, unit))
            for done, job in enumerate(jobs, 1):
                source = job.result()
                if progress is not None:
                    progress(source, done, len(plan))
        except BaseException:  # a Ctrl-C, too
            _give_up(pool, jobs)
            raise
    return [unit.output for unit in plan]


def _give_up(pool: ThreadPoolExecutor, jobs: Sequence[Future[str]]) -> None:
    """Cancel waiting jobs and stop running ones, including one that started while the signal arrived."""
    pool.shutdown(wait=False, cancel_futures=True)
    while stop_tools() or not all(job.done() for job in jobs):
        sleep(0.05)


def _compile_once(tools: Toolchain, unit: _Unit, includes: Sequence[Path], shared: Sequence[str]) -> None:
    """Copy the object from the user's cache, or compile it and store it there."""
    key = fingerprint(tools.version, *tools.compile_flags(unit.optimize), unit.source.read_bytes(), *shared)
    kept = recall("objects", key)
    if kept is None:
        tools.compile(unit.source, unit.output, includes, unit.optimize)
        made = (unit.output.with_suffix(suffix) for suffix in (".o", ".su"))
        remember("objects", key, {path.suffix: path.read_bytes() for path in made if path.exists()})
        return
    for suffix, data in kept.items():
        write_scratch(unit.output.with_suffix(suffix), data)


def _link(
    board: Board,
    tools: Toolchain,
    files: _Files,
    objects: Sequence[Path],
    cores: int,
    in_ram: Sequence[str],
    app: bool,
) -> Elf:
    """Link, and return the ELF from which sizes are read: the image, or for the host the part without the C library."""
    if board.hosted:
        measured = files.elf.with_name("measured.elf")
        complaint = tools.link_host(objects, files.elf, measured, files.map)
        if complaint is not None:
            raise InternalError(f"{tools.name} does not link the program\n{complaint}")
        return read_elf(measured.read_bytes())
    write_scratch(files.script, linker_script(board, cores, in_ram))
    complaint = tools.link(objects, files.script, files.elf, files.map)
    if complaint is not None:
        write_scratch(files.script, linker_script(with_large_memories(board), cores, in_ram))
        raise _link_error(board, tools, files, objects, complaint, app)
    raw = files.elf.read_bytes()
    if board.chip.boot == "boot2":
        raw = sign_boot2(raw)
        write_scratch(files.elf, raw)
    return read_elf(raw)


def _link_error(
    board: Board, tools: Toolchain, files: _Files, objects: Sequence[Path], complaint: str, app: bool
) -> CompileError | InternalError:
    """Return the error of a failed link. The script is for a board in which everything fits."""
    if tools.link(objects, files.script, files.elf, files.map) is None:
        error = misfit(board, read_elf(files.elf.read_bytes()))
        if error is not None:
            return error
    if app:
        return wrong_app(f"{tools.name} does not link it with the model", complaint)
    return InternalError(f"{tools.name} does not link the image\n{complaint}")


def _write_formats(board: Board, elf: Elf, files: _Files) -> None:
    chunks = load_chunks(elf)
    write_scratch(files.bin, encode_bin(chunks))
    write_scratch(files.hex, encode_hex(chunks, elf.entry))
    if board.chip.uf2_family is not None:
        write_scratch(files.uf2, encode_uf2(chunks, board.chip.uf2_family))


def _stacks(board: Board, elf: Elf, frames: dict[str, int | None], cores: int) -> tuple[int, int, int]:
    """Return (the stack of all cores: the bound for the whole image if there is one, else the size that the board
    reserves; the deepest of core 0's and of others' that have a bound)."""
    others = [TEAM if board.chip.is_team else CORE1] if cores > 1 else []
    roots = ["main" if board.hosted else ENTRY, *others]
    handlers = [INTERRUPT] if board.usb is not None else [OVERFLOW] if board.chip.counter.irq is not None else []
    own = [stack_bound(elf, root, frames, apart=[*roots[1:], *handlers]).bytes for root in roots]
    # An interrupt may occur at any depth of core 0's stack.
    more = [interrupt_bound(elf, handler, frames, board.chip.cpu.has_fpu).bytes for handler in handlers]
    reserved = board.chip.stack_bytes
    total = sum(reserved if bytes_ is None else bytes_ for bytes_ in (own[0], *more))
    for bytes_ in own[1:]:
        total += board.chip.stacks(cores) - reserved if bytes_ is None else (cores - 1) * bytes_
    return total, 0 if None in (own[0], *more) else sum(filter(None, (own[0], *more))), own[-1] or 0


def _with_stack(board: Board, own: int, others: int) -> Board:
    """Return a board that reserves at least these stack sizes for core 0, and for each other core."""
    chip, cluster = board.chip, board.chip.cluster
    if cluster is None:
        return replace(board, chip=replace(chip, stack_bytes=_round_up(max(chip.stack_bytes, own, others), 8)))
    cluster = replace(cluster, stack_bytes=_round_up(max(cluster.stack_bytes, others), 16))
    return replace(board, chip=replace(chip, stack_bytes=_round_up(max(chip.stack_bytes, own), 16), cluster=cluster))


def _round_up(size: int, to: int) -> int:
    return -(-size // to) * to
