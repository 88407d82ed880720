"""Calibrate a module with data and convert it to int8; torchao's pt2e does the work."""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torchao.quantization.pt2e import quantize_pt2e
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

from baretorch.errors import CompileError
from baretorch.frontends.torch.export import flat_inputs
from baretorch.frontends.torch.norms import fold_norms
from baretorch.frontends.torch.plain import answers, copied, state_kept
from baretorch.frontends.torch.read import origin_of
from baretorch.net import Reference, check
from baretorch.options import Observer
from baretorch.quantize.health import judged
from baretorch.quantize.observers import counted
from baretorch.quantize.quantizer import Int8Quantizer
from baretorch.quantize.recurrent import split_layers

RANDOM_SAMPLES = 16
KEPT_SAMPLES = 16  # at least, if there are as many: enough to judge layers by
TOO_LARGE = 1e30  # no scale is larger
_OBSERVER = "activation_post_process"  # how torchao's names of observers begin


@dataclass(frozen=True)
class Quantized:
    """The converted module, which computes as an int8 model would, some of the samples that it was calibrated with,
    and what the user should know."""

    module: Any
    samples: tuple[tuple[Any, ...], ...]
    warnings: tuple[str, ...]


def quantize_module(
    plain: Any,
    inputs: Sequence[Any],
    samples: Iterable[Sequence[Any]] | None,
    reference: Reference,
    keep_float: Sequence[str] = (),
    observer: Observer = Observer.HISTOGRAM,
    progress: Callable[[str, int, int], None] | None = None,
) -> Quantized:
    """int8 by post-training quantization of a plain program with these calibration samples; None: seeded random data,
    with a warning. What is done to the program before it is calibrated is held against the reference."""
    notes: list[str] = []
    if samples is None:
        notes.append(
            "calibration: the model file has no calibration(), so random data was used: scales do not fit real inputs"
        )
        samples = random_samples(inputs)
    module = copied(plain)
    fold_norms([module])
    check("the folding of BatchNorm", answers(module, inputs, reference.runs), reference)
    split_layers(module)
    check("the splitting of recurrent layers", answers(module, inputs, reference.runs), reference)
    quantizer = Int8Quantizer(keep_float, observer)
    with _only_quantizing():
        prepared = prepare_pt2e(copied(module), quantizer)
        missing = set(keep_float) - quantizer.kept
        if missing:
            raise _no_such_layer(sorted(missing), sorted(_layers(module), key=_natural))
        calibration = _calibrate(prepared, inputs, samples, progress)
        observers = _observers(prepared)
        converted = convert_pt2e(prepared)
    _note_shapes(converted, inputs)
    if calibration.constant:
        notes.append(f"calibration: all {calibration.count} samples are constant, so scales do not fit real inputs")
    notes += judged(converted, module, inputs, calibration.kept, observers)
    return Quantized(converted, calibration.kept, tuple(notes))


@contextmanager
def _only_quantizing() -> Iterator[None]:
    """Keeps torchao from folding BatchNorm: of what is left here, it folds shared weights wrongly, and to look for what
    training leaves it exports a hundred patterns."""
    names = ("_fuse_conv_bn_", "_fuse_linear_bn_", "_fold_conv_bn_qat")
    own = {name: getattr(quantize_pt2e, name) for name in names}
    try:
        for name in names:
            setattr(quantize_pt2e, name, lambda module: module)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for name, function in own.items():
            setattr(quantize_pt2e, name, function)


def _observers(prepared: Any) -> dict[str, Any]:
    """By the name of the node that each watches."""
    nodes = prepared.graph.find_nodes(op="call_module")
    return {n.args[0].name: prepared.get_submodule(n.target) for n in nodes if isinstance(n.args[0], torch.fx.Node)}


def _layers(module: Any) -> set[str]:
    """The module paths that nodes come from."""
    return {path for node in module.graph.nodes if (path := origin_of(node).path)}


