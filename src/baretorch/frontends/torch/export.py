"""Converts an nn.Module or ExportedProgram to an ATen program, with torch.export. Only this package and quantize/
import torch.

Operators that the ATen table knows stay whole; the rest is decomposed by torch's own table first.
"""

from __future__ import annotations

import inspect
import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten.program import BOUND, AtenProgram
from baretorch.frontends.aten.table import TABLE
from baretorch.frontends.user_code import first_line, show_value
from baretorch.ir.graph import HALVES, Array, DType, Graph
from baretorch.ir.io import Answer, arrange_inputs, arrange_outputs
from baretorch.passes.equivalence import Reference, check

try:
    import torch
    from torch.export.graph_signature import OutputKind
except ImportError as error:
    raise CompileError(
        "PyTorch is needed for this and is not installed", need="torch 2.13.0", try_='pip install "baretorch[torch]"'
    ) from error

from baretorch.frontends.torch.attributes import check_attributes
from baretorch.frontends.torch.calls import call_method, evaluating, flat_tensors, types, user_line
from baretorch.frontends.torch.constants import evaluate_constants, products_as_layers
from baretorch.frontends.torch.exportable import as_exportable, each_buffer_once, plain_names
from baretorch.frontends.torch.modes import orders_elements
from baretorch.frontends.torch.notices import collect, quiet
from baretorch.frontends.torch.plain import (
    answers,
    exact_answers,
    find_viewed,
    is_random,
    make_plain,
    moved_answers,
    tensor_array,
    unrounded_answers,
    writes,
)
from baretorch.frontends.torch.read import origin_of, read_plain, table_name
from baretorch.frontends.torch.snapshot import copy_module

# The steps that change a plain program before it is read, by their names in errors.
STEPS: dict[str, Callable[[Any, Collection[str]], None]] = {
    "making the program functional": lambda program, changing: None,
    "the evaluation of constants": evaluate_constants,
    "products as linear layers": products_as_layers,
}


def export_module(module: Any, inputs: Sequence[Any], method: str = "forward") -> Any:
    """Export the module in eval mode, and convert torch's errors to CompileErrors."""
    if not isinstance(module, torch.nn.Module):
        raise CompileError("model() does not return an nn.Module", have=type(module).__name__, need="a torch.nn.Module")
    try:
        with quiet(), torch.no_grad(), evaluating(module):
            return plain_names(each_buffer_once(torch.export.export(as_exportable(module, method), tuple(inputs))))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _not_exported(error) from error


# What torch.export rejects: a pattern for its reason, what it means, and what to write instead.
REJECTED: tuple[tuple[str, str, str], ...] = (
    (
        r"classes\.quantized\.|PackedParamsBase",
        "the module is quantized in eager mode, which torch.export does not read",
        "pass the float model, and use --int8",
    ),
    (
        r"Could not guard on data-dependent expression|\.item\(\) .*data-dependent",
        "forward() branches on the value of a tensor, which is not known before the model runs",
        "torch.where(condition, a, b) computes both sides; torch.cond(condition, f, g, (x,)) only one of them",
    ),
    (
        r"Could not extract specialized integer|Cannot cast .* to a number|data-dependent",
        "forward() makes a Python number of a tensor, to use it as a size or an index",
        "an index that is a tensor, as in x.index_select(1, i), and sizes that are constants",
    ),
    (
        r"\.numpy\(\) is not supported|Converting FunctionalTensor to numpy|numpy",
        "forward() leaves PyTorch for NumPy, where torch.export cannot follow",
        "functions of torch instead of NumPy; compute what does not depend on inputs in __init__",
    ),
)


def _not_exported(error: BaseException) -> CompileError:
    for pattern, what, remedy in REJECTED:
        if re.search(pattern, str(error)):
            return CompileError(what, at=user_line(error), have=reason(error), try_=remedy)
    return CompileError("torch.export cannot export this model", have=reason(error), at=user_line(error))


def check_module(module: Any, methods: Mapping[str, Sequence[Any]]) -> bool:
    """Raise CompileError if the methods change anything that only the module itself keeps. Return whether they change
    any attribute at all, including buffers."""
    if not isinstance(module, torch.nn.Module):
        return False

    def run(method: str, inputs: Sequence[Any]) -> Any:
        return call_method(module, method, inputs)

    return check_attributes(module, {m: tuple(x) for m, x in methods.items()}, run)


