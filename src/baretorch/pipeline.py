"""Run the stages of the compiler, in the order in which data passes through them. Read this file first.

read -> optimize (float passes) -> quantize -> finish (int8, state, io) -> delegate -> plan -> emit -> build -> run

`lower` runs the passes: optimize, quantize and finish. Each stage runs once. Two need a later one: calibration runs the
model as a program of this computer (`on_host`), and the command streams of an NPU are emulated when they are compiled
(`Judgement`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from baretorch.emit import CFiles, emit
from baretorch.errors import CompileError
from baretorch.files.ownership import graph_text
from baretorch.files.write import put_all, scratch, stage_files
from baretorch.firmware.app import need_server
from baretorch.firmware.build import build, check_watchdog
from baretorch.firmware.types import Image
from baretorch.frontends import Source, load, random_inputs
from baretorch.frontends.choices import Arguments
from baretorch.frontends.consecutive_calls import Calls
from baretorch.frontends.source import ODD_INPUTS, ODD_INT8
from baretorch.ir.graph import Array, DType, Graph
from baretorch.ir.io import need_ports, store_inputs
from baretorch.ir.text import to_text
from baretorch.ir.verify import verify
from baretorch.machines import open_machine
from baretorch.machines.blame import layer_that_ran, layers_between
from baretorch.machines.host_program import on_host
from baretorch.machines.npu.stream_check import Judgement
from baretorch.machines.run import Run, run_on
from baretorch.machines.types import CoresRace, DeviceFault
from baretorch.npu.partition import Partition
from baretorch.npu.use import delegate_to_npu
from baretorch.options import DEFAULT, CodeIn, Input, Io, Options, Units, UseNpu, Weights
from baretorch.passes.equivalence import check_passes
from baretorch.passes.int8_io import bare_io, float_io
from baretorch.passes.int8_state import bare_state, common_forms
from baretorch.passes.order import FINAL_PASSES, FLOAT_PASSES, run_passes
from baretorch.passes.wide_io import wide_io
from baretorch.plan import make_plan
from baretorch.plan.types import Plan
from baretorch.plan.weights.choose import place_weights
from baretorch.quantize.config import read_config
from baretorch.quantize.quantize import (
    Quantization,
    narrow_quantization,
    narrow_weights,
    need_float_model,
    prepare,
    quantize,
)
from baretorch.stopwatch import timed
from baretorch.targets.checks import choose_cores, need_cores
from baretorch.targets.types import Board
from baretorch.units import units_of

if TYPE_CHECKING:
    from baretorch.quantize.train import Trainable

SLACK = 256  # bytes of code


@dataclass(frozen=True)
class LoweredModel:
    """A model after all passes, for any board: the graph of each method, its quantization if Baretorch quantized it,
    and the requested type of inputs and outputs."""

    source: Source
    graphs: Mapping[str, Graph]
    quantization: Quantization | None = None
    io: Io | None = None

    @property
    def graph(self) -> Graph:
        """Return the graph of the selected method."""
        return self.graphs[self.source.method]

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the warnings of reading and quantizing the model."""
        ours = self.quantization.warnings if self.quantization else ()
        odd = (ODD_INT8 if self.quantization else ODD_INPUTS,) if self.source.has_odd_inputs else ()
        return (*odd, *self.source.warnings, *ours)

    @property
    def int8_answers(self) -> tuple[Array, ...] | None:
        """Return the results of a quantized model for the example inputs: what its scales mean, or what the runtime of
        its file computes."""
        if self.quantization is not None:
            return self.quantization.answers
        return self.source.expected if self.source.graph.is_quantized else None

    def with_io(self, io: Io | None) -> LoweredModel:
        """Return the model with float or int8 inputs and outputs."""
        if io is None:
            return self
        return replace(self, graphs={method: with_io(graph, io) for method, graph in self.graphs.items()}, io=io)

    @cached_property
    def narrow(self) -> LoweredModel:
        """Return the model for CPUs that requantize faster in 32 bits: lowered again, with slightly coarser scales of
        weights. A file that is quantized already keeps its scales."""
        if self.quantization is None or self.quantization.narrow:
            return self
        quantization = narrow_quantization(self.quantization, self.source.examples)
        graphs = {self.source.method: _with_io_and_state(quantization.int8, self.io)}
        return replace(self, graphs=graphs, quantization=quantization)


