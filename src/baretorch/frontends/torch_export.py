"""nn.Module or ExportedProgram -> ATen program, through torch.export. With quantize/ the only importer of torch.

Operators that the ATen table knows stay whole; the rest is decomposed by torch's own table first.
"""

from __future__ import annotations

import inspect
import io
import logging
import operator
import os
import sysconfig
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import TABLE
from baretorch.frontends.model_file import said, shown
from baretorch.frontends.program import Arg, AtenCall, AtenInput, AtenProgram, AtenState, Ref
from baretorch.frontends.torch_names import plain_names
from baretorch.ir import Array, DType, Origin

try:
    import torch
    from torch.export.graph_signature import InputKind, OutputKind
except ImportError as error:
    raise CompileError(
        "PyTorch is needed for this and is not installed",
        need="torch 2.13.0",
        try_='pip install "baretorch[torch]"',
    ) from error

# View and in-place spellings of one operator.
_SUFFIXES = ("_copy", "_")

# Whose lines are not the user's: Baretorch, torch and the standard library, beside all that is in site-packages.
_FOREIGN = tuple(
    f"{folder}{os.sep}"
    for folder in (Path(__file__).parents[1], Path(torch.__file__).parent, sysconfig.get_path("stdlib"))
)


METHOD_WITHIN = "module."  # where _Method keeps the user's model


class _Method(torch.nn.Module):  # type: ignore[misc]
    """A module whose forward is another's method; torch.export knows only forward."""

    def __init__(self, module: Any, name: str) -> None:
        super().__init__()
        self.module = module
        self.forward = getattr(module, name)  # itself, so that its parameters keep their names


def export_module(module: Any, inputs: Sequence[Any], method: str = "forward") -> Any:
    """torch.export of the module in eval mode, with torch's reasons turned into an error of ours."""
    if not isinstance(module, torch.nn.Module):
        raise CompileError("model() does not return an nn.Module", have=type(module).__name__, need="a torch.nn.Module")
    if not isinstance(module, torch.fx.GraphModule):  # an exported module has no modes
        module = module.eval()
    try:
        with quiet(), torch.no_grad():
            own = module if method == "forward" else _Method(module, method)
            return plain_names(torch.export.export(own, tuple(inputs)))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        with quiet():
            _run(getattr(_copied(module), method), inputs, method)  # if PyTorch cannot run it, export is not to blame
        raise CompileError(
            "torch.export cannot export this model",
            have=reason(error),
            at=_user_line(error),
            try_="replace Python control flow on tensor values by torch.where, and shapes by constants",
        ) from error


def check_inputs(module: Any, inputs: Sequence[Any], method: str, of: str) -> None:
    """They must be dense tensors, as many as the method takes. `of` is the function that gave them."""
    for x in torch.utils._pytree.tree_leaves(tuple(inputs)):
        if not isinstance(x, torch.Tensor):
            raise CompileError(
                f"{of} gives something that is not a tensor",
                have=shown(x),
                need="a tuple of tensors",
                try_="torch.from_numpy(x)" if isinstance(x, np.ndarray) else None,
            )
        if x.layout is not torch.strided or x.device.type == "meta":
            kind = "meta" if x.device.type == "meta" else str(x.layout).removeprefix("torch.")
            raise CompileError(f"{of} gives a {kind} tensor", need="dense tensors, with values")
    if not isinstance(module, torch.nn.Module) or isinstance(module, (torch.fx.GraphModule, torch.jit.ScriptModule)):
        return
    signature = inspect.signature(getattr(module, method))
    try:
        signature.bind(*inputs)
    except TypeError as error:
        raise CompileError(
            f"{of} does not fit {method}()",
            have=[_types(inputs), str(error)],
            need=f"a tuple of tensors for {method}{signature}",
        ) from error


