"""Copy the JSON program of a `.pt2` piece by piece, without anything that torch's own reader would run or evaluate.

torch.export.load evaluates symbolic sizes and guards as Python, imports modules that structures of inputs and outputs
name, calls any function of torch that a node names, and writes Python code out of the names of values. So names must be
names, functions must be operators, and sizes numbers. Guards are dropped: they only repeat the sizes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeAlias

from baretorch.errors import CompileError
from baretorch.frontends.pt2.archive import damaged, parse_json

Json: TypeAlias = Any

TRUST = "--trust (in Python trust=True), if you made this file yourself or trust its author: it may then run code"
VERIFIERS = ("", "ATEN", "TRAINING")
CONTROL_FLOW = ("cond", "while_loop", "wrap_with_set_grad_enabled", "wrap_with_autocast")
_TUPLES = ("builtins.tuple", "builtins.list", "torch.fx.immutable_collections.immutable_list")
_DICTS = ("builtins.dict", "collections.OrderedDict", "torch.fx.immutable_collections.immutable_dict")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|")
_OPERATOR = re.compile(r"torch\.ops\.([a-z_]+)\.([A-Za-z0-9_]+)\.([A-Za-z0-9_]+)")
_REFUSED = {
    "as_custom_obj": "an object of a class of its own",
    "custom_obj": "an object of a class of its own",
    "as_operator": "a function as an argument",
    "token": "an operator with side effects",
}


def unsafe(what: str) -> CompileError:
    """Return the error for content that only a file that may run code can have."""
    return refused(f"the .pt2 file needs {what}")


def refused(what: str) -> CompileError:
    """Return the error for content that is only read from files that the user trusts."""
    return CompileError(
        what,
        need="a program that is only data: operators, numbers and dense tensors",
        try_=["compile the Python model file instead, or export it again without that", TRUST],
    )


def safe_program(program: Json, known: Callable[[str, str, str], bool]) -> Json:
    """Return the program in torch's schema, with checked content only. `known` reports, by namespace, name and
    overload, whether an operator may be called."""
    if _get(program, "range_constraints", dict):
        raise _dynamic()
    module = _get(program, "graph_module", dict)
    for verifier in _get(program, "verifiers", list):
        if verifier not in VERIFIERS:
            raise unsafe(f"the verifier {_short(verifier)}")
    version = _get(program, "schema_version", dict)
    return {
        "graph_module": {
            "graph": _graph(_get(module, "graph", dict), known),
            "signature": _copy(_get(module, "signature", dict), known),
            "module_call_graph": [_call(_get(module, "module_call_graph", list))],
        },
        "opset_version": {},
        "range_constraints": {},
        "schema_version": {key: _get(version, key, int) for key in ("major", "minor")},
        "verifiers": program["verifiers"],
    }


def parameter_path(name: Json) -> str:
    """Return a parameter's path, such as `net.0.weight`. torch quotes it if it is not an identifier."""
    if not isinstance(name, str) or not name.isprintable() or '"' in name or "\\" in name:
        raise unsafe(f"a parameter called {_short(name)}")
    return name