@dataclass(frozen=True)
class Compiled:
    """A model compiled for a board, up to C: a plan per method."""

    model: LoweredModel
    board: Board
    plans: Mapping[str, Plan]
    c: CFiles
    options: Options
    partitions: Mapping[str, Partition] = field(default_factory=dict)  # of methods on a chip with an NPU that is used

    def __repr__(self) -> str:
        return f"Compiled({self.graph.name} for {self.board.name})"

    @property
    def source(self) -> Source:
        """Return the model as it was read."""
        return self.model.source

    @property
    def graphs(self) -> Mapping[str, Graph]:
        """Return the graph of each method after all passes."""
        return self.model.graphs

    @property
    def graph(self) -> Graph:
        """Return the graph of the method that an image serves."""
        return self.model.graph

    @property
    def plan(self) -> Plan:
        """Return the plan of the method that an image serves."""
        return self.plans[self.source.method]

    @property
    def partition(self) -> Partition | None:
        """Return the part of that method that runs on an NPU."""
        return self.partitions.get(self.source.method)


def read(
    path: str, method: str | None = None, options: Options = DEFAULT, arguments: Arguments | None = None
) -> Source:
    """Read the model in a file. Of several methods, `method` or the first is selected. `arguments` are for a Python
    file's model(); None: those of the configuration."""
    return load(path, method, options, arguments_of(options) if arguments is None else arguments)


def arguments_of(options: Options) -> Arguments:
    """Return the arguments of model() that a configuration chooses."""
    return read_config(options.config).arguments


def lower(
    source: Source, options: Options = DEFAULT, trace: Path | None = None, unless_quantized: bool = False
) -> LoweredModel:
    """Run all passes, and quantize the model in between if the options say so; with `unless_quantized`, a model that is
    quantized already stays as it is. With `trace`, the graph of the selected method before and after each pass is
    written there as text."""
    int8 = options.int8 and not (unless_quantized and source.graph.is_quantized and not options.config)
    if int8:
        need_float_model(source)
    with timed("passes"):
        passed = {method: _optimize(source, method, int8) for method in source.graphs}
    quantization = None
    if int8:
        with timed("quantize"):
            quantization = quantize(source, passed[source.method][-1][1], options, on_host)
    with timed("passes"):
        for method, made in passed.items():
            made += quantization.passed if quantization else _finish(source, method, made[-1][1])
        if trace is not None:
            texts = {f"{i:02}_{name}.txt": to_text(g, data=False) for i, (name, g) in enumerate(passed[source.method])}
            put_all(trace, texts, "--trace", graph_text)
        graphs = with_stored_state({method: made[-1][1] for method, made in passed.items()})
        return LoweredModel(source, graphs, quantization).with_io(options.io)


def lower_file(path: str, options: Options = DEFAULT) -> LoweredModel:
    """Read the model in a file and run all passes."""
    return lower(read(path, None, options), options)


def make_trainable(source: Source, options: Options = DEFAULT) -> Trainable:
    """Return a model as a torch module that learns with the rounding of int8; as a source, it has its own scales."""
    import baretorch.frontends.torch.export  # noqa: F401  (raises CompileError if PyTorch is not installed)
    from baretorch.quantize.train import Trainable

    need_float_model(source)
    config = read_config(options.config)
    return Trainable(source, prepare(source.graph, optimize(source), config, options.keep_float))


def optimize(source: Source) -> Graph:
    """Return the graph of the selected method after the float passes, as `quantize` and its search take it."""
    return _optimize(source, source.method, int8=True)[-1][1]


def _optimize(source: Source, method: str, int8: bool) -> list[tuple[str, Graph]]:
    """Run the float passes, and compare the result with the original model. A model that becomes int8 has float32
    inputs and outputs instead of halves."""
    graph = source.graphs[method]
    made = run_passes(wide_io(graph) if int8 else graph, FLOAT_PASSES)
    check_passes(made, source.references.get(method), _examples(source, method))
    return made


def _finish(source: Source, method: str, graph: Graph) -> list[tuple[str, Graph]]:
    """Run the other passes. A float model that they change is compared with the original as well."""
    first, *made = run_passes(graph, FINAL_PASSES)
    if not graph.is_quantized and made[-1][1] is not graph:
        check_passes([first, *made], source.references.get(method), _examples(source, method))
    return made


def _examples(source: Source, method: str) -> tuple[Array, ...]:
    """Return inputs of a method as its graph stores them, with halves as float32: the model's own examples, or random
    ones."""
    graph = wide_io(source.graphs[method])
    if method == source.method:
        return tuple(store_inputs(graph, source.examples))
    return random_inputs((t.shape, t.dtype) for t in graph.of(graph.inputs))


