"""Records one run of a tinygrad model: the calls of Tensor's methods with arguments, results, and the line of the
user's file. A call of a known method is recorded whole; for other methods, the calls inside are recorded.
"""

from __future__ import annotations

import inspect
import sys
import sysconfig
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, ClassVar

from baretorch.errors import CompileError

SHOWS = (
    "numpy",
    "item",
    "tolist",
    "data",
    "_data",
    "_buffer",
)  # methods that need a tensor's values, which are unknown when an image is compiled
CHANGES = {"assign": "assign(), or +=,", "__setitem__": "x[…] = y", "replace": "replace()"}
RANDOM = "rand"  # stands for all methods that make random numbers
INSTEAD = {
    RANDOM: "pass them as an input",
    **dict.fromkeys(SHOWS, "keep it a Tensor: Tensor.where(condition, a, b) instead of an if"),
    "assign": "x = x + y instead of x += y; state as an input and an output",
    "replace": "pass state as an input, and return it as an output",
    "__setitem__": "Tensor.where, cat or pad instead of x[…] = y",
}


@dataclass(frozen=True, eq=False)
class TinygradCall:
    """A call of a known method: all of its arguments, in the order of its signature, and its result. `outer` is the
    unknown method that called it, if any."""

    name: str
    args: tuple[Any, ...]
    named: Mapping[str, Any]
    results: tuple[Any, ...]
    line: str
    outer: str | None = None


@dataclass
class Trace:
    """The calls of a model's run. `known` are the names of methods that are recorded whole."""

    active: ClassVar[Trace | None] = None

    known: Collection[str]
    inputs: Sequence[Any]
    calls: list[TinygradCall] = field(default_factory=list)
    looked_into: list[TinygradCall] = field(default_factory=list)
    _inside: bool = False
    _outer: list[tuple[str, str]] = field(default_factory=list)

    def run(self, model: Callable[..., Any]) -> Any:
        """Run the model and return its result; its inputs are realized Tensors."""
        Trace.active = self
        try:
            return model(*self.inputs)
        finally:
            Trace.active = None

    def depends(self, tensor: Any) -> bool:
        """Report whether a Tensor is computed from the inputs."""
        bases = {x.uop.base for x in self.inputs}
        return not bases.isdisjoint(tensor.uop.toposort())

    def call(self, name: str, method: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Call a method, and record it."""
        if self._inside:
            return method(*args, **named)
        if name == "realize" and any(map(self.depends, tensors((args, named)))):
            return args[0]  # a realized tensor would no longer depend on the input
        if name == RANDOM:
            raise self._error("random numbers inside a model are not supported", name)
        if name in SHOWS or name in CHANGES:
            self._refuse(name, [*tensors((args, named))])
            return self._call_unrecorded(method, args, named)
        if name not in self.known:
            return self._look_into(name, method, args, named)
        result = self._call_unrecorded(method, args, named)
        bound = inspect.signature(inspect.unwrap(method)).bind(*args, **named)
        bound.apply_defaults()
        outer, line = self._outer[0] if self._outer else (None, _line())
        self.calls.append(TinygradCall(name, bound.args, bound.kwargs, tuple(tensors(result)), line, outer))
        return result

    def _call_unrecorded(self, method: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        self._inside = True
        try:
            return method(*args, **named)
        finally:
            self._inside = False

    def _look_into(self, name: str, method: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        self._outer.append((name, _line()))
        try:
            result = method(*args, **named)
        finally:
            _, line = self._outer.pop()
        self.looked_into.append(TinygradCall(name, args, named, tuple(tensors(result)), line))
        return result

    def _refuse(self, name: str, given: Sequence[Any]) -> None:
        if any(map(self.depends, given)) or name in CHANGES:
            what = f"{name}() needs values, which are known only when the model runs"
            if name in CHANGES:
                what = f"{CHANGES[name]} changes a tensor in place, which is not supported in a model"
            raise self._error(what, name)

    def _error(self, what: str, name: str) -> CompileError:
        return CompileError(what, at=self._outer[0][1] if self._outer else _line(), try_=INSTEAD[name])


def calls_to_text(calls: Sequence[TinygradCall]) -> str:
    """Print one line per call."""
    return "\n".join(
        f"{', '.join(map(_show, c.results))} = {c.name}({', '.join(map(_show, c.args))})  # {c.line}" for c in calls
    )


def _show(value: Any) -> str:
    if is_tinygrad_tensor(value):
        return f"{value.dtype.name}{list(value.shape)}"
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_show, value))}]"
    plain = value is None or isinstance(value, (bool, int, float, str, slice))
    return repr(value) if plain else type(value).__name__


def record_calls(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method, which records its calls while a model is traced."""

    @wraps(method)
    def call(*args: Any, **named: Any) -> Any:
        trace = Trace.active
        return method(*args, **named) if trace is None else trace.call(name, method, args, named)

    return call


def plain_call(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the __call__ of a wrapper (TinyJit, function), which calls the plain function while a model is traced."""

    @wraps(method)
    def call(wrapper: Any, *args: Any, **named: Any) -> Any:
        return method(wrapper, *args, **named) if Trace.active is None else wrapper.fxn(*args, **named)

    return call


def tensors(value: Any) -> Iterator[Any]:
    """Yield all Tensors among arguments or results."""
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from tensors(item)
    elif is_tinygrad_tensor(value):
        yield value


def is_tinygrad_tensor(value: Any) -> bool:
    module = sys.modules.get("tinygrad.tensor")
    return module is not None and isinstance(value, module.Tensor)


def _line() -> str:
    """Return the line of the user's file: the innermost frame outside this module and tinygrad."""
    frame = inspect.currentframe()
    while frame is not None and not _is_users(frame.f_code.co_filename):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}" if frame is not None else ""


def raised_at(error: BaseException) -> str | None:
    """Return the line of the user's file at which an error was raised."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if _is_users(f.filename)]
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else None


def _is_users(file: str) -> bool:
    own = (str(Path(__file__).parent), str(Path(sys.modules["tinygrad"].__file__ or "").parent))
    python = file.startswith(sysconfig.get_path("stdlib")) and "site-packages" not in file
    return not file.startswith(own) and not python