def check_inputs(module: Any, inputs: Sequence[Any], method: str, of: str) -> None:
    """Raise CompileError unless the inputs are dense tensors, as many as the method takes; numbers and strings may be
    among them. `of` is the function that returned them."""
    leaves = torch.utils._pytree.tree_leaves(tuple(inputs))
    for x in leaves:
        if isinstance(x, BOUND) and any(isinstance(y, torch.Tensor) for y in leaves):
            continue
        if not isinstance(x, torch.Tensor):
            raise CompileError(
                f"{of} returns something that is not a tensor",
                have=show_value(x),
                need="a tuple of tensors",
                try_="torch.from_numpy(x)" if isinstance(x, np.ndarray) else None,
            )
        if x.layout is not torch.strided or x.is_nested:
            kind, dense = str(x.layout).removeprefix("torch."), "x.to_dense()"
            if x.is_nested:
                kind, dense = "nested", "x.to_padded_tensor(0.0), or one sequence of the longest length"
            raise CompileError(f"{of} returns a {kind} tensor", need="dense tensors", try_=dense)
        if x.device.type != "cpu":
            raise _wrong_device(f"{of} returns a tensor", x.device, f"torch.randn({list(x.shape)})", "x.cpu()")
        _need_known_float(f"{of} returns a tensor", x)
    if isinstance(module, torch.nn.Module):
        _check_weights(module)
    if not isinstance(module, torch.nn.Module) or isinstance(module, torch.fx.GraphModule):
        return
    signature = inspect.signature(getattr(module, method))
    try:
        signature.bind(*inputs)
    except TypeError as error:
        raise CompileError(
            f"{of} does not fit {method}()",
            have=[types(inputs), str(error)],
            need=f"a tuple of tensors for {method}{signature}",
        ) from error


def batch_notes(module: Any, inputs: Sequence[Any], method: str) -> tuple[str, ...]:
    """Return a note if the inputs are a batch: the first of them alone gives the first of the results."""
    given = flat_tensors(inputs)
    sizes = {x.shape[0] if x.dim() > 1 else 1 for x in given}
    if len(sizes) != 1 or sizes <= {0, 1} or isinstance(module, torch.fx.GraphModule):
        return ()
    (size,) = sizes
    one = torch.utils._pytree.tree_map(lambda x: x[:1] if isinstance(x, torch.Tensor) else x, tuple(inputs))
    try:
        all_results, first = (flat_tensors(call_method(module, method, x)) for x in (inputs, one))
    except CompileError:  # the model accepts no other size
        return ()
    pairs = list(zip(all_results, first, strict=True)) if len(first) == len(all_results) else []
    if not pairs or not all(a.dim() and a.shape == (size, *b.shape[1:]) and _close(a[:1], b) for a, b in pairs):
        return ()
    return (f"inputs: a batch of {size}, so that each run computes {size} results; x[:1] compiles the model for one",)


def _close(a: Any, b: Any) -> bool:
    return bool(np.allclose(tensor_array(a), tensor_array(b), rtol=1e-4, atol=1e-6, equal_nan=True))


def _check_weights(module: Any) -> None:
    """Raise CompileError for missing weights, weights on another device, and layers of TorchScript."""
    for path, layer in module.named_modules():
        if isinstance(layer, torch.jit.ScriptModule):
            raise CompileError(
                f"{f'layer {path}' if path else 'the model'} is TorchScript, which torch.export does not read",
                at=path or None,
                need="a torch.nn.Module of Python",
                try_="the module that was passed to torch.jit.script or torch.jit.trace",
            )
    for name, t in (*module.named_parameters(), *module.named_buffers()):
        if isinstance(t, torch.nn.parameter.UninitializedTensorMixin):
            raise CompileError(
                f"{name} has no shape yet: its layer is lazy",
                at=name.rpartition(".")[0] or None,
                need="a model with its weights",
                try_="call the model once with the example inputs, and load its weights",
            )
        if t.device.type != "cpu":
            raise _wrong_device(f"{name} is", t.device, "net.load_state_dict(…, assign=True)", "net.cpu()")
        _need_known_float(f"{name} is", t)


def _need_known_float(what: str, x: Any) -> None:
    """Raise CompileError for floats of 8 bits and less, which few operators of PyTorch itself can read."""
    if x.is_floating_point() and x.dtype.itemsize < 2:
        name = str(x.dtype).removeprefix("torch.")
        raise CompileError(f"{what} of {name}", need="float32, float16 or bfloat16", try_="x.float()")


