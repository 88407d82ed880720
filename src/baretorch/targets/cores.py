"""The cores of a chip that an image uses."""

from __future__ import annotations

from dataclasses import replace

from baretorch.errors import CompileError
from baretorch.options import Options
from baretorch.targets.types import Board


def need_cores(board: Board, options: Options) -> None:
    """CompileError if the board does not have the cores that are asked for."""
    there, asked = board.chip.core_count, options.used_cores
    if board.chip.cluster is not None and options.core:
        raise CompileError(
            f"--core {options.core}: a model runs on core 0 of {board.name}, and others help",
            try_="--cores 1 leaves the others alone",
        )
    if asked > there:
        flag = f"--cores {options.cores}" if options.shared_cores > 1 else f"--core {options.core}"
        raise CompileError(
            f"{flag}: {board.name} has {there} {'core' if there == 1 else 'cores'}",
            need=f"a chip whose TOML describes {asked} cores, as those of pico and pico2w do" if there == 1 else None,
            try_=_fewer_cores(board),
        )
    if options.shared_cores > 1 and options.core:
        raise CompileError(
            "--cores and --core do not go together",
            need="--cores 2 to share the work, or --core 1 to leave core 0 to the application",
        )


def _fewer_cores(board: Board) -> str:
    there = board.chip.core_count
    if there == 1:
        return "leave it out"
    return f"--cores {there}" if board.chip.cluster else f"--cores {there}, or --core {there - 1}"


def with_cores(options: Options, board: Board) -> Options:
    """Return the options with all cores of a cluster, unless the user says how many."""
    if options.cores is not None or board.chip.cluster is None:
        return options
    return replace(options, cores=board.chip.core_count)
