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
from baretorch.frontends import aten_activations as activations
from baretorch.frontends import aten_bags as bags
from baretorch.frontends import aten_bits as bits
from baretorch.frontends import aten_constants as constants
from baretorch.frontends import aten_conv as conv
from baretorch.frontends import aten_elementwise as elementwise
from baretorch.frontends import aten_fft as fft
from baretorch.frontends import aten_index as index
from baretorch.frontends import aten_layers as layers
from baretorch.frontends import aten_linalg as linalg
from baretorch.frontends import aten_moves as moves
from baretorch.frontends import aten_order as ordered
from baretorch.frontends import aten_pools as pools
from baretorch.frontends import aten_quant as quant
from baretorch.frontends import aten_reduce as reduce
from baretorch.frontends import aten_resampling as resampling
from baretorch.frontends import aten_sequence as sequence
from baretorch.frontends import aten_shapes as shapes
from baretorch.frontends import aten_special as special
from baretorch.frontends import aten_volumes as volumes
from baretorch.frontends import cortex_m
from baretorch.frontends.lowering import Complex, Lowering, Result
from baretorch.frontends.program import AtenCall, AtenProgram, refs, show
from baretorch.ir import Builder, DType, Graph, State, verify
from baretorch.ops.choose import Choose


def to_graph(program: AtenProgram) -> Graph:
    """The Graph of an ATen program; all operators it cannot lower are named in one error."""
    unsupported = [call for call in program.calls if call.target not in TABLE]
    if unsupported:
        raise _unsupported(program, unsupported)
    b = Builder(program.name)
    g = Lowering(b, program)
    inputs = []
    for i in program.inputs:
        name = b.input(i.name, i.stored, i.dtype)
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
            args = tuple(map(g.resolve, call.args))
            row = fft.row_of(call.target) if fft.is_complex(args) else TABLE[call.target]
            _bind(g, call, row(g, *args))
        except CompileError as error:
            if not error.at:
                error.at = (str(program.layer(call)) or f"{call.results[0]} = {call.target}",)
            if not error.have and not call.target.startswith("aten::"):
                error.have = (", ".join(str(g[g.value(r.name)]) for r in refs(call.args)),)
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
        out = fft.real_output(name, g.value(name))
        outputs.append(out if order == tuple(range(len(order))) else g.permute(out, order))
    state = [State(g.values[s.name], g.value(s.next), program.constants[s.name]) for s in program.state]
    graph = replace(b.graph(inputs, outputs, state), labels=program.labels)
    orders = tuple(i.order for i in program.inputs)
    return verify(replace(graph, input_orders=orders, output_orders=program.output_orders))


def _bind(g: Lowering, call: AtenCall, result: Result) -> None:
    results = (result,) if isinstance(result, str) else result
    for name, shape, made in zip(call.results, call.shapes, results, strict=False):
        if name is None:
            continue
        parts = (2,) if isinstance(made, Complex) else ()
        if shape is not None and g.shape(made) != (*shape, *parts):
            raise InternalError(f"{call.target} gave {g[made]}, PyTorch says {list(shape)}")
        g.values[name] = made
    for name in call.results[len(results) :]:
        if name is not None:
            which = "first result" if len(results) == 1 else f"first {len(results)} results"
            raise CompileError(
                f"{call.target.removeprefix('aten::')}: only its {which} can be used",
                at=str(call.origin) or None,
                try_="leave return_indices at False" if "pool" in call.target else None,
            )


def _unsupported(program: AtenProgram, calls: Sequence[AtenCall]) -> CompileError:
    names = sorted({call.target.removeprefix("aten::") for call in calls})
    at: list[str] = []
    for call in calls:
        layer = str(program.layer(call))
        line = f"{call.target.removeprefix('aten::')}: {layer}" if layer else ""
        if line and line not in at:
            at.append(line)
    if "native_dropout" in names:  # what dropout becomes beside a batch_norm that trains
        return CompileError(
            "the program is in training mode",
            at=[line for line in at if line.startswith("native_dropout")],
            need="a program that drops nothing at random",
            try_="call model.eval() before torch.export.export",
        )
    some = "operators are" if len(names) > 1 else "operator is"
    return CompileError(
        f"{len(names)} {some} not supported: {', '.join(names)}",
        at=at,
        try_=[*(INSTEAD[n] for n in names if n in INSTEAD), "`baretorch ops` lists what is supported"],
    )


# What to write instead of an operator that cannot be compiled.
INSTEAD = {
    "nonzero": "instead of nonzero: torch.where(mask, x, 0): shapes must be known before the image is built",
    "masked_select": "instead of x[mask]: torch.where(mask, x, 0): shapes must be known before the image is built",
    "unique": "instead of unique: nothing; shapes must be known before the image is built",
    "quantized_decomposed::choose_qparams": "instead of dynamic quantization: calibrated scales (is_dynamic=False)",
    "randn": "instead of random numbers in the model: pass them as an input",
    "rand": "instead of random numbers in the model: pass them as an input",
    "bernoulli": "instead of random numbers in the model: pass them as an input",
}


