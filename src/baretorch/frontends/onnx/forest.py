"""Trees as ONNX stores them -> the tables of the operator `trees`.

All comparisons become `x <= threshold` on keys: `x < t` has the key before that of t, `>=` and `>` exchange what
follows, and `==` takes two comparisons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.ir.graph import Array
from baretorch.ops.trees import UNREACHED, key_of

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER")
Vote = tuple[int, float]  # a target, and the number that it gets


@dataclass(frozen=True)
class Branch:
    """A node of a file. `true` and `false` are nodes, or ~leaf."""

    mode: str
    feature: int
    value: float
    nan_is_true: bool
    true: int
    false: int
    members: tuple[float, ...] = ()


@dataclass
class Forest:
    """The trees of a file: nodes by number, and the votes of each leaf."""

    branches: Mapping[int, Branch]
    leaves: Sequence[Sequence[Vote]]
    roots: Sequence[int]
    nodes: list[tuple[int, int, int, int]] = field(default_factory=list)

    def tables(self, op: str, features: int, targets: int, zeros: bool) -> dict[str, Array]:
        """Return the tables of the operator, without votes of 0 unless `zeros`. Raises CompileError if a tree is
        damaged."""
        self.nodes.clear()
        places = self._number()
        for number, branch in self.branches.items():
            if number in places and not 0 <= branch.feature < features:
                raise CompileError(
                    f"{op}: a node compares feature {branch.feature}", need=f"one of {features} features"
                )
        for number in sorted(places, key=lambda n: places[n]):
            self._add(self.branches[number], places)
        # Leaves with equal votes are stored once.
        bundles: dict[tuple[Vote, ...], int] = {}
        which = [bundles.setdefault(tuple(v for v in votes if zeros or v[1]), len(bundles)) for votes in self.leaves]
        votes = [vote for bundle in bundles for vote in bundle]
        if any(not 0 <= target < targets for target, _ in votes):
            raise CompileError(f"{op}: a leaf votes for an unknown target", need=f"one of {targets} targets")
        nodes = np.array(self.nodes, np.int32).reshape(-1, 4)
        ends, roots = nodes[:, 2:], np.array([r if r < 0 else places[r] for r in self.roots], np.int32)
        leaf = np.array([*which, 0])
        ends[ends < 0] = ~leaf[~ends[ends < 0]]
        roots[roots < 0] = ~leaf[~roots[roots < 0]]
        return {
            "nodes": nodes,
            "roots": roots,
            "starts": np.cumsum([0, *map(len, bundles)], dtype=np.int32),
            "places": np.array([target for target, _ in votes], np.int32),
            "votes": np.array([vote for _, vote in votes], np.float32),
        }

    def _number(self) -> dict[int, int]:
        """Return the place of each node that a root reaches, parents before what follows. Raises CompileError if a
        path does not end."""
        places: dict[int, int] = {}
        done: set[int] = set()
        count = 0
        for root in self.roots:
            stack = [root] if root >= 0 else []
            while stack:
                number = stack[-1]
                if number in places:
                    done.add(stack.pop())
                    continue
                branch = self.branches[number]
                places[number] = count
                count += _size(branch)
                for child in (branch.false, branch.true):
                    if child in places and child not in done:
                        raise CompileError(f"node {child} of a tree follows itself", need="trees without cycles")
                    if child >= 0 and child not in places:
                        stack.append(child)
        return places

    def _add(self, branch: Branch, places: Mapping[int, int]) -> None:
        true, false = (c if c < 0 else places[c] for c in (branch.true, branch.false))
        at, above, key = len(self.nodes), branch.nan_is_true, UNREACHED
        if not np.isnan(branch.value):
            key = int(key_of(np.array(branch.value, np.float32)))
        if branch.mode == "BRANCH_MEMBER":
            keys = [int(key_of(np.array(m, np.float32))) for m in branch.members]
            for i, key in enumerate(keys):
                last = i == len(keys) - 1
                self._equal(branch.feature, key, above and last, true, false if last else at + 2 * i + 2)
            return
        if branch.mode in ("BRANCH_EQ", "BRANCH_NEQ"):
            if branch.mode == "BRANCH_NEQ":
                self._equal(branch.feature, key, False, false, true)
            else:
                self._equal(branch.feature, key, above, true, false)
            return
        if branch.mode in ("BRANCH_LT", "BRANCH_GTE") and key != UNREACHED:
            key -= 1
        if branch.mode in ("BRANCH_GTE", "BRANCH_GT") and not np.isnan(branch.value):
            self.nodes.append((2 * branch.feature + (not above), key, false, true))
        else:
            self.nodes.append((2 * branch.feature + above, key, true, false))

    def _equal(self, feature: int, key: int, nan_is_equal: bool, equal: int, other: int) -> None:
        """Add the two comparisons of `==`."""
        second = len(self.nodes) + 1
        self.nodes.append((2 * feature + nan_is_equal, key, second, other))
        self.nodes.append((2 * feature, key - 1 if key != UNREACHED else UNREACHED, other, equal))


def _size(branch: Branch) -> int:
    """Return how many comparisons a node takes."""
    return {"BRANCH_EQ": 2, "BRANCH_NEQ": 2, "BRANCH_MEMBER": 2 * len(branch.members)}.get(branch.mode, 1)


def read_nodes(op: str, a: Mapping[str, Any], votes: str) -> Forest:
    """Return the forest of TreeEnsembleClassifier or TreeEnsembleRegressor. `votes` begins the names of the attributes
    of leaves: class or target."""
    doubles = [name for name in a if name.endswith("_as_tensor")]
    if doubles:
        raise CompileError(f"{op}: {doubles[0]} is not supported", need="float32", try_="convert the model to float32")
    names = ("treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids")
    columns = _alike(op, a, [f"nodes_{name}" for name in names])
    tracks = a.get("nodes_missing_value_tracks_true", ())
    if len(tracks) not in (0, len(columns[0])):
        raise CompileError(f"{op}: nodes_missing_value_tracks_true has {len(tracks)} numbers")
    at: dict[tuple[int, int], int] = {}
    roots: dict[int, int] = {}
    for i, (tree, number) in enumerate(zip(columns[0], columns[1], strict=True)):
        if (tree, number) in at:
            raise CompileError(f"{op}: node {number} of tree {tree} is defined twice")
        at[tree, number] = i
        roots.setdefault(tree, i)
    leaves = [i for i, mode in enumerate(columns[4]) if mode == "LEAF"]
    leaf = {i: ~n for n, i in enumerate(leaves)}
    branches = {}
    for i, (tree, number, feature, value, mode, true, false) in enumerate(zip(*columns, strict=True)):
        if i in leaf:
            continue
        if mode not in MODES[:-1]:
            raise CompileError(f"{op}: the mode {mode!r} is not supported", need=f"{', '.join(MODES[:-1])} or LEAF")
        for child in (true, false):
            if (tree, child) not in at:
                raise CompileError(f"{op}: node {number} of tree {tree} leads to node {child}, which is missing")
        yes, no = (leaf.get(at[tree, child], at[tree, child]) for child in (true, false))
        branches[i] = Branch(mode, feature, value, bool(tracks and tracks[i] == 1), yes, no)
    found: list[list[Vote]] = [[] for _ in leaves]
    for tree, number, target, weight in zip(
        *_alike(op, a, [f"{votes}_{name}" for name in ("treeids", "nodeids", "ids", "weights")]), strict=True
    ):
        i = at.get((tree, number), -1)
        if i < 0:
            raise CompileError(f"{op}: {votes}_nodeids has node {number} of tree {tree}, which is missing")
        if i in leaf:
            found[~leaf[i]].append((target, weight))
    return Forest(branches, found, [leaf.get(i, i) for i in roots.values()])


def _alike(op: str, a: Mapping[str, Any], names: Sequence[str]) -> list[Sequence[Any]]:
    """Return attributes that must have equal lengths."""
    columns: list[Sequence[Any]] = [a.get(name, ()) for name in names]
    if len({len(c) for c in columns}) != 1:
        raise CompileError(
            f"{op}: attributes differ in length",
            have=", ".join(f"{name}: {len(c)}" for name, c in zip(names, columns, strict=True)),
            need="one entry per node, or per vote",
        )
    return columns


def read_ensemble(op: str, a: Mapping[str, Any]) -> Forest:
    """Return the forest of TreeEnsemble, the operator of ai.onnx.ml 5, whose leaves are a table of their own."""
    names = ("featureids", "splits", "modes", "truenodeids", "trueleafs", "falsenodeids", "falseleafs")
    columns = _alike(op, a, [f"nodes_{name}" for name in names])
    targets, weights = _alike(op, a, ["leaf_targetids", "leaf_weights"])
    tracks = a.get("nodes_missing_value_tracks_true", ())
    count = len(columns[0])
    if len(tracks) not in (0, count):
        raise CompileError(f"{op}: nodes_missing_value_tracks_true has {len(tracks)} numbers")
    members = _split_members(np.asarray(a.get("membership_values", ()), np.float32))
    branches = {}
    for i, (feature, value, mode, true, true_leaf, false, false_leaf) in enumerate(zip(*columns, strict=True)):
        if not 0 <= mode < len(MODES):
            raise CompileError(f"{op}: the mode {mode} is not supported", need="0 to 6")
        for child, is_leaf in ((true, true_leaf), (false, false_leaf)):
            if not 0 <= child < (len(targets) if is_leaf else count):
                raise CompileError(f"{op}: node {i} leads to {'leaf' if is_leaf else 'node'} {child}, which is missing")
        some: tuple[float, ...] = ()
        if MODES[mode] == "BRANCH_MEMBER":
            if not members:
                raise CompileError(f"{op}: membership_values has too few sets")
            some = members.pop(0)
        yes, no = (int(~c if is_leaf else c) for c, is_leaf in ((true, true_leaf), (false, false_leaf)))
        branches[i] = Branch(MODES[mode], feature, float(value), bool(tracks and tracks[i] == 1), yes, no, some)
    roots = []
    for root in a.get("tree_roots", ()):
        if not 0 <= root < count:
            raise CompileError(f"{op}: tree_roots has node {root}, which is missing")
        both = branches[root].true, branches[root].false
        roots.append(both[0] if both[0] == both[1] < 0 else root)
    votes = [[(int(t), float(w))] for t, w in zip(targets, weights, strict=True)]
    return Forest(branches, votes, roots)


def _split_members(values: Array) -> list[tuple[float, ...]]:
    """Return the sets of BRANCH_MEMBER, in the order of the nodes. A NaN ends each set."""
    sets: list[list[float]] = [[]]
    for value in values.reshape(-1):
        if np.isnan(value):
            sets.append([])
        else:
            sets[-1].append(float(value))
    return [tuple(s) for s in sets if s]
