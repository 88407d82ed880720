"""Calls the user's module. Errors are reported with the layer and the user's line."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch._subclasses import FakeTensor
from torch._subclasses.functional_tensor import FunctionalTensor

from baretorch.errors import CompileError
from baretorch.frontends.torch.modes import FirstOfEquals
from baretorch.frontends.torch.notices import listen
from baretorch.frontends.user_code import describe_error, show_value

# Whose lines are not the user's: Baretorch, torch and the standard library.
_FOREIGN = tuple(
    f"{folder}{os.sep}"
    for folder in (Path(__file__).parents[2], Path(torch.__file__).parent, sysconfig.get_path("stdlib"))
)
_PACKAGES = {"site-packages", "dist-packages"}
_CHANNELS = {nn.Linear: "in_features", nn.Conv1d: "in_channels", nn.Conv2d: "in_channels", nn.Conv3d: "in_channels"}


@contextmanager
def evaluating(module: Any) -> Iterator[None]:
    """Put a module into eval mode in the block; afterwards each layer has its own mode again."""
    if isinstance(module, torch.fx.GraphModule) or not isinstance(module, nn.Module):  # an exported one has no modes
        yield
        return
    modes = [(m, m.training) for m in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for m, training in modes:
            m.training = training


def call_method(module: Any, method: str, inputs: Sequence[Any], ordered: bool = False) -> Any:
    """Return the result of a method. An exception is reported as the user's error. With `ordered`, equal elements are
    ordered by their index."""
    try:
        with torch.no_grad(), evaluating(module), listen(), FirstOfEquals() if ordered else nullcontext():
            modes = _modes(module)
            results = entry(module, method)(*torch.utils._pytree.tree_map(_own, tuple(inputs)))
            for path, mode in _modes(module).items():
                if mode != modes.get(path, mode):
                    raise _other_mode(method, path)
            if any(isinstance(x, (FakeTensor, FunctionalTensor)) for x in flat_tensors(results)):
                raise remembers_elsewhere(method)  # torch.export ran the method, and left what it computed
            return results
    except (KeyboardInterrupt, CompileError):
        raise
    except BaseException as error:
        raise _failed(error, inputs, method, module) from error


def _own(x: Any) -> Any:
    """Copy an input, because the model may keep it as state and change it in a later call."""
    return x.clone() if isinstance(x, torch.Tensor) else x


def _modes(module: Any) -> dict[str, bool]:
    """Return whether each layer is in training mode."""
    return {path: m.training for path, m in module.named_modules()} if isinstance(module, nn.Module) else {}


def _other_mode(method: str, path: str) -> CompileError:
    name = f"self.{path}.training".replace("..", ".")
    return CompileError(
        f"{method}() changes {name}, so that the next call computes something else",
        at=path or None,
        need="a model that stays in eval mode, in which it is compiled",
        try_="a registered buffer for state; train() and eval() outside of forward()",
    )


def remembers_elsewhere(method: str) -> CompileError:
    """Return the error for state that no module holds."""
    return CompileError(
        f"{method}() returns another result when it is called again with the same inputs",
        have="no attribute of the model explains it",
        need="results that depend on the inputs, the parameters and registered buffers only",
        try_=[
            'self.register_buffer("NAME", tensor) for state in a global variable or a closure',
            "inputs of the model for random numbers and for the time",
        ],
    )


def entry(module: Any, method: str) -> Callable[..., Any]:
    """Return the function that runs a method as users call it: forward together with the hooks of the module."""
    own: Callable[..., Any] = getattr(module, method)
    if method != "forward" or not isinstance(module, nn.Module) or isinstance(module, torch.fx.GraphModule):
        return own  # torch.export does not run the hooks of a GraphModule either
    function: Callable[..., Any] = module._call_impl  # __call__ would run what module.compile() made
    return function


def _failed(error: BaseException, inputs: Sequence[Any], name: str, module: Any) -> CompileError:
    """Return the error for an exception that a method raised."""
    path, layer, given = _layer(error, module)
    what, have, hint = f"{name}() failed: {describe_error(error)}", [f"inputs {types(inputs)}"], None
    if layer is not None:
        have.insert(0, f"{_short(layer)} with the input {types([given])[1:-2]}")
        misfit = _misfit(layer, given)
        if misfit is not None:
            have.append(describe_error(error))
            what, hint = f"{f'layer {path}' if path else 'the model'} {misfit[0]}", misfit[1]
    if any(isinstance(x, dict) for x in inputs) and "dict" in str(error):
        hint = hint or "tensors instead of a dict, or a dict whose keys are the names of the parameters"
    floats = {x.dtype for x in flat_tensors(tuple(inputs))} & {torch.float64, torch.float16, torch.bfloat16}
    return CompileError(
        what,
        at=place_of(path, user_line(error)),
        have=have,
        need="a model that PyTorch can run with these inputs",
        try_=hint or ("float32 inputs: x.float()" if floats else None),
    )


def _layer(error: BaseException, module: Any) -> tuple[str, Any, Any]:
    """Return the path of the torch layer that raised, the layer itself and its first input; else the innermost
    module."""
    paths = {id(m): path for path, m in module.named_modules()} if isinstance(module, nn.Module) else {}
    innermost, layer, given = "", None, None
    trace = error.__traceback__
    while trace is not None:
        frame, trace = trace.tb_frame, trace.tb_next
        owner = frame.f_locals.get("self")
        if isinstance(owner, nn.Module) and frame.f_code.co_name == "forward" and id(owner) in paths:
            innermost, layer, given = paths[id(owner)], None, None
            x = frame.f_locals.get("input", frame.f_locals.get("x"))
            if type(owner).__module__.startswith("torch.nn.") and isinstance(x, torch.Tensor):
                layer, given = owner, x
    return innermost, layer, given


def _short(layer: nn.Module) -> str:
    text = repr(layer)
    return text if "\n" not in text and len(text) <= 100 else type(layer).__name__


def _misfit(layer: nn.Module, given: torch.Tensor) -> tuple[str, str] | None:
    """Return why a layer does not accept its input, and a remedy, if known."""
    weight = getattr(layer, "weight", None)
    have = str(given.dtype).removeprefix("torch.")
    if isinstance(layer, nn.Embedding):
        return (f"takes indices, but its input is {have}", "x.long()") if given.is_floating_point() else None
    if isinstance(weight, torch.Tensor) and given.dtype != weight.dtype:
        return f"has {str(weight.dtype).removeprefix('torch.')} weights, but its input is {have}", (
            f"x{_cast(weight.dtype)} for the input of the model, or before this layer"
        )
    name = next((name for kind, name in _CHANNELS.items() if type(layer) is kind), None)
    at = -1 if name == "in_features" else -1 - len(getattr(layer, "kernel_size", ()))
    if name is None or given.dim() < -at or given.shape[at] == getattr(layer, name):
        return None
    size, want = given.shape[at], getattr(layer, name)
    return f"has {name}={want}, but its input has {size}", f"{name}={size} in this layer, or other example inputs"


def _cast(dtype: torch.dtype) -> str:
    return ".float()" if dtype is torch.float32 else f".to({dtype})"


def place_of(path: str, line: str | None) -> str | None:
    """Format a layer and a line for errors."""
    return f"{path}  ({line})" if path and line else path or line


def flat_tensors(inputs: Any) -> list[Any]:
    """Return the tensors among inputs or results, in the order of torch.export."""
    return [leaf for leaf in torch.utils._pytree.tree_leaves(inputs) if isinstance(leaf, torch.Tensor)]


def types(inputs: Sequence[Any]) -> str:
    """Return the types of inputs in one line: (float32[1, 4], {'mask': bool[4]})."""
    text = str(torch.utils._pytree.tree_map(_Type, tuple(inputs)))
    return text if len(text) <= 200 else f"{text[:200]}…"


class _Type:
    """The type and shape of a tensor, as text."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        x = self.value
        return f"{str(x.dtype).removeprefix('torch.')}{list(x.shape)}" if isinstance(x, torch.Tensor) else show_value(x)


