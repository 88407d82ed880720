"""Every operator and its kernels: the tables to read first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from baretorch.errors import InternalError
from baretorch.ir import Op
from baretorch.ops import (
    activations,
    along,
    attention,
    bits,
    cdist,
    choose,
    conv2d,
    conv_transpose2d,
    depth,
    elementwise,
    fft,
    fixed,
    functions,
    index,
    layout,
    linear,
    logic,
    lookup,
    matmul,
    move,
    norm,
    ordered,
    pool,
    pull,
    qattention,
    qbinary,
    qconv2d,
    qconv_transpose2d,
    qlinear,
    qmatmul,
    qnorm,
    qpool,
    qrecurrent,
    qsoftmax,
    quantize,
    qupsample,
    qwindows,
    recurrent,
    reduce,
    sample,
    scatter_reduce,
    softmax,
    solve,
    special,
    upsample,
)
from baretorch.ops.kernel import Kernel


@dataclass(frozen=True)
class OpRow:
    """An operator and its kernels, the first that fits being the one to use."""

    op: type[Op]
    kernels: tuple[Kernel[Any], ...]


OPS: tuple[OpRow, ...] = (
    OpRow(linear.Linear, linear.KERNELS),
    OpRow(matmul.Matmul, matmul.KERNELS),
    OpRow(solve.Solve, solve.SOLVE),
    OpRow(solve.Det, solve.DET),
    OpRow(attention.Attention, attention.KERNELS),
    OpRow(recurrent.Lstm, recurrent.LSTM),
    OpRow(recurrent.Gru, recurrent.GRU),
    OpRow(recurrent.Rnn, recurrent.RNN),
    OpRow(conv2d.Conv2d, conv2d.KERNELS),
    OpRow(conv_transpose2d.ConvTranspose2d, conv_transpose2d.KERNELS),
    OpRow(depth.DepthWindows, depth.KERNELS),
    OpRow(pool.MaxPool2d, pool.MAX),
    OpRow(pool.AvgPool2d, pool.AVG),
    OpRow(pool.AdaptiveMaxPool2d, pool.ADAPTIVE_MAX),
    OpRow(pool.AdaptiveAvgPool2d, pool.ADAPTIVE_AVG),
    OpRow(upsample.UpsampleNearest2d, upsample.NEAREST),
    OpRow(upsample.UpsampleBilinear2d, upsample.BILINEAR),
    OpRow(sample.UpsampleBicubic2d, sample.BICUBIC),
    OpRow(sample.GridSample2d, sample.GRID_SAMPLE),
    OpRow(reduce.Sum, reduce.SUM),
    OpRow(reduce.Mean, reduce.MEAN),
    OpRow(reduce.Prod, reduce.PROD),
    OpRow(reduce.Amax, reduce.AMAX),
    OpRow(reduce.Amin, reduce.AMIN),
    OpRow(reduce.AnyOf, reduce.ANY),
    OpRow(reduce.AllOf, reduce.ALL),
    OpRow(reduce.VectorNorm, reduce.VECTOR_NORM),
    OpRow(reduce.Var, reduce.VAR),
    OpRow(reduce.Std, reduce.STD),
    OpRow(reduce.LogSumExp, reduce.LOGSUMEXP),
    OpRow(along.ArgMax, along.ARGMAX),
    OpRow(along.ArgMin, along.ARGMIN),
    OpRow(along.CumSum, along.CUMSUM),
    OpRow(along.TopK, along.TOPK),
    OpRow(fft.Rfft, fft.RFFT),
    OpRow(fft.Irfft, fft.IRFFT),
    OpRow(fft.Fft, fft.FFT),
    OpRow(fft.Magnitude, fft.MAGNITUDE),
    OpRow(ordered.KthValue, ordered.KTH_VALUE),
    OpRow(ordered.Median, ordered.MEDIAN),
    OpRow(ordered.Mode, ordered.MODE),
    OpRow(cdist.Cdist, cdist.KERNELS),
    OpRow(softmax.Softmax, softmax.SOFTMAX),
    OpRow(softmax.LogSoftmax, softmax.LOG_SOFTMAX),
    OpRow(norm.LayerNorm, norm.LAYER_NORM),
    OpRow(norm.GroupNorm, norm.GROUP_NORM),
    *(OpRow(op, elementwise.kernels(op)) for op in elementwise.OPS),
    *(OpRow(op, elementwise.kernels(op)) for op in functions.OPS),
    *(OpRow(op, elementwise.kernels(op)) for op in special.OPS),
    *(OpRow(op, activations.kernels(op)) for op in activations.OPS),
    *(OpRow(op, logic.kernels(op)) for op in logic.OPS),
    *(OpRow(op, elementwise.kernels(op)) for op in bits.OPS),
    OpRow(layout.Permute, layout.PERMUTE),
    OpRow(layout.Reshape, layout.RESHAPE),
    OpRow(layout.Expand, layout.EXPAND),
    OpRow(layout.Flip, layout.FLIP),
    OpRow(layout.Unfold, layout.UNFOLD),
    OpRow(layout.Pad, layout.PAD),
    OpRow(quantize.Quantize, quantize.QUANTIZE),
    OpRow(quantize.Dequantize, quantize.DEQUANTIZE),
    OpRow(fixed.ToFixed, fixed.TO),
    OpRow(fixed.FromFixed, fixed.FROM),
    OpRow(lookup.Lookup, lookup.KERNELS),
    OpRow(qlinear.QLinear, qlinear.KERNELS),
    OpRow(qconv2d.QConv2d, qconv2d.KERNELS),
    OpRow(qconv_transpose2d.QConvTranspose2d, qconv_transpose2d.KERNELS),
    OpRow(qmatmul.QMatmul, qmatmul.KERNELS),
    OpRow(qattention.QAttention, qattention.KERNELS),
    OpRow(qnorm.QNorm, qnorm.KERNELS),
    OpRow(qupsample.QUpsampleBilinear2d, qupsample.KERNELS),
    OpRow(qbinary.QAdd, qbinary.ADD),
    OpRow(qbinary.QMul, qbinary.MUL),
    OpRow(qbinary.QDiv, qbinary.DIV),
    OpRow(qpool.QAvgPool2d, qpool.AVG),
    OpRow(qwindows.QAvgWindows, qwindows.AVG),
    OpRow(qwindows.QMaxWindows, qwindows.MAX),
    OpRow(qsoftmax.QSoftmax, qsoftmax.SOFTMAX),
    OpRow(qsoftmax.QLogSoftmax, qsoftmax.LOG_SOFTMAX),
    OpRow(qrecurrent.QLstm, qrecurrent.LSTM),
    OpRow(qrecurrent.QGru, qrecurrent.GRU),
    OpRow(move.Slice, move.SLICE),
    OpRow(move.Cat, move.CAT),
    OpRow(move.SliceScatter, move.SLICE_SCATTER),
    OpRow(move.Copy, move.COPY),
    OpRow(choose.Choose, choose.KERNELS),
    OpRow(index.IndexSelect, index.INDEX_SELECT),
    OpRow(index.Gather, index.GATHER),
    OpRow(index.IndexPut, index.INDEX_PUT),
    OpRow(index.Scatter, index.SCATTER),
    OpRow(scatter_reduce.ScatterReduce, scatter_reduce.SCATTER_REDUCE),
    OpRow(index.RavelIndex, index.RAVEL_INDEX),
)

# What only plans hold: parts of an operator that takes several steps.
PLAN_OPS: tuple[OpRow, ...] = (
    OpRow(move.Place, move.PLACE),
    OpRow(index.Put, index.PUT),
    OpRow(index.PutAlong, index.PUT_ALONG),
    OpRow(scatter_reduce.ReduceAlong, scatter_reduce.REDUCE_ALONG),
    OpRow(pull.Pull, pull.KERNELS),
)

_BY_TYPE = {row.op: row for row in (*OPS, *PLAN_OPS)}
_BY_NAME = {row.op.name: row.op for row in OPS}


def kernels_of(op: Op) -> tuple[Kernel[Any], ...]:
    row = _BY_TYPE.get(type(op))
    if row is None:
        raise InternalError(f"{op.name} is not in the table of operators")
    return row.kernels


def op_named(name: str) -> type[Op] | None:
    return _BY_NAME.get(name)
