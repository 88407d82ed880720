"""nn.Module -> a standard `.pte` for ExecuTorch's own runtime, and that runtime on the host as a reference.

Before lowering, BatchNorm is folded into the layer before it; `linear` is kept whole and constants are
propagated. ExecuTorch's default path would transpose the weight of every linear layer in RAM, at run time.
"""

from __future__ import annotations

import copy
import os
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baretorch.errors import CompileError
from baretorch.ir import Array


@dataclass(frozen=True)
class PteInfo:
    """What was written: the file's size, how often each operator is called, and what the user should know."""

    bytes: int
    operators: Mapping[str, int]
    notes: tuple[str, ...] = ()


def write_pte(module: Any, inputs: Sequence[Any], path: str | Path) -> PteInfo:
    """Export `module` for the example `inputs` to `path`. The file appears whole or not at all."""
    with _executorch():
        from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge
    import torch

    from baretorch.frontends.torch_export import export_module

    inputs = [_usual_strides(x) for x in inputs]
    folded, norms = fold_batch_norms(module, inputs)
    for t in (*folded.parameters(), *folded.buffers()):
        t.data = _usual_strides(t.data)
    exported = export_module(folded, inputs)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            edge = to_edge(exported, compile_config=EdgeCompileConfig(preserve_ops=[torch.ops.aten.linear.default]))
            lowered = edge.to_executorch(ExecutorchBackendConfig(do_quant_fusion_and_const_prop=True))
    except Exception as error:
        reason = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise CompileError("ExecuTorch cannot lower this model", have=reason[:200]) from error
    plan = lowered.executorch_program.execution_plan[0]
    calls = [i.instr_args for chain in plan.chains for i in chain.instructions]
    operators = Counter(plan.operators[c.op_index].name for c in calls if hasattr(c, "op_index"))
    data = bytes(lowered.buffer)
    _write_whole(Path(path), data)
    return PteInfo(len(data), dict(operators), (f"BatchNorm folded: {', '.join(norms)}",) if norms else ())


def run_pte(path: str | Path, inputs: Sequence[Any]) -> list[Array]:
    """The outputs of method "forward" in ExecuTorch's host runtime, which owns its memory: these are copies."""
    with _executorch():
        from executorch.runtime import Runtime
    import torch

    try:
        data = Path(path).read_bytes()  # the program points into it, so it must outlive the run
        program = Runtime.get().load_program(data)
        outputs = program.load_method("forward").execute([torch.as_tensor(x) for x in inputs])
    except (RuntimeError, OSError) as error:
        raise CompileError(f"ExecuTorch cannot run {path}", have=str(error)) from error
    return [out.numpy().copy() for out in outputs]


def fold_batch_norms(module: Any, inputs: Sequence[Any]) -> tuple[Any, tuple[str, ...]]:
    """A copy of the module with each BatchNorm that follows a convolution or linear layer folded into it, and
    the names of the folded ones. What follows what is read from the exported graph, not from the class."""
    import torch
    from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

    from baretorch.frontends.torch_export import export_module

    folded = copy.deepcopy(module)
    pairs = _foldable(export_module(folded, inputs), folded)
    for layer_name, norm_name in pairs:
        layer, norm = folded.get_submodule(layer_name), folded.get_submodule(norm_name)
        if isinstance(layer, torch.nn.Linear):
            fused = fuse_linear_bn_eval(layer, norm)
        else:
            fused = fuse_conv_bn_eval(layer, norm, transpose=layer.transposed)
        folded.set_submodule(layer_name, fused)
        folded.set_submodule(norm_name, torch.nn.Identity())
    return folded, tuple(norm_name for _, norm_name in pairs)


def _foldable(exported: Any, module: Any) -> list[tuple[str, str]]:
    """Names of (layer, BatchNorm) where the norm is the only reader of the layer, and each is used once."""
    import torch

    signature = exported.graph_signature
    stored = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}

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


@contextmanager
def _executorch() -> Iterator[None]:
    """Around imports of executorch: says how to get it, and keeps its import warnings to itself."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except ImportError as error:
        raise CompileError(
            "ExecuTorch is needed for this and is not installed",
            have=str(error),
            need="executorch 1.4.1",
            try_='pip install "baretorch[executorch]"',
        ) from error


def _write_whole(path: Path, data: bytes) -> None:
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_bytes(data)
        part.replace(path)
    except OSError as error:
        raise CompileError(f"cannot write {path}", have=str(error)) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