def finish_graph(graph: Graph, board: Board, io: Io | None = None) -> Graph:
    """Run the final passes on a float graph with scales, the only method of a model that is compiled for this board."""
    noted = narrow_weights(graph) if board.chip.cpu.prefers_narrow else graph
    return _with_io_and_state(run_passes(noted, FINAL_PASSES)[-1][1], io)


def _with_io_and_state(graph: Graph, io: Io | None) -> Graph:
    """Return the graph of the only method of a model with inputs, outputs and state as images have them."""
    return with_io(with_stored_state({"": graph})[""], io)


def with_stored_state(graphs: Mapping[str, Graph]) -> dict[str, Graph]:
    """Return the graphs of all methods with their state as int8 models store it."""
    forms = common_forms(graphs.values())
    return {method: verify(bare_state(graph, forms)) if forms else graph for method, graph in graphs.items()}


def with_io(graph: Graph, io: Io | None) -> Graph:
    """Return the lowered graph with float or int8 inputs and outputs; None: as the model has them."""
    if io is None:
        return graph
    return verify(bare_io(wide_io(graph)) if io is Io.INT8 else float_io(wide_io(graph)))


def compile_source(source: Source, board: Board, options: Options = DEFAULT) -> Compiled:
    """Compile a model to C."""
    return compile_lowered(lower(source, options), board, options)


def compile_graph(source: Source, graph: Graph, board: Board, options: Options = DEFAULT) -> Compiled:
    """Compile a lowered graph of the selected method to C, that method alone."""
    return compile_lowered(LoweredModel(source, {source.method: graph}), board, options)


def compile_lowered(model: LoweredModel, board: Board, options: Options = DEFAULT, blank: bool = False) -> Compiled:
    """Delegate, plan and emit a lowered model for a board. `blank`: with zeros for weights, to measure sizes."""
    if board.chip.cpu.prefers_narrow:
        model = model.narrow
    source, graphs = model.source, model.graphs
    need_cores(board, options)
    options = choose_cores(options, board)
    board = board.with_console(options.console)
    check_watchdog(board, options.watchdog)
    for method, graph in graphs.items():
        need_ports(graph, method)
    if options.check_inputs:
        _need_checkable(graphs, options)
    with timed("npu") if board.chip.npu else nullcontext():
        examples = {source.method: store_inputs(graphs[source.method], source.examples)} if board.chip.npu else {}
        judges = {name: Judgement(graph, examples.get(name)) for name, graph in graphs.items()}
        found = {name: delegate_to_npu(graph, board, options, judges[name]) for name, graph in graphs.items()}
        partitions = {name: partition for name, partition in found.items() if partition is not None}
        planned = {name: partitions[name].graph if name in partitions else graph for name, graph in graphs.items()}
    given, options = options, _choose_rest(options, board, partitions)
    with timed("plan"):
        plans = {
            name: make_plan(graph, board, _own_placements(options, name, planned)) for name, graph in planned.items()
        }
    if options.code is CodeIn.RAM and options.weights is not Weights.FLASH:
        code = _code_bytes(emit_plans(model, plans, board, replace(options, weights=Weights.FLASH)))
    else:
        code = 0
    with timed("plan"):
        before, weights = plans, options.weights or Weights.FLASH
        plans = place_weights(plans, board, weights, options.used_cores, code, options.ram)
        if given.weights is None and not any(
            p.layout.copies != before[n].layout.copies or p.schedule.copies for n, p in plans.items()
        ):
            options = replace(options, weights=Weights.FLASH)  # nothing was worth a copy
    return replace(emit_plans(model, plans, board, options, blank), partitions=partitions)


def _choose_rest(options: Options, board: Board, partitions: Mapping[str, Partition]) -> Options:
    """Return the options with the values that Baretorch chooses for an image, so that they determine the C."""
    npu = UseNpu.AUTO if any(partition.regions for partition in partitions.values()) else UseNpu.OFF
    units = Units.AUTO if units_of(board.chip) else Units.OFF
    copies = board.chip.flash_path is not None or board.chip.cluster is not None
    weights = (
        Weights.AUTO if copies and not options.app else Weights.FLASH
    )  # only an application knows what RAM is left
    return replace(options, npu=options.npu or npu, units=options.units or units, weights=options.weights or weights)


