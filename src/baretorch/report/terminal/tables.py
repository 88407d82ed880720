"""Show the sizes of an image and the figures of a run as tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from baretorch.escape import markup
from baretorch.firmware.types import Image
from baretorch.ir.graph import CHOSEN
from baretorch.measure.cycles import Time, is_exact, time_words, unpaid_flash
from baretorch.measure.facts import RunFacts, image_files, warnings_of
from baretorch.measure.memory_map import ram_banks
from baretorch.measure.numbers import figure, frequency, portion, share
from baretorch.measure.units import used_units
from baretorch.npu.partition import Left
from baretorch.passes.to_int8 import find_floats
from baretorch.report.terminal.layout import figure_grid, label_grid, path_text, warnings
from baretorch.targets.parts import MemoryBank
from baretorch.targets.types import Chip

if TYPE_CHECKING:
    from baretorch.pipeline import Compiled


def run_screen(facts: RunFacts) -> RenderableType:
    """Return the answer of `run`."""
    return Group(
        heading(facts.compiled, facts.image, facts.run.emulator),
        "",
        _figures(facts.compiled, facts.image, facts),
        "",
        files_list(image_files(facts.image)),
        *warnings(facts.warnings),
    )


def build_screen(compiled: Compiled, image: Image) -> RenderableType:
    """Return the answer of `build`."""
    sizes = _figures(compiled, image, None)
    files = files_list(image_files(image))
    return Group(heading(compiled, image, None), "", sizes, "", files, *warnings(warnings_of(compiled)))


def c_screen(compiled: Compiled, files: Sequence[Path]) -> RenderableType:
    """Return the answer of `compile`."""
    plan = compiled.plan
    table = _title(compiled)
    table.add_row("call", f"{compiled.c.call}() of model.h")
    table.add_row("weights", f"{plan.weight_bytes():,} bytes")
    bands = f"; {plan.bands}" if plan.bands else ""
    table.add_row("arena", f"{plan.arena:,} bytes, {plan.proof}{bands}")
    for i, path in enumerate(files):
        table.add_row("" if i else "files", path_text(path))
    return Group(table, *warnings(warnings_of(compiled)))


def project_screen(compiled: Compiled, sdk: str, folder: Path, files: int, kept: Sequence[Path]) -> RenderableType:
    """Return the answer of `project`."""
    table = _title(compiled)
    table.add_row("SDK", sdk)
    table.add_row("project", path_text(folder))
    table.add_row("files", f"{files}")
    for i, path in enumerate(kept):
        table.add_row("" if i else "your copies", path_text(path))
    table.add_row("next", Text.assemble("read ", path_text(folder / "README.md")))
    return Group(table, *warnings(warnings_of(compiled)))


def _title(compiled: Compiled) -> Table:
    table = label_grid()
    table.add_row("model", f"[bold]{markup(compiled.graph.name)}[/]")
    table.add_row("board", f"{markup(compiled.board.title)} ({compiled.board.name})")
    return table


def files_list(files: dict[str, Path]) -> Table:
    table = label_grid()
    for kind, path in files.items():
        table.add_row(kind, path_text(path))
    return table


def heading(compiled: Compiled, image: Image, emulator: str | None) -> Table:
    """Return the lines that name the model, the board and the tools."""
    chip = image.board.chip
    table = _title(compiled)
    table.add_row("CPU", f"{chip.cpu.name} at {frequency(chip.clock_hz)}")
    if emulator is not None:
        table.add_row("emulator", emulator)
    table.add_row("toolchain", f"{image.toolchain}, optimized for {compiled.options.optimize}")
    return table


def _figures(compiled: Compiled, image: Image, facts: RunFacts | None) -> Table:
    chip, flash, ram = image.board.chip, image.flash, image.ram
    code, banks = chip.memory(chip.code), ram_banks(image)
    table = figure_grid()

    def total(name: str, used: int, bank: MemoryBank | None) -> None:
        part = f", {portion(used, bank.size, bank.name)}" if bank else ""
        table.add_row(f"[bold]{name}[/]", f"[bold]{used:,}[/]", f"bytes{part}")

    total("flash", flash.total, code)
    table.add_row("  model code", f"{flash.model_code:,}", "")
    table.add_row("  weights", f"{flash.weights:,}", "")
    table.add_row("  runtime code", f"{flash.code - flash.model_code:,}", "start-up, console, counter")
    total("RAM", ram.total, banks[0][0] if len(banks) == 1 else None)
    for bank, used in banks if len(banks) > 1 else ():
        table.add_row(f"  in {bank.name}", f"{used:,}", f"bytes, {portion(used, bank.size)}")
    table.add_row("  arena", f"{ram.arena:,}", compiled.plan.proof)
    if compiled.plan.bands:
        table.add_row("    in bands", "", str(compiled.plan.bands))
    if ram.weights:
        npu = compiled.partition is not None and compiled.partition.regions
        why = "the NPU reads RAM" if npu and not code.slow else f"{code.name} is {markup(code.slow)}"
        if chip.cpu.flash_apart:
            why = "their kernels read RAM"
        table.add_row("  weights", f"{ram.weights:,}", f"copied at start-up, because {why}")
    if ram.code:
        table.add_row("  code", f"{ram.code:,}", "copied at start-up")
    lent = "with inputs and outputs as the host sends and gets them"
    apart = compiled.plan.layout.streamed | compiled.plan.layout.lent
    table.add_row("  static", f"{ram.static:,}", lent if apart else "")
    peak = f"bound; {facts.run.stack_peak:,} measured" if facts and facts.run.stack_peak else "bound"
    table.add_row("  stack", f"{ram.stack:,}", peak)
    npu_rows(table, compiled)
    _unit_rows(table, compiled)
    if facts is not None:
        _speed_rows(table, facts)
    return table


def npu_rows(table: Table, compiled: Compiled) -> None:
    """Add the regions on the NPU, and the layers on the CPU with reasons."""
    found, npu = compiled.partition, compiled.board.chip.npu
    if found is None or npu is None:
        return
    table.add_row("[bold]NPU[/]", "", npu.accelerator)
    for number, region in enumerate(found.regions, 1):
        crossing = f"{region.bytes_in:,} bytes in, {region.bytes_out:,} out"
        count = f"{len(region.layers)}" if region.cycles is not None else ""
        kind = "operators" if region.cycles is not None else region.layers[0]
        table.add_row(f"  region {number}", count, f"{kind}; {crossing}")
        table.add_row("    commands", f"{region.commands:,}", "bytes")
        table.add_row("    weights", f"{region.weights:,}", "bytes")
        table.add_row("    scratch", f"{region.scratch:,}", "bytes of the arena")
    if found.regions:
        estimate = "unknown" if found.cycles is None else f"{found.cycles:,}"
        table.add_row("  cycles", estimate, "of the NPU, as Vela estimates")
    _left_rows(table, "  on the CPU", found.left)


def _unit_rows(table: Table, compiled: Compiled) -> None:
    """Add the number of layers on each unit, and the layers on the cores with reasons."""
    for unit, own, kept in used_units(compiled):
        table.add_row(f"[bold]{unit.name}[/]", f"{len(own)}", "layers")
        _left_rows(table, "  on the cores", kept)


def _left_rows(table: Table, title: str, left: Sequence[Left]) -> None:
    for i, each in enumerate(left):
        table.add_row("" if i else title, each.op, f"{markup(each.layer)}: {markup(each.why)}")


def _speed_rows(table: Table, facts: RunFacts) -> None:
    macs, instructions = facts.compiled.graph.macs(), facts.run.instructions
    chip = facts.image.board.chip
    table.add_row("[bold]one inference[/]", "", "")
    brought = facts.compiled.partition is not None and facts.compiled.partition.brought
    table.add_row("  MACs", f"{macs:,}", f"multiply-accumulates{', without those of the NPU' if brought else ''}")
    if instructions is None:
        table.add_row("  instructions", "", f"not counted by {facts.run.emulator}")
    else:
        per_mac = f"{figure(instructions / macs)} per MAC" if macs else ""
        path = (", of core 0" if chip.is_team else ", on the critical path") if facts.run.cores else ""
        table.add_row("  instructions", f"{instructions:,}", f"{per_mac}{path}".removeprefix(", "))
    _core_rows(table, facts)
    if facts.time is not None:
        _time_rows(table, facts.time, chip)
    if facts.run.emulator_cycles is not None:
        table.add_row("  cycles", f"{facts.run.emulator_cycles:,}", "exact" if is_exact(chip) else _beside(facts))
    table.add_row("  max error", facts.error_words, f"against {facts.reference}{_calls(facts)}")
    if facts.layerwise is not None:
        table.add_row("  by layer", f"{facts.layerwise.largest} LSB", markup(facts.layerwise.words))
    if facts.layers:
        _accuracy_rows(table, facts)


def _calls(facts: RunFacts) -> str:
    """Name the number of calls that were compared; for a model that we quantized, how many match its int8 graph."""
    if facts.calls == 2:
        return ""
    calls = f"{facts.calls} calls with {facts.calls - 1} different inputs"
    if facts.compiled.model.quantization:
        return "" if facts.mismatch else f"; {calls} match the int8 graph"
    return f", in {calls}"


def _beside(facts: RunFacts) -> str:
    """Describe the emulator's own count, next to ours."""
    ours = f"; ours: {round(facts.time.core.expected):,}" if facts.time else ""
    return f"by the table of {facts.run.emulator}{ours}"


