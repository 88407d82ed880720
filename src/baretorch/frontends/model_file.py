"""Reads model files: Python with plain functions model(), inputs(), and optionally calibration() and evaluate()."""

from __future__ import annotations

import ast
import inspect
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from baretorch.errors import CompileError
from baretorch.files.read import describe_missing
from baretorch.frontends.choices import Arguments, Offer, choices_for, read_offer
from baretorch.frontends.inputs import as_inputs, is_trainable
from baretorch.frontends.source import LoadRequest, Source
from baretorch.frontends.tinygrad.hook import watch_tinygrad
from baretorch.frontends.tinygrad.source import from_callable as from_tinygrad
from baretorch.frontends.torch.source import from_methods as from_torch
from baretorch.frontends.user_code import import_file, import_neighbours, show_value, user_code
from baretorch.stopwatch import timed

Evaluate: TypeAlias = Callable[[Callable[..., Any]], dict[str, float]]
NOTHING: Arguments = {}


@dataclass(frozen=True)
class Samples:
    """The samples of calibration(), each of which may raise an error."""

    path: Path
    given: Iterable[Any]

    def __iter__(self) -> Iterator[Any]:
        with user_code(self.path, "calibration()"):
            samples = iter(self.given)
        end = object()
        while True:
            with user_code(self.path, "calibration()"):
                sample = next(samples, end)
            if sample is end:
                return
            yield sample


def need_file(path: str) -> Path:
    """Return the path of an existing model file."""
    file = Path(path)
    if not os.path.isfile(file):  # also False for invalid names
        raise CompileError(
            describe_missing(path),
            need="a Python model file, or an .onnx, .tflite, .pt2 or .pte file",
            try_="`baretorch new my_model.py` writes a model file to start from",
        )
    return file


def load_model_file(
    path: Path, asked: Arguments = NOTHING
) -> tuple[Any, dict[str, tuple[Any, ...]], Iterable[Any] | None]:
    """Return the result of model() (an nn.Module, a callable of tinygrad, or the path of another model file), example
    inputs for each of its methods (those of methods(), or inputs() for forward), and the samples of calibration(), if
    it exists. All functions are called with the `asked` choices."""
    with import_neighbours(path), watch_tinygrad():  # also for what these functions import
        file = import_file(path)
        if asked:
            read_offer(path, file).check(path, asked)
        model = _call(path, file, "model", asked)
        if isinstance(model, (str, os.PathLike)):
            model = _find_named(path, os.fspath(model))
            methods = {"forward": _call(path, file, "inputs", asked)} if hasattr(file, "inputs") else {}
        elif is_model(model):
            methods = _methods(path, file, model, asked)
        else:
            raise no_model(model, "model() returns", path.name)
        calibration = _calibration(path, file, asked) if hasattr(file, "calibration") else None
    return model, {n: as_inputs(x, model, n) for n, x in methods.items()}, calibration


def no_model(model: Any, who: str, at: str | None = None) -> CompileError:
    """Return the error for an object that is not a model; `who` names its source."""
    tensors = list(model.values()) if isinstance(model, dict) else []
    if tensors and all(hasattr(t, "shape") for t in tensors):
        torch = all(type(t).__module__.partition(".")[0] == "torch" for t in tensors)
        return CompileError(
            f"{who} a state_dict, which has weights but no layers",
            at=at,
            have=f"{type(model).__name__} with {', '.join(map(repr, list(model)[:3]))}{' …' if len(model) > 3 else ''}",
            need=f"a {'torch.nn.Module' if torch else 'callable'} that has these weights",
            try_="net = Net(), then net.load_state_dict(state_dict), then net itself" if torch else None,
        )
    return CompileError(
        f"{who} {_article(model)}, which is not a model",
        at=at,
        have=show_value(model),
        need="a torch.nn.Module, a callable of tinygrad, or the path of a model file",
        try_=f"{model.__name__}(), an instance of the class" if isinstance(model, type) else None,
    )


