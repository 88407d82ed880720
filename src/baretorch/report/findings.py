"""Collect the content of a report, which the terminal and the page show in two ways."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from baretorch.ir.graph import Graph
from baretorch.measure.cycles import milliseconds, time_words, unpaid_flash
from baretorch.measure.facts import RunFacts
from baretorch.measure.layers import LayerRow, Peak, find_peak, layer_rows
from baretorch.measure.memory_map import BankMap, memory_map, ram_banks
from baretorch.measure.numbers import figure, portion
from baretorch.measure.profile import Profile
from baretorch.passes.to_int8 import explain_float
from baretorch.plan.types import Plan
from baretorch.targets.parts import MemoryBank

if TYPE_CHECKING:
    from baretorch.explore.advice import Advice
    from baretorch.explore.evaluate import Evaluation


@dataclass(frozen=True)
class Figure:
    """A number of the summary with its title, unit and note."""

    title: str
    value: str
    unit: str
    note: str


@dataclass(frozen=True)
class Report:
    """A verified and profiled run, advice, and the evaluation of the task if that was measured too."""

    facts: RunFacts
    profile: Profile
    advice: tuple[Advice, ...] = ()
    evaluation: Evaluation | None = None

    @property
    def plan(self) -> Plan:
        return self.facts.compiled.plan

    @property
    def graph(self) -> Graph:
        return self.facts.compiled.graph

    @property
    def int8(self) -> bool:
        return self.graph.is_int8

    @cached_property
    def rows(self) -> tuple[LayerRow, ...]:
        return layer_rows(self.graph, self.plan, self.profile, self.facts.layers)

    @cached_property
    def banks(self) -> tuple[BankMap, ...]:
        return memory_map(self.facts.image)

    @cached_property
    def peak(self) -> Peak | None:
        return find_peak(self.plan)

    @property
    def floats(self) -> list[tuple[str, str]]:
        """List the layers of an int8 model that compute in float, and why."""
        return explain_float(self.graph)

    def ram(self) -> tuple[Figure, ...]:
        """Return the RAM figures in the words users know: activations, the rest, and both."""
        image, run = self.facts.image, self.facts.run
        ram = image.ram
        measured = f"; {run.stack_peak:,} measured" if run.stack_peak else ""
        copied = f"{ram.weights:,} weights, copied at start-up, " if ram.weights else ""
        copied += f"{ram.code:,} code, copied at start-up, " if ram.code else ""
        return (
            Figure("Activation RAM", f"{ram.arena:,}", "bytes", _arena_note(self.plan)),
            Figure(
                "Runtime RAM",
                f"{ram.total - ram.arena:,}",
                "bytes",
                f"{copied}{ram.static:,} static, {ram.stack:,} stack (bound{measured})",
            ),
            _total("RAM", ram.total, ram_banks(image)),
        )

    def flash(self) -> tuple[Figure, ...]:
        chip, flash = self.facts.image.board.chip, self.facts.image.flash
        return (
            Figure("Weights flash", f"{flash.weights:,}", "bytes", "weights, biases, multipliers, tables"),
            Figure(
                "Code flash",
                f"{flash.code:,}",
                "bytes",
                f"{flash.model_code:,} model, {flash.code - flash.model_code:,} runtime",
            ),
            _total("flash", flash.total, ((chip.memory(chip.code), flash.total),)),
        )

    def speed(self) -> tuple[Figure, ...]:
        profile, hz = self.profile, self.profile.chip.clock_hz
        time = profile.time
        ms, about = time_words(time.all, profile.chip)
        unit, _, rest = about.partition(" ")
        note = f"{rest}{unpaid_flash(time, profile.chip)}"
        npu = self._npu()
        note += ", without the NPU's time" if npu else ""
        flash: tuple[Figure, ...] = ()
        if time.flash is not None and time.flash.misses:
            core, waiting = (figure(milliseconds(c.expected, hz)) for c in (time.core, time.flash.waits))
            note = f"{rest}; {core} ms computing, {waiting} ms waiting for flash"
            misses = f"{time.flash.misses:,} cache misses, {time.flash.code_misses:,} of them by code"
            flash = (Figure("Read from flash", f"{time.flash.bytes:,}", "bytes", misses),)
        per_mac = f"{figure(profile.instructions / profile.macs)} per MAC, " if profile.macs else ""
        return (
            Figure("Time", ms, unit, note),
            Figure("Instructions", f"{profile.instructions:,}", "", f"{per_mac}exact"),
            Figure("MACs", f"{profile.macs:,}", "", "multiply-accumulates of one inference"),
            *npu,
            *flash,
        )

    def _npu(self) -> tuple[Figure, ...]:
        compiled = self.facts.compiled
        found, npu = compiled.partition, compiled.board.chip.npu
        if found is None or npu is None or not found.regions:
            return ()
        regions = f"{len(found.regions)} {'region' if len(found.regions) == 1 else 'regions'} on {npu.accelerator}"
        cycles = "unknown" if found.cycles is None else f"{found.cycles:,}"
        return (Figure("NPU", cycles, "cycles", f"of the NPU, as Vela estimates; {regions}"),)

    def accuracy(self) -> tuple[Figure, ...]:
        """Return the figures of the comparison with the expected outputs."""
        facts = self.facts
        largest = f"largest expected magnitude {figure(facts.largest)}"
        found = [Figure("Largest error", facts.error_words, "", f"against {facts.reference}; {largest}")]
        if facts.max_lsb is not None:
            source, ours = facts.compiled.source, facts.compiled.model.quantization is not None
            whose = "float that is rounded where int8 is" if ours else f"{source.library}'s own int8"
            note = f"largest difference from {whose}, in steps of the output"
            name = "Against rounded float" if ours else f"Against {source.library}"
            found.append(Figure(name, f"{facts.max_lsb:g}", "LSB", note))
        if facts.layerwise is not None:
            note = f"each layer on the same inputs: {facts.layerwise.words}"
            found.append(Figure("Layer by layer", f"{facts.layerwise.largest}", "LSB", note))
        last = [row.accuracy for row in self.rows if row.accuracy]
        if last:
            db = last[-1].sqnr_db
            value = ("exact", "") if db is None else (f"{db:g}", "dB")
            found.append(Figure("Signal to noise", *value, f"SQNR after the last compared layer, {last[-1].name}"))
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """Return the keys of `run --json`, and those of everything else on the page."""
        data = self.facts.to_json() | {
            "peak": self.peak.to_json() if self.peak else None,
            "memory_map": [bank.to_json() for bank in self.banks],
            "buffers": [
                {"name": b.name, "bank": b.bank, "offset": b.offset, "size": b.size, "first": b.first, "last": b.last}
                for b in self.plan.layout.buffers
            ],
            "per_layer": [row.to_json() for row in self.rows],
            "advice": [asdict(a) for a in self.advice],
        }
        if self.evaluation is not None:
            data["metrics"] = self.evaluation.to_json()["metrics"]
        return data


def _arena_note(plan: Plan) -> str:
    bands = f"; {plan.bands}" if plan.bands else ""
    caller = "; without the caller's buffers" if plan.layout.lent else ""
    return f"{plan.proof}{bands}{caller}"


def _total(kind: str, total: int, banks: Sequence[tuple[MemoryBank, int]]) -> Figure:
    shares = (portion(used, bank.size, bank.name) for bank, used in banks)
    return Figure(f"Total {kind}", f"{total:,}", "bytes", ", ".join(shares))
