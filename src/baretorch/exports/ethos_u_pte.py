"""Write a `.pte` that ExecuTorch's runtime runs on an Ethos-U: quantize, a delegate, dequantize.

The regions are those of an image with `--npu require`. Vela compiles them again in ExecuTorch's form: inputs and
outputs are inside the scratch memory, and driver actions have their first form.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

from baretorch.errors import CompileError
from baretorch.frontends.pte.export import PteInfo, write_whole
from baretorch.frontends.pte.host import importing_executorch
from baretorch.ir.graph import DType, Graph, Node, Port
from baretorch.ir.io import store_inputs
from baretorch.machines.npu.stream_check import Judgement
from baretorch.npu import vela
from baretorch.npu.accelerators import ACCELERATORS_BY_NAME
from baretorch.npu.partition import Partition, layer_name_of, make_partition
from baretorch.npu.payload import read_payload, to_blocks
from baretorch.npu.to_tosa import to_tosa
from baretorch.npu.use import EDGES
from baretorch.ops.delegate import ALIGNED, Delegate
from baretorch.ops.int8.quantize import Dequantize, Quantize
from baretorch.ops.layout import Reshape
from baretorch.pipeline import LoweredModel
from baretorch.targets.parts import Npu
from baretorch.targets.types import Board

BACKEND = "EthosUBackend"  # as ExecuTorch's runtime knows it
QUANTIZE, DEQUANTIZE = (f"quantized_decomposed::{name}_per_tensor" for name in ("quantize", "dequantize"))
SCALAR_TYPES = {DType.INT8: 1, DType.FLOAT32: 6}


def write_npu_pte(model: LoweredModel, board: Board, path: Path) -> PteInfo:
    """Write the selected method of an int8 model. All but the conversions from and to float runs on the board's NPU."""
    npu = board.chip.npu
    if npu is None:
        raise CompileError(
            f"--npu: {board.name} has no NPU",
            need="a chip whose TOML has [npu], such as corstone-300",
            try_="--board corstone-300",
        )
    source, graph = model.source, model.graph
    if graph.state:
        raise CompileError(
            "--npu: a model with state cannot be exported",
            have=", ".join(s.name for s in graph.state),
            try_="`baretorch build`: its images combine state with an NPU",
        )
    judge = Judgement(graph, store_inputs(graph, source.examples))
    found = make_partition(graph, npu, most=True, judge=judge)
    _need_all(graph, found, board)
    plan, notes = _Writer(graph), list[str]()
    for node in found.graph.nodes:
        if isinstance(node.op, Delegate):
            data = _compile(node.op.region, npu)
            payload = read_payload(data)
            judge(node.op.region, payload)
            plan.delegate(node.op.region, data)
            notes.append(f"a delegate for {npu.accelerator}, with {payload.scratch:,} bytes of scratch")
        elif isinstance(node.op, (Quantize, Dequantize)):
            plan.convert(node)
    whole = plan.file(source.method)
    write_whole(path, whole)
    others = [m for m in source.graphs if m != source.method]
    notes += [f"only method {source.method} is written, not {', '.join(others)}"] if others else []
    calls = {QUANTIZE: plan.count(QUANTIZE), BACKEND: len(plan.payloads), DEQUANTIZE: plan.count(DEQUANTIZE)}
    return PteInfo(len(whole), {name: n for name, n in calls.items() if n}, tuple(notes))


def _compile(region: Graph, npu: Npu) -> bytes:
    return to_blocks(vela.raw(to_tosa(region, ACCELERATORS_BY_NAME[npu.accelerator].family), npu))


def _need_all(graph: Graph, found: Partition, board: Board) -> None:
    """Raise CompileError if operators other than conversions are left on the CPU: ExecuTorch has no kernels with their
    arithmetic."""
    kept = [f"{left.op} {left.layer}: {left.why}" for left in found.left if left.op not in EDGES]
    inside = {
        name for n in found.graph.nodes if isinstance(n.op, Delegate) for t in n.op.region.nodes for name in t.outputs
    }
    others = (n for n in graph.nodes if not isinstance(n.op, (Quantize, Dequantize, Reshape)))
    kept = kept or [f"{n.op.name} {layer_name_of(graph[n.outputs[0]])}" for n in others if not inside & set(n.outputs)]
    if kept or not found.regions:
        raise CompileError(
            f"--npu: {len(kept)} operators of the model do not run on the NPU of {board.name}",
            have=kept or "no operator computes in int8",
            need="an int8 model of which the NPU takes everything but quantize and dequantize",
            try_="`baretorch build`: its images run the rest on the CPU" if found.regions else "--int8",
        )