def _wrong_device(what: str, device: Any, values: str, moved: str) -> CompileError:
    """Return the error for a tensor on another device; the meta device has no values."""
    if device.type == "meta":
        return CompileError(f"{what} on the meta device, which has no values", need="tensors with values", try_=values)
    return CompileError(f"{what} on {device}", need="tensors on the CPU", try_=moved)


def plain_programs(programs: Mapping[str, Any], known: Mapping[str, tuple[Sequence[Any], Reference]]) -> dict[str, Any]:
    """Return the plain program of each method, made from functional ones, with constants evaluated and products with
    constants as linear layers. Each step is compared with the `known` inputs and outputs of the methods."""
    plain = {m: make_plain(program) for m, program in programs.items()}
    changing = {
        n.args[0].target for p in plain.values() for n in writes(p)
    }  # state changed by one method is state of all
    for method, program in plain.items():
        answerable = method in known and not any(map(is_random, program.graph.nodes))
        for name, step in STEPS.items():
            step(program, changing)
            if answerable:
                inputs, reference = known[method]
                check(name, answers(program, inputs, reference.runs), reference)
    return plain


def outputs_of(module: Any, method: str, program: Any, inputs: Sequence[Any]) -> Reference:
    """Return the outputs of a method for the inputs; those of two calls if its functional program has state. The module
    is called unchanged."""
    runs = 2 if program.graph_signature.buffers_to_mutate else 1
    ordered = orders_elements(program)
    found = (flat_tensors((call_method(module, method, inputs, ordered),)) for _ in range(runs))
    return Reference(
        tuple(
            tensor_array(x) for run in found for x in run
        ),  # copied before the next run: a model may return its state
        runs,
        lambda seed: moved_answers(make_plain(program), inputs, runs, seed),
        exact=lambda: exact_answers(make_plain(program), inputs, runs),
        arithmetic=arithmetic_of(program),
    )


def arithmetic_of(program: Any) -> DType:
    """Return the coarsest float type of what a program computes; weights that are only stored as halves do not
    count."""
    calls = [node for node in program.graph.nodes if node.op == "call_function"]
    values = torch.utils._pytree.tree_leaves([node.meta.get("val") for node in calls])
    labels = {str(x.dtype).removeprefix("torch.") for x in values if isinstance(x, torch.Tensor)}
    return next((HALVES[label] for label in ("bfloat16", "float16") if label in labels), DType.FLOAT32)


def unrounded_reference(plain: Any, inputs: Sequence[Any], runs: int) -> Reference:
    """Return the outputs of a quantized program without rounding of computed values: the passes preserve them."""
    return Reference(
        unrounded_answers(plain, inputs, runs),
        runs,
        lambda seed: moved_answers(plain, inputs, runs, seed, unrounded=True),
    )


def read_exported(exported: Any, name: str) -> AtenProgram:
    """Return the ATen program of an ExportedProgram unchanged: nothing is computed."""
    return read_plain(make_plain(make_functional(exported)), name)


def make_functional(exported: Any) -> Any:
    """Return the program without changes in place, with operators decomposed that the table does not support."""
    if all(_is_known(node.target) for node in exported.graph.nodes if node.op == "call_function"):
        return exported
    table = torch.export.default_decompositions()
    for target in list(table):  # all known ones: some appear only when in-place writes become functional
        if table_name(target) in TABLE:
            table.pop(target, None)
    _clone_copied_state(exported.graph)
    try:
        with quiet():
            made = exported.run_decompositions(table)
    except Exception as error:
        raise CompileError(
            "torch.export cannot take this model apart",
            have=reason(error),
            try_="a branch or loop must not return the same tensor twice, nor one of its inputs: return x.clone()",
        ) from error
    for spec in made.graph_signature.output_specs:
        if spec.kind is OutputKind.USER_INPUT_MUTATION:
            raise _changed_input(exported, spec.target)
        if spec.kind not in (OutputKind.USER_OUTPUT, OutputKind.BUFFER_MUTATION, OutputKind.TOKEN):
            raise CompileError(
                f"the model changes {spec.target!r}, which is not a buffer",
                need="state in registered buffers",
                try_="self.register_buffer(...) for state, and a new tensor for the result",
            )
    return made


