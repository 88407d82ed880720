"""Reads model files: Python with plain functions model(), inputs(), and optionally calibration() and evaluate()."""

from __future__ import annotations

import importlib.util
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from baretorch.errors import CompileError
from baretorch.files.read import special_kind
from baretorch.frontends.offer import Arguments, Offer, read_offer, taken
from baretorch.frontends.tinygrad.hook import watching

EXTRAS = ("onnx", "tflite", "tinygrad", "torch")  # packages that come with an extra of their name
Evaluate: TypeAlias = Callable[[Callable[..., Any]], dict[str, float]]
NOTHING: Arguments = {}


@dataclass(frozen=True)
class Samples:
    """The samples of calibration(), each of which may raise an error."""

    path: Path
    given: Iterable[Any]

    def __iter__(self) -> Iterator[Any]:
        with _user_code(self.path, "calibration()"):
            samples = iter(self.given)
        end = object()
        while True:
            with _user_code(self.path, "calibration()"):
                sample = next(samples, end)
            if sample is end:
                return
            yield sample


def need_file(path: str) -> Path:
    """Return the path of an existing model file."""
    file = Path(path)
    if not os.path.isfile(file):  # False also for a name that no file can have
        raise CompileError(
            f"there is no file {path}",
            have=_instead(file),
            need="a Python model file, or an .onnx, .tflite, .pt2 or .pte file",
            try_="`baretorch new my_model.py` writes a model file to start from",
        )
    return file


def _instead(file: Path) -> str | None:
    """Return the kind of a path that is not a regular file, or None if nothing has this name."""
    try:
        return special_kind(os.stat(file).st_mode)
    except (OSError, ValueError):
        return None


_imported: ContextVar[dict[Path, ModuleType] | None] = ContextVar("imported", default=None)


@contextmanager
def import_once() -> Iterator[None]:
    """Import each model file only once in this block, however many of its functions are loaded."""
    token = _imported.set({})
    try:
        yield
    finally:
        _imported.reset(token)


def import_file(path: Path) -> ModuleType:
    """Import the file as a module. An error of the user's code is reported with its line."""
    known = _imported.get()
    if known is None or path not in known:
        module = _import(path)
        if known is None:
            return module
        known[path] = module
    return known[path]


def _import(path: Path) -> ModuleType:
    name = f"baretorch_user_{path.stem}".replace(".", "_")
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with _user_code(path, "the file"), _beside(path), watching():
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        finally:
            _rename(name)
    return module


def load_model_file(
    path: Path, asked: Arguments = NOTHING
) -> tuple[Any, dict[str, tuple[Any, ...]], Iterable[Any] | None]:
    """Return the result of model() (an nn.Module, a callable of tinygrad, or the path of another model file), example
    inputs for each of its methods (those of methods(), or inputs() for forward), and the samples of calibration(), if
    it exists. All functions are called with the `asked` choices."""
    with _beside(path), watching():  # also for what these functions import
        file = import_file(path)
        if asked:
            read_offer(path, file).check(path, asked)
        model = _call(path, file, "model", asked)
        if isinstance(model, (str, os.PathLike)):
            model = _named(path, os.fspath(model))
            methods = {"forward": _call(path, file, "inputs", asked)} if hasattr(file, "inputs") else {}
        elif is_module(model) or is_tinygrad(model):
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
        have=shown(model),
        need="a torch.nn.Module, a callable of tinygrad, or the path of a model file",
    )


def _article(value: Any) -> str:
    name = type(value).__name__
    return "nothing" if value is None else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def as_inputs(inputs: Any, model: Any, method: str = "forward", who: str = "inputs()") -> tuple[Any, ...]:
    """Return the arguments of a method. A tuple or a list has one for each, a dict has them by parameter name. Anything
    else is the only argument, including a dict for a method with one parameter."""
    if isinstance(inputs, (tuple, list)):
        return tuple(inputs)
    if not isinstance(inputs, dict) or is_trainable(model):
        return (inputs,)
    function = getattr(model, method, model)
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return (inputs,)
    if inputs and set(inputs) <= set(parameters):
        try:
            bound = inspect.signature(function).bind(**inputs)
        except TypeError as error:
            raise _misnamed(inputs, method, function, who) from error
        if bound.kwargs:
            raise _misnamed(inputs, method, function, who)
        return bound.args
    if len(parameters) == 1:
        return (inputs,)
    raise _misnamed(inputs, method, function, who)