@dataclass
class _Writer:
    """ExecuTorch's execution plan under construction. Inputs, outputs, and tensors that are converted to or from them
    have the caller's shape, because ExecuTorch's kernels do not reshape."""

    graph: Graph
    values: list[Any] = field(default_factory=list)
    indices: dict[str, int] = field(default_factory=dict)
    calls: list[tuple[str | int, list[int]]] = field(default_factory=list)  # an operator, or the number of a delegate
    payloads: list[bytes] = field(default_factory=list)
    arena: int = 0

    def __post_init__(self) -> None:
        with importing_executorch():
            from executorch.exir import schema
        self.schema: Any = schema
        self.producer = self.graph.producer()
        self.ports = self._ports()

    def _ports(self) -> Mapping[str, Port]:
        """Return the port of each tensor as ExecuTorch sees it, by the name of the tensor that it is a view of."""
        found: dict[str, Port] = {}
        for port in (*self.graph.takes(), *self.graph.gives()):
            found.setdefault(self.root(port.tensor.name), port)
        for node in self.graph.nodes:
            x, y = self.root(node.inputs[0]), node.outputs[0]
            if isinstance(node.op, Quantize) and x in found:
                found.setdefault(y, found[x])
            elif isinstance(node.op, Dequantize) and y in found:
                found.setdefault(x, found[y])
        return found

    def root(self, name: str) -> str:
        while name in self.producer and isinstance(self.producer[name].op, Reshape):
            name = self.producer[name].inputs[0]
        return name

    def tensor(self, name: str) -> int:
        """Return the value of a tensor."""
        name = self.root(name)
        if name not in self.indices:
            t, port = self.graph[name], self.ports.get(name)
            shape, order = (port.shape, port.order) if port else (t.shape, tuple(range(len(t.shape))))
            assert prod(shape) == t.count, f"{t} and {shape}"
            place = self.schema.AllocationDetails(1, self.arena, 0)
            self.arena += -(-t.bytes // ALIGNED) * ALIGNED
            kind = self.schema.ScalarType(SCALAR_TYPES[t.dtype])
            static = self.schema.TensorShapeDynamism.STATIC
            self.indices[name] = self.value(
                self.schema.Tensor(kind, 0, list(shape), list(order), False, 0, 0, place, static)
            )
        return self.indices[name]

    def value(self, value: Any) -> int:
        self.values.append(self.schema.EValue(value))
        return len(self.values) - 1

    def convert(self, node: Node) -> None:
        op = node.op
        assert isinstance(op, (Quantize, Dequantize))
        x, y = self.tensor(node.inputs[0]), self.tensor(node.outputs[0])
        numbers = [self.value(self.schema.Double(float(op.scale)))]
        numbers += [self.value(self.schema.Int(n)) for n in (op.zero, -128, 127, SCALAR_TYPES[DType.INT8])]
        if isinstance(op, Dequantize):
            numbers.append(self.value(self.schema.Null()))  # the type of the result, which is float
        self.calls.append((QUANTIZE if isinstance(op, Quantize) else DEQUANTIZE, [x, *numbers, y, y]))

    def delegate(self, region: Graph, payload: bytes) -> None:
        self.calls.append((len(self.payloads), [self.tensor(n) for n in (*region.inputs, *region.outputs)]))
        self.payloads.append(payload)

    def count(self, operator: str) -> int:
        return sum(what == operator for what, _ in self.calls)

    def file(self, method: str) -> bytes:
        from executorch.exir._serialize._program import PTEFile, serialize_pte_binary

        s = self.schema
        operators = list(dict.fromkeys(what for what, _ in self.calls if isinstance(what, str)))
        inputs, outputs = ([self.tensor(n) for n in names] for names in (self.graph.inputs, self.graph.outputs))
        calls = [
            s.KernelCall(operators.index(what), args) if isinstance(what, str) else s.DelegateCall(what, args)
            for what, args in self.calls
        ]
        plan = s.ExecutionPlan(
            name=method,
            container_meta_type=s.ContainerMetadata(_tree(len(inputs), True), _tree(len(outputs), False)),
            values=self.values,
            inputs=inputs,
            outputs=outputs,
            chains=[s.Chain([], [], [s.Instruction(call) for call in calls], None)],
            operators=[s.Operator(name, "out") for name in operators],
            delegates=[
                s.BackendDelegate(BACKEND, s.BackendDelegateDataReference(s.DataLocation.INLINE, i), [])
                for i in range(len(self.payloads))
            ],
            non_const_buffer_sizes=[0, self.arena],
        )
        program = s.Program(
            version=0,
            execution_plan=[plan],
            constant_buffer=[s.Buffer(b"")],
            backend_delegate_data=[s.BackendDelegateInlineData(data) for data in self.payloads],
            segments=[],
            constant_segment=s.SubsegmentOffsets(0, []),
        )
        return bytes(serialize_pte_binary(PTEFile(program), extract_delegate_segments=True))


def _tree(leaves: int, call: bool) -> str:
    """Return PyTorch's description of the arguments or results: a tuple of this many."""

    def tree(kind: str | None, children: Sequence[Any], context: str | None) -> dict[str, Any]:
        return {"type": kind, "context": context, "children_spec": list(children)}

    flat = tree("builtins.tuple", [tree(None, (), None)] * leaves, "null")
    whole = tree("builtins.tuple", [flat, tree("builtins.dict", (), "[]")], "null") if call else flat
    return json.dumps([1, whole])
