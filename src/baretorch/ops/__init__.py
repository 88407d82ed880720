"""The tables of all operators and their kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from baretorch.errors import InternalError
from baretorch.ir.graph import Op
from baretorch.ops import (
    activations,
    attention,
    cdist,
    conv2d,
    conv_transpose2d,
    delegate,
    elementwise,
    fft,
    filter_bank,
    functions,
    halves,
    index,
    input_rows,
    layout,
    linear,
    logic,
    matmul,
    move,
    norm,
    pool,
    recurrent,
    reduce,
    scan,
    signal,
    softmax,
    solve,
    trees,
    upsample,
)
from baretorch.ops.helpers.kernel import Kernel
from baretorch.ops.int8 import (
    integer,
    integer_rows,
    integer_sums,
    litert,
    litert_lstm,
    litert_softmax,
    litert_svdf,
    lookup,
    qattention,
    qbinary,
    qconv2d,
    qconv2d16,
    qconv_transpose2d,
    qelementwise,
    qlinear,
    qmatmul,
    qmove,
    qnorm,
    qpool,
    qrecurrent,
    qsoftmax,
    qsums,
    quantize,
    qupsample,
    qwindows,
)
from baretorch.ops.int8.rules import Int8Rule
from baretorch.ops.int8.scaled import Scaled


@dataclass(frozen=True)
class OpRow:
    """An operator, its kernels (the first that fits is used), the rule that creates its int8 form, and the scales which
    that needs."""

    op: type[Op]
    kernels: tuple[Kernel[Any], ...]  # none: a plan makes a view or other steps of it
    int8: Int8Rule | None = None  # None: it stays float
    scaled: Scaled | None = None  # None: it asks for no scale


OPS: tuple[OpRow, ...] = (
    OpRow(linear.Linear, linear.KERNELS, qlinear.linear, Scaled.LAYER),
    OpRow(matmul.Matmul, matmul.KERNELS, qmatmul.product, Scaled.OWN),
    OpRow(solve.Solve, solve.SOLVE),
    OpRow(solve.Det, solve.DET),
    OpRow(attention.Attention, attention.KERNELS, qattention.attend, Scaled.OWN),
    OpRow(recurrent.Lstm, recurrent.LSTM, litert_lstm.lstm, Scaled.RECURRENT),
    OpRow(recurrent.Gru, recurrent.GRU, qrecurrent.recurrent, Scaled.RECURRENT),
    OpRow(recurrent.Rnn, recurrent.RNN, qrecurrent.recurrent, Scaled.RECURRENT),
    OpRow(conv2d.Conv2d, conv2d.KERNELS, qconv2d.conv, Scaled.LAYER),
    OpRow(conv_transpose2d.ConvTranspose2d, conv_transpose2d.KERNELS, qconv_transpose2d.conv_transpose, Scaled.LAYER),
    OpRow(layout.DepthWindows, layout.DEPTH_WINDOWS, qmove.move, Scaled.ALIKE),
    OpRow(pool.MaxPool2d, pool.MAX, qwindows.max_pool, Scaled.ALIKE),
    OpRow(pool.AvgPool2d, pool.AVG, qwindows.avg_pool, Scaled.OWN),
    OpRow(pool.AdaptiveMaxPool2d, pool.ADAPTIVE_MAX, qwindows.adaptive_max_pool, Scaled.ALIKE),
    OpRow(pool.AdaptiveAvgPool2d, pool.ADAPTIVE_AVG, qwindows.adaptive_avg_pool, Scaled.OWN),
    OpRow(upsample.UpsampleNearest2d, upsample.NEAREST, qmove.move, Scaled.ALIKE),
    OpRow(upsample.UpsampleBilinear2d, upsample.BILINEAR, qupsample.bilinear, Scaled.ALIKE),
    OpRow(upsample.UpsampleBicubic2d, upsample.BICUBIC),
    OpRow(upsample.GridSample2d, upsample.GRID_SAMPLE),
    OpRow(reduce.Sum, reduce.SUM, qwindows.reduction, Scaled.OWN),
    OpRow(reduce.Mean, reduce.MEAN, qwindows.reduction, Scaled.OWN),
    OpRow(reduce.Prod, reduce.PROD),
    OpRow(reduce.Amax, reduce.AMAX, qwindows.reduction, Scaled.ALIKE),
    OpRow(reduce.Amin, reduce.AMIN),
    OpRow(reduce.AnyOf, reduce.ANY),
    OpRow(reduce.AllOf, reduce.ALL),
    OpRow(reduce.VectorNorm, reduce.VECTOR_NORM),
    OpRow(reduce.Var, reduce.VAR),
    OpRow(reduce.Std, reduce.STD),
    OpRow(reduce.LogSumExp, reduce.LOGSUMEXP),
    OpRow(scan.ArgMax, scan.ARGMAX),
    OpRow(scan.ArgMin, scan.ARGMIN),
    OpRow(scan.CumSum, scan.CUMSUM),
    OpRow(scan.TopK, scan.TOPK),
    OpRow(fft.Rfft, fft.RFFT),
    OpRow(fft.Irfft, fft.IRFFT),
    OpRow(fft.Fft, fft.FFT),
    OpRow(fft.Magnitude, fft.MAGNITUDE),
    OpRow(signal.SignalWindow, signal.WINDOW),
    OpRow(signal.SignalAutoScale, signal.AUTO_SCALE),
    OpRow(signal.SignalRfft, signal.RFFT),
    OpRow(signal.SignalEnergy, signal.ENERGY),
    OpRow(filter_bank.SignalFilterBank, filter_bank.FILTER_BANK),
    OpRow(filter_bank.SignalSquareRoot, filter_bank.SQUARE_ROOT),
    OpRow(filter_bank.SignalSpectralSubtraction, filter_bank.SPECTRAL_SUBTRACTION),
    OpRow(filter_bank.SignalPcan, filter_bank.PCAN),
    OpRow(filter_bank.SignalLog, filter_bank.LOG),
    OpRow(scan.KthValue, scan.KTH_VALUE),
    OpRow(scan.Median, scan.MEDIAN),
    OpRow(scan.Mode, scan.MODE),
    OpRow(cdist.Cdist, cdist.KERNELS),
    OpRow(trees.Trees, trees.KERNELS),
    OpRow(softmax.Softmax, softmax.SOFTMAX, qsoftmax.softmax, Scaled.SOFTMAX),
    OpRow(softmax.LogSoftmax, softmax.LOG_SOFTMAX, qsoftmax.softmax, Scaled.OWN),
    OpRow(norm.LayerNorm, norm.LAYER_NORM, qnorm.norm, Scaled.OWN),
    OpRow(norm.GroupNorm, norm.GROUP_NORM, qnorm.norm, Scaled.OWN),
    *(
        OpRow(op, op.kernels(), qelementwise.rule(op), qelementwise.scaling_of(op))
        for op in (*elementwise.OPS, *functions.OPS, *activations.OPS, *logic.OPS)
    ),
    OpRow(layout.Permute, layout.PERMUTE, qmove.move, Scaled.ALIKE),
    OpRow(layout.Reshape, (), qmove.move, Scaled.ALIKE),
    OpRow(layout.Expand, layout.EXPAND, qmove.move, Scaled.ALIKE),
    OpRow(layout.Flip, layout.FLIP, qmove.move, Scaled.ALIKE),
    OpRow(layout.Unfold, layout.UNFOLD, qmove.move, Scaled.ALIKE),
    OpRow(layout.Pad, layout.PAD, qmove.pad, Scaled.ALIKE),
    OpRow(quantize.Quantize, quantize.QUANTIZE, qmove.keep_stored),
    OpRow(quantize.Dequantize, quantize.DEQUANTIZE, qmove.rescale),
    *(OpRow(op, kernels) for op, kernels in (*quantize.OTHERS.items(), *halves.KERNELS.items())),
    OpRow(lookup.Lookup, lookup.KERNELS),
    OpRow(qlinear.QLinear, qlinear.KERNELS),
    OpRow(qconv2d.QConv2d, qconv2d.KERNELS),
    OpRow(qconv2d16.QConv2d16, qconv2d16.KERNELS),
    OpRow(qconv_transpose2d.QConvTranspose2d, qconv_transpose2d.KERNELS),
    OpRow(qmatmul.QMatmul, qmatmul.KERNELS),
    OpRow(qattention.QAttention, qattention.KERNELS),
    OpRow(qnorm.QNorm, qnorm.KERNELS),
    OpRow(qupsample.QUpsampleBilinear2d, qupsample.KERNELS),
    OpRow(qbinary.QAdd, qbinary.ADD),
    OpRow(qbinary.QMul, qbinary.MUL),
    OpRow(qbinary.QDiv, qbinary.DIV),
    OpRow(qbinary.QSquaredDifference, qbinary.SQUARED_DIFFERENCE),
    OpRow(qpool.QAvgPool2d, qpool.AVG),
    OpRow(qwindows.QAvgWindows, qwindows.AVG),
    OpRow(qwindows.QMaxWindows, qwindows.MAX),
    OpRow(qsoftmax.QSoftmax, qsoftmax.SOFTMAX),
    OpRow(qsoftmax.QLogSoftmax, qsoftmax.LOG_SOFTMAX),
    OpRow(qbinary.QAdd16, qbinary.ADD16),
    OpRow(qpool.QMaxPool16, qpool.MAX16),
    OpRow(qpool.QAvgPool16, qpool.AVG16),
    OpRow(qsoftmax.QSoftmax16, qsoftmax.SOFTMAX16),
    OpRow(qrecurrent.QLstm, qrecurrent.LSTM),
    OpRow(qrecurrent.QGru, qrecurrent.GRU),
    OpRow(qrecurrent.QRnn, qrecurrent.RNN),
    OpRow(litert_lstm.LiteRtLstm, litert_lstm.KERNELS),
    *(OpRow(op, kernels) for op, kernels in litert.KERNELS.items()),
    OpRow(litert_softmax.LiteRtSoftmax8, litert_softmax.SOFTMAX8),
    OpRow(litert_softmax.LiteRtSoftmax16, litert_softmax.SOFTMAX16),
    OpRow(litert_svdf.LiteRtSvdf, litert_svdf.KERNELS),
    OpRow(integer.RequantShift, integer.REQUANT_SHIFT),
    OpRow(integer.IntTable, integer.INT_TABLE),
    OpRow(integer.IntDivide, integer.INT_DIVIDE),
    OpRow(integer_sums.IntConv2d, integer_sums.CONV),
    OpRow(integer_sums.IntMatmul, integer_sums.MATMUL),
    OpRow(integer_rows.IntSoftmax, integer_rows.INT_SOFTMAX),
    OpRow(integer_rows.ItaSoftmax, integer_rows.ITA_SOFTMAX),
    OpRow(integer_rows.IntNorm, integer_rows.INT_NORM),
    OpRow(move.Slice, move.SLICE, qmove.move, Scaled.ALIKE),
    OpRow(move.Cat, (), qmove.move, Scaled.ALIKE),
    OpRow(move.SliceScatter, (), qmove.move, Scaled.ALIKE),
    OpRow(move.Copy, move.COPY, qmove.move, Scaled.ALIKE),
    OpRow(move.Choose, (), qmove.move, Scaled.ALIKE),
    OpRow(index.IndexSelect, index.INDEX_SELECT, qmove.move, Scaled.ALIKE),
    OpRow(index.Gather, index.GATHER, qmove.move, Scaled.ALIKE),
    OpRow(index.IndexPut, ()),
    OpRow(index.Scatter, ()),
    OpRow(index.ScatterReduce, ()),
    OpRow(index.RavelIndex, index.RAVEL_INDEX),
)

# Operators that only plans contain: parts of operators that take several steps, and regions for an NPU.
PLAN_OPS: tuple[OpRow, ...] = (
    OpRow(move.PlaceSlice, move.PLACE),
    OpRow(index.Put, index.PUT),
    OpRow(index.PutAlong, index.PUT_ALONG),
    OpRow(index.ReduceAlong, index.REDUCE_ALONG),
    OpRow(input_rows.Pull, input_rows.KERNELS),
    OpRow(qsums.QSums, qsums.SUMS),
    OpRow(qsums.QFromSums, qsums.FROM_SUMS),
    OpRow(delegate.Delegate, delegate.KERNELS),
)

_BY_TYPE = {row.op: row for row in (*OPS, *PLAN_OPS)}


def kernels_of(op: Op) -> tuple[Kernel[Any], ...]:
    row = _BY_TYPE.get(type(op))
    if row is None:
        raise InternalError(f"{op.name} is not in the table of operators")
    return row.kernels


def int8_rule(op: Op) -> Int8Rule | None:
    """Return the rule that creates the operator's int8 form, or None if it has none."""
    row = _BY_TYPE.get(type(op))
    return row.int8 if row else None


def scaling_of(op: Op) -> Scaled | None:
    """Return which scales the operator's int8 form needs, or None if it needs no scale or uses those that exist."""
    row = _BY_TYPE.get(type(op))
    return row.scaled if row else None
