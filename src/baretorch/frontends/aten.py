"""ATen program -> Graph. TABLE is the list of what PyTorch operators become; one row each.

A row is a function of the lowering and the operator's arguments in schema order: tensors arrive as names of
Graph tensors, everything else as it is. It returns the name of the result, or one per result.
Convolutions and pools are NHWC in a Graph: their rows permute on the way in and out, and the layout pass
removes what cancels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from baretorch.errors import CompileError, InternalError
from baretorch.frontends import aten_layers as layers
from baretorch.frontends import aten_pools as pools
from baretorch.frontends import aten_shapes as shapes
from baretorch.frontends.lowering import Lowering, Result
from baretorch.frontends.program import AtenCall, AtenProgram, show
from baretorch.ir import Builder, DType, Graph, State, verify
from baretorch.ops.elementwise import Sigmoid, Tanh


def to_graph(program: AtenProgram) -> Graph:
    """The Graph of an ATen program; all operators it cannot lower are named in one error."""
    unsupported = [call for call in program.calls if call.target not in TABLE]
    if unsupported:
        raise _unsupported(unsupported)
    b = Builder(program.name)
    g = Lowering(b, program)
    inputs = []
    for i in program.inputs:
        stored = tuple(i.shape[d] for d in i.order)
        name = b.input(i.name, stored, i.dtype)
        inputs.append(name)
        back = tuple(int(d) for d in np.argsort(i.order))
        g.values[i.name] = name if back == tuple(range(len(back))) else g.permute(name, back)
    for s in program.state:
        initial = program.constants[s.name]
        dtype = DType.of(initial.dtype.name)
        assert dtype is not None
        g.values[s.name] = b.input(s.name, initial.shape, dtype)
    for call in program.calls:
        b.origin = call.origin
        try:
            _bind(g, call, TABLE[call.target](g, *(g.resolve(a) for a in call.args)))
        except CompileError as error:
            if not error.at and str(call.origin):
                error.at = (str(call.origin),)
            raise
        except Exception as error:
            if not program.file:
                raise
            raise CompileError(
                f"{program.file} is damaged: {call.target} cannot be applied to what it names",
                have=f"{call.target}({', '.join(map(show, call.args))})"[:200],
            ) from error
    outputs = []
    for name, order in zip(program.outputs, program.output_orders, strict=True):
        out = g.value(name)
        outputs.append(out if order == tuple(range(len(order))) else g.permute(out, order))
    state = [State(g.values[s.name], g.value(s.next), program.constants[s.name]) for s in program.state]
    return verify(replace(b.graph(inputs, outputs, state), labels=program.labels))


def _bind(g: Lowering, call: AtenCall, result: Result) -> None:
    results = (result,) if isinstance(result, str) else result
    for name, shape, made in zip(call.results, call.shapes, results, strict=False):
        if name is None:
            continue
        if shape is not None and g.shape(made) != tuple(shape):
            raise InternalError(f"{call.target} gave {g[made]}, PyTorch says {list(shape)}")
        g.values[name] = made
    for name in call.results[len(results) :]:
        if name is not None:
            raise CompileError(
                f"{call.target}: only its first {len(results)} result(s) can be used", at=str(call.origin) or None
            )


def _unsupported(calls: Sequence[AtenCall]) -> CompileError:
    names = sorted({call.target.removeprefix("aten::") for call in calls})
    at: list[str] = []
    for call in calls:
        line = f"{call.target.removeprefix('aten::')}: {call.origin}" if str(call.origin) else ""
        if line and line not in at:
            at.append(line)
    some = "operators are" if len(names) > 1 else "operator is"
    return CompileError(
        f"{len(names)} {some} not supported: {', '.join(names)}",
        at=at,
        try_=[*(INSTEAD[n] for n in names if n in INSTEAD), "`baretorch ops` lists what is supported"],
    )


# What to write instead of an operator that cannot be compiled.
INSTEAD = {
    "cond": "instead of torch.cond: torch.where(condition, a, b), which computes both and picks",
    "while_loop": "instead of while_loop: a Python loop of fixed length, which export unrolls",
    "scan": "instead of scan: nn.LSTM, nn.GRU or nn.RNN, which stay loops, or a Python loop of fixed length",
    "nonzero": "instead of nonzero: torch.where(mask, x, 0): shapes must be known before the image is built",
    "masked_select": "instead of x[mask]: torch.where(mask, x, 0): shapes must be known before the image is built",
    "unique": "instead of unique: nothing; shapes must be known before the image is built",
    "randn": "instead of random numbers in the model: pass them as an input",
    "rand": "instead of random numbers in the model: pass them as an input",
    "bernoulli": "instead of random numbers in the model: pass them as an input",
    "complex": "instead of complex numbers: two real tensors",
    "_fft_r2c": "instead of an FFT: a matrix product with constant sine and cosine tables, or spectra as inputs",
    "stft": "instead of stft: conv1d with constant sine and cosine kernels, or spectra as inputs",
}


TABLE: dict[str, Callable[..., Result]] = {
    "aten::linear": layers.linear,
    "aten::addmm": layers.addmm,
    "aten::mm": layers.mm,
    "aten::convolution": layers.convolution,
    "aten::conv2d": layers.conv2d,
    "aten::batch_norm": layers.batch_norm,
    "aten::_native_batch_norm_legit_no_training": layers.batch_norm,
    "aten::add": layers.add,
    "aten::sub": layers.sub,
    "aten::mul": layers.mul,
    "aten::relu": lambda g, x: layers.clamp(g, x, 0.0),
    "aten::relu6": lambda g, x: layers.clamp(g, x, 0.0, 6.0),
    "aten::hardtanh": lambda g, x, lo=-1.0, hi=1.0: layers.clamp(g, x, lo, hi),
    "aten::clamp": layers.clamp,
    "aten::clamp_min": lambda g, x, lo: layers.clamp(g, x, lo),
    "aten::clamp_max": lambda g, x, hi: layers.clamp(g, x, None, hi),
    "aten::tanh": lambda g, x: g.b.add(Tanh(), x),
    "aten::sigmoid": lambda g, x: g.b.add(Sigmoid(), x),
    "aten::softmax": layers.softmax,
    "aten::_softmax": layers.softmax,
    "aten::max_pool2d": pools.max_pool2d,
    "aten::max_pool2d_with_indices": pools.max_pool2d,
    "aten::avg_pool2d": pools.avg_pool2d,
    "aten::adaptive_avg_pool2d": pools.adaptive_avg_pool2d,
    "aten::_adaptive_avg_pool2d": pools.adaptive_avg_pool2d,
    "aten::mean": pools.mean,
    "aten::view": shapes.reshape,
    "aten::reshape": shapes.reshape,
    "aten::_unsafe_view": shapes.reshape,
    "aten::flatten": shapes.flatten,
    "aten::squeeze": shapes.squeeze,
    "aten::unsqueeze": shapes.unsqueeze,
    "aten::permute": shapes.permute,
    "aten::transpose": shapes.transpose,
    "aten::t": shapes.t,
    "aten::constant_pad_nd": shapes.constant_pad,
    "aten::pad": shapes.pad,
    "aten::cat": shapes.cat,
    "aten::concat": shapes.cat,
    "aten::stack": shapes.stack,
    "aten::slice": shapes.slice_,
    "aten::narrow": lambda g, x, axis, start, length: shapes.slice_(g, x, axis, start, start + length),
    "aten::select": shapes.select,
    "aten::split": shapes.split,
    "aten::split_with_sizes": shapes.split,
    "aten::chunk": shapes.chunk,
    "aten::unbind": shapes.unbind,
    "aten::copy": shapes.copy_,
    "aten::clone": shapes.same,
    "aten::contiguous": shapes.same,
    "aten::detach": shapes.same,
    "aten::alias": shapes.same,
    "aten::lift_fresh": shapes.same,
    "aten::dropout": shapes.dropout,
    "aten::to": shapes.to,
}
