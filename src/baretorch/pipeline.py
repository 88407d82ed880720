"""The stages of the compiler, in the order in which data passes through them. Read this file first.

file -> Source (in int8) -> Graph -> PASSES -> Plan -> C files -> Image -> Run
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from baretorch.emit import CFiles, emit
from baretorch.errors import CompileError
from baretorch.files.ownership import graph_text
from baretorch.files.write import put_all, scratch, staged
from baretorch.firmware.app import need_server
from baretorch.firmware.build import build, check_watchdog
from baretorch.firmware.types import Image
from baretorch.frontends import Int8, Source, load
from baretorch.frontends.checked import check_passes
from baretorch.frontends.consecutive import Calls
from baretorch.frontends.offer import Arguments
from baretorch.ir.equivalence import says_int8
from baretorch.ir.graph import DType, Graph
from baretorch.ir.io import need_ports, stored
from baretorch.ir.text import to_text
from baretorch.ir.verify import verify
from baretorch.machines import open_machine
from baretorch.machines.blame import step_at
from baretorch.machines.code import read_code
from baretorch.machines.host_program import on_host
from baretorch.machines.npu.cached_check import Judgement
from baretorch.machines.run import Run, run_on
from baretorch.machines.types import CoresRace, DeviceFault
from baretorch.npu.partition import Partition
from baretorch.npu.use import delegated
from baretorch.options import DEFAULT, CodeIn, Input, Io, Options, Units, Weights
from baretorch.passes.int8_io import bare_io, float_io
from baretorch.passes.int8_state import bare_state, common_forms
from baretorch.passes.order import FLOAT, PASSES, stages
from baretorch.plan import make_plan
from baretorch.plan.types import Plan
from baretorch.plan.weights.choose import place_weights
from baretorch.quantize.config import read_config
from baretorch.quantize.source import quantized
from baretorch.stopwatch import timed
from baretorch.targets.types import Board

SLACK = 256  # bytes of code


@dataclass(frozen=True)
class Compiled:
    """A model compiled for a board, up to C: a graph after all passes and a plan per method."""

    source: Source
    board: Board
    graphs: Mapping[str, Graph]
    plans: Mapping[str, Plan]
    c: CFiles
    options: Options
    partitions: Mapping[str, Partition] = field(default_factory=dict)  # of methods on a chip with an NPU that is used

    @property
    def graph(self) -> Graph:
        """That of the method that an image serves."""
        return self.graphs[self.source.method]

    @property
    def plan(self) -> Plan:
        """That of the method that an image serves."""
        return self.plans[self.source.method]

    @property
    def partition(self) -> Partition | None:
        """What of it runs on an NPU."""
        return self.partitions.get(self.source.method)

    @cached_property
    def twin(self) -> Graph | None:
        """Of a model that was quantized: its graph before that, after the same passes."""
        before = self.source.float_graphs.get(self.source.method)
        return optimized(before) if before is not None else None


def read(
    path: str,
    method: str | None = None,
    int8: Int8 | None = None,
    options: Options = DEFAULT,
    arguments: Arguments | None = None,
) -> Source:
    """The model in a file. Of several methods, `method` or the first. With `int8` it is quantized, with the data of its
    calibration(). `arguments` are for a Python file's model(); None: those of the configuration."""
    asked = arguments_of(options) if arguments is None else arguments
    if int8 is None:
        return load(path, method, options, asked)
    source = load(path, method, replace(options, int8=True), asked)
    with timed("quantize"):
        return quantized(source, int8, source.calibration, on_host)


def arguments_of(options: Options) -> Arguments:
    """What a configuration says that model() is called with."""
    return read_config(options.config).arguments if options.config else {}


def optimized(graph: Graph, trace: Path | None = None) -> Graph:
    """The graph after all passes. With `trace`, the graph before and after each is written there as text."""
    return _stages(graph, trace)[-1][1]


def _stages(graph: Graph, trace: Path | None = None) -> list[tuple[str, Graph]]:
    """The graph before and after each pass, by the pass's name."""
    found = stages(graph, PASSES)
    if trace is not None:
        texts = {f"{i:02}_{name}.txt": to_text(stage, data=False) for i, (name, stage) in enumerate(found)}
        put_all(trace, texts, "--trace", graph_text)
    return found


