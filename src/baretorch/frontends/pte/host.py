"""Runs ExecuTorch's own runtime on the host, as the reference for a `.pte`."""

from __future__ import annotations

import copy
import logging
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr
from io import StringIO
from typing import Any

from baretorch.errors import CompileError
from baretorch.ir.distance import largest, largest_distance
from baretorch.ir.graph import Array

CALLS = 3  # of each method when it is compared with PyTorch, so that state counts too
TOLERANCE = 1e-4  # of the largest number that PyTorch gives, or of 1 if that is more


class HostRuntime:
    """A program in ExecuTorch's host runtime. All methods are loaded at once, because loading a method resets the
    state that it shares with others."""

    def __init__(self, data: bytes) -> None:
        with importing_executorch():
            from executorch.runtime import Runtime
        self._data = data  # the program points into it
        with _refusals():
            program = Runtime.get().load_program(data)
            self._methods = {m: program.load_method(m) for m in sorted(program.method_names)}

    def run(self, inputs: Sequence[Any], method: str = "forward") -> list[Array]:
        """Return copies of a method's outputs, because the runtime owns their memory."""
        import torch

        if method not in self._methods:
            raise CompileError(f"the program has no method {method!r}", have=", ".join(self._methods))
        with _refusals():
            outputs = self._methods[method].execute([torch.as_tensor(x) for x in inputs])
            return [torch.as_tensor(y).numpy().copy() for y in outputs]


def differences(data: bytes, module: Any, methods: Mapping[str, Sequence[Any]]) -> tuple[str, ...]:
    """Return the differences between the runtime and PyTorch for the example inputs of each method, or why it returns
    nothing."""
    import torch

    from baretorch.frontends.torch.calls import flat_tensors

    own = copy.deepcopy(module).eval()
    found: dict[str, float] = {}
    try:
        runtime = HostRuntime(data)
        for method in [*methods] * CALLS:
            have = runtime.run(flat_tensors(methods[method]), method)
            with torch.no_grad():
                want = flat_tensors([getattr(own, method)(*methods[method])])
            for i, (h, w) in enumerate(zip(have, want, strict=True)):
                error = _error(h, w.numpy())
                if error:
                    found.setdefault(f"output {i} of {method}", error)
    except CompileError as error:
        return (f"{error.what}: {', '.join(error.have)}",)
    return tuple(
        f"ExecuTorch's runtime returns another result than PyTorch: {where} differs by {error:.3g}"
        for where, error in found.items()
    )


def _error(have: Array, want: Array) -> float:
    """Return the largest difference if it exceeds rounding; else 0."""
    error = largest_distance(have, want)
    return error if error > (TOLERANCE * max(1.0, largest(want)) if want.dtype.kind == "f" else 0) else 0.0


@contextmanager
def importing_executorch() -> Iterator[None]:
    """Explain in the block how to install executorch if its import fails, and silence it."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
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
    finally:
        logging.disable(level)


@contextmanager
def _refusals() -> Iterator[None]:
    """Join the numbers that the runtime raises with the reasons that it writes to standard error, and silence the
    rest."""
    log = StringIO()
    try:
        with redirect_stderr(log):
            yield
    except RuntimeError as error:
        said = re.findall(r"^\[\w+\.cpp:\d+\] (.+)$", log.getvalue(), re.MULTILINE)
        missing = [line for line in said if line.startswith("Missing operator")]
        have = missing or [*said[-1:], str(error)]
        raise CompileError("ExecuTorch's runtime refuses the program", have=have) from error
