"""nn.Module -> a standard `.pte` for ExecuTorch's own runtime.

Before lowering, BatchNorm is folded into the layer before it; `linear` is kept whole and constants are
propagated. ExecuTorch's default path would transpose the weight of every linear layer in RAM, at run time.
"""

from __future__ import annotations

import copy
import os
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from baretorch.errors import CompileError
from baretorch.frontends.executorch_host import differences, importing_executorch
from baretorch.net import check
from baretorch.outputs import check_file, pte

Methods: TypeAlias = Mapping[str, Sequence[Any]]  # the example inputs of each


@dataclass(frozen=True)
class PteInfo:
    """What was written: the file's size, how often each operator is called, and what the user should know."""

    bytes: int
    operators: Mapping[str, int]
    notes: tuple[str, ...] = ()


def write_pte(module: Any, inputs: Sequence[Any] | Methods, path: str | Path) -> PteInfo:
    """Export `module` to `path`, for the example `inputs` of forward, or of each of several methods. The file appears
    whole or not at all. Then it is run on the host: the notes warn where that does not give what PyTorch gives."""
    with importing_executorch():
        import executorch.exir  # noqa: F401  (first, as it may be missing)
    given = inputs if isinstance(inputs, Mapping) else {"forward": inputs}
    methods = {m: tuple(_usual_strides(x) for x in some) for m, some in given.items()}
    own = copy.deepcopy(module)
    for t in (*own.parameters(), *own.buffers()):
        t.data = _usual_strides(t.data)
    exported, norms = _folded(own, methods)
    lowered = _lower(exported)
    operators: Counter[str] = Counter()
    for plan in lowered.executorch_program.execution_plan:
        calls = [i.instr_args for chain in plan.chains for i in chain.instructions]
        operators.update(plan.operators[c.op_index].name for c in calls if hasattr(c, "op_index"))
    data = bytes(lowered.buffer)
    _write_whole(Path(path), data)
    notes = [f"BatchNorm folded: {', '.join(norms)}"] if norms else []
    notes += [f"warning: {text}" for text in differences(data, module, methods)]
    return PteInfo(len(data), dict(operators), tuple(notes))


def _folded(module: Any, methods: Methods) -> tuple[dict[str, Any], tuple[str, ...]]:
    """torch.export of each method, with BatchNorm folded where it may be in all of them, and what was folded."""
    from baretorch.frontends.torch_export import export_module, functional, plain_programs, reference_of
    from baretorch.frontends.torch_norms import fold_norms
    from baretorch.frontends.torch_plain import answers, writes

    exported = {m: export_module(module, inputs, m) for m, inputs in methods.items()}
    made = {m: functional(e) for m, e in exported.items()}
    known = {m: (x, reference_of(getattr(copy.deepcopy(module), m), made[m], x)) for m, x in methods.items()}
    plain = plain_programs(made, known)
    changing = {n.args[0].target for p in plain.values() for n in writes(p)}
    norms = fold_norms(list(plain.values()), changing)
    if not norms:  # ExecuTorch evaluates constants itself
        return exported, ()
    for method, (inputs, reference) in known.items():
        check("the folding of BatchNorm", answers(plain[method], inputs, reference.runs), reference)
    return {m: export_module(plain[m], inputs) for m, inputs in methods.items()}, norms


def _lower(exported: Mapping[str, Any]) -> Any:
    """ExecuTorch's program. State keeps its initial value, and methods share it."""
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
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise CompileError("ExecuTorch cannot lower this model", have=reason[:200]) from error


def _usual_strides(x: Any) -> Any:
    """A contiguous tensor with the strides of one. Where a dimension is 1, channels_last leaves others, from which
    ExecuTorch makes a dimension order that its kernels refuse."""
    import torch

    return x.clone(memory_format=torch.contiguous_format) if isinstance(x, torch.Tensor) and x.is_contiguous() else x


def _write_whole(path: Path, data: bytes) -> None:
    check_file(path, pte)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        raise CompileError(f"cannot write {path}", have=str(error)) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