def read_exported(exported: Any, name: str, within: str = "") -> AtenProgram:
    """The ATen program of an ExportedProgram. `within` is the path of the user's model in the exported one."""
    exported = _decompose(exported)
    signature = exported.graph_signature
    inputs: list[AtenInput] = []
    constants: dict[str, Array] = {}
    stored = {**exported.state_dict, **exported.constants}
    names: dict[str, str] = {}  # fx placeholder -> our name
    specs = {s.arg.name: s for s in signature.input_specs}
    calls: list[AtenCall] = []
    outputs: list[str] = []
    orders: list[tuple[int, ...]] = []
    state: list[AtenState] = []
    for node in exported.graph.nodes:
        if node.op == "placeholder":
            spec = specs[node.name]
            if spec.kind is InputKind.USER_INPUT:
                inputs.append(_input(node))
                names[node.name] = node.name
            elif isinstance(stored.get(spec.target), torch.Tensor):
                names[node.name] = spec.target.removeprefix(within)
                constants[names[node.name]] = _array(stored[spec.target], names[node.name])
        elif node.op == "call_function":
            if node.target is not operator.getitem and "val" in node.meta and not _is_check(node):
                calls.append(_call(node, names, within))
        elif node.op == "get_attr" and isinstance(_attribute(exported.graph_module, node.target), torch.Tensor):
            names[node.name] = node.target
            constants[node.target] = _array(_attribute(exported.graph_module, node.target), node.target)
        elif node.op == "output":
            for spec, value in zip(signature.output_specs, node.args[0], strict=True):
                if spec.kind is OutputKind.USER_OUTPUT and isinstance(value, torch.fx.Node):
                    outputs.append(names.get(value.name, value.name))
                    orders.append(_order(value.meta["val"]))
                elif spec.kind is OutputKind.USER_OUTPUT:
                    raise CompileError(f"an output is {value!r}, not a tensor", need="tensors as outputs")
                elif spec.kind is OutputKind.TOKEN:  # the order of effects, which are errors raised or nothing we know
                    pass
                elif spec.kind is OutputKind.BUFFER_MUTATION:
                    state.append(AtenState(spec.target.removeprefix(within), names.get(value.name, value.name)))
                else:
                    raise CompileError(
                        f"the model changes {spec.target!r}, which is not a buffer",
                        need="state in registered buffers",
                        try_="self.register_buffer(...) for what is remembered, and a new tensor for what is returned",
                    )
    if not outputs and not state:
        raise CompileError("the model returns no tensors", need="at least one tensor as output")
    used = {a.name for call in calls for a in _refs(call.args)} | set(outputs)
    used |= {name for s in state for name in (s.name, s.next)}
    constants = {n: c for n, c in constants.items() if n in used}
    return AtenProgram(
        name,
        tuple(inputs),
        constants,
        tuple(calls),
        tuple(outputs),
        tuple(orders),
        tuple(state),
        _labels(exported.call_spec.out_spec),
    )


def core_aten(exported: Any) -> str:
    """The program after torch's full decomposition to core ATen, for people."""
    with quiet():
        return str(exported.run_decompositions().graph_module.print_readable(print_output=False)).strip()


def to_numpy(tensor: Any, order: Sequence[int]) -> Array:
    """A torch tensor as an array in the memory order of the C interface. NumPy has no bfloat16."""
    if tensor.dtype is torch.bfloat16:
        tensor = tensor.float()
    return np.array(tensor.detach().cpu().numpy().transpose(order), order="C")  # a scalar stays one


def flat_inputs(inputs: Sequence[Any]) -> list[Any]:
    """The tensors among the inputs, in the order torch.export sees them."""
    return [leaf for leaf in torch.utils._pytree.tree_leaves(tuple(inputs)) if isinstance(leaf, torch.Tensor)]