def _clone_copied_state(graph: Any) -> None:
    """Clone what a tensor takes over whole, as in `self.before.copy_(self.now)`, with the tensor's shape and type:
    torch.export cannot list one value as the new state of two buffers, and does not convert it."""
    for copy in graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default):
        target, source = copy.args[:2]
        if isinstance(source, torch.fx.Node):
            kept = target.meta["val"]
            with graph.inserting_before(copy):
                spread = graph.call_function(torch.ops.aten.expand.default, (source, list(kept.shape)))
                clone = graph.call_function(torch.ops.aten._to_copy.default, (spread,), {"dtype": kept.dtype})
            spread.meta = clone.meta = {**source.meta, "val": kept}
            copy.update_arg(1, clone)


def _changed_input(exported: Any, name: str) -> CompileError:
    """Return the error for a program that changes an input in place."""
    (given,) = (node for node in exported.graph.find_nodes(op="placeholder") if node.name == name)
    changes = (n for n in exported.graph.nodes if n.args and _is_mutable(n.target) and find_viewed(n.args[0]) is given)
    return CompileError(
        f"the model changes its input {given.target} in place",
        at=next((str(origin_of(n)) for n in changes), None) or None,
        need="inputs that stay as they are",
        try_=f"{given.target} = {given.target} * 2 instead of {given.target} *= 2 or {given.target}.mul_(2); "
        f"{given.target} = {given.target}.clone() before {given.target}[…] = 0",
    )


def _is_mutable(target: Any) -> bool:
    return bool(getattr(getattr(target, "_schema", None), "is_mutable", False))


def _is_known(target: Any) -> bool:
    """Report whether a call can stay unchanged: the table supports it, and it changes nothing in place."""
    schema = getattr(target, "_schema", None)
    return target is operator.getitem or (schema is not None and not schema.is_mutable and table_name(target) in TABLE)


def print_core_aten(exported: Any) -> str:
    """Print the program after torch's full decomposition to core ATen."""
    with quiet():
        return str(exported.run_decompositions().graph_module.print_readable(print_output=False)).strip()


def to_numpy(tensor: Any, order: Sequence[int]) -> Array:
    """Convert a torch tensor to an array in the memory order of the C interface."""
    return np.array(tensor_array(tensor).transpose(order), order="C")  # a scalar stays one


def run_module(
    module: Any, inputs: Sequence[Any], orders: Sequence[Sequence[int]], ordered: bool = False, method: str = "forward"
) -> tuple[Array, ...]:
    """Return the outputs of a method in PyTorch, each in the memory order of the C interface. With `ordered`, equal
    elements are ordered by their index."""
    with collect():  # its warnings were shown when the model was read
        result = call_method(module, method, inputs, ordered)
    leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    return tuple(to_numpy(leaf, order) for leaf, order in zip(leaves, orders, strict=True))


class InPyTorch:
    """Runs a method of the nn.Module eagerly, once per call; state starts with the module's values. `inputs` are
    example inputs with the structure of the method's arguments; `graph` describes its inputs and outputs. With
    `ordered`, equal elements are ordered by their index."""

    def __init__(self, module: Any, method: str, inputs: Sequence[Any], graph: Graph, ordered: bool = False) -> None:
        self._module, self._method, self._inputs, self._graph = module, method, tuple(inputs), graph
        self._ordered = ordered
        self.reset()

    def __call__(self, *inputs: Any) -> Answer:
        arrange_inputs(self._graph, inputs)  # checks them
        given = iter(inputs)
        arguments = torch.utils._pytree.tree_map(
            lambda x: _as_given(next(given), x.dtype) if isinstance(x, torch.Tensor) else x, self._inputs
        )
        orders = [port.order for port in self._graph.gives()]
        return arrange_outputs(self._graph, run_module(self._own, arguments, orders, self._ordered, self._method))

    def reset(self) -> None:
        self._own = copy_module(self._module) if self._graph.state else self._module


def _as_given(x: Any, dtype: torch.dtype) -> torch.Tensor:
    """Return a copy of an input; one that the model takes as halves may be float32."""
    tensor = torch.as_tensor(x).clone()
    return tensor.to(dtype) if dtype in (torch.float16, torch.bfloat16) else tensor


def reason(error: BaseException) -> str:
    return first_line(error) or type(error).__name__
