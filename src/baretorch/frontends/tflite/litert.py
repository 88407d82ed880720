"""LiteRT's interpreter with its reference kernels: what a file's own runtime answers, tensor by tensor."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from baretorch.errors import CompileError
from baretorch.ir import Array

PACKAGE = "ai_edge_litert"
WRONG = frozenset({"SUM"})  # of LiteRT 2.3.0: its reference kernel gives -1 for int8; the optimized one is right


def installed() -> bool:
    return find_spec(PACKAGE) is not None


class LiteRt:
    """An interpreter of the first subgraph, which begins with zeros in its variables."""

    def __init__(self, data: bytes, operators: Collection[str]) -> None:
        from ai_edge_litert.interpreter import (  # type: ignore[import-not-found, import-untyped, unused-ignore]
            Interpreter,
            OpResolverType,
        )

        def made(kernels: OpResolverType) -> Any:
            with _quiet(), _refusals():
                interpreter = Interpreter(
                    model_content=data,
                    experimental_op_resolver_type=kernels,
                    experimental_preserve_all_tensors=True,
                )
                interpreter.allocate_tensors()
                return interpreter

        optimized = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        try:
            self._interpreter = made(optimized if WRONG.intersection(operators) else OpResolverType.BUILTIN_REF)
        except CompileError:  # a few operators have no reference kernel
            self._interpreter = made(optimized)

    def run(self, inputs: Mapping[int, Array], wanted: Sequence[int]) -> dict[int, Array]:
        """The wanted tensors, by number, after a run with these inputs."""
        with _quiet(), _refusals():
            for index, value in inputs.items():
                self._interpreter.set_tensor(index, value)
            self._interpreter.invoke()
            return {i: self._interpreter.get_tensor(i).copy() for i in wanted}


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except (RuntimeError, ValueError) as error:
        raise CompileError("LiteRT refuses the model", have=str(error).splitlines()[:3]) from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """LiteRT's C++ code writes to the standard error of the process."""
    kept = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