def optimized_methods(source: Source, trace: Path | None = None) -> dict[str, Graph]:
    """The graph of each method after all passes. What they made of it, of an int8 model those before `to_int8`, is held
    against PyTorch's answer."""
    graphs = {}
    for method, graph in source.graphs.items():
        found = _stages(graph, trace if method == source.method else None)
        check_passes(source, method, found[: 1 + len(FLOAT)] if says_int8(graph) else found)
        graphs[method] = found[-1][1]
    forms = common_forms(graphs.values())
    return {method: verify(bare_state(graph, forms)) if forms else graph for method, graph in graphs.items()}


def with_io(graph: Graph, io: Io | None) -> Graph:
    """The optimized graph with float inputs and outputs, or int8 ones; None: as it says itself."""
    if io is None:
        return graph
    return verify(bare_io(graph) if io is Io.INT8 else float_io(graph))


def compile_source(source: Source, board: Board, options: Options = DEFAULT, trace: Path | None = None) -> Compiled:
    """All the way to C; with `trace`, the graph of the served method after each pass is written there."""
    with timed("passes"):
        graphs = {name: with_io(graph, options.io) for name, graph in optimized_methods(source, trace).items()}
    return compile_graphs(source, graphs, board, options)


def compile_graphs(source: Source, graphs: Mapping[str, Graph], board: Board, options: Options = DEFAULT) -> Compiled:
    """From optimized graphs, one per method."""
    need_cores(board, options)
    options = _with_cores(options, board)
    board = board.with_console(options.console)
    check_watchdog(board, options.watchdog)
    for method, graph in graphs.items():
        need_ports(graph, method)
    if options.check_inputs:
        _need_checkable(graphs, options)
    with timed("npu") if board.chip.npu else nullcontext():
        examples = {source.method: stored(graphs[source.method], source.examples)} if board.chip.npu else {}
        judges = {name: Judgement(graph, examples.get(name)) for name, graph in graphs.items()}
        found = {name: delegated(graph, board, options, judges[name]) for name, graph in graphs.items()}
        partitions = {name: partition for name, partition in found.items() if partition is not None}
        planned = {name: partitions[name].graph if name in partitions else graph for name, graph in graphs.items()}
    with timed("plan"):
        used = replace(options, units=options.units or Units.AUTO)
        plans = {name: make_plan(graph, board, _own(used, name, planned)) for name, graph in planned.items()}
    if options.code is CodeIn.RAM and options.weights is Weights.RAM:
        code = _code_bytes(_emitted(source, graphs, plans, board, replace(options, weights=Weights.FLASH)))
    else:
        code = 0
    default = Weights.FLASH if options.app else Weights.AUTO  # only the application knows what RAM is left
    with timed("plan"):
        before = plans
        plans = place_weights(plans, board, options.weights or default, options.used_cores, code, options.ram)
        if options.weights is None and any(
            p.layout.copies != before[n].layout.copies or p.schedule.copies for n, p in plans.items()
        ):
            options = replace(options, weights=Weights.AUTO)
    return replace(_emitted(source, graphs, plans, board, options), partitions=partitions)


def _emitted(
    source: Source, graphs: Mapping[str, Graph], plans: Mapping[str, Plan], board: Board, options: Options
) -> Compiled:
    with timed("emit"):
        c = emit(
            source.name,
            plans,
            options.optimize,
            source.method,
            checked=options.check_inputs,
            command=options.command(board.name),
            alone=options.core == 1,
            team=board.chip.cluster is not None,
        )
    return Compiled(source, board, graphs, plans, c, options)


def _code_bytes(compiled: Compiled) -> int:
    """What the model's code takes in RAM: only a compiler knows. Where weights lie may change it a little."""
    with timed("build"), scratch() as folder:
        return build_image(compiled, folder).ram.code + SLACK


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


def _with_cores(options: Options, board: Board) -> Options:
    """All cores of a cluster, if nobody says how many."""
    if options.cores is not None or board.chip.cluster is None:
        return options
    return replace(options, cores=board.chip.core_count)


def _need_checkable(graphs: Mapping[str, Graph], options: Options) -> None:
    inputs = [graph[name] for graph in graphs.values() for name in graph.inputs]
    if options.input is Input.ROWS:
        raise CompileError(
            "--check-inputs does not go with --input rows",
            need="inputs that are there before the run",
            try_="check each row in the callback that gives it",
        )
    if not any(t.dtype is DType.FLOAT32 for t in inputs):
        raise CompileError(
            "--check-inputs: the model takes no float, and all that it takes is finite",
            have=", ".join(map(str, inputs)) or "no inputs",
            try_="leave it out; with `--io float` an int8 model takes float",
        )


