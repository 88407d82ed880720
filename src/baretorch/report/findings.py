"""All that a report tells, gathered: the terminal's version and the page are two ways to show it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from baretorch.ir.graph import Graph
from baretorch.measure.cycles import Time, milliseconds, time_words, unpaid_flash
from baretorch.measure.facts import RunFacts, is_int8
from baretorch.measure.memory_map import BankMap, memory_map, ram_banks
from baretorch.measure.npu import npu_figures
from baretorch.measure.numbers import capacity, figure, share
from baretorch.measure.profile import Layer, Profile
from baretorch.passes.to_int8 import told_float
from baretorch.plan.types import Buffer, Plan
from baretorch.targets.parts import MemoryBank

if TYPE_CHECKING:
    from baretorch.quantize.accuracy import LayerAccuracy
    from baretorch.report.evaluation import Evaluation


@dataclass(frozen=True)
class Figure:
    """A number of the summary: what it is, its value with unit, and what else there is to know."""

    title: str
    value: str
    unit: str
    note: str


@dataclass(frozen=True)
class Row:
    """A layer. Where it runs in bands it is several steps. `accuracy` is there if it is an int8 layer with values
    of its own to compare."""

    name: str
    op: str
    dtype: str
    shape: tuple[int, ...]
    kernel: str
    variant: str
    macs: int
    weights: int
    instructions: int
    time: Time
    steps: int
    accuracy: LayerAccuracy | None

    @property
    def per_mac(self) -> float | None:
        return self.instructions / self.macs if self.macs else None

    @property
    def weight(self) -> float:
        """What layers are compared by: instructions, and where flash costs time, that."""
        return self.time.all.expected if self.time.flash else self.instructions

    def to_json(self) -> dict[str, Any]:
        flash = self.time.flash
        return {
            "name": self.name,
            "op": self.op,
            "dtype": self.dtype,
            "shape": list(self.shape),
            "kernel": self.kernel,
            "variant": self.variant,
            "macs": self.macs,
            "weights": self.weights,
            "instructions": self.instructions,
            "core_cycles": round(self.time.core.expected),
            "flash_cycles": round(flash.waits.expected) if flash else None,
            "flash_misses": {"code": flash.code_misses, "data": flash.data_misses} if flash else None,
            "flash_bytes": flash.bytes if flash else None,
            "steps": self.steps,
            "sqnr_db": self.accuracy.sqnr_db if self.accuracy else None,
        }


@dataclass(frozen=True)
class Peak:
    """The step with the most live bytes, the layer that runs there, and what is alive, largest first."""

    step: int
    layer: str
    live: int
    buffers: tuple[Buffer, ...]

    def to_json(self) -> dict[str, Any]:
        alive = [{"name": b.name, "size": b.size} for b in self.buffers]
        return {"step": self.step, "layer": self.layer, "live": self.live, "buffers": alive}


@dataclass(frozen=True)
class Advice:
    """What to do and what it brings; `option` is what to write on the command line, empty if the model must change."""

    option: str
    text: str

    def to_json(self) -> dict[str, Any]:
        return {"option": self.option, "text": self.text}


@dataclass(frozen=True)
class Report:
    """A verified and profiled run, and what was found out besides; `evaluation` if the task was measured too."""

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
        return is_int8(self.graph)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        return tuple(_rows(self.graph, self.plan, self.profile, self.facts.layers))

    @property
    def whole(self) -> float:
        """What the rows' weights are parts of."""
        return self.profile.time.all.expected if self.profile.time.flash else self.profile.instructions

    @cached_property
    def banks(self) -> tuple[BankMap, ...]:
        return memory_map(self.facts.image)

    @cached_property
    def peak(self) -> Peak | None:
        plan = self.plan
        if not plan.steps or not plan.arena:
            return None
        step = max(range(len(plan.phases)), key=plan.live_bytes)
        alive = (b for b in plan.layout.buffers if b.size and b.first <= step <= b.last)
        y = plan.phases[step].main.call.y
        ordered = tuple(sorted(alive, key=lambda b: -b.size))
        return Peak(step, y.origin.path or y.name, plan.live_bytes(step), ordered)

    @property
    def floats(self) -> list[tuple[str, str]]:
        """Of an int8 model: (layers that compute in float, why)."""
        return told_float(self.graph)

    def ram(self) -> tuple[Figure, ...]:
        """In the words users know: activations, the rest, and both."""
        image, run = self.facts.image, self.facts.run
        ram = image.ram
        measured = f"; {run.stack_peak:,} measured" if run.stack_peak else ""
        copied = f"{ram.weights:,} of weights, copied at start, " if ram.weights else ""
        copied += f"{ram.code:,} of code, copied at start, " if ram.code else ""
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
                f"{flash.model_code:,} the model's, {flash.code - flash.model_code:,} the runtime's",
            ),
            _total("Flash", flash.total, ((chip.memory(chip.code), flash.total),)),
        )

    def speed(self) -> tuple[Figure, ...]:
        profile, hz = self.profile, self.profile.chip.clock_hz
        time = profile.time
        ms, about = time_words(time.all, profile.chip)
        unit, _, rest = about.partition(" ")
        note = f"{rest}{unpaid_flash(time, profile.chip)}"
        npu = npu_figures(self.facts.compiled)
        note += ", without what the NPU takes" if npu else ""
        flash: tuple[Figure, ...] = ()
        if time.flash is not None and time.flash.misses:
            core, waiting = (figure(milliseconds(c.expected, hz)) for c in (time.core, time.flash.waits))
            note = f"{rest}; {core} ms computing, {waiting} ms waiting for flash"
            misses = f"{time.flash.misses:,} misses, {time.flash.code_misses:,} of them of code"
            flash = (Figure("Read from flash", f"{time.flash.bytes:,}", "bytes", f"past its cache: {misses}"),)
        per_mac = f"{figure(profile.instructions / profile.macs)} per MAC, " if profile.macs else ""
        return (
            Figure("Time", ms, unit, note),
            Figure("Instructions", f"{profile.instructions:,}", "", f"{per_mac}exact"),
            Figure("MACs", f"{profile.macs:,}", "", "multiply-accumulates of one inference"),
            *(Figure(*each) for each in npu),
            *flash,
        )

    def accuracy(self) -> tuple[Figure, ...]:
        """The comparison with what the outputs should be."""
        facts = self.facts
        largest = f"largest expected magnitude {figure(facts.largest)}"
        found = [Figure("Largest error", facts.error_words, "", f"against {facts.reference}; {largest}")]
        if facts.max_lsb is not None:
            source = facts.compiled.source
            whose = "float that is rounded where int8 is" if source.float_graphs else f"{source.library}'s own int8"
            note = f"largest difference from {whose}, in steps of the output"
            name = "Against rounded float" if source.float_graphs else f"Against {source.library}"
            found.append(Figure(name, f"{facts.max_lsb:g}", "LSB", note))
        if facts.layerwise is not None:
            beside = f"each layer on the same inputs: {facts.layerwise.words}"
            found.append(Figure("Layer by layer", f"{facts.layerwise.largest}", "LSB", beside))
        last = [row.accuracy for row in self.rows if row.accuracy]
        if last:
            db = last[-1].sqnr_db
            value = ("exact", "") if db is None else (f"{db:g}", "dB")
            found.append(Figure("Signal to noise", *value, f"SQNR behind the last compared layer, {last[-1].name}"))
        return tuple(found)

    def to_json(self) -> dict[str, Any]:
        """What `run --json` has, and all that the page shows besides."""
        data = self.facts.to_json() | {
            "peak": self.peak.to_json() if self.peak else None,
            "memory_map": [bank.to_json() for bank in self.banks],
            "buffers": [
                {"name": b.name, "bank": b.bank, "offset": b.offset, "size": b.size, "first": b.first, "last": b.last}
                for b in self.plan.layout.buffers
            ],
            "per_layer": [row.to_json() for row in self.rows],
            "advice": [a.to_json() for a in self.advice],
        }
        if self.evaluation is not None:
            data["metrics"] = self.evaluation.to_json()["metrics"]
        return data