def tensor_sizes(meta: Json) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Return sizes, strides and offset of a stored tensor, in elements."""
    sizes, strides = (tuple(_number(n) for n in _get(meta, key, list)) for key in ("sizes", "strides"))
    if len(sizes) != len(strides):
        raise damaged(f"a tensor has {len(sizes)} sizes and {len(strides)} strides")
    return sizes, strides, _number(_get(meta, "storage_offset", dict))


def _number(value: Json) -> int:
    if isinstance(value, dict) and "as_expr" in value:
        raise _dynamic()
    number: int = _get(value, "as_int", int)
    if not 0 <= number < 1 << 62:
        raise damaged(f"a size in it is {number}")
    return number


def _graph(graph: Json, known: Callable[[str, str, str], bool]) -> Json:
    return {
        "inputs": _copy(_get(graph, "inputs", list), known),
        "outputs": _copy(_get(graph, "outputs", list), known),
        "nodes": [_node(node, known) for node in _get(graph, "nodes", list)],
        "tensor_values": {_name(n): _tensor(v) for n, v in _get(graph, "tensor_values", dict).items()},
        "sym_int_values": _constants(graph, "sym_int_values"),
        "sym_bool_values": _constants(graph, "sym_bool_values"),
        "sym_float_values": _constants(graph, "sym_float_values"),
        "is_single_tensor_return": graph.get("is_single_tensor_return") is True,
    }


def _constants(graph: Json, key: str) -> Json:
    values = graph.get(key) or {}
    if not isinstance(values, dict):
        raise damaged(f"{key} in it is {_short(values)}")
    for value in values.values():
        if isinstance(value, dict) and "as_expr" in value:
            raise _dynamic()
        if not isinstance(value, dict) or not all(isinstance(v, (int, float)) for v in value.values()):
            raise damaged(f"{key} in it holds {_short(value)}")
    return {_name(n): v for n, v in values.items()}


def _tensor(meta: Json) -> Json:
    device = _get(meta, "device", dict)
    if device.get("type") != "cpu":
        raise CompileError(
            f"the .pt2 file was exported on {_short(device.get('type'))}",
            need="a program for the CPU",
            try_='move the model and its inputs with .to("cpu") and export it again',
        )
    return {
        "dtype": _get(meta, "dtype", int),
        "sizes": [{"as_int": _number(n)} for n in _get(meta, "sizes", list)],
        "requires_grad": meta.get("requires_grad") is True,
        "device": {"type": "cpu"},
        "strides": [{"as_int": _number(n)} for n in _get(meta, "strides", list)],
        "storage_offset": {"as_int": 0},
        "layout": _get(meta, "layout", int),
    }


def _node(node: Json, known: Callable[[str, str, str], bool]) -> Json:
    target = _get(node, "target", str)
    match = _OPERATOR.fullmatch(target)
    flow = target.removeprefix("torch.ops.higher_order.") in CONTROL_FLOW
    if not flow and target != "_operator.getitem" and not (match and known(*match.groups())):
        raise CompileError(
            f"the .pt2 file calls {_short(target)}, which is not an operator that Baretorch runs from a file",
            need="operators that `baretorch ops` lists, or that torch makes of them",
            try_=TRUST,
        )
    notes = _get(node, "metadata", dict)
    return {
        "target": target,
        "inputs": _copy(_get(node, "inputs", list), known),
        "outputs": _copy(_get(node, "outputs", list), known),
        "metadata": {k: v for k in ("stack_trace", "nn_module_stack") if isinstance(v := notes.get(k), str)},
        "is_hop_single_tensor_return": node.get("is_hop_single_tensor_return"),
        "name": None if node.get("name") is None else _name(node["name"]),
    }


def _copy(value: Json, known: Callable[[str, str, str], bool]) -> Json:
    """Copy arguments and signatures: names, numbers and texts in lists and tables."""
    if isinstance(value, list):
        return [_copy(v, known) for v in value]
    if not isinstance(value, dict):
        return value
    made: dict[str, Json] = {}
    for key, inner in value.items():
        if key in _REFUSED:
            raise unsafe(_REFUSED[key])
        if key == "as_expr":
            raise _dynamic()
        if key in ("name", "as_name"):
            made[key] = _name(inner)
        elif key in ("parameter_name", "buffer_name", "tensor_constant_name"):
            made[key] = parameter_path(inner)
        elif key == "as_device":
            made[key] = {"type": "cpu"}
        elif key == "as_graph":
            made[key] = {"name": _name(_get(inner, "name", str)), "graph": _graph(_get(inner, "graph", dict), known)}
        elif key == "as_string_to_argument":
            made[key] = {_name(k): _copy(v, known) for k, v in _get(value, key, dict).items()}
        else:
            made[key] = _copy(inner, known)
    return made


def _call(entries: Json) -> Json:
    """Return the signature of the whole program, which is the first; those of layers are for torch.export.unflatten."""
    first = entries[0] if entries else None
    signature = _get(first, "signature", dict)
    return {
        "fqn": "",
        "signature": {
            "inputs": [],
            "outputs": [],
            "in_spec": json.dumps([1, _structure(signature, "in_spec")]),
            "out_spec": json.dumps([1, _structure(signature, "out_spec")]),
            "forward_arg_names": [_name(n) for n in signature.get("forward_arg_names") or ()] or None,
        },
    }


def _structure(signature: Json, key: str) -> Json:
    """Return the structure of the tuples, lists and dicts that forward takes or returns."""
    match parse_json(_get(signature, key, str), key):
        case [1, tree]:
            return _branch(tree)
    raise damaged(f"{key} in it is not a valid structure")


def _branch(tree: Json) -> Json:
    kind, context = (_get(tree, key, object) for key in ("type", "context"))
    if kind is None:
        return {"type": None, "context": None, "children_spec": []}
    if kind not in (*_TUPLES, *_DICTS):
        raise unsafe(f"a structure of type {_short(kind)} as input or output")
    made = [_branch(child) for child in _get(tree, "children_spec", list)]
    if kind in _TUPLES:
        return {"type": kind, "context": "null", "children_spec": made}
    keys = parse_json(context, "a dict's keys")
    if not isinstance(keys, list) or len(keys) != len(made):
        raise damaged(f"a dict in it has the keys {_short(context)}")
    names = [k if isinstance(k, int) else _name(k) for k in keys]
    return {"type": kind, "context": json.dumps(names), "children_spec": made}


def _name(name: Json) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise unsafe(f"a value called {_short(name)}")
    return name


def _get(table: Json, key: str, kind: type) -> Json:
    if not isinstance(table, dict) or key not in table:
        raise damaged(f"{key} is missing in it")
    if not isinstance(table[key], kind) or (kind is int and isinstance(table[key], bool)):
        raise damaged(f"{key} in it is {_short(table[key])}")
    return table[key]


def _dynamic() -> CompileError:
    return CompileError(
        "the .pt2 file has dynamic shapes",
        need="fixed shapes: every byte is planned before the image is built",
        try_="export without dynamic_shapes",
    )


def _short(value: Json) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