def _time_rows(table: Table, time: Time, chip: Chip) -> None:
    ms, about = time_words(time.all, chip)
    table.add_row("  time", ms, f"{about}{unpaid_flash(time, chip)}")
    if time.flash is not None and time.flash.misses:
        table.add_row("    core", *time_words(time.core, chip, "computing"))
        table.add_row("    flash", *time_words(time.flash.waits, chip, f"waiting for flash: {time.flash}"))


def _core_rows(table: Table, facts: RunFacts) -> None:
    """Add the work of each core, and the speed-up and cost of using several; nothing if only one can run."""
    cores = facts.run.cores
    if cores is None:
        return
    if facts.compiled.options.core:
        table.add_row(
            "    core 0", f"{cores.instructions[0]:,}", "to ask for it; the rest of the time is the application's"
        )
        return
    for core, (instructions, waiting) in enumerate(zip(cores.instructions, cores.waiting, strict=True)):
        table.add_row(
            f"    core {core}", f"{instructions:,}", f"{share(waiting, cores.critical_path)} of the time waiting"
        )
    alone = facts.one_core
    if alone is not None:
        arena, code = facts.image.ram.arena - alone.arena, facts.image.flash.model_code - alone.model_code
        table.add_row("    speed-up", f"{alone.path / cores.critical_path:.2f}", f"over one core, {alone.path:,}")
        table.add_row("", "", f"for {arena:+,} bytes of arena and {code:+,} of model code")


def _accuracy_rows(table: Table, facts: RunFacts) -> None:
    """Add the layers that lose most in int8, by their names for --keep-float, and those that stayed float."""
    from baretorch.quantize.accuracy import worst_layers

    table.add_row("[bold]noisiest layers[/]", "[bold]dB[/]", "signal to quantization noise, against float")
    for layer in worst_layers(facts.layers):
        alone = "" if layer.alone_db is None else f", {layer.alone_db:g} with exact inputs"
        loud = "none" if layer.sqnr_db is None else f"{layer.sqnr_db:g}"
        table.add_row(f"  {markup(layer.name)}", loud, f"{layer.op}{alone}")
    for name, why in find_floats(facts.compiled.graph):
        part = f": {why.text}" if why.chosen and why.text != CHOSEN else ""
        table.add_row("  in float", "", markup(name + part))