def user_line(error: BaseException) -> str | None:
    """Return the deepest line of the traceback that belongs to the user's code."""
    found = None
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if _is_users(file) and not _PACKAGES & set(Path(file).parts):
            found = f"{Path(file).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


def _is_users(file: str) -> bool:
    return not file.startswith(("<", *_FOREIGN))


class LineTracer:
    """Follows the user's lines in the block until `changed` is true; `found` is the line that caused it."""

    def __init__(self, changed: Callable[[], bool]) -> None:
        self.found: str | None = None
        self._changed = changed
        self._line: str | None = None
        self._before: Any = None

    def __enter__(self) -> None:
        self._before = sys.gettrace()
        sys.settrace(self._trace)

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)
        self._look()

    def _look(self) -> None:
        if self.found is None and self._changed():
            self.found = self._line

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if self.found is not None or not _is_users(frame.f_code.co_filename):
            return None
        sys.settrace(None)  # the tracer must not trace itself
        try:
            self._look()
        finally:
            sys.settrace(self._trace)
        running: FrameType | None = frame.f_back if event == "return" else frame
        while running is not None and not _is_users(running.f_code.co_filename):
            running = running.f_back
        if running is not None:
            self._line = f"{Path(running.f_code.co_filename).name}:{running.f_lineno}"
        return self._trace
