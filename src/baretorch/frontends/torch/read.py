"""Converts a plain torch program to an ATen program: names, shapes, constants, state, and the origin of each call."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from baretorch.errors import CompileError
from baretorch.frontends.aten.program import BOUND, Arg, AtenCall, AtenInput, AtenProgram, AtenState, Ref, refs
from baretorch.frontends.aten.table import TABLE
from baretorch.frontends.lowering import DTYPES, note_halves
from baretorch.frontends.torch.plain import attribute, is_tensor, tensor_array, writes
from baretorch.frontends.user_code import show_value
from baretorch.ir.graph import HALVES, Array, DType, Origin, numbered

# View and in-place spellings of one operator.
SUFFIXES = ("_copy", "_")


def read_plain(module: Any, name: str, beside: Iterable[Any] = ()) -> AtenProgram:
    """Return the ATen program of a plain one. Every value has its shape in `meta["val"]`. The other programs are those
    of other methods, which use the same names for the same memory."""
    stored, names = _names(module, beside)
    inputs: list[AtenInput] = []
    constants: dict[str, Array] = {}
    calls: list[AtenCall] = []
    outputs: list[str] = []
    orders: list[tuple[int, ...]] = []
    halves: list[DType | None] = []
    notes: list[str] = []
    written = writes(module)
    for node in module.graph.nodes:
        if node.op == "placeholder" and isinstance(node.meta.get("val"), BOUND) and not node.users:
            notes.append(f"input {node.target} is {show_value(node.meta['val'])} for ever: only tensors stay inputs")
        elif node.op == "placeholder":
            inputs.append(_input(node))
        elif node.op == "get_attr" and is_tensor(module, node):
            if node.users:
                constants[stored[node.target]] = _array(attribute(module, node.target), node)
        elif node.op == "call_function" and node not in written:
            if node.target is not operator.getitem and "val" in node.meta and not _is_check(node):
                calls.append(_call(node, names))
        elif node.op == "output":
            for value in node.args[0]:
                if not isinstance(value, torch.fx.Node):
                    raise CompileError(
                        f"an output is {value!r}, not a tensor",
                        need="tensors as outputs",
                        try_="`return y` at the end of forward()" if value is None else f"torch.tensor({value!r})",
                    )
                outputs.append(names.get(value.name, value.name))
                orders.append(_order(value.meta["val"]))
                halves.append(HALVES.get(str(value.meta["val"].dtype).removeprefix("torch.")))
    types = {str(x.dtype).removeprefix("torch.") for node in module.graph.nodes for x in _values(node)}
    notes += note_halves(types)
    state = [AtenState(names[node.args[0].name], names.get(node.args[1].name, node.args[1].name)) for node in written]
    if not outputs and not state:
        raise CompileError(
            "the model returns no tensors",
            need="at least one tensor as output",
            try_="`return y` at the end of forward()",
        )
    used = {a.name for call in calls for a in refs(call.args)} | set(outputs)
    used |= {name for s in state for name in (s.name, s.next)}
    return AtenProgram(
        name,
        tuple(inputs),
        {n: c for n, c in constants.items() if n in used},
        tuple(calls),
        tuple(outputs),
        tuple(orders),
        tuple(state),
        _labels(module.graph._codegen.pytree_info.out_spec),
        tuple(notes),
        halves=tuple(halves),
    )


def _names(module: Any, beside: Iterable[Any]) -> tuple[dict[str, str], dict[str, str]]:
    """Return Baretorch's names of stored tensors, and of nodes whose name differs from the graph's. In torch, inputs,
    stored tensors and results of calls may share a name; here each has its own, and inputs have the user's."""
    programs = (module, *beside)
    given = {str(node.target) for p in programs for node in p.graph.find_nodes(op="placeholder")}
    targets = {node.target for p in programs for node in p.graph.find_nodes(op="get_attr") if is_tensor(p, node)}
    taken = given | targets
    stored = {target: _free_name(target, taken) if target in given else target for target in sorted(targets)}
    fixed, taken = frozenset(taken), taken | {node.name for node in module.graph.nodes}
    names = {}
    for node in module.graph.nodes:
        if node.op == "placeholder":
            names[node.name] = str(node.target)  # a copy of a graph may have another name for it
        elif node.op == "get_attr" and node.target in stored:
            names[node.name] = stored[node.target]
        elif node.op == "call_function" and node.name in fixed:
            names[node.name] = _free_name(node.name, taken)
    return stored, names


def _free_name(name: str, taken: set[str]) -> str:
    """Return `name`, with a number if it is in use, and reserve it."""
    free = next(other for other in numbered(name) if other not in taken)
    taken.add(free)
    return free


def _call(node: Any, names: dict[str, str]) -> AtenCall:
    values = node.meta["val"]
    if isinstance(values, (tuple, list)):
        results: list[str | None] = [None] * len(values)
        for user in node.users:  # getitem nodes
            results[user.args[1]] = names.get(user.name, user.name) if user.users else None
        metas = list(values)
    else:
        results, metas = [names.get(node.name, node.name)], [values]
    shapes = tuple(_shape(m, node) if isinstance(m, torch.Tensor) else None for m in metas)
    return AtenCall(_target(node), _arguments(node, names), tuple(results), shapes, origin_of(node))