def _article(value: Any) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = type(value).__name__
    return "nothing" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def is_model(model: Any) -> bool:
    """Report whether an object is a model of PyTorch or tinygrad, and not the class of one."""
    return not isinstance(model, type) and (is_module(model) or is_tinygrad(model))


def is_tinygrad(model: Any) -> bool:
    """Report whether a model computes with tinygrad: it is callable, not an nn.Module, and tinygrad was imported."""
    return callable(model) and sys.modules.get("tinygrad.tensor") is not None and not _of_torch(model)


def is_module(model: Any) -> bool:
    """Report whether a model is an nn.Module, or looks like one."""
    return _of_torch(model) or (callable(getattr(model, "forward", None)) and not is_tinygrad(model))


def _of_torch(model: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def _find_named(path: Path, name: str) -> Path:
    """Return the file that model() names, which may be relative to the model file."""
    file = path.parent / name
    if not os.path.isfile(file):
        raise CompileError(
            f"model() returns {name!r}, which does not exist",
            at=path.name,
            need="the path of a model file, from the folder of this one",
        )
    if file.suffix == ".py":
        raise CompileError(
            f"model() returns {name!r}, which is a Python file again",
            at=path.name,
            need="a file that holds a model",
            try_="import it, and return what its model() returns",
        )
    return file


def _methods(path: Path, file: ModuleType, module: Any, asked: Arguments) -> dict[str, Any]:
    if not hasattr(file, "methods"):
        return {"forward": _call(path, file, "inputs", asked)}
    methods = _call(path, file, "methods", asked)
    if not isinstance(methods, dict) or not methods:
        raise CompileError(
            "methods() names no methods",
            at=path.name,
            have=show_value(methods),
            need="a dict of example inputs by the names of methods",
        )
    for name in methods:
        if not isinstance(name, str) or not callable(getattr(module, name, None)):
            raise CompileError(
                f"methods() names {name!r}, which the model does not have", at=path.name, need="names of its methods"
            )
    return methods


def _calibration(path: Path, file: ModuleType, asked: Arguments) -> Samples:
    given = _call(path, file, "calibration", asked)
    if not hasattr(given, "__iter__") and not hasattr(given, "__getitem__"):
        raise CompileError(
            "calibration() returns no samples",
            at=path.name,
            have=show_value(given),
            need="a list or a generator of tuples of tensors, as inputs() returns",
        )
    return Samples(path, given)


def load_offer(path: str) -> Offer:
    """Return the widths and sizes that a file offers; nothing if it is not a Python file."""
    file = need_file(path)
    if file.suffix != ".py":
        return Offer()
    with import_neighbours(file):
        return read_offer(file, import_file(file))


def load_evaluate(path: str, samples: int | None = None, asked: Arguments = NOTHING) -> Evaluate:
    """Return the file's evaluate(run), with `samples` and the `asked` choices bound if it takes them. It can be called
    any number of times."""
    file = need_file(path)
    if file.suffix != ".py":
        raise CompileError(
            f"{path} has no evaluate()",
            need="a Python model file, whose model() may return the path of this one",
            try_=f"`baretorch new {file.stem}.py --from {path}` writes one",
        )
    with import_neighbours(file):
        module = import_file(file)
    function = getattr(module, "evaluate", None)
    if not callable(function):
        raise CompileError(
            f"{path} has no function evaluate()",
            need="evaluate(run) that returns named numbers, where run(*inputs) returns the model's outputs",
            try_='def evaluate(run): return {"accuracy": …}',
        )
    limits = {} if samples is None else {"samples": samples}
    if limits and "samples" not in inspect.signature(function).parameters:
        raise CompileError(f"evaluate() of {path} takes no number of samples", need="evaluate(run, samples=None)")

    given = limits | choices_for(function, asked)

    def evaluate(run: Callable[..., Any]) -> dict[str, float]:
        try:
            with user_code(file, "evaluate()"), import_neighbours(file):
                found = function(run, **given)
        except CompileError as error:
            if isinstance(error.__cause__, AttributeError) and error.__cause__.obj is run:
                need = "run(*inputs), a function of one set of inputs that returns NumPy arrays, not an nn.Module"
                raise CompileError(error.what, at=error.at, need=need) from error
            raise
        if not isinstance(found, dict) or not found:
            raise CompileError(
                "evaluate() returns no metrics", at=path, have=show_value(found), need="named numbers in a dict"
            )
        return {str(name): _metric(path, name, value) for name, value in found.items()}

    return evaluate


def load_train(path: str, asked: Arguments = NOTHING) -> Callable[[Any], object] | str:
    """Return the file's train(model), which can be called any number of times; or the reason why there is none, as
    text."""
    file = need_file(path)
    if file.suffix != ".py":
        return f"{file.name} is not a Python file with a train(model)"
    with import_neighbours(file):
        function = getattr(import_file(file), "train", None)
    if not callable(function):
        return f"{file.name} has no train(model)"
    if next(iter(inspect.signature(function).parameters), None) != "model":
        return f"train() of {file.name} takes no model: its first parameter must be called so"

    given = choices_for(function, asked)

    def train(model: Any) -> object:
        with user_code(file, "train()"), import_neighbours(file):
            return function(model, **given)

    return train


def _metric(path: str, name: Any, value: Any) -> float:
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise CompileError(
            f"evaluate() returns no number for {name!r}",
            at=path,
            have=show_value(value),
            need="named numbers in a dict",
        ) from error


def _call(path: Path, file: ModuleType, name: str, asked: Arguments) -> Any:
    function: Callable[..., Any] | None = getattr(file, name, None)
    if hasattr(file, name) and (not callable(function) or is_module(function)):
        raise CompileError(
            f"{name} is {_article(function)}, not a function",
            at=path.name,
            have=f"{name} = {show_value(function)}",
            need=f"def {name}(): …",
            try_=f"call it another name, and: def {name}(): return NAME",
        )
    if function is None:
        raise CompileError(
            f"{path} has no function {name}()",
            need="model() returning a model and inputs() returning a tuple of example tensors",
            try_="`baretorch new my_model.py` writes a model file to start from",
        )
    given = choices_for(function, asked) if asked else {}
    words = ", ".join(f"{parameter}={value}" for parameter, value in given.items())
    with user_code(path, f"{name}({words})"):
        return function(**given)


# --- as a Source ------------------------------------------------------------------------------------------------


def load_python(request: LoadRequest, load_named: Callable[[LoadRequest], Source]) -> Source:
    """Load a Python file with model() and inputs(); `load_named` reads the file that model() may name."""
    if "torch" in _imports(request.file):
        with timed("import"):
            import baretorch.frontends.torch.export  # noqa: F401
    with timed("model"):
        model, methods, calibration = load_model_file(request.file, request.arguments)
    if isinstance(model, Path):
        source = load_named(replace(request, file=model, inputs=methods.get("forward")))
        return replace(source, named=model, calibration=calibration)
    request.need_fixed("a model in Python")
    with timed("export"):
        return replace(_from_methods(model)(model, methods, request.name, request.method), calibration=calibration)


def from_object(model: Any, inputs: Any, name: str) -> Source:
    """Make a Source of an nn.Module or a callable of tinygrad, with example inputs; a trainable model may use its own
    instead of `inputs`."""
    if not is_model(model):
        raise no_model(model, "compile() is given")
    methods = {} if inputs is None else {"forward": as_inputs(inputs, model, who="compile()")}
    return _from_methods(model)(model, methods, name)


def _from_methods(model: Any) -> Callable[..., Source]:
    if is_trainable(model):
        return type(model).as_source  # type: ignore[no-any-return]
    return from_tinygrad if is_tinygrad(model) else from_torch


def _imports(file: Path) -> set[str]:
    """Return the packages that a file imports; none if it is not valid Python."""
    try:
        nodes = list(ast.walk(ast.parse(file.read_bytes())))
    except (SyntaxError, ValueError):
        return set()
    names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {name.partition(".")[0] for name in names}
