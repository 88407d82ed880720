"""Writes an nn.Module as a standard `.pte` for ExecuTorch's own runtime.

Before lowering, BatchNorm is folded into the layer before it; `linear` is kept whole and constants are
propagated. ExecuTorch's default path would transpose the weight of every linear layer in RAM, at run time.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from baretorch.errors import CompileError
from baretorch.files.ownership import pte
from baretorch.files.write import put
from baretorch.frontends.pte.host import differences, importing_executorch
from baretorch.frontends.source import Torch
from baretorch.frontends.user_code import first_line
from baretorch.passes.equivalence import check

Methods: TypeAlias = Mapping[str, Sequence[Any]]  # the example inputs of each


@dataclass(frozen=True)
class PteInfo:
    """Facts about the written file: its size, how often each operator is called, and notes for the user."""

    bytes: int
    operators: Mapping[str, int]
    notes: tuple[str, ...] = ()


def write_programs(torch: Torch, path: str | Path) -> PteInfo:
    """Write the exported programs of a module to `path`. The file appears whole or not at all. Then it runs on the
    host; notes warn if its results differ from PyTorch's."""
    _need_executorch()
    methods = {m: tuple(map(_usual_strides, inputs)) for m, inputs in torch.inputs.items()}
    programs, norms = _fold_norms(torch, methods)
    lowered = _lower(programs)
    operators: Counter[str] = Counter()
    for plan in lowered.executorch_program.execution_plan:
        calls = [i.instr_args for chain in plan.chains for i in chain.instructions]
        operators.update(plan.operators[c.op_index].name for c in calls if hasattr(c, "op_index"))
    data = bytes(lowered.buffer)
    write_whole(Path(path), data)
    notes = [f"BatchNorm folded: {', '.join(norms)}"] if norms else []
    notes += [f"warning: {text}" for text in differences(data, torch.module, methods)]
    return PteInfo(len(data), dict(operators), tuple(notes))


def _need_executorch() -> None:
    with importing_executorch():
        import executorch.exir  # noqa: F401


def _fold_norms(torch: Torch, methods: Methods) -> tuple[Mapping[str, Any], tuple[str, ...]]:
    """Return the program of each method, with BatchNorm folded where all methods allow it, and the names of folded
    layers. Without folding or unusual strides, the programs are those of torch.export: ExecuTorch evaluates constants
    itself."""
    from baretorch.frontends.torch.export import export_module
    from baretorch.frontends.torch.norms import fold_norms
    from baretorch.frontends.torch.plain import answers, copy_program, writes

    plain = copy_program(dict(torch.plain))  # shared tensors stay shared
    changing = {n.args[0].target for p in plain.values() for n in writes(p)}
    norms = fold_norms(list(plain.values()), changing)
    stored = [t for p in plain.values() for t in (*p.parameters(), *p.buffers())]
    unusual = [t for t in stored if t.stride() != _usual_strides(t.data).stride()]
    given = zip(torch.inputs.values(), methods.values(), strict=True)
    if not (norms or unusual or any(a is not b for x, y in given for a, b in zip(x, y, strict=True))):
        return torch.exported, ()
    for t in unusual:
        t.data = _usual_strides(t.data)
    for method, reference in torch.references.items() if norms else ():
        check("the folding of BatchNorm", answers(plain[method], methods[method], reference.runs), reference)
    return {m: export_module(plain[m], inputs) for m, inputs in methods.items()}, norms


def _lower(exported: Mapping[str, Any]) -> Any:
    """Lower to ExecuTorch's program. State keeps its initial value, and methods share it."""
    with importing_executorch():
        from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge
        from executorch.exir.passes import MemoryPlanningPass
        from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
    import torch

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            options = EdgeCompileConfig(preserve_ops=[torch.ops.aten.linear.default])
            edge = to_edge(dict(exported), compile_config=options)
            state = any(edge.exported_program(m).graph_signature.buffers_to_mutate for m in exported)
            shared = state and len(exported) > 1
            config = ExecutorchBackendConfig(
                passes=[InitializedMutableBufferPass([""])] if state else [],
                memory_planning_pass=MemoryPlanningPass(share_mutable_buffers=shared),
                do_quant_fusion_and_const_prop=not shared,  # it would fold what one method reads and another changes
            )
            return edge.to_executorch(config)
    except Exception as error:
        reason = first_line(error) or type(error).__name__
        raise CompileError("ExecuTorch cannot lower this model", have=reason) from error


def _usual_strides(x: Any) -> Any:
    """Return a contiguous tensor with contiguous strides. If a dimension is 1, channels_last leaves other strides, from
    which ExecuTorch computes a dimension order that its kernels reject."""
    import torch

    if not isinstance(x, torch.Tensor) or not x.is_contiguous():
        return x
    usual = torch.empty(x.shape, device="meta").stride()
    return x if x.stride() == usual else x.clone(memory_format=torch.contiguous_format)


def write_whole(path: Path, data: bytes) -> None:
    put(path, data, pte, parents=False)
