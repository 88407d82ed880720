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
    methods = {m: tuple(_usual_strides(x) for x in own) for m, own in given.items()}
    folded, norms = fold_batch_norms(module, methods)
    for t in (*folded.parameters(), *folded.buffers()):
        t.data = _usual_strides(t.data)
    lowered = _lower({m: _export(folded, m, own) for m, own in methods.items()})
    operators: Counter[str] = Counter()
    for plan in lowered.executorch_program.execution_plan:
        calls = [i.instr_args for chain in plan.chains for i in chain.instructions]
        operators.update(plan.operators[c.op_index].name for c in calls if hasattr(c, "op_index"))
    data = bytes(lowered.buffer)
    _write_whole(Path(path), data)
    notes = [f"BatchNorm folded: {', '.join(norms)}"] if norms else []
    notes += [f"warning: {text}" for text in differences(data, module, methods)]
    return PteInfo(len(data), dict(operators), tuple(notes))


def fold_batch_norms(module: Any, methods: Methods, only: type | None = None) -> tuple[Any, tuple[str, ...]]:
    """A copy of the module with each BatchNorm that follows a convolution or linear layer (or `only` one of this type)
    folded into it, and the names of the folded ones. What follows what is read from the exported graphs, not from the
    class."""
    import torch
    from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

    folded = copy.deepcopy(module)
    pairs = _foldable([_export(folded, m, inputs) for m, inputs in methods.items()], folded)
    pairs = [pair for pair in pairs if only is None or isinstance(folded.get_submodule(pair[0]), only)]
    for layer_name, norm_name in pairs:
        layer, norm = folded.get_submodule(layer_name), folded.get_submodule(norm_name)
        if isinstance(layer, torch.nn.Linear):
            fused = fuse_linear_bn_eval(layer, norm)
        else:
            fused = fuse_conv_bn_eval(layer, norm, transpose=layer.transposed)
        folded.set_submodule(layer_name, fused)
        folded.set_submodule(norm_name, torch.nn.Identity())
    return folded, tuple(norm_name for _, norm_name in pairs)


def _export(module: Any, method: str, inputs: Sequence[Any]) -> Any:
    """torch.export of a method. Its parameters have the names that they have in `module`, whatever the method, so that
    ExecuTorch knows what methods share."""
    from baretorch.frontends.torch_export import export_module

    same = copy.copy(module)
    same.forward = getattr(module, method)
    return export_module(same, inputs)


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


def _foldable(graphs: Sequence[Any], module: Any) -> list[tuple[str, str]]:
    """Names of (layer, BatchNorm) where in each graph that uses one of them, the norm is the only reader of the
    layer, and each is used once."""
    found = [_pairs(exported, module) for exported in graphs]
    used = [_used(exported) for exported in graphs]
    return [
        pair
        for pair in dict.fromkeys(p for pairs in found for p in pairs)
        if all(pair in pairs or names.isdisjoint(pair) for pairs, names in zip(found, used, strict=True))
    ]


def _used(exported: Any) -> set[str]:
    """Names of the modules whose parameters or buffers a graph reads."""
    stored = _stored(exported)
    return {stored[n.name].rpartition(".")[0] for n in exported.graph.nodes if n.name in stored and n.users}


def _stored(exported: Any) -> dict[str, str]:
    """The parameter or buffer that each placeholder stands for."""
    signature = exported.graph_signature
    return {**signature.inputs_to_parameters, **signature.inputs_to_buffers}


def _pairs(exported: Any, module: Any) -> list[tuple[str, str]]:
    """Those of one graph."""
    import torch

    stored = _stored(exported)

    def owner(node: Any) -> str:
        """The module a parameter belongs to, if the graph reads it once; else nothing."""
        if not isinstance(node, torch.fx.Node) or len(node.users) != 1:
            return ""
        return str(stored.get(node.name, "")).rpartition(".")[0]

    pairs = []
    for node in exported.graph.nodes:
        if node.target is not torch.ops.aten.batch_norm.default:
            continue
        source = node.args[0]
        if source.op != "call_function" or len(source.users) != 1 or len(source.args) < 2:
            continue
        layer_name, norm_name = owner(source.args[1]), owner(node.args[3])
        if not layer_name or not norm_name:
            continue
        layer, norm = module.get_submodule(layer_name), module.get_submodule(norm_name)
        rank = source.meta["val"].dim()
        plain_linear = isinstance(layer, torch.nn.Linear) and rank == 2  # else the channel is not the last dimension
        plain_conv = isinstance(layer, torch.nn.modules.conv._ConvNd) and not (layer.transposed and layer.groups > 1)
        if (plain_linear or plain_conv) and isinstance(norm, torch.nn.modules.batchnorm._BatchNorm):
            pairs.append((layer_name, norm_name))
    return pairs


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
