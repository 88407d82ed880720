"""Whether a plan fits a board, and the errors if it does not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from baretorch.errors import CompileError, see_fit
from baretorch.ir.graph import Graph, Node
from baretorch.ir.text import attributes
from baretorch.ops.layout import Permute
from baretorch.options import Input, Options
from baretorch.plan.bands import goes_in_rows
from baretorch.plan.memory.banks import room
from baretorch.plan.types import Bank, Buffer, Plan
from baretorch.targets.types import Board

ONE_CORE = "leave out --cores: a layer that two cores share cannot have its output where its input dies"


def excess(plan: Plan, board: Board, options: Options) -> int:
    """Return how many bytes the plan takes of banks beyond what they have."""
    chip, copied = board.chip, plan.layout.copied
    return sum(max(0, b.size - room(chip, b.name, options.used_cores) + copied(b.name)) for b in plan.layout.banks)


def fits(plan: Plan, board: Board, options: Options) -> bool:
    return not excess(plan, board, options) and (options.ram is None or plan.arena <= options.ram)


def arena_limit(plan: Plan, board: Board, options: Options) -> int:
    """Return the largest arena that the user and the board allow; at most that of the plan."""
    short = sum(max(0, bank.size - room(board.chip, bank.name, options.used_cores)) for bank in plan.layout.banks)
    return min(options.ram if options.ram is not None else plan.arena, plan.arena - short)


def need_rows(plan: Plan, options: Options) -> None:
    """CompileError if rows of the input are asked for, and the plan reads none."""
    fits = options.ram is None or plan.arena <= options.ram  # otherwise need_ram reports the error
    if options.input is Input.ROWS and fits and plan.bands is None:
        graph = plan.graph
        if whole := _first_without_rows(graph):
            y = graph[whole.outputs[0]]
            raise CompileError(
                f"--input rows: {y.layer} cannot be computed row by row",
                at=str(y.origin) or None,
                have=f"{whole.op.name} {attributes(whole.op)}".strip(),
                need="two or more layers after the input that can, such as convolutions and pools; an average with "
                "ceil_mode cannot",
            )
        raise CompileError(
            "--input rows: the input is not an image that convolutions or pools read",
            have=", ".join(repr(graph[name]) for name in graph.inputs),
            need="one input of shape [1, H, W, C] in memory, read by convolutions and pools",
            try_="x.to(memory_format=torch.channels_last) for an image of shape [1, C, H, W] in inputs()",
        )


def _first_without_rows(graph: Graph) -> Node | None:
    """Return the first layer after an image that cannot be computed row by row; None if that is the input's reader,
    unless `ceil_mode` is the reason."""
    images = set(graph.inputs)
    for node in graph.nodes:
        if images.intersection(node.inputs):
            if not goes_in_rows(graph, node):
                own = images != set(graph.inputs) or getattr(node.op, "ceil_mode", False)
                return node if own else None
            images.update(node.outputs)
    return None


def need_ram(plan: Plan, options: Options) -> None:
    """CompileError if the arena is larger than the user allows."""
    if options.ram is not None and plan.arena > options.ram:
        raise CompileError(
            f"the model does not fit {options.ram:,} bytes of RAM: it needs {plan.arena - options.ram:,} more",
            at=_peak_layers(plan),
            have=f"arena {plan.arena:,} bytes" + (f", with {plan.bands}" if plan.bands else ""),
            need=f"at most {options.ram:,} bytes, the limit of --ram",
            try_=ONE_CORE if options.shared_cores > 1 else f"--ram {plan.arena}, the smallest arena that was found",
        )


def stored_by_name(plan: Plan) -> Counter[str]:
    """Return the bytes of constants by name; those that are copied during the run by the names of their layers."""
    layers = {o.storage: step.layer for step in plan.steps for o in step.operands if o.constant and o.buffer}
    found = Counter[str]()
    for c in plan.layout.constants:
        found[layers.get(c.name, c.name)] += c.data.nbytes
    return found


def need_flash(stored: Mapping[str, int], board: Board) -> None:
    """Raise CompileError if constants do not fit flash, before anything is built. The linker checks constants and
    code."""
    chip = board.chip
    flash = chip.memory(chip.code)
    weights = sum(stored.values())
    reach = min(flash.size, chip.cpu.flash_reach or flash.size)
    if weights > reach:
        largest = sorted(stored.items(), key=lambda one: -one[1])[:3]
        raise CompileError(
            f"the weights do not fit {board.name}: {flash.name} is {weights - reach:,} bytes too small",
            have=[f"weights {weights:,} bytes", *(f"{name} {size:,} bytes" for name, size in largest)],
            need=f"at most {reach:,} bytes of {flash.name}"
            + (f", as far as {chip.cpu.name} reads constants" if reach < flash.size else ""),
            try_=see_fit(board.name),
        )


def need_room(plan: Plan, board: Board, options: Options) -> None:
    """CompileError if a bank of RAM is too small."""
    chip, cores = board.chip, options.used_cores
    for bank in plan.layout.banks:
        copied = plan.layout.copied(bank.name)
        most = room(chip, bank.name, cores) - copied
        if bank.size > most:
            if chip.cpu.flash_apart and most < 0:
                raise _constants_in_ram(plan, board, bank, copied)
            stack = f", in addition to {chip.stacks(cores):,} for the stack" if bank.name == chip.data else ""
            raise CompileError(
                f"the model does not fit {board.name}: {bank.name} is {bank.size - most:,} bytes too small",
                at=_peak_layers(plan),
                have=f"arena {plan.arena:,} bytes" + (f", with {plan.bands}" if plan.bands else ""),
                need=f"at most {most:,} bytes of {bank.name}{stack}",
                try_=ONE_CORE if options.shared_cores > 1 else see_fit(board.name),
            )


def _constants_in_ram(plan: Plan, board: Board, bank: Bank, copied: int) -> CompileError:
    """Return the error for constants in RAM: some kernels take constants where others give them activations."""
    chip = board.chip
    more = copied + bank.size - room(chip, bank.name)
    held = sorted((c for c in plan.layout.constants if c.name in plan.layout.copies), key=lambda c: -c.data.nbytes)
    return CompileError(
        f"the model does not fit {board.name}: {bank.name} is {more:,} bytes too small",
        have=[
            f"{copied:,} bytes of constants in {bank.name}",
            *(f"{c.name} {c.data.nbytes:,} bytes" for c in held[:3]),
        ],
        need=f"layers whose constants {chip.cpu.name} can leave in flash, as most of int8 do",
        try_=["--int8", see_fit(board.name)],
    )


def need_arrays(plan: Plan, board: Board) -> None:
    """CompileError if an array is too large for a compiler with pointers of 16 bits."""
    most = board.chip.cpu.largest_array
    arrays = [("arena", plan.arena), *((c.name, c.data.nbytes) for c in plan.layout.constants)]
    large = [f"{name} {size:,} bytes" for name, size in arrays if most is not None and size > most]
    if large:
        raise CompileError(
            f"the model does not fit {board.name}: the largest array for {board.chip.cpu.name} is too small",
            have=large,
            need=f"at most {most:,} bytes in one array",
            try_=see_fit(board.name),
        )


def _peak_layers(plan: Plan) -> list[str]:
    """Return the step with the most live bytes, and the tensors that are alive there, largest first."""
    if not plan.steps:
        return []
    phase, alive = plan.peak()
    node = plan.phases[phase].main.nodes[0]
    origin = plan.graph[node.outputs[0]].origin
    tensors = ", ".join(f"{_user_name(plan, b)} {b.size:,} bytes" for b in alive[:4])
    return [f"{str(origin) or node.outputs[0]}: {tensors}"]


def _user_name(plan: Plan, buffer: Buffer) -> str:
    """Describe a buffer by the layer that the user knows."""
    t = plan.graph.tensors.get(buffer.name)
    if t is not None:
        maker = plan.graph.producer().get(t.name)
        if maker is None:
            return f"input {t.name}"
        if isinstance(maker.op, Permute):
            return f"{t.layer} in another order"
        return f"{'output' if maker.op.computes else 'part'} of {t.layer}"
    layer = next((s.call.y.layer for s in plan.steps if s.scratch and s.scratch.name == buffer.name), "")
    return f"scratch of {layer}" if layer else buffer.name
