"""The child process: opens models in a reference runtime and runs them, as requested by messages on standard input.

python -m baretorch.frontends.runtimes.child LIBRARY

Only NumPy and the runtime are imported here, so that the process starts fast. No other module imports this one, because
Python warns when a module is imported and run.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Collection, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from baretorch.frontends.runtimes.frames import decode_message, encode_message

Array: TypeAlias = npt.NDArray[Any]
Key: TypeAlias = int | str  # identifies an input or output: a number in LiteRT, a name in ONNX

WRONG = frozenset({"SUM"})  # LiteRT 2.3.0: its reference kernel returns -1 for int8; the optimized one is right


class RuntimeModel(Protocol):
    """A model that a runtime has opened; it keeps its state from run to run."""

    def run(self, inputs: dict[Any, Array], wanted: Sequence[Any]) -> list[Array]: ...


class LiteRtModel:
    """The first subgraph of a `.tflite`, with LiteRT's reference kernels. Its variables begin with zeros."""

    def __init__(self, data: bytes, operators: Collection[str]) -> None:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType  # type: ignore[import-not-found, import-untyped, unused-ignore]

        def open_with(kernels: OpResolverType) -> Any:
            interpreter = Interpreter(
                model_content=data, experimental_op_resolver_type=kernels, experimental_preserve_all_tensors=True
            )
            interpreter.allocate_tensors()
            return interpreter

        optimized = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        try:
            self._interpreter = open_with(optimized if WRONG.intersection(operators) else OpResolverType.BUILTIN_REF)
        except (RuntimeError, ValueError):  # a few operators have no reference kernel
            self._interpreter = open_with(optimized)

    def run(self, inputs: dict[int, Array], wanted: Sequence[int]) -> list[Array]:
        for index, value in inputs.items():
            self._interpreter.set_tensor(index, value)
        self._interpreter.invoke()
        return [self._interpreter.get_tensor(i) for i in wanted]


class OnnxModel:
    """An ONNX model in onnxruntime, on one thread."""

    def __init__(self, data: bytes, operators: Collection[str]) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])

    def run(self, inputs: dict[str, Array], wanted: Sequence[str]) -> list[Array]:
        return [np.asarray(y) for y in self._session.run(list(wanted), inputs)]


LIBRARIES: dict[str, type[LiteRtModel] | type[OnnxModel]] = {"LiteRT": LiteRtModel, "onnxruntime": OnnxModel}


def main(library: str) -> None:
    """Answer messages until standard input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which ends this process
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # the runtime's own output must not mix with messages
    models: dict[int, RuntimeModel] = {}

    def read(size: int) -> bytes:
        data = sys.stdin.buffer.read(size)
        if len(data) < size:
            raise EOFError
        return data

    while True:
        try:
            header, arrays = decode_message(read)
        except EOFError:
            return
        try:
            answer = _answer(library, models, header, arrays)
        except Exception as error:  # the runtime rejects the model
            text = str(error).splitlines() or [type(error).__name__]
            answer = encode_message({"refused": [line[:300] for line in text[:3]]})
        out.write(answer)
        out.flush()


def _answer(library: str, models: dict[int, RuntimeModel], header: dict[str, Any], arrays: Sequence[Array]) -> bytes:
    for gone in header["closed"]:
        models.pop(gone, None)
    if header["ask"] == "open":
        models[header["model"]] = LIBRARIES[library](arrays[0].tobytes(), header["operators"])
        return encode_message({})
    inputs: dict[Key, Array] = dict(zip(header["inputs"], arrays, strict=True))
    return encode_message({}, models[header["model"]].run(inputs, header["wanted"]))


if __name__ == "__main__":
    main(sys.argv[1])
