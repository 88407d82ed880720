"""Converts torch.cond, while_loop, map and scan to plain operators, in torch's own graph.

Both branches of a cond are written out, and `baretorch::choose` takes the result of one; the plan then finds out what
need not be computed (plan/guards.py). Loops are unrolled: turns that are known to happen as they are, others as nested
conds. That a loop ends must be seen from constants, such as a counter that is compared with a number.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch._ops import HigherOrderOperator
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from baretorch.errors import CompileError
from baretorch.passes.fold import LARGEST

TURNS = 256  # of a loop
OPEN_TURNS = 64  # of a loop whose end depends on data

_LIBRARY = torch.library.Library("baretorch", "DEF")
_LIBRARY.define("choose(Tensor condition, Tensor a, Tensor b) -> Tensor")
_LIBRARY.impl("choose", lambda condition, a, b: torch.where(condition, a, b), "CompositeExplicitAutograd")
CHOOSE = torch.ops.baretorch.choose.default

_HIGHER = torch.ops.higher_order
_ATEN = torch.ops.aten
_ANDS = (_ATEN.logical_and.default, _ATEN.bitwise_and.Tensor, _ATEN.__and__.Tensor)

_UNKNOWN = object()  # a value that depends on inputs or state


def flatten(module: GraphModule, known: Callable[[Node], Any]) -> None:
    """Replace all control flow. `known` returns the value of a constant placeholder or attribute, else None."""
    flat = _Flat(module, known)
    handlers: dict[Any, Callable[[Node], list[Any]]] = {
        _HIGHER.cond: flat.cond,
        _HIGHER.while_loop: flat.loop,
        _HIGHER.map_impl: flat.map,
        _HIGHER.scan: flat.scan,
    }
    done = False
    while True:  # unrolled code may have control flow again
        node = next((n for n in module.graph.nodes if n.op == "call_function" and n.target in handlers), None)
        if node is None:
            break
        flat.at = node
        with module.graph.inserting_before(node):
            results = handlers[node.target](node)
        for user in list(node.users):
            assert user.target is operator.getitem
            user.replace_all_uses_with(results[user.args[1]])
            module.graph.erase_node(user)
        module.graph.erase_node(node)
        done = True
    if done:
        for node in list(module.graph.nodes):
            if node.op == "get_attr" and not node.users and isinstance(getattr(module, node.target, None), GraphModule):
                module.graph.erase_node(node)
        module.recompile()


@dataclass
class _Flat:
    module: GraphModule
    known: Callable[[Node], Any]
    at: Any = None  # the operator that is being replaced
    values: dict[Node, Any] = field(default_factory=dict)
    count: int = 0

    def cond(self, node: Node) -> list[Any]:
        condition, yes, no, operands = node.args
        value = self.truth(condition)
        if value is not None:
            return self.inline(yes if value else no, operands)
        return self.choose(condition, self.inline(yes, operands), self.inline(no, operands))

    def loop(self, node: Node) -> list[Any]:
        condition, body, carried, extra = node.args
        values = list(carried)
        turns: list[tuple[Any, list[Any]]] = []  # the condition, if it is not known to hold, and the values before
        while True:
            (go,) = self.inline(condition, (*values, *extra))
            value = self.truth(go)
            if value is False:
                break
            turns.append((None if value else go, values))
            if len(turns) > TURNS or sum(go is not None for go, _ in turns) > OPEN_TURNS:
                raise self.refusal(
                    f"while_loop: no end is in sight after {len(turns) - 1} turns",
                    need=f"at most {TURNS} turns, or {OPEN_TURNS} where data decides, as a counter shows",
                    try_="while_loop(lambda i, x: (i < 10) & (x.norm() > 1), …, (torch.tensor(0), x))",
                )
            values = self.inline(body, (*values, *extra))
        for go, before in reversed(turns):
            if go is not None:
                values = self.choose(go, values, before)
        return values

    def map(self, node: Node) -> list[Any]:
        body, xs, extra = node.args
        rows = [self.inline(body, (*self.row(xs, i), *extra)) for i in range(self.length(xs))]
        return [self.call(_ATEN.stack.default, list(column)) for column in zip(*rows, strict=True)]

    def scan(self, node: Node) -> list[Any]:
        body, init, xs, extra = node.args
        carry, rows = list(init), []
        for i in range(self.length(xs)):
            made = self.inline(body, (*carry, *self.row(xs, i), *extra))
            carry = made[: len(init)]
            rows.append(made[len(init) :])
        return [*carry, *(self.call(_ATEN.stack.default, list(column)) for column in zip(*rows, strict=True))]

    def length(self, xs: Sequence[Node]) -> int:
        count = int(xs[0].meta["val"].shape[0])
        if not 0 < count <= TURNS:
            raise self.refusal(f"a loop over {count} rows is not written out", need=f"1 to {TURNS} rows")
        return count

    def row(self, xs: Sequence[Node], i: int) -> list[Any]:
        return [self.call(_ATEN.select.int, x, 0, i) for x in xs]

    def choose(self, condition: Any, a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        if condition.meta["val"].dim():
            condition = self.call(_ATEN.view.default, condition, [])
        return [x if x is y else self.call(CHOOSE, condition, x, y) for x, y in zip(a, b, strict=True)]

    def call(self, target: Any, *args: Any) -> Node:
        node = self.module.graph.call_function(target, args)
        node.meta = {**self.at.meta, "val": target(*map_arg(args, lambda n: n.meta["val"]))}
        return node

    def inline(self, body: Node, args: Sequence[Any]) -> list[Any]:
        """Inline a subgraph with these arguments and return its results."""
        graph = getattr(self.module, str(body.target)).graph
        given, values = iter(args), dict[Node, Any]()
        for node in graph.nodes:
            if node.op == "placeholder":
                values[node] = next(given)
            elif node.op == "get_attr":
                self.count += 1
                name = f"{body.target}_{node.target}_{self.count}".replace(".", "_")
                setattr(self.module, name, getattr(graph.owning_module, node.target))
                values[node] = self.module.graph.get_attr(name)
                values[node].meta = dict(node.meta)
            elif node.op == "output":
                results = node.args[0] if isinstance(node.args[0], (tuple, list)) else [node.args[0]]
                made = [values.get(r, r) if isinstance(r, Node) else r for r in results]
                for r in made:
                    if not isinstance(r, Node):
                        raise self.refusal(f"a branch or loop returns {r!r}", need="tensors as results")
                return made
            else:
                values[node] = self.module.graph.node_copy(node, values.__getitem__)
                if not values[node].meta.get("nn_module_stack"):
                    values[node].meta["nn_module_stack"] = self.stack(values[node])
        raise AssertionError("a graph without output")

    def stack(self, node: Node) -> dict[str, Any]:
        """Return the modules that a node of a subgraph is in. Dynamo does not record them, but parameters have names: a
        node that reads `a.weight` is in the layer `a`."""
        around = dict(self.at.meta.get("nn_module_stack") or {})
        owners = {str(a.target).rpartition(".")[0] for a in node.all_input_nodes if a.op == "get_attr"} - {""}
        if len(owners) != 1 or isinstance(node.target, HigherOrderOperator):
            return around
        (owner,) = owners
        return {**around, owner: (owner, "torch.nn.Module")}

    def truth(self, node: Any) -> bool | None:
        """Return a condition that is known before the model runs, else None."""
        value = self.value(node)
        return None if value is _UNKNOWN else bool(value)

    def value(self, node: Any) -> Any:
        """Return a node's value if it does not depend on inputs, else _UNKNOWN; `values` caches both."""
        if not isinstance(node, Node):
            return node
        pending = [node]
        while pending:  # not recursive, because models are deep
            last = pending[-1]
            missing = [a for a in last.all_input_nodes if a not in self.values]
            if missing:
                pending += missing
                continue
            pending.pop()
            if last not in self.values:
                self.values[last] = self.compute(last)
        return self.values[node]

    def compute(self, node: Node) -> Any:
        """Compute the value of a node whose arguments are already known."""
        if node.op in ("placeholder", "get_attr"):
            value = self.known(node)
            return value.clone() if isinstance(value, torch.Tensor) else _UNKNOWN
        values = [self.values[a] for a in node.all_input_nodes]
        if node.target in _ANDS and any(v is not _UNKNOWN and not v.any() for v in values):
            return torch.zeros(node.meta["val"].shape, dtype=node.meta["val"].dtype)
        schema = getattr(node.target, "_schema", None)
        random = schema is not None and torch.Tag.nondeterministic_seeded in node.target.tags
        changing = schema is not None and schema.is_mutable and node.target is not _ATEN.detach_.default
        tensors = [t for t in torch.utils._pytree.tree_leaves(node.meta.get("val")) if isinstance(t, torch.Tensor)]
        unknown = any(v is _UNKNOWN for v in values) or sum(t.nbytes for t in tensors) > LARGEST
        if unknown or schema is None or random or changing or node.target is CHOOSE:
            return _UNKNOWN
        args, kwargs = map_arg((node.args, node.kwargs), self.values.__getitem__)
        with torch.no_grad():
            return node.target(*args, **kwargs)

    def refusal(self, what: str, need: str, try_: str | None = None) -> CompileError:
        stack = list((self.at.meta.get("nn_module_stack") or {}).values())
        return CompileError(
            what, at=str(stack[-1][0]) if stack and stack[-1][0] else self.at.name, need=need, try_=try_
        )
