"""Each error of a `.tflite` file that cannot be read has a golden text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as fb  # type: ignore[import-untyped]
from tests.cli.program import check_golden
from tests.frontends.tflite_cases import X
from tests.frontends.tflite_files import Q, SubgraphWriter, TfliteWriter

from baretorch.errors import CompileError, InternalError
from baretorch.frontends.tflite.call import TfliteCall
from baretorch.frontends.tflite.lowering import TfliteLowering, TfliteRow
from baretorch.frontends.tflite.schema import TYPES
from baretorch.frontends.tflite.source import read_tflite
from baretorch.frontends.tflite.table import TABLE


def file(build: Callable[[SubgraphWriter], None]) -> bytes:
    writer = TfliteWriter()
    build(writer.main)
    return writer.bytes()


def unsupported(g: SubgraphWriter) -> None:
    x = g.op("UNIQUE", [g.input((4,))], (4,), "float32", "UniqueOptions")
    y = g.tensor("flex/out", (4,), "float32")
    g.add("FlexErf", [x], [y], custom=True)
    g.output(g.op("UNIQUE", [y], (4,), "float32", "UniqueOptions"))


def int16(g: SubgraphWriter) -> None:
    q = Q(2.0**-12, 3, "int16")
    g.output(g.op("ADD", [g.input((2, 3), q), g.input((2, 3), q)], (2, 3), q, "AddOptions"))


def other_type(g: SubgraphWriter) -> None:
    g.output(g.op("ABS", [g.input((2, 3), "float64")], (2, 3), "float64"))


def dynamic(g: SubgraphWriter) -> None:
    g.output(g.op("ABS", [g.input((-1, 3))], (-1, 3)))


def left_open(g: SubgraphWriter) -> None:
    """Keras converts for any batch, and then the file does not know what a RESHAPE makes."""
    g.output(g.op("RESHAPE", [g.input((1, 3, 4))], (1, 1), "float32", "ReshapeOptions"))
    g.graph.tensors[1].shapeSignature = [-1, -1]


def half_type(g: SubgraphWriter) -> None:
    g.output(g.op("CAST", [g.input((2, 3))], (2, 3), "float16", "CastOptions", inDataType=0, outDataType=1))


def sparse(g: SubgraphWriter) -> None:
    g.output(g.op("ABS", [g.input((2, 3))], (2, 3)))
    g.graph.tensors[0].sparsity = fb.SparsityParametersT()


def not_constant(g: SubgraphWriter) -> None:
    g.output(g.op("TRANSPOSE", [g.input((2, 3)), g.input((2,), "int32")], (3, 2), "float32", "TransposeOptions"))


def other_shape(g: SubgraphWriter) -> None:
    g.output(g.op("ADD", [g.input((2, 3)), g.input((2, 3))], (2, 4), "float32", "AddOptions"))


def unread(g: SubgraphWriter) -> None:
    g.output(g.op("ABS", [g.tensor("never/made", (2, 3), "float32")], (2, 3)))


def peepholes(g: SubgraphWriter) -> None:
    units = 2
    gates = [g.const(np.zeros((units, units), np.float32)) for _ in range(8)]
    rest = [g.const(np.zeros(units, np.float32)) for _ in range(7)]
    state = [g.tensor(name, (1, units), "float32", variable=True) for name in ("hidden", "cell")]
    inputs = [g.input((1, 3, units)), *gates, *rest, -1, -1, *state]
    g.output(
        g.op("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, (1, 3, units), "float32", "UnidirectionalSequenceLSTMOptions")
    )


def activation(g: SubgraphWriter) -> None:
    g.output(g.op("ADD", [g.input((2,)), g.input((2,))], (2,), "float32", "AddOptions", fusedActivationFunction=4))


def short(g: SubgraphWriter) -> None:
    g.output(g.op("ADD", [g.input((2,), X), g.const(np.zeros(2), X)], (2,), X, "AddOptions"))
    g.graph.tensors[1].shape = [3]


def huge(g: SubgraphWriter) -> None:
    g.output(
        g.op(
            "FILL",
            [g.const(np.array([60000, 60000], np.int32)), g.const(np.float32(1))],
            (60000, 60000),
            "float32",
            "FillOptions",
        )
    )


def many_parts(g: SubgraphWriter) -> None:
    """A few bytes that ask for ten million parts."""
    g.output(g.op("UNPACK", [g.input((10_000_000,))], (), "float32", "UnpackOptions", num=10_000_000))


def wide_picture(g: SubgraphWriter) -> None:
    size = g.const(np.array([1 << 30, 1 << 30], np.int32))
    inputs = [g.input((1, 2, 2, 1)), size]
    values = {"alignCorners": True}
    g.output(g.op("RESIZE_NEAREST_NEIGHBOR", inputs, (1, 4, 4, 1), "float32", "ResizeNearestNeighborOptions", **values))


def scales(g: SubgraphWriter) -> None:
    g.output(g.op("ABS", [g.input((2,), Q(0.0))], (2,), X))


def flat_picture(g: SubgraphWriter) -> None:
    g.output(g.op("SPACE_TO_DEPTH", [g.input((2, 6))], (1, 3), "float32", "SpaceToDepthOptions", blockSize=2))


def custom(
    name: str, data: str = "int16", result: str = "int16", **attributes: int
) -> Callable[[SubgraphWriter], None]:
    """Return a writer of one operator of the audio front end, between vectors of 16 numbers."""

    def build(g: SubgraphWriter) -> None:
        y = g.tensor("sound/y", (16,), result)
        g.add(name, [g.input((16,), data)], [y], custom=True, attributes=attributes)
        g.output(y)

    return build


def no_map(g: SubgraphWriter) -> None:
    custom("SignalRfft")(g)
    g.graph.operators[0].customOptions = np.arange(9, dtype=np.uint8)


def unsigned(g: SubgraphWriter) -> None:
    x = g.tensor("energy", (8,), "uint32")
    g.add("SignalEnergy", [g.input((16,), "int16")], [x], custom=True, attributes={"start_index": 0, "end_index": 8})
    g.output(g.op("CAST", [x], (8,), "float32", "CastOptions"))


def wide_band(g: SubgraphWriter) -> None:
    """Let a band of the filter bank end after the last energy."""
    x = g.tensor("energy", (8,), "uint32")
    g.add("SignalEnergy", [g.input((16,), "int16")], [x], custom=True, attributes={"start_index": 0, "end_index": 8})
    tables = [g.const(np.array(v, np.int16)) for v in ([1] * 6, [1] * 6, [0, 6], [0, 3], [3, 3])]
    y, z = g.tensor("bank", (1,), "uint64"), g.tensor("root", (1,), "uint32")
    g.add("SignalFilterBank", [x, *tables], [y], custom=True, attributes={"num_channels": 1})
    g.add("SignalFilterBankSquareRoot", [y, g.const(np.array(0, np.int32))], [z], custom=True, attributes={})
    g.output(g.op("CAST", [z], (1,), "int32", "CastOptions"))


def scattered(source: str | Q, index: tuple[int, ...]) -> bytes:
    """A file with SCATTER_ND of updates of this type."""

    def written(g: SubgraphWriter) -> None:
        inputs = [g.const(np.zeros(index, np.int32)), g.input(index[:-1], source), g.const(np.array([3, 2], np.int32))]
        g.output(g.op("SCATTER_ND", inputs, (3, 2), source, "ScatterNdOptions"))

    return file(written)


SOUND = file(lambda g: g.output(g.op("ABS", [g.input((2, 3))], (2, 3))))
TEXTS: dict[str, bytes] = {
    **{
        f.__name__: file(f)
        for f in (
            unsupported,
            int16,
            half_type,
            other_type,
            dynamic,
            left_open,
            sparse,
            not_constant,
            other_shape,
            unread,
        )
    },
    **{
        f.__name__: file(f)
        for f in (peepholes, activation, short, huge, many_parts, wide_picture, scales, flat_picture)
    },
    **{f"signal_{f.__name__}": file(f) for f in (no_map, unsigned, wide_band)},
    "scatter_quantized": scattered(Q(0.1), (2, 2)),
    "scatter_axes": scattered("float32", (2, 3)),
    "scatter_sum": scattered("int64", (2, 2)),
    "signal_stacker": file(custom("SignalStacker")),
    "signal_length": file(custom("SignalRfft", fft_length=500, T=7)),
    "signal_float": file(custom("SignalRfft", "float32", "float32", fft_length=16, T=0)),
    "signal_missing": file(custom("SignalRfft", T=7)),
    "signal_large": file(custom("SignalRfft", fft_length=1 << 40)),
    "signal_shift": file(custom("SignalFilterBankLog", "int32", "int16", input_correction_bits=40, output_scale=1)),
    "signal_port": file(custom("SignalFilterBankLog", "uint32", "int16", input_correction_bits=4, output_scale=1)),
    "signal_delay": file(custom("SignalDelay", delay_length=1 << 30)),
    "signal_framer": file(custom("SignalFramer", frame_size=8, frame_step=4, prefill=0)),
    "empty": b"",
    "other_kind": b"PK\x03\x04" + bytes(60),
    "half": SOUND[: len(SOUND) // 2],
}


@pytest.mark.parametrize("name", TEXTS)
def test_error_text(name: str) -> None:
    with pytest.raises(CompileError) as caught:
        read_tflite(TEXTS[name], "model")
    check_golden(f"tflite_{name}", caught.value.render() + "\n")


def test_what_sizes_cannot_cause_is_our_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(g: TfliteLowering, call: TfliteCall) -> str:
        raise AttributeError("nothing here")

    monkeypatch.setitem(TABLE, "ABS", TfliteRow(wrong))
    with pytest.raises(InternalError, match=r"^ABS abs/1: AttributeError: nothing here$"):
        read_tflite(SOUND, "model")


def constant_of(kind: str, size: int) -> bytes:
    def written(g: SubgraphWriter) -> None:
        weight = g.const(np.zeros(size, np.int8), Q(0.1))
        g.graph.tensors[weight].type, g.graph.tensors[weight].shape = TYPES.index(kind), [3, 4]
        g.output(g.op("FULLY_CONNECTED", [g.input((1, 4), X), weight, -1], (1, 3), X, "FullyConnectedOptions"))

    return file(written)


def in_blocks(g: SubgraphWriter) -> None:
    weight = g.const(np.zeros((3, 4), np.int8), Q(0.1))
    quant = g.graph.tensors[weight].quantization
    quant.scale, quant.details = None, fb.BlockwiseQuantizationT()
    quant.detailsType = fb.QuantizationDetails.BlockwiseQuantization
    g.output(g.op("FULLY_CONNECTED", [g.input((1, 4), X), weight, -1], (1, 3), X, "FullyConnectedOptions"))


def sums_of_products(g: SubgraphWriter) -> None:
    g.output(g.op("BATCH_MATMUL", [g.input((2, 3), X), g.input((3, 2), X)], (2, 2), "int32", "BatchMatMulOptions"))


@pytest.mark.parametrize(
    "data",
    [
        *(constant_of(*t) for t in (("int4", 6), ("float64", 96), ("bfloat16", 24), ("uint16", 24), ("string", 30))),
        file(in_blocks),
        file(sums_of_products),
        file(lambda g: g.output(g.op("ABS", [g.input((2, 3), Q(1e-40))], (2, 3), X))),
        file(lambda g: g.output(g.op("CAST", [g.input((2, 3), "int32")], (2, 3), Q(0.1, 0, "int16")))),
    ],
)
def test_what_is_valid_is_not_called_damaged(data: bytes) -> None:
    with pytest.raises(CompileError, match="not supported") as caught:
        read_tflite(data, "model")
    assert "not a valid" not in caught.value.render()


def composite(inner: Callable[[SubgraphWriter], None]) -> bytes:
    def written(g: SubgraphWriter) -> None:
        inner(g.file.subgraph())
        g.output(g.op("STABLEHLO_COMPOSITE", [g.input((2,))], (2,), "float32", *CALL, **CALLED))

    return file(written)


CALL = ("StableHLOCompositeOptions",)
CALLED: dict[str, Any] = {"name": "test.c", "decompositionSubgraphIndex": 1}


def test_composites_that_call_each_other_end() -> None:
    def itself(g: SubgraphWriter) -> None:
        g.output(g.op("STABLEHLO_COMPOSITE", [g.input((2,))], (2,), "float32", *CALL, **CALLED))

    def doubling(g: SubgraphWriter) -> None:
        """Seven decompositions, each of which calls the next one ten times."""
        for depth in range(2, 9):
            x = g.input((2,))
            called = CALLED | {"decompositionSubgraphIndex": depth}
            for _ in range(10 if depth < 8 else 0):
                x = g.op("STABLEHLO_COMPOSITE", [x], (2,), "float32", *CALL, **called)
            g.output(x)
            g = g.file.subgraph()
        g.output(g.input((2,)))

    with pytest.raises(CompileError, match="nested too deeply"):
        read_tflite(composite(itself), "model")
    with pytest.raises(CompileError, match="without end"):
        read_tflite(composite(doubling), "model")


def test_a_composite_does_not_fit_its_decomposition() -> None:
    with pytest.raises(CompileError, match=r"but its decomposition states in/0 float32\[3\]"):
        read_tflite(composite(lambda g: g.output(g.input((3,)))), "model")
    with pytest.raises(CompileError, match="has 1 inputs, and its decomposition 0"):
        read_tflite(composite(lambda g: g.output(g.const(np.zeros(2, np.float32)))), "model")
    with pytest.raises(CompileError, match="REVERSE_SEQUENCE"):
        read_tflite(composite(lambda g: g.output(g.op("REVERSE_SEQUENCE", [g.input((2,))], (2,)))), "model")
