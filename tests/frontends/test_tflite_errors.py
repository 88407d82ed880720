"""Each error of a `.tflite` file that cannot be read has a golden text."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as fb  # type: ignore[import-untyped]
from tests.cli.program import check_golden
from tests.frontends.tflite_cases import X
from tests.frontends.tflite_files import Q, SubgraphWriter, TfliteWriter

from baretorch.errors import CompileError, InternalError
from baretorch.frontends.tflite.call import TfliteCall
from baretorch.frontends.tflite.lowering import TfliteLowering, TfliteRow
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