def _misnamed(inputs: dict[Any, Any], method: str, function: Any, who: str) -> CompileError:
    parameters = inspect.signature(function).parameters.values()
    named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.name in inputs]
    if named:
        return CompileError(
            f"{method}() takes {', '.join(named)} by keyword only, and an image takes inputs in order",
            have=f"{method}{inspect.signature(function)}",
            need="positional parameters",
            try_=f"def {method}(self, {', '.join(p.name for p in parameters)}), without *",
        )
    return CompileError(
        f"{who} has a dict that does not fit {method}()",
        have=f"the keys {', '.join(map(repr, inputs))}",
        need=f"the parameters of {method}{inspect.signature(function)}, by their names and without gaps",
        try_="a tuple of tensors, in the order of the parameters",
    )


def is_tinygrad(model: Any) -> bool:
    """Report whether a model computes with tinygrad: it is callable, not an nn.Module, and tinygrad was imported."""
    return callable(model) and sys.modules.get("tinygrad.tensor") is not None and not _of_torch(model)


def is_module(model: Any) -> bool:
    """Report whether a model is an nn.Module, or looks like one."""
    return _of_torch(model) or (callable(getattr(model, "forward", None)) and not is_tinygrad(model))


def is_trainable(model: Any) -> bool:
    """Report whether a model is one that baretorch.trainable() returned, which converts itself to a Source."""
    return callable(getattr(model, "as_source", None))


def _of_torch(model: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def _named(path: Path, name: str) -> Path:
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
            have=shown(methods),
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
            have=shown(given),
            need="a list or a generator of tuples of tensors, as inputs() returns",
        )
    return Samples(path, given)


def load_offer(path: str) -> Offer:
    """Return the widths and sizes that a file offers; nothing if it is not a Python file."""
    file = need_file(path)
    if file.suffix != ".py":
        return Offer()
    with _beside(file):
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
    with _beside(file):
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

    given = limits | taken(function, asked)

    def evaluate(run: Callable[..., Any]) -> dict[str, float]:
        try:
            with _user_code(file, "evaluate()"), _beside(file):
                found = function(run, **given)
        except CompileError as error:
            if isinstance(error.__cause__, AttributeError) and error.__cause__.obj is run:
                need = "run(*inputs), a function of one set of inputs that returns NumPy arrays, not an nn.Module"
                raise CompileError(error.what, at=error.at, need=need) from error
            raise
        if not isinstance(found, dict) or not found:
            raise CompileError(
                "evaluate() returns no metrics", at=path, have=shown(found), need="named numbers in a dict"
            )
        return {str(name): _metric(path, name, value) for name, value in found.items()}

    return evaluate


def load_train(path: str, asked: Arguments = NOTHING) -> Callable[[Any], object] | str:
    """Return the file's train(model), which can be called any number of times; or the reason why there is none, as
    text."""
    file = need_file(path)
    if file.suffix != ".py":
        return f"{file.name} is not a Python file with a train(model)"
    with _beside(file):
        function = getattr(import_file(file), "train", None)
    if not callable(function):
        return f"{file.name} has no train(model)"
    if next(iter(inspect.signature(function).parameters), None) != "model":
        return f"train() of {file.name} takes no model: its first parameter must be called so"

    given = taken(function, asked)

    def train(model: Any) -> object:
        with _user_code(file, "train()"), _beside(file):
            return function(model, **given)

    return train