TABLE: dict[str, Callable[..., Result]] = {
    "quantized_decomposed::quantize_per_tensor": quant.quantize_per_tensor,
    "quantized_decomposed::dequantize_per_tensor": quant.dequantize_per_tensor,
    "quantized_decomposed::dequantize_per_channel": quant.dequantize_per_channel,
    **cortex_m.ROWS,
    "aten::linear": sequence.linear,
    "aten::addmm": sequence.addmm,
    "aten::baddbmm": sequence.addmm,
    "aten::addmv": sequence.addmm,
    "aten::matmul": sequence.matmul,
    "aten::mm": sequence.matmul,
    "aten::bmm": sequence.matmul,
    "aten::mv": sequence.matmul,
    "aten::dot": sequence.matmul,
    **linalg.ROWS,
    "aten::lstm": sequence.lstm,
    "aten::gru": sequence.gru,
    "aten::rnn_tanh": lambda g, *args: sequence.rnn(g, False, *args),
    "aten::rnn_relu": lambda g, *args: sequence.rnn(g, True, *args),
    "aten::lstm_cell": sequence.lstm_cell,
    "aten::gru_cell": sequence.gru_cell,
    "aten::rnn_tanh_cell": lambda g, *args: sequence.rnn_cell(g, False, *args),
    "aten::rnn_relu_cell": lambda g, *args: sequence.rnn_cell(g, True, *args),
    "aten::scaled_dot_product_attention": sequence.attention,
    "aten::full": constants.full,
    "aten::convolution": conv.convolution,
    "aten::conv1d": conv.conv,
    "aten::conv2d": conv.conv,
    "aten::conv_transpose1d": conv.conv_transpose,
    "aten::conv_transpose2d": conv.conv_transpose,
    **volumes.ROWS,
    **elementwise.ROWS,
    **activations.ROWS,
    **special.ROWS,
    **bits.ROWS,
    "aten::batch_norm": layers.batch_norm,
    "aten::_native_batch_norm_legit_no_training": layers.batch_norm,
    "aten::max_pool1d": pools.max_pool1d,
    "aten::max_pool2d": pools.max_pool2d,
    "aten::max_pool2d_with_indices": pools.max_pool2d,
    "aten::avg_pool1d": pools.avg_pool1d,
    "aten::avg_pool2d": pools.avg_pool2d,
    "aten::adaptive_avg_pool1d": pools.adaptive_avg_pool,
    "aten::adaptive_avg_pool2d": pools.adaptive_avg_pool,
    "aten::_adaptive_avg_pool2d": pools.adaptive_avg_pool,
    "aten::adaptive_max_pool1d": pools.adaptive_max_pool,
    "aten::adaptive_max_pool2d": pools.adaptive_max_pool,
    "aten::upsample_nearest1d": resampling.nearest,
    "aten::upsample_nearest2d": resampling.nearest,
    "aten::_upsample_nearest_exact1d": resampling.nearest_exact,
    "aten::_upsample_nearest_exact2d": resampling.nearest_exact,
    "aten::upsample_linear1d": resampling.linear,
    "aten::upsample_bilinear2d": resampling.linear,
    "aten::upsample_bicubic2d": resampling.bicubic,
    "aten::grid_sampler_2d": resampling.grid_sample,
    "aten::pixel_shuffle": resampling.pixel_shuffle,
    "aten::pixel_unshuffle": resampling.pixel_unshuffle,
    "aten::channel_shuffle": resampling.channel_shuffle,
    "aten::native_channel_shuffle": resampling.channel_shuffle,
    "aten::sum": reduce.sum_,
    "aten::mean": reduce.mean,
    "aten::prod": reduce.prod,
    "aten::amax": reduce.amax,
    "aten::amin": reduce.amin,
    "aten::aminmax": reduce.aminmax,
    "aten::max": reduce.max_,
    "aten::min": reduce.min_,
    "aten::any": reduce.any_,
    "aten::all": reduce.all_,
    "aten::var": reduce.var,
    "aten::std": reduce.std,
    "aten::var_mean": reduce.var_mean,
    "aten::std_mean": reduce.std_mean,
    "aten::logsumexp": reduce.logsumexp,
    "aten::linalg_vector_norm": reduce.vector_norm,
    "aten::norm": reduce.norm,
    "aten::argmax": reduce.argmax,
    "aten::argmin": reduce.argmin,
    "aten::cumsum": reduce.cumsum,
    "aten::topk": reduce.topk,
    "aten::kthvalue": ordered.kthvalue,
    "aten::median": ordered.median,
    "aten::nanmedian": ordered.nanmedian,
    "aten::mode": ordered.mode,
    "aten::cdist": ordered.cdist,
    "aten::_cdist_forward": ordered.cdist,
    "aten::sort": reduce.sort,
    "aten::argsort": reduce.argsort,
    **fft.ROWS,
    "aten::softmax": reduce.softmax,
    "aten::_softmax": reduce.softmax,
    "aten::log_softmax": reduce.log_softmax,
    "aten::_log_softmax": reduce.log_softmax,
    "aten::layer_norm": reduce.layer_norm,
    "aten::native_layer_norm": reduce.layer_norm,
    "aten::rms_norm": reduce.rms_norm,
    "aten::_fused_rms_norm": reduce.rms_norm,
    "aten::group_norm": reduce.group_norm,
    "aten::native_group_norm": reduce.native_group_norm,
    "aten::instance_norm": reduce.instance_norm,
    "aten::_native_batch_norm_legit": reduce.batch_norm_of_batch,
    "aten::_native_batch_norm_legit_functional": reduce.batch_norm_of_batch,
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
    "baretorch::choose": lambda g, condition, a, b: g.b.add(Choose(), condition, a, b),
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
    "aten::view_as": lambda g, x, other: shapes.reshape(g, x, g.shape(other)),
    "aten::reshape_as": lambda g, x, other: shapes.reshape(g, x, g.shape(other)),
    "aten::unflatten": shapes.unflatten,
    "aten::movedim": shapes.movedim,
    "aten::moveaxis": shapes.movedim,
    "aten::swapaxes": shapes.transpose,
    "aten::swapdims": shapes.transpose,
    "aten::numpy_T": shapes.reverse,
    "aten::mT": lambda g, x: shapes.transpose(g, x, -2, -1),
    "aten::adjoint": lambda g, x: shapes.transpose(g, x, -2, -1),
    "aten::as_strided": shapes.as_strided,
    "aten::expand": moves.expand,
    "aten::broadcast_to": moves.expand,
    "aten::expand_as": moves.expand_as,
    "aten::broadcast_tensors": moves.broadcast_tensors,
    "aten::meshgrid": moves.meshgrid,
    "aten::repeat": moves.repeat,
    "aten::tile": moves.tile,
    "aten::repeat_interleave": moves.repeat_interleave,
    "aten::flip": moves.flip,
    "aten::rot90": moves.rot90,
    "aten::roll": moves.roll,
    "aten::pad": moves.pad,
    "aten::reflection_pad1d": moves.reflection_pad,
    "aten::reflection_pad2d": moves.reflection_pad,
    "aten::reflection_pad3d": moves.reflection_pad,
    "aten::replication_pad1d": moves.replication_pad,
    "aten::replication_pad2d": moves.replication_pad,
    "aten::replication_pad3d": moves.replication_pad,
    "aten::slice_scatter": moves.slice_scatter,
    "aten::select_scatter": moves.select_scatter,
    "aten::copy": moves.copy,
    "aten::fill": moves.fill,
    "aten::index_select": index.index_select,
    "aten::embedding": index.embedding,
    "aten::embedding_bag": bags.embedding_bag,
    "aten::_embedding_bag": bags.embedding_bag,
    "aten::_embedding_bag_forward_only": bags.embedding_bag,
    "aten::one_hot": index.one_hot,
    "aten::unfold": index.unfold,
    "aten::gather": index.gather,
    "aten::take_along_dim": index.take_along_dim,
    "aten::scatter": index.scatter,
    "aten::scatter_add": index.scatter_add,
    "aten::scatter_reduce": bags.scatter_reduce,
    "aten::index": index.index,
    "aten::_unsafe_index": index.index,
    "aten::index_put": index.index_put,
    "aten::_unsafe_index_put": index.index_put,
    "aten::index_copy": index.index_copy,
    "aten::index_add": index.index_add,
    "aten::index_fill": index.index_fill,
    "aten::tril": constants.tril,
    "aten::triu": constants.triu,
    "aten::diagonal": constants.diagonal,
    "aten::arange": constants.arange,
    "aten::eye": constants.eye,
    "aten::full_like": constants.full_like,
    "aten::new_full": constants.new_full,
    "aten::zeros": lambda g, shape, dtype=None, *_: constants.full(g, shape, 0, dtype or "float32"),
    "aten::ones": lambda g, shape, dtype=None, *_: constants.full(g, shape, 1, dtype or "float32"),
    "aten::empty": lambda g, shape, dtype=None, *_: constants.full(g, shape, 0, dtype or "float32"),
    "aten::zeros_like": lambda g, x, dtype=None, *_: constants.full_like(g, x, 0, dtype),
    "aten::ones_like": lambda g, x, dtype=None, *_: constants.full_like(g, x, 1, dtype),
    "aten::new_zeros": lambda g, x, shape, dtype=None, *_: constants.new_full(g, x, shape, 0, dtype),
    "aten::new_ones": lambda g, x, shape, dtype=None, *_: constants.new_full(g, x, shape, 1, dtype),
    "aten::scalar_tensor": lambda g, value, dtype=None, *_: constants.full(g, (), value, dtype or "float32"),
    "aten::clone": shapes.same,
    "aten::contiguous": shapes.same,
    "aten::detach": shapes.same,
    "aten::alias": shapes.same,
    "aten::lift_fresh": shapes.same,
    "aten::dropout": shapes.dropout,
}