def _natural(path: str) -> list[tuple[int, str]]:
    """Sorts layers as people count them: 2 before 10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", path)]


def _no_such_layer(missing: Sequence[str], layers: Sequence[str]) -> CompileError:
    near = [close[0] for name in missing if (close := difflib.get_close_matches(name, layers, n=1))]
    return CompileError(
        f"--keep-float {', '.join(missing)}: no such layer",
        have=", ".join(layers),
        try_=f"did you mean {', '.join(map(repr, near))}?" if near else None,
    )


class _Shapes(torch.fx.Interpreter):  # type: ignore[misc]
    """Notes the shape and type of every value, as torch.export does."""

    def run_node(self, node: torch.fx.Node) -> Any:
        result = super().run_node(node)
        if isinstance(result, (torch.Tensor, tuple, list)):
            node.meta["val"] = torch.utils._pytree.tree_map_only(torch.Tensor, lambda t: t.to("meta"), result)
        return result


def _note_shapes(module: Any, inputs: Sequence[Any]) -> None:
    shapes = _Shapes(module)
    shapes.extra_traceback = False
    with torch.no_grad(), state_kept(module):
        shapes.run(*inputs)


def random_samples(inputs: Sequence[Any]) -> Iterable[tuple[Any, ...]]:
    generator = torch.Generator().manual_seed(0)

    def like(x: Any) -> Any:
        real = isinstance(x, torch.Tensor) and x.is_floating_point()
        return torch.randn(x.shape, generator=generator) if real else x

    for _ in range(RANDOM_SAMPLES):
        yield torch.utils._pytree.tree_map(like, tuple(inputs))


@dataclass(frozen=True)
class _Calibration:
    """How many samples there were, some of them, evenly spread, and whether none of them had two different values."""

    count: int
    kept: tuple[tuple[Any, ...], ...]
    constant: bool


class _Observe(torch.fx.Interpreter):  # type: ignore[misc]
    """Runs a prepared module, and names the layer whose values are too large for any scale."""

    large: torch.fx.Node | None = None  # the first whose finite values are too large

    def run_node(self, node: torch.fx.Node) -> Any:
        if node.op == "call_module" and isinstance(node.args[0], torch.fx.Node):
            value = counted(self.module.get_submodule(node.target), self.env[node.args[0]])
            if value.is_floating_point() and not bool(torch.isfinite(value).all()):
                raise _overflow(node.args[0], "NaN or infinite values", "finite activations")
            if value.is_floating_point() and bool((value.abs() > TOO_LARGE).any()):
                self.large = self.large or node.args[0]
        return super().run_node(node)


def _overflow(node: torch.fx.Node, values: str, need: str) -> CompileError:
    stack = list((node.meta.get("nn_module_stack") or {}).values())
    layer = str(stack[-1][0]) if stack and stack[-1][0] else node.name
    if node.op == "placeholder":
        return CompileError(
            f"calibration: an input has {values}, for which there is no int8 scale",
            at=layer,
            need=need,
            try_="scale the data that calibration() gives, and the inputs of the model",
        )
    return CompileError(
        f"calibration: a layer gives {values}, for which there is no int8 scale",
        at=layer,
        have=f"the output of {node.name}",
        need=need,
        try_=["scale the inputs or the weights of this layer", f"`--keep-float {layer}` leaves it in float"],
    )


def _calibrate(
    prepared: Any,
    inputs: Sequence[Any],
    samples: Iterable[Sequence[Any]],
    progress: Callable[[str, int, int], None] | None,
) -> _Calibration:
    """Show every sample to the observers. State begins with its initial value, and has it again afterwards."""
    wanted = [(tuple(x.shape), x.dtype) for x in flat_inputs(inputs)]
    count, kept, stride, constant = 0, [], 1, True
    observe = _Observe(prepared)
    observe.extra_traceback = False  # what goes wrong here is told in our words
    state = {name: buffer.clone() for name, buffer in prepared.named_buffers() if not name.startswith(_OBSERVER)}
    with torch.no_grad():
        for sample in samples:
            arguments = tuple(sample) if isinstance(sample, (tuple, list)) else (sample,)
            tensors = flat_inputs(arguments)
            have = [(tuple(x.shape), x.dtype) for x in tensors]
            if have != wanted:
                raise CompileError(
                    f"calibration: sample {count} differs in shape or type from inputs()",
                    have=_types(have) or ", ".join(type(x).__name__ for x in arguments) or "no tensors",
                    need=_types(wanted),
                )
            if any(x.is_floating_point() and bool((x.isnan() | (x == torch.inf)).any()) for x in tensors):
                raise CompileError(f"calibration: sample {count} has NaN or infinite values", need="finite numbers")
            constant = constant and all(x.numel() < 2 or bool((x == x.flatten()[0]).all()) for x in tensors)
            observe.run(*arguments)
            if observe.large is not None:
                raise _overflow(observe.large, f"values beyond {TOO_LARGE:g}", "values of ordinary size")
            count += 1
            if (count - 1) % stride == 0:
                kept.append(arguments)
            if len(kept) == 2 * KEPT_SAMPLES:
                kept, stride = kept[::2], 2 * stride
            if progress is not None:
                progress("calibrate", count, 0)
        for name, value in state.items():
            prepared.get_buffer(name).copy_(value)
    if count == 0:
        raise CompileError("calibration: calibration() gives no samples", need="at least one tuple of inputs")
    single = all(len(shape) == 0 or torch.Size(shape).numel() == 1 for shape, _ in wanted)
    return _Calibration(count, tuple(kept), constant and not single)


def _types(types: Sequence[tuple[tuple[int, ...], Any]]) -> str:
    return ", ".join(f"{str(dtype).removeprefix('torch.')}{list(shape)}" for shape, dtype in types)