def layer_of(plan: Plan, buffer: Buffer) -> str:
    """Whose buffer it is, in the user's words: the layer that makes the tensor, or that needs the scratch."""
    tensor = plan.graph.tensors.get(buffer.name)
    if tensor is not None:
        return tensor.origin.path or tensor.name
    y = next((s.call.y for s in plan.steps if s.scratch and s.scratch.name == buffer.name), None)
    return f"scratch of {y.origin.path or y.name}" if y else buffer.name


def _arena_note(plan: Plan) -> str:
    bands = f"; {plan.bands}" if plan.bands else ""
    caller = "; without what lies with the caller" if plan.layout.lent else ""
    return f"{plan.proof}, lower bound {plan.layout.lower_bound:,}{bands}{caller}"


def _total(kind: str, total: int, banks: Sequence[tuple[MemoryBank, int]]) -> Figure:
    shares = (f"{share(used, bank.size)} of {capacity(bank.size)} {bank.name}" for bank, used in banks)
    return Figure(f"{kind} in all", f"{total:,}", "bytes", ", ".join(shares))


def _rows(graph: Graph, plan: Plan, profile: Profile, accuracies: Sequence[LayerAccuracy]) -> Iterator[Row]:
    """One per layer of the profile, or where layers run in bands, one per layer and operator, with the shape of all of
    its bands."""
    outputs = ((node.op.name, graph[node.outputs[0]]) for node in graph.nodes)
    whole = {(y.origin.path or y.name, op): y.shape for op, y in outputs} if plan.bands or profile.traced else {}
    groups: dict[tuple[str, str, int], list[int]] = {}
    for i, layer in enumerate(profile.layers):
        groups.setdefault((layer.name, layer.op, 0 if plan.bands else i), []).append(i)
    waiting = list(accuracies)
    for members in groups.values():
        layers = [profile.layers[i] for i in members]
        steps = [step for layer in layers for step in layer.steps]
        last = steps[-1]
        constants = {o.storage for step in steps for o in step.operands if o.constant}
        found = _accuracy(layers[-1], waiting)
        if found:
            waiting.remove(found)
        yield Row(
            name=layers[-1].name,
            op=layers[-1].op,
            dtype=last.call.y.dtype.label,
            shape=whole.get((layers[-1].name, layers[-1].op), last.call.y.shape),
            kernel=last.kernel.symbol,
            variant=layers[-1].variant,
            macs=sum(layer.macs for layer in layers),
            weights=sum(plan.layout.constant(name).data.nbytes for name in constants),
            instructions=sum(layer.instructions for layer in layers),
            time=sum((layer.time for layer in layers[1:]), layers[0].time),
            steps=len(members) if profile.traced is None else profile.traced.layers[members[0]].tiles,
            accuracy=found,
        )


def _accuracy(layer: Layer, waiting: Sequence[LayerAccuracy]) -> LayerAccuracy | None:
    """The first that is called so and does the same: both lists are in the order of execution."""
    return next((a for a in waiting if (a.name, a.op) == (layer.name, layer.op)), None)