def emit_plans(
    model: LoweredModel, plans: Mapping[str, Plan], board: Board, options: Options, blank: bool = False
) -> Compiled:
    """Generate the C of plans. `blank`: weights are zeros, which is quicker and does not change sizes."""
    source = model.source
    with timed("emit"):
        c = emit(
            source.name,
            plans,
            options.optimize,
            source.method,
            blank,
            checked=options.check_inputs,
            command=options.command(board.name),
            alone=options.core == 1,
            team=board.chip.is_team,
        )
    return Compiled(model, board, plans, c, options)


def _code_bytes(compiled: Compiled) -> int:
    """Compile the model to measure its code in RAM. The placement of weights may change it a little."""
    with timed("build"), scratch() as folder:
        return build_image(compiled, folder).ram.code + SLACK


def _need_checkable(graphs: Mapping[str, Graph], options: Options) -> None:
    inputs = [graph[name] for graph in graphs.values() for name in graph.inputs]
    if options.input is Input.ROWS:
        raise CompileError(
            "--check-inputs does not go with --input rows",
            need="inputs that are complete before the run",
            try_="check each row in the callback that supplies it",
        )
    if not any(t.dtype is DType.FLOAT32 for t in inputs):
        raise CompileError(
            "--check-inputs has nothing to check: the model has no float inputs",
            have=", ".join(map(str, inputs)) or "no inputs",
            try_="leave it out; with `--io float` an int8 model has float inputs",
        )


def _own_placements(options: Options, method: str, graphs: Mapping[str, Graph]) -> Options:
    """Return the options without placements of layers that only other methods have."""

    def has(graph: Graph, layer: str) -> bool:
        return any(layer in (t.name, t.origin.path) for t in graph.tensors.values())

    others = [graph for name, graph in graphs.items() if name != method]
    own = {
        layer: bank
        for layer, bank in options.place.items()
        if has(graphs[method], layer) or not any(has(graph, layer) for graph in others)
    }
    return replace(options, place=own)


def write_c(compiled: Compiled, folder: Path) -> tuple[Path, ...]:
    """Write the C files below `folder`, and return their paths."""
    return put_all(folder, compiled.c.files)


def build_image(
    compiled: Compiled,
    folder: Path,
    progress: Callable[[str, int, int], None] | None = None,
    debug: bool = False,
    more: Mapping[str, str] | None = None,
) -> Image:
    """Compile the C files, the runtime and the board's code to an image in `folder`; with `debug` its ELF has debug
    information. `more` are text files that appear in the folder together with the image."""
    c, options = compiled.c, compiled.options
    with stage_files(folder) as work:
        put_all(work, {**c.files, "glue.c": c.glue, **(more or {})})
        image = build(
            compiled.graph.name,
            compiled.board,
            folder=work,
            model_sources=[work / name for name in (*c.sources, "glue.c")],
            include=work,
            run_symbol=c.run,
            toolchain=options.toolchain,
            optimize=options.optimize,
            progress=progress,
            checked=c.checked,
            cores=c.cores,
            watchdog=options.watchdog,
            code=options.code,
            debug=debug,
            app=Path(options.app) if options.app else None,
        )
    return image.move_to(folder)


def run_image(compiled: Compiled, image: Image, calls: Calls | None = None) -> Run:
    """Run the example inputs on the emulated chip, and the other inputs of `calls` after them."""
    need_server(compiled.options.app)
    machine = open_machine(image, compiled.c.run, compiled.options.emulator, timed=True)
    try:
        with name_failing_layer(compiled, image):
            graph = compiled.graph
            others = [store_inputs(graph, x) for x in calls.others] if calls else []
            return run_on(machine, graph, store_inputs(graph, compiled.source.examples), others=others)
    finally:
        machine.close()


@contextmanager
def name_failing_layer(compiled: Compiled, image: Image | None = None) -> Iterator[None]:
    """Add the name of the failing layer to device faults raised in this block. Without an image (a real board), rebuild
    it to resolve addresses."""
    try:
        yield
    except CoresRace as race:
        raise race.among(layers_between(compiled.plan, race.phase)) from race
    except DeviceFault as fault:
        if fault.addresses:
            fault.have = (*_failing_layer(compiled, image, fault), *fault.have)
        raise


def _failing_layer(compiled: Compiled, image: Image | None, fault: DeviceFault) -> list[str]:
    """Return the layer that ran, in words. The image of a real board is rebuilt; if that fails, the layer is not
    known, and the addresses in the fault are all that is."""
    with scratch() as folder:
        try:
            image = image or build_image(compiled, folder)
        except CompileError:
            return []
        return layer_that_ran(compiled.plan, compiled.c.run, image, fault)
