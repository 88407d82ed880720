"""Channels-last layout: carry permutations along instead of executing them.

Convolutions and pools are NHWC, PyTorch's model is NCHW, so the frontends put a permutation on each side of them.
Walking forward, this pass records every permutation as a note ("this value is that one, permuted"), computes
elementwise operators on the value underneath, cancels permutations that meet, and reorders the columns of the linear
layer that follows a flattened image. A reshape is applied underneath (regroup.py), so that signals [N, C, L] and images
of height 1 are treated alike. Only the remaining permutations are executed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from baretorch.ir.graph import PERMUTED, Array, Graph, Node, Op, Shape, Tensor, fresh, with_data
from baretorch.ops.layout import Permute, Reshape
from baretorch.passes.regroup import Sizes, regroup
from baretorch.passes.rewrite import rebuild


def layout(graph: Graph) -> Graph:
    """Remove permutations."""
    walk = _Walk(graph, graph.uses())
    for node in graph.nodes:
        walk.visit(node)
    outputs = tuple(walk.real(name) for name in graph.outputs)
    state = tuple(replace(s, next=walk.real(s.next)) for s in graph.state)
    return rebuild(replace(graph, outputs=outputs, state=state), walk.nodes, walk.new.values())


@dataclass
class _Walk:
    graph: Graph
    uses: dict[str, list[Node]]
    nodes: list[Node] = field(default_factory=list)
    new: dict[str, Tensor] = field(default_factory=dict)
    lazy: dict[str, tuple[str, Sizes]] = field(default_factory=dict)  # name -> (base, dims): name is base permuted
    made: dict[str, str] = field(default_factory=dict)  # lazy name -> tensor where it was executed after all
    moved: dict[str, tuple[str, tuple[Sizes, ...]]] = field(default_factory=dict)  # base -> (root, groups of its dims)
    columns: dict[str, tuple[str, Array]] = field(default_factory=dict)  # flattened image -> (base, column order)

    def visit(self, node: Node) -> None:
        op = node.op
        if isinstance(op, Permute):
            self.permute(node, op)
        elif isinstance(op, Reshape) and self.flattens(node):
            self.flatten(node)
        elif isinstance(op, Reshape) and node.inputs[0] in self.lazy:
            self.reshape(node)
        elif op.by_column and node.inputs[0] in self.columns:
            self.linear(node)
        elif op.reordered:
            self.absorb(node)
        elif not self.commute(node):
            self.emit(op, tuple(map(self.real, node.inputs)), node.outputs)

    def tensor(self, name: str) -> Tensor:
        return self.new.get(name) or self.graph[name]

    def emit(self, op: Op, inputs: tuple[str, ...], outputs: tuple[str, ...]) -> None:
        self.nodes.append(Node(op, inputs, outputs))

    def real(self, name: str) -> str:
        """Return a tensor that holds `name`; execute its pending permutation if there is one."""
        if name not in self.lazy:
            return name
        if name not in self.made:
            base, dims = self.lazy[name]
            if dims == tuple(range(len(dims))):
                self.made[name] = base
            else:
                root, order = self.direct(base, dims)
                if root == base:
                    self.emit(Permute(dims), (base,), (name,))
                else:
                    self.emit(Reshape(self.tensor(name).shape), (self.step(Permute(order), root, name),), (name,))
                self.made[name] = name
        return self.made[name]

    def direct(self, base: str, dims: Sizes) -> tuple[str, Sizes]:
        """Return the tensor and the dims of a single permutation that equals `base` permuted by `dims`. If `base` was
        made by moving another tensor, that one is permuted: the order of elements is right, the shape is not yet."""
        root, groups = self.moved.get(base, (base, ()))
        sizes = self.tensor(root).shape
        if not groups or self.tensor(base).shape != tuple(prod(sizes[d] for d in group) for group in groups):
            return base, dims
        order = [d for i in dims for d in groups[i]]
        return root, (*order, *(d for d in range(len(sizes)) if d not in order))

    def step(self, op: Op, x: str, to: str) -> str:
        """Add an operator whose output is an intermediate tensor of `to`, and return its name."""
        (signature,) = op.infer([self.tensor(x)])
        name = self.name(f"{to}{PERMUTED}")
        self.new[name] = replace(self.graph[to], name=name, shape=signature.shape)
        self.emit(op, (x,), (name,))
        return name

    def reshape(self, node: Node) -> None:
        """Reshape the base tensor. If data must move for that, `moved` records from where. If a reader needs the result
        in another order, it is then moved directly, and dead code elimination removes the first move."""
        (x,), (out,) = node.inputs, node.outputs
        base, dims = self.lazy[x]
        new = regroup(self.tensor(base).shape, dims, self.graph[out].shape)
        if new is None:
            self.emit(node.op, (self.real(x),), node.outputs)
            return
        root, made_of = self.moved.get(base, (base, tuple((d,) for d in range(len(dims)))))
        under = base
        if not new.free:
            source, order = self.direct(base, new.order)
            under = self.step(Permute(order), source, out)
        name = self.step(Reshape(new.shape), under, out)
        if root != base or not new.free:
            self.moved[name] = (root, tuple(tuple(r for d in group for r in made_of[d]) for group in new.groups))
        self.lazy[out] = (name, new.out)

    def permute(self, node: Node, op: Permute) -> None:
        base, dims = self.view(node.inputs[0])
        self.lazy[node.outputs[0]] = (base, tuple(dims[d] for d in op.dims))

    def view(self, name: str) -> tuple[str, Sizes]:
        """Return (base, dims) of any tensor; a plain tensor is its own base."""
        return self.lazy.get(name) or (name, tuple(range(len(self.tensor(name).shape))))

    # --- operators that do not care about the order of dimensions -----------------------------------------

    def commute(self, node: Node) -> bool:
        """Compute the node on the value underneath a permutation, if it has one and the operator allows it."""
        carried = node.inputs[node.op.carried]
        dims = next((self.lazy[n][1] for n in carried if n in self.lazy), None)
        found = None if dims is None else node.op.permute(dims, [self.tensor(n) for n in node.inputs])
        if dims is None or found is None:
            return False
        inverse = tuple(int(i) for i in np.argsort(dims))
        inputs = []
        for name in node.inputs:
            base = self.under(name, dims, inverse) if name in carried else self.real(name)
            if base is None:
                return False
            inputs.append(base)
        self.result(node, found.op, tuple(inputs), found.dims)
        return True

    def under(self, name: str, dims: Sizes, inverse: Sizes) -> str | None:
        """Return the tensor that is `name` when permuted by dims; a constant is permuted at once."""
        if name in self.lazy:
            base, own = self.lazy[name]
            return base if own == dims else None
        t = self.tensor(name)
        if t.data is None:
            return name if t.count == 1 and not t.shape else None
        if len(t.shape) > len(dims):
            return None
        full = t.data.reshape((1,) * (len(dims) - len(t.shape)) + t.shape)
        return self.constant(t, full.transpose(inverse))

    def result(self, node: Node, op: Op, inputs: tuple[str, ...], dims: Sizes) -> None:
        """Emit the operator with new names for its results. The node's own names become permutations of these."""
        names = []
        for out, signature in zip(node.outputs, op.infer([self.tensor(n) for n in inputs]), strict=True):
            name = self.name(f"{out}{PERMUTED}")
            self.new[name] = replace(self.graph[out], name=name, shape=signature.shape)
            self.lazy[out] = (name, dims)
            names.append(name)
        self.emit(op, inputs, tuple(names))

    # --- operators that read and write in any order -------------------------------------------------------

    def absorb(self, node: Node) -> None:
        """Let the operator read what is underneath its operands, and write what the one permutation after it makes."""
        own = node.op.reordered
        under = [self.view(name) for name in node.inputs[:own]]
        inputs = (*(base for base, _ in under), *map(self.real, node.inputs[own:]))
        (out,) = node.outputs
        then = [n.op for n in self.uses.get(out, ())]
        after = then[0].dims if len(then) == 1 and isinstance(then[0], Permute) else ()
        new = node.op.with_orders([dims for _, dims in under], after)
        if after:
            self.result(node, new, inputs, tuple(int(i) for i in np.argsort(after)))
        else:
            self.emit(new, inputs, node.outputs)

    # --- a permuted image, flattened for a linear layer ---------------------------------------------------

    def flattens(self, node: Node) -> bool:
        """[N, C, H, W] -> [N, C*H*W] of a permuted value that only linear layers with constant weights read."""
        x = node.inputs[0]
        if x not in self.lazy:
            return False
        shape, to = self.tensor(x).shape, self.graph[node.outputs[0]].shape
        if len(to) != 2 or to[0] != shape[0] or self.lazy[x][1][0] != 0 or node.outputs[0] in self.graph.kept:
            return False
        return all(
            r.op.by_column and r.inputs[0] == node.outputs[0] and self.graph[r.inputs[1]].data is not None
            for r in self.uses.get(node.outputs[0], ())
        )

    def flatten(self, node: Node) -> None:
        (x,), (out,) = node.inputs, node.outputs
        base, dims = self.lazy[x]
        shape: Shape = self.tensor(x).shape
        # columns[k]: the column of the PyTorch order that stands at place k of the base's own order
        columns = np.arange(self.graph[out].shape[1]).reshape(shape[1:])
        order = columns.transpose([int(i) - 1 for i in np.argsort(dims)[1:]]).reshape(-1)
        self.columns[out] = (self.step(Reshape(self.graph[out].shape), base, out), order)

    def linear(self, node: Node) -> None:
        base, order = self.columns[node.inputs[0]]
        weight = self.graph[node.inputs[1]]
        name = self.constant(weight, weight.numbers[:, order])
        self.emit(node.op, (base, name, *node.inputs[2:]), node.outputs)

    # --- small things -------------------------------------------------------------------------------------

    def constant(self, like: Tensor, data: Array) -> str:
        name = self.name(f"{like.name}{PERMUTED}")
        self.new[name] = with_data(replace(like, name=name), data)
        return name

    def name(self, stem: str) -> str:
        return fresh(self.graph, self.new, stem)