def _is_check(node: Any) -> bool:
    """Report whether a node is an assertion, which has no value but may raise."""
    effects = node.target is torch.ops.higher_order.with_effects
    return (node.args[1] if effects else node.target) is torch.ops.aten._linalg_check_errors.default


def _target(node: Any) -> str:
    effects = node.target is torch.ops.higher_order.with_effects
    return table_name(node.args[1] if effects else node.target)


def table_name(target: Any) -> str:
    """Return the name of an operator in the ATen table."""
    schema = getattr(target, "_schema", None)
    if schema is None:
        return str(getattr(target, "__name__", target))
    base: str = schema.name
    if base not in TABLE:
        for suffix in SUFFIXES:
            if base.removesuffix(suffix) in TABLE:
                return base.removesuffix(suffix)
    return base


def _arguments(node: Any, names: dict[str, str]) -> tuple[Arg, ...]:
    """Return all arguments in schema order, with defaults."""
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
        label = str(value).removeprefix("torch.")
        return "float32" if label in HALVES else label
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    return str(value)


def _input(node: Any) -> AtenInput:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        raise CompileError(f"input {node.name} is {type(value).__name__}, not a tensor", need="tensors as inputs")
    dtype = _dtype(value)
    if dtype is None:
        raise CompileError(
            f"input {node.name} has type {value.dtype}",
            need=DTYPES,
            try_="convert the model with model.float() and the inputs with x.float()",
        )
    return AtenInput(str(node.target), _shape(value, node), dtype, _order(value))


def _shape(value: Any, node: Any) -> tuple[int, ...]:
    if any(str(d).startswith("u") for d in value.shape if not isinstance(d, int)):  # torch's names of unknown sizes
        name = table_name(node.target).removeprefix("aten::") if node.op == "call_function" else node.name
        what = "x[mask]" if name == "index" else name
        raise CompileError(
            f"{what}: the shape of the result depends on the values of a tensor",
            at=str(origin_of(node)) or None,
            have=f"the shape [{', '.join(map(str, value.shape))}]",
            need="fixed shapes: every byte is planned before the image is built",
            try_="torch.where(mask, x, 0), or x * mask, which keep the shape; topk for a fixed number of values",
        )
    if any(not isinstance(d, int) for d in value.shape):
        raise CompileError(
            f"{node.name} has a dynamic shape {list(map(str, value.shape))}",
            at=str(origin_of(node)) or None,
            need="fixed shapes: every byte is planned before the image is built",
            try_="export without dynamic_shapes",
        )
    return tuple(value.shape)


def _order(value: Any) -> tuple[int, ...]:
    """Return the dimensions from outermost to innermost in memory: contiguous or channels last."""
    contiguous = tuple(range(value.dim()))
    if value.dim() == 4 and not value.is_contiguous() and value.is_contiguous(memory_format=torch.channels_last):
        return (0, 2, 3, 1)
    return contiguous


def _array(tensor: Any, node: Any) -> Array:
    if _dtype(tensor) is None and tensor.dtype is not torch.complex64:
        if node.target.rpartition(".")[2].startswith("lifted_tensor"):  # a constant that the code makes
            places = filter(None, (str(origin_of(user)) for user in node.users))
            raise CompileError(
                f"a constant in forward() has type {tensor.dtype}",
                at=next(places, None),
                need=DTYPES,
                try_=".float() for numbers of NumPy, which are float64; torch.ones(4) and the like are float32",
            )
        raise CompileError(
            f"{node.target} has type {tensor.dtype}", need=DTYPES, try_="convert the model with model.float()"
        )
    return np.array(tensor_array(tensor), order="C")  # a copy: running the model may change its buffers


def _values(node: Any) -> list[Any]:
    """Return the tensors that a node makes."""
    return [x for x in torch.utils._pytree.tree_leaves(node.meta.get("val")) if isinstance(x, torch.Tensor)]


def _dtype(tensor: Any) -> DType | None:
    """Return the type of a tensor, if a model may have it."""
    label = str(tensor.dtype).removeprefix("torch.")
    return HALVES.get(label) or DType.of(label)


def _labels(spec: Any) -> tuple[str, ...]:
    """Return a name for each output: its keys and indices in the structure that forward returns; y if that is one
    tensor."""
    pytree = torch.utils._pytree
    tree = pytree.tree_unflatten(range(spec.num_leaves), spec)
    paths = [path for path, _ in pytree.tree_flatten_with_path(tree)[0]]
    labels = []
    for path in paths:
        keys = [str(getattr(k, "key", getattr(k, "idx", getattr(k, "name", k)))) for k in path]
        labels.append("_".join(["y", *keys]) if not keys or keys[0].isdigit() else "_".join(keys))
    return tuple(label.replace("y_", "y", 1) if label.startswith("y_") else label for label in labels)


def origin_of(node: Any) -> Origin:
    """Return the module path and source line of a node in the user's model."""
    stack = node.meta.get("nn_module_stack") or {}
    path = str(list(stack.values())[-1][0]) if stack else ""
    source = ""
    for line in (node.meta.get("stack_trace") or "").splitlines():
        line = line.strip()
        if line.startswith('File "') and "/torch/" not in line and '"<' not in line:
            file, _, rest = line.removeprefix('File "').partition('", line ')
            source = f"{Path(file).name}:{rest.split(',')[0]}"
    return Origin(path.removeprefix("L['self']").strip("."), source)
