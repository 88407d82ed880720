"""Converts an ATen program to a Graph. TABLE maps PyTorch operators to a `AtenRow` each, in the ROWS of a module.

Convolutions and pools are NHWC in a Graph: their rows permute on the way in and out, and the layout pass
removes what cancels.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from inspect import Signature, signature
from typing import Any

import numpy as np

from baretorch.errors import CompileError, InternalError
from baretorch.frontends.aten import (
    activations,
    bags,
    constants,
    conv,
    cortex_m,
    elementwise,
    ethos_u,
    fft,
    index,
    moves,
    norms,
    pools,
    products,
    quant,
    reduce,
    resampling,
    sequence,
    shapes,
)
from baretorch.frontends.aten.program import Arg, AtenCall, AtenProgram, Ref, refs, show
from baretorch.frontends.aten.rows import AtenRow
from baretorch.frontends.lowering import DTYPES, UNFIT, Build, Complex, Lowering, Result, unsupported
from baretorch.ir.graph import Builder, DType, Graph, State
from baretorch.ir.verify import verify
from baretorch.ops.move import Choose


@dataclass
class AtenLowering(Lowering):
    """The lowering of a `program`. `values` has the name of the Graph's tensor for each value of the program."""

    program: AtenProgram
    values: dict[str, str] = field(default_factory=dict)

    def resolve(self, arg: Arg) -> Any:
        if isinstance(arg, Ref):
            return self.value(arg.name)
        if isinstance(arg, tuple):
            return tuple(self.resolve(a) for a in arg)
        return arg

    def value(self, name: str) -> str:
        if name not in self.values:  # a constant, on its first use
            data = self.program.constants[name]
            if np.iscomplexobj(data):
                parts = np.stack([data.real, data.imag], axis=-1).astype(np.float32)
                self.values[name] = Complex(self.b.const(name, parts))
            else:
                self.values[name] = self.b.const(name, data)
        return self.values[name]


def to_graph(program: AtenProgram) -> Graph:
    """Return the Graph of an ATen program; one error names all operators that it cannot lower."""
    unknown = [call for call in program.calls if call.target not in (*TABLE, *BROUGHT)]
    if unknown:
        raise _unsupported(program, unknown)
    b = Builder(program.name)
    g = AtenLowering(b, program)
    inputs = []
    for i in program.inputs:
        name = b.input(i.name, i.stored, i.dtype)
        inputs.append(name)
        name = g.widen_half(name)
        back = tuple(int(d) for d in np.argsort(i.order))
        g.values[i.name] = name if back == tuple(range(len(back))) else g.permute(name, back)
    for s in program.state:
        initial = program.constants[s.name]
        dtype = DType.of(initial.dtype.name)
        if dtype is None:
            raise CompileError(
                f"the state {s.name} has type {initial.dtype.name}",
                need=DTYPES,
                try_="torch.view_as_real(z) to store its two parts, and torch.view_as_complex() to use them",
            )
        g.values[s.name] = b.input(s.name, initial.shape, dtype)
    for call in program.calls:
        b.origin = call.origin
        try:
            args = tuple(map(g.resolve, call.args))
            build = fft.row_of(call.target) if fft.is_complex(args) else _row(call.target).build
            _check_count(call, build, args)
            _bind(g, call, build(g, *args))
        except CompileError as error:
            if not error.at:
                error.at = (str(program.layer(call)) or f"{call.results[0]} = {call.target}",)
            if not error.have and not call.target.startswith("aten::"):
                error.have = (", ".join(str(g[g.value(r.name)]) for r in refs(call.args)),)
            raise
        except (*UNFIT, InternalError) as error:  # the shapes that a file states may be wrong too
            if not program.file:
                raise
            raise CompileError(
                f"{program.file} is damaged: {call.target} cannot be applied to its operands",
                have=f"{call.target}({', '.join(map(show, call.args))})"[:200],
            ) from error
    outputs = []
    halves = program.halves or (None,) * len(program.outputs)
    for name, order, half in zip(program.outputs, program.output_orders, halves, strict=True):
        out = fft.real_output(name, g.value(name))
        out = out if order == tuple(range(len(order))) else g.permute(out, order)
        outputs.append(g.round_to_half(out, half) if half else out)
    state = [State(g.values[s.name], g.value(s.next), program.constants[s.name]) for s in program.state]
    graph = replace(b.graph(inputs, outputs, state), labels=program.labels)
    orders = tuple(i.order for i in program.inputs)
    return verify(replace(graph, input_orders=orders, output_orders=program.output_orders))