def _metric(path: str, name: Any, value: Any) -> float:
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError
        return float(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise CompileError(
            f"evaluate() returns no number for {name!r}", at=path, have=shown(value), need="named numbers in a dict"
        ) from error


def shown(value: Any) -> str:
    """Return a value for an error: its text, if that is short, and its type."""
    text, kind = repr(value), type(value).__name__
    if len(text) > 60 or "\n" in text:
        return kind
    return text if value is None or isinstance(value, (dict, list, tuple)) else f"{kind} {text}"


@contextmanager
def _user_code(path: Path, what: str) -> Iterator[None]:
    """Report whatever the user's code raises, or exits with, as the user's error."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _user_error(path, what, error) from error


@contextmanager
def _beside(path: Path) -> Iterator[None]:
    """Let the file import modules from its own folder, and forget them afterwards: another model file may have a
    neighbour with the same name."""
    folder = str(path.resolve().parent)
    known = set(sys.modules)
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.path.remove(folder)
        new = {name: sys.modules[name] for name in set(sys.modules) - known}
        own = {name for name, m in new.items() if "." not in name and _home(m) == folder}
        for name in new:
            if name.partition(".")[0] in own:
                _rename(name)


_numbers = count(1)


def _rename(name: str) -> None:
    """Register a module under a unique name instead of its own: Dynamo, which torch.cond uses, looks modules up by
    their `__name__` when the model runs, and caches them forever."""
    module = sys.modules.pop(name)
    module.__name__ = f"baretorch_user_{next(_numbers)}_{name.replace('.', '_')}"
    sys.modules[module.__name__] = module


def _home(module: ModuleType) -> str:
    """Return the folder in which a top-level module or package was found."""
    file = getattr(module, "__file__", None)
    if not file:
        return ""
    return str(Path(file).parent.parent if hasattr(module, "__path__") else Path(file).parent)


def _call(path: Path, file: ModuleType, name: str, asked: Arguments) -> Any:
    function: Callable[..., Any] | None = getattr(file, name, None)
    if hasattr(file, name) and (not callable(function) or is_module(function)):
        raise CompileError(
            f"{name} is {_article(function)}, not a function",
            at=path.name,
            have=f"{name} = {shown(function)}",
            need=f"def {name}(): …",
            try_=f"call it another name, and: def {name}(): return NAME",
        )
    if function is None:
        raise CompileError(
            f"{path} has no function {name}()",
            need="model() returning a model and inputs() returning a tuple of example tensors",
            try_="`baretorch new my_model.py` writes a model file to start from",
        )
    given = taken(function, asked) if asked else {}
    words = ", ".join(f"{parameter}={value}" for parameter, value in given.items())
    with _user_code(path, f"{name}({words})"):
        return function(**given)


def _user_error(path: Path, what: str, error: BaseException) -> CompileError:
    """Return the error for the user's own exception: its type and text, at the deepest line of the user's file."""
    if isinstance(error, CompileError):
        return error
    line = None
    if isinstance(error, SyntaxError):
        line = error.lineno
    for frame in traceback.extract_tb(error.__traceback__):
        if Path(frame.filename).resolve() == path.resolve():
            line = frame.lineno
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    return CompileError(
        f"{what} failed: {said(error)}",
        at=f"{path.name}:{line}" if line else str(path),
        try_=f'pip install "baretorch[{missing}]"' if missing in EXTRAS else _remedy(error),
    )


# What to do about an exception of torch in the user's functions: a pattern for its text, and remedies.
REMEDIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Weights only load failed|Can't get attribute .* on <module '__main__'",
        (
            "save weights, not the module: torch.save(net.state_dict(), 'net.pt')",
            "in model(): net = Net(); net.load_state_dict(torch.load('net.pt')); return net",
            "torch.load(path, weights_only=False) runs code from the file: only if you made it yourself",
        ),
    ),
    (
        "Attempting to deserialize object on a CUDA device|Torch not compiled with CUDA|Found no NVIDIA driver",
        ("torch.load(path, map_location='cpu')", "leave out .cuda() and .to('cuda'): the model is compiled on the CPU"),
    ),
)


def _remedy(error: BaseException) -> tuple[str, ...] | None:
    return next((remedies for pattern, remedies in REMEDIES if re.search(pattern, str(error))), None)


def said(error: BaseException) -> str:
    """Return an exception's type and the first line of its text."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))  # torch writes in bold
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
