"""Convert between the caller's values and the stored values of a Graph's inputs and outputs.

A quantized port stores int8 or int16 (`Tensor.is_quantized`). The dtype of the caller's array decides what it means:
float32 holds real numbers, which are quantized with saturation; the stored type holds stored values, which are used
unchanged. Outputs are always real numbers. A port of float16 or bfloat16 stores bits (uint16) in the same way, and also
accepts arrays of its own type. All other ports have one type, which is both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from baretorch.errors import CompileError
from baretorch.ir.graph import HALVES, Array, DType, Graph, Port, Tensor
from baretorch.ops.halves import from_half, to_half
from baretorch.ops.int8.arithmetic import dequantize, quantize_array

Answer: TypeAlias = Array | tuple[Array, ...]


class Runner(Protocol):
    """Runs a model: calling it returns the output for one set of inputs."""

    def __call__(self, *inputs: Any) -> Answer: ...

    def reset(self) -> None:
        """Reset the model's state."""


def arrange_inputs(graph: Graph, inputs: Sequence[Any], who: str = "run()") -> list[Array]:
    """Return the caller's tensors or arrays, checked, in the memory order of the C interface. Values of a quantized
    input are real numbers or stored values, as the caller has them; `store_inputs` and `real_inputs` accept both."""
    if len(inputs) != len(graph.inputs):
        raise CompileError(f"{who}: the model takes {len(graph.inputs)} input(s), not {len(inputs)}")
    arrays = []
    for x, port in zip(inputs, graph.takes(), strict=True):
        array = as_array(x)
        if port.tensor.dtype.is_half and array.dtype.name in HALVES:
            array = array.astype(np.float32)
        if array.shape != port.shape or array.dtype not in (port.dtype.numpy, port.tensor.dtype.numpy):
            raise CompileError(
                f"input {port.tensor.name!r}{'' if who == 'run()' else f' of {who}'} has the wrong shape or type",
                have=f"{array.dtype}{list(array.shape)}",
                need=_accepted_types(port),
            )
        arrays.append(port.to_memory(array))
    return arrays


def _accepted_types(port: Port) -> str:
    """Describe the arrays that an input accepts."""
    whole = f"{port.dtype.label}{list(port.shape)}"
    if port.tensor.dtype.is_half:
        return f"{whole} or {port.tensor.dtype.label}{list(port.shape)}"
    if not port.tensor.is_quantized:
        return whole
    return f"{whole} of real numbers, or {port.tensor.dtype.label}{list(port.shape)} of stored values"


def need_ports(graph: Graph, method: str) -> None:
    """Raise CompileError if a method has no outputs, or neither inputs nor state."""
    inputs, outputs = (", ".join(map(str, graph.of(names))) for names in (graph.inputs, graph.outputs))
    if not graph.outputs and not graph.state:
        raise CompileError(
            "the model has no outputs",
            at=method,
            have=f"inputs: {inputs}" if inputs else "no inputs either",
            need="at least one output, or state that changes",
            try_="return a tensor from forward(); in an .onnx or .tflite file, list a tensor among the graph's outputs",
        )
    if not graph.inputs and not graph.state:
        raise CompileError(
            "the model has no inputs, so its result is always the same",
            at=method,
            have=f"outputs: {outputs}",
            need="at least one input, or state that changes",
            try_="compute the result once on this computer, and store it as a constant array in the application",
        )


def as_array(x: Any) -> Array:
    """Convert a tensor of PyTorch or tinygrad, or anything NumPy accepts, to an array."""
    x = x.detach() if hasattr(x, "detach") else x
    x = x.cpu() if hasattr(x, "cpu") else x
    if str(getattr(x, "dtype", "")) == "torch.bfloat16":  # which NumPy does not have
        x = x.float()
    return np.asarray(x.numpy() if hasattr(x, "numpy") else x)


def arrange_outputs(graph: Graph, outputs: Sequence[Array]) -> Answer:
    """Return copies of the outputs in the caller's order; a single output is returned without a tuple."""
    made = tuple(np.array(port.from_memory(y)) for y, port in zip(outputs, graph.gives(), strict=True))
    return made[0] if len(made) == 1 else made


def store_inputs(graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    """Return the inputs as the graph stores them."""
    return [as_stored(graph[n], x) for n, x in zip(graph.inputs, inputs, strict=True)]


def real_inputs(graph: Graph, inputs: Sequence[Array]) -> tuple[Array, ...]:
    """Return the inputs as real numbers."""
    return tuple(as_real(graph[n], x) for n, x in zip(graph.inputs, inputs, strict=True))


def real_outputs(graph: Graph, outputs: Sequence[Array]) -> tuple[Array, ...]:
    """Return the outputs as real numbers."""
    return tuple(as_real(graph[n], y) for n, y in zip(graph.outputs, outputs, strict=True))


def as_stored(t: Tensor, values: Array) -> Array:
    """Return values as the tensor stores them: real numbers are quantized or rounded to halves, stored values are
    returned unchanged."""
    if t.dtype.is_half:
        return values if values.dtype == t.dtype.numpy else to_half(values, t.dtype)
    if t.quant is None or not t.is_quantized or values.dtype == t.dtype.numpy:
        return values
    to = np.int8 if t.dtype is DType.INT8 else np.int16
    return quantize_array(values, t.quant.scale[0], t.quant.zero_point[0], to)


def as_real(t: Tensor, values: Array) -> Array:
    """Return values as real numbers: stored values are dequantized or widened, real numbers are returned
    unchanged, or as halves round them."""
    if t.dtype.is_half:
        return from_half(as_stored(t, values), t.dtype)
    if t.quant is None or not t.is_quantized or values.dtype != t.dtype.numpy:
        return values
    return dequantize(values, t.quant.scale[0], t.quant.zero_point[0])


def index_inputs(graph: Graph) -> list[tuple[int, int, str]]:
    """List the inputs that are indices, with their number, the number of entries, and the layer that reads them."""
    numbers = {name: i for i, name in enumerate(graph.inputs)}
    return [
        (numbers[node.inputs[i]], size, graph[node.outputs[0]].layer)
        for node in graph.nodes
        for i, size in node.op.indices(graph.of(node.inputs)).items()
        if node.inputs[i] in numbers
    ]


def need_inside(index: Array, known: range, who: str, layer: str) -> None:
    """Raise CompileError if an index is out of range. An image clamps it, but other runtimes do not."""
    outside = index[(index < known.start) | (index >= known.stop)]
    if outside.size:
        raise CompileError(
            f"{who} has the index {outside.flat[0]}, and there are {known.stop} entries",
            at=layer,
            need=f"{known.start} to {known.stop - 1}",
        )