def _check_count(call: AtenCall, build: Build, args: Sequence[Any]) -> None:
    """Raise CompileError if the row does not have these arguments: another version of PyTorch may have another schema.
    PyTorch checked their types, or for a `.pte` its reader."""
    try:
        _signature(build).bind(None, *args)
    except TypeError as error:
        known = list(_signature(build).parameters.values())[1:]
        raise CompileError(
            f"{call.target} is called with arguments of an unknown schema",
            have=f"{call.target}({', '.join(map(show, call.args))})"[:200],
            need=f"{call.target}({', '.join(p.name for p in known)})",
            try_="export the model with the version of PyTorch that `pip install baretorch[torch]` installs",
        ) from error


@cache
def _signature(build: Build) -> Signature:
    return signature(build)


def _row(target: str) -> AtenRow:
    return BROUGHT[target] if target in BROUGHT else TABLE[target]


def _bind(g: AtenLowering, call: AtenCall, result: Result) -> None:
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
                try_="a smaller window, or return_indices=False" if "pool" in call.target else None,
            )


def _unsupported(program: AtenProgram, calls: Sequence[AtenCall]) -> CompileError:
    names = sorted({usual_name(call.target) for call in calls})
    at: list[str] = []
    for call in calls:
        layer = str(program.layer(call))
        line = f"{usual_name(call.target)}: {layer}" if layer else ""
        if line and line not in at:
            at.append(line)
    if "native_dropout" in names:  # what dropout becomes next to a batch_norm in training mode
        return CompileError(
            "the program is in training mode",
            at=[line for line in at if line.startswith("native_dropout")],
            need="a program that drops nothing at random",
            try_="call model.eval() before torch.export.export",
        )
    hints = dict.fromkeys(filter(None, map(instead_of, names)))
    return unsupported(names, at, [*hints, "`baretorch ops` lists what is supported"])


_FIXED = "shapes must be known before the image is built"

INSTEAD = {  # by a pattern for the whole name
    "nonzero": f"instead of nonzero: torch.where(mask, x, 0): {_FIXED}",
    "masked_select": f"instead of x[mask]: torch.where(mask, x, 0): {_FIXED}",
    "unique.*": f"instead of unique: nothing; {_FIXED}",
    "quantized_decomposed::choose_qparams": "instead of dynamic quantization: calibrated scales (is_dynamic=False)",
    "rand.*|normal.*|bernoulli|multinomial|poisson": "instead of random numbers in the model: pass them as an input",
    "item": "instead of .item() and .tolist(): the tensor itself, which can be computed with as it is",
    ".*linalg_.*|.*lstsq": "instead of a matrix decomposition: pass its result as an input, or iterate with matmul; "
    "of parameters alone it is computed when the model is compiled",
    "cumprod": "instead of cumprod: torch.exp(torch.cumsum(torch.log(x), dim)), for x > 0",
    "logcumsumexp": "instead of logcumsumexp: torch.log(torch.cumsum(torch.exp(x), dim))",
    "cummax|cummin": "instead of cummax and cummin: max_pool1d of the padded input",
    "searchsorted|bucketize": "instead of searchsorted and bucketize: (x[..., None] > edges).sum(-1)",
    "histc|bincount": "instead of histc and bincount: (x[:, None] == torch.arange(bins)).sum(0)",
    "trace": "instead of trace: x.diagonal().sum()",
}


def usual_name(target: str) -> str:
    """Return the name that users know an operator by."""
    name = target.removeprefix("aten::")
    return "item" if name == "_local_scalar_dense" else name.lstrip("_")


def instead_of(name: str) -> str | None:
    """Return a replacement for an operator, if there is one."""
    return next((text for pattern, text in INSTEAD.items() if re.fullmatch(pattern, name)), None)


TABLE: dict[str, AtenRow] = {
    "baretorch::choose": AtenRow(lambda g, condition, a, b: g.b.add(Choose(), condition, a, b), (Choose,)),
    **quant.ROWS,
    **cortex_m.ROWS,
    **sequence.ROWS,
    **products.ROWS,
    **constants.ROWS,
    **conv.ROWS,
    **elementwise.ROWS,
    **activations.ROWS,
    **norms.ROWS,
    **pools.ROWS,
    **resampling.ROWS,
    **reduce.ROWS,
    **shapes.ROWS,
    **moves.ROWS,
    **index.ROWS,
    **bags.ROWS,
    **fft.ROWS,
}

# Operators that are not in PyTorch: files of ExecuTorch have them.
BROUGHT: dict[str, AtenRow] = ethos_u.ROWS