def _own(options: Options, method: str, graphs: Mapping[str, Graph]) -> Options:
    """Without the layers to place that only other methods have."""

    def has(graph: Graph, layer: str) -> bool:
        return any(layer in (t.name, t.origin.path) for t in graph.tensors.values())

    others = [graph for name, graph in graphs.items() if name != method]
    own = {
        layer: bank
        for layer, bank in options.place.items()
        if has(graphs[method], layer) or not any(has(graph, layer) for graph in others)
    }
    return replace(options, place=own)


def compile_graph(source: Source, graph: Graph, board: Board, options: Options = DEFAULT) -> Compiled:
    """From one optimized graph: the served method alone."""
    return compile_graphs(source, {source.method: graph}, board, options)


def write_c(compiled: Compiled, folder: Path) -> tuple[Path, ...]:
    """Write the C files below `folder`; gives all paths written."""
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
    with staged(folder) as work:
        image = _built(compiled, work, progress, debug, {"glue.c": compiled.c.glue, **(more or {})})
    return image.moved_to(folder)


def _built(
    compiled: Compiled,
    folder: Path,
    progress: Callable[[str, int, int], None] | None,
    debug: bool,
    more: Mapping[str, str],
) -> Image:
    put_all(folder, {**compiled.c.files, **more})
    sources = [folder / name for name in (*compiled.c.sources, "glue.c")]
    return build(
        compiled.graph.name,
        compiled.board,
        folder,
        sources,
        folder,
        compiled.c.run,
        compiled.options.toolchain,
        compiled.options.optimize,
        progress,
        compiled.c.checked,
        compiled.c.cores,
        compiled.options.watchdog,
        compiled.options.code,
        debug,
        Path(compiled.options.app) if compiled.options.app else None,
    )


def run_image(compiled: Compiled, image: Image, calls: Calls | None = None) -> Run:
    """Run the example inputs on the emulated chip, and the other inputs of `calls` after them."""
    need_server(compiled.options.app)
    machine = open_machine(image, compiled.c.run, compiled.options.emulator, timed=True)
    try:
        with blaming(compiled, image):
            graph = compiled.graph
            others = [stored(graph, x) for x in calls.others] if calls else []
            return run_on(machine, graph, stored(graph, compiled.source.examples), others=others)
    finally:
        machine.close()


@contextmanager
def blaming(compiled: Compiled, image: Image | None = None) -> Iterator[None]:
    """What goes wrong inside with the running model is told with the layer that ran. Of a board, whose image is not at
    hand, the same is built again for that."""
    try:
        yield
    except CoresRace as race:
        raise race.among(_layers_between(compiled.plan, race.phase)) from race
    except DeviceFault as fault:
        if fault.addresses and image is not None:
            fault.have = (*_layer_that_ran(compiled, image, fault), *fault.have)
        elif fault.addresses:
            with scratch() as folder:
                again = build_image(compiled, folder)
                fault.have = (*_layer_that_ran(compiled, again, fault), *fault.have)
        raise


def _layer_that_ran(compiled: Compiled, image: Image, fault: DeviceFault) -> list[str]:
    """In words, if it can be told."""
    core = 1 if image.cores > 1 and "core 1" in str(fault) else 0
    places: list[tuple[int, tuple[int, ...]]] = [(core, fault.addresses)]
    if image.board.chip.cluster:  # addresses tell whose they are, first that of the core that stopped
        places = [(each, (address,)) for address in fault.addresses for each in range(image.cores)]
    steps, code = compiled.plan.steps, read_code(image, compiled.c.run)
    for core, addresses in places:
        own = [n for n, step in enumerate(steps) if step.executor.host.number == core and not step.is_empty]
        number = step_at(code, addresses, len(own), core)
        if number is not None:
            y = steps[own[number]].call.y
            layers = list(dict.fromkeys(step.call.y.name for step in steps))  # of which cores may have parts
            return [f"in layer {layers.index(y.name) + 1} of {len(layers)}: {y.origin.path or y.name}"]
    return []


def _layers_between(plan: Plan, meeting: int) -> dict[int, list[str]]:
    """The layers that each core works on between two meetings, of which the first is that before all phases."""
    met, found = 1, dict[int, list[str]]()
    for phase in plan.phases:
        met += phase.meet
        for step in phase.steps if met == meeting else ():
            y = step.call.y
            found.setdefault(step.executor.number, []).append(y.origin.path or y.name)
    return found