def run_module(callable_: Any, inputs: Sequence[Any], orders: Sequence[Sequence[int]]) -> tuple[Array, ...]:
    """PyTorch eager's answer, flattened, each output in the order of the C interface."""
    result = _run(callable_, inputs, getattr(callable_, "__name__", "forward"))
    leaves = [leaf for leaf in torch.utils._pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    return tuple(to_numpy(leaf, order) for leaf, order in zip(leaves, orders, strict=True))


def has_odd_values(inputs: Sequence[Any]) -> bool:
    """Whether a number among the inputs is NaN or infinite."""
    return any(x.is_floating_point() and not bool(torch.isfinite(x).all()) for x in flat_inputs(inputs))


def _run(callable_: Callable[..., Any], inputs: Sequence[Any], name: str) -> Any:
    """What a method returns; what it raises is the user's to fix."""
    try:
        with torch.no_grad():
            return callable_(*inputs)
    except (KeyboardInterrupt, CompileError):
        raise
    except BaseException as error:
        raise CompileError(
            f"{name}() failed: {said(error)}",
            at=_user_line(error),
            have=f"inputs {_types(inputs)}",
            need="a model that PyTorch can run with these inputs",
        ) from error


def _copied(module: Any) -> Any:
    """A copy whose state may change, if it can be copied."""
    try:
        return deepcopy(module)
    except Exception:
        return module


def _types(inputs: Sequence[Any]) -> str:
    """What the inputs are, in a line: (float32[1, 4], {'mask': bool[4]})."""
    text = str(torch.utils._pytree.tree_map(_Type, tuple(inputs)))
    return text if len(text) <= 200 else f"{text[:200]}…"


class _Type:
    """The type and shape of a tensor, as text."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        x = self.value
        return f"{str(x.dtype).removeprefix('torch.')}{list(x.shape)}" if isinstance(x, torch.Tensor) else shown(x)


def _decompose(exported: Any) -> Any:
    """Decompose what the table does not know; what it knows stays whole."""
    if all(_is_known(node.target) for node in exported.graph.nodes if node.op == "call_function"):
        return exported
    table = torch.export.default_decompositions()
    for target in list(table):  # all that it knows: some appear only when in-place writes are made functional
        if table_name(target) in TABLE:
            table.pop(target, None)
    with quiet():
        return exported.run_decompositions(table)


def _is_known(target: Any) -> bool:
    """Whether a call can stay as it is: the table has it, and it changes nothing in place."""
    schema = getattr(target, "_schema", None)
    return target is operator.getitem or (schema is not None and not schema.is_mutable and table_name(target) in TABLE)


def _call(node: Any, names: dict[str, str], within: str) -> AtenCall:
    values = node.meta["val"]
    if isinstance(values, (tuple, list)):
        results: list[str | None] = [None] * len(values)
        for user in node.users:  # getitem nodes
            results[user.args[1]] = user.name if user.users else None
        metas = list(values)
    else:
        results, metas = [node.name], [values]
    shapes = tuple(_shape(m, node) if isinstance(m, torch.Tensor) else None for m in metas)
    origin = _origin(node)
    origin = replace(origin, path=origin.path.removeprefix(within))
    return AtenCall(_target(node), _arguments(node, names), tuple(results), shapes, origin)


def _is_check(node: Any) -> bool:
    """An assertion has no value, but perhaps an effect: to raise."""
    effects = node.target is torch.ops.higher_order.with_effects
    return effects and node.args[1] is torch.ops.aten._linalg_check_errors.default


def _target(node: Any) -> str:
    effects = node.target is torch.ops.higher_order.with_effects
    return table_name(node.args[1] if effects else node.target)


def table_name(target: Any) -> str:
    schema = getattr(target, "_schema", None)
    if schema is None:
        return str(getattr(target, "__name__", target))
    base: str = schema.name
    if base not in TABLE:
        for suffix in _SUFFIXES:
            if base.removesuffix(suffix) in TABLE:
                return base.removesuffix(suffix)
    return base


def _arguments(node: Any, names: dict[str, str]) -> tuple[Arg, ...]:
    """All arguments in schema order, defaults filled in."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return tuple(_arg(a, names) for a in node.args)
    values = []
    for i, parameter in enumerate(schema.arguments):
        if i < len(node.args):
            values.append(node.args[i])
        elif parameter.name in node.kwargs:
            values.append(node.kwargs[parameter.name])
        else:
            values.append(parameter.default_value if parameter.has_default_value() else None)
    return tuple(_arg(v, names) for v in values)


def _arg(value: Any, names: dict[str, str]) -> Arg:
    if isinstance(value, torch.fx.Node):
        return Ref(names.get(value.name, value.name))
    if isinstance(value, (tuple, list)):
        return tuple(_arg(v, names) for v in value)
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    return str(value)


def _refs(args: Sequence[Arg]) -> Iterator[Ref]:
    for a in args:
        if isinstance(a, Ref):
            yield a
        elif isinstance(a, tuple):
            yield from _refs(a)


def _input(node: Any) -> AtenInput:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        raise CompileError(f"input {node.name} is {type(value).__name__}, not a tensor", need="tensors as inputs")
    dtype = DType.of(str(value.dtype).removeprefix("torch."))
    if dtype is None:
        raise CompileError(
            f"input {node.name} has type {value.dtype}",
            need=f"one of {', '.join(d.label for d in DType)}",
            try_="convert the model with model.float() and the inputs with x.float()",
        )
    return AtenInput(node.name, _shape(value, node), dtype, _order(value))


def _shape(value: Any, node: Any) -> tuple[int, ...]:
    if any(not isinstance(d, int) for d in value.shape):
        raise CompileError(
            f"{node.name} has a dynamic shape {list(map(str, value.shape))}",
            at=str(_origin(node)) or None,
            need="fixed shapes: every byte is planned before the image is built",
            try_="export without dynamic_shapes",
        )
    return tuple(value.shape)


def _order(value: Any) -> tuple[int, ...]:
    """Dimensions from outermost to innermost in memory; only contiguous and channels last are told apart."""
    contiguous = tuple(range(value.dim()))
    if value.dim() == 4 and not value.is_contiguous() and value.is_contiguous(memory_format=torch.channels_last):
        return (0, 2, 3, 1)
    return contiguous


def _array(tensor: Any, name: str) -> Array:
    if DType.of(str(tensor.dtype).removeprefix("torch.")) is None and tensor.dtype is not torch.complex64:
        raise CompileError(
            f"{name} has type {tensor.dtype}",
            need=f"one of {', '.join(d.label for d in DType)}",
            try_="convert the model with model.float()",
        )
    return np.array(tensor.detach().cpu().numpy(), order="C")  # a copy: running the model may change its buffers


def _labels(spec: Any) -> tuple[str, ...]:
    """A name for each output: its keys and indices in the structure that forward returns; y if that is one tensor."""
    pytree = torch.utils._pytree
    tree = pytree.tree_unflatten(range(spec.num_leaves), spec)
    paths = [path for path, _ in pytree.tree_flatten_with_path(tree)[0]]
    labels = []
    for path in paths:
        keys = [str(getattr(k, "key", getattr(k, "idx", getattr(k, "name", k)))) for k in path]
        labels.append("_".join(["y", *keys]) if not keys or keys[0].isdigit() else "_".join(keys))
    return tuple(label.replace("y_", "y", 1) if label.startswith("y_") else label for label in labels)


def _attribute(module: Any, path: str) -> Any:
    for part in path.split("."):
        module = getattr(module, part)
    return module


def _origin(node: Any) -> Origin:
    stack = node.meta.get("nn_module_stack") or {}
    path = str(list(stack.values())[-1][0]) if stack else ""
    source = ""
    for line in (node.meta.get("stack_trace") or "").splitlines():
        line = line.strip()
        if line.startswith('File "') and "/torch/" not in line and '"<' not in line:
            file, _, rest = line.removeprefix('File "').partition('", line ')
            source = f"{Path(file).name}:{rest.split(',')[0]}"
    return Origin(path.removeprefix("L['self']").strip("."), source)


@contextmanager
def quiet() -> Iterator[None]:
    """torch's own notices, and the program it prints where export fails, are not the user's business."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)  # torch's handlers have their own standard error
    try:
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def reason(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:200] if lines else type(error).__name__


def _user_line(error: BaseException) -> str | None:
    """The deepest line of the traceback that is the user's."""
    found = None
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith(("<", *_FOREIGN)) and not {"site-packages", "dist-packages"} & set(Path(file).parts):
            found = f"{Path(file).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found
