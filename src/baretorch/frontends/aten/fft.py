"""Rows of the ATen table: Fourier transforms, and operators on the complex numbers that they return.

A Graph knows no complex numbers. Here a complex tensor is a Complex: the name of a float tensor with one dimension
more, real and imaginary part. ROWS make and read them; COMPLEX are the rows of operators that get one.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi, prod
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.frontends.aten import elementwise, reduce, shapes
from baretorch.frontends.aten.moves import expand, flip
from baretorch.frontends.aten.promotion import to_float
from baretorch.frontends.aten.rows import AtenRow, rows
from baretorch.frontends.lowering import Build, Complex, Ints, Lowering, Result
from baretorch.ops.elementwise import Add, Mul, Sub
from baretorch.ops.fft import Fft, Irfft, Magnitude, Rfft
from baretorch.ops.functions import Atan2, Cos, Neg, Sin
from baretorch.ops.logic import Cast, Lt, Ne, Where
from baretorch.ops.move import Cat, Slice

Value = str | complex | float

# --- transforms -------------------------------------------------------------------------------------------------


def r2c(g: Lowering, x: str, dims: Ints, normalization: int, onesided: bool) -> Complex:
    """Lower a real transform along the last of the dimensions, then complex ones along the others."""
    rank = len(g.shape(x))
    *others, last = (d % rank for d in dims)
    n = g.shape(x)[last]
    scale = _scale(normalization, prod(g.shape(x)[d] for d in (*others, last)))
    (x,) = to_float(g, x)
    half = g.b.add(Rfft(scale), _move_axis(g, x, last, rank - 1))
    if not onesided:
        half = _mirror(g, half, n)
    z = Complex(_move_axis(g, half, rank - 1, last))
    for d in others:
        z = _transform_axis(g, Fft(), z, d)
    return z


def c2r(g: Lowering, z: Complex, dims: Ints, normalization: int, n: int) -> str:
    rank = len(g.shape(z)) - 1
    *others, last = (d % rank for d in dims)
    scale = _scale(normalization, n * prod(g.shape(z)[d] for d in others))
    for d in others:
        z = _transform_axis(g, Fft(inverse=True), z, d)
    return _move_axis(g, g.b.add(Irfft(n, scale), _move_axis(g, z, last, rank - 1)), rank - 1, last)


def c2c(g: Lowering, z: Complex, dims: Ints, normalization: int, forward: bool) -> Complex:
    rank = len(g.shape(z)) - 1
    scale = _scale(normalization, prod(g.shape(z)[d % rank] for d in dims))
    for d in dims:
        z = _transform_axis(g, Fft(not forward, scale), z, d % rank)
        scale = 1.0
    return z


def _scale(normalization: int, n: int) -> float:
    """Return the factor for PyTorch's normalization number: none, by the root of n, by n."""
    return (1.0, n**-0.5, 1.0 / n)[normalization]


def _transform_axis(g: Lowering, op: Fft, z: Complex, axis: int) -> Complex:
    last = len(g.shape(z)) - 2
    return Complex(_move_axis(g, g.b.add(op, _move_axis(g, z, axis, last)), last, axis))


def _move_axis(g: Lowering, x: str, source: int, destination: int) -> str:
    return x if source == destination else shapes.movedim(g, x, source, destination)


def _mirror(g: Lowering, half: str, n: int) -> str:
    """Return all n numbers of a spectrum from its first half."""
    axis = len(g.shape(half)) - 2
    rest = shapes.slice_(g, half, axis, 1, (n + 1) // 2)
    return shapes.cat(g, [half, _conj(g, flip(g, rest, (axis,)))], axis) if g[rest].count else half


# --- complex tensors and their parts ----------------------------------------------------------------------------


def make(g: Lowering, re: str, im: str) -> Complex:
    full = np.broadcast_shapes(g.shape(re), g.shape(im))
    return Complex(shapes.stack(g, [expand(g, part, full) for part in to_float(g, re, im)], -1))


def polar(g: Lowering, size: str, angle: str) -> Complex:
    return make(g, *(g.b.add(Mul(), size, g.b.add(part, angle)) for part in (Cos(), Sin())))


def view_as_complex(g: Lowering, x: str) -> Complex:
    return Complex(x)


def to(g: Lowering, x: str, *args: Any) -> str:
    """Lower a cast, which may convert real numbers to complex ones."""
    return _as_complex(g, x) if "complex64" in args else elementwise.to(g, x, *args)


def cast(g: Lowering, z: Complex, dtype: str | None = None, *_: Any) -> Complex:
    if dtype not in (None, "complex64"):
        raise CompileError(
            f"a cast of complex numbers to {dtype} is not supported",
            need="complex64",
            try_="z.real, which is what is left of them",
        )
    return z


def part(g: Lowering, z: str, index: int) -> str:
    """Return the real or the imaginary part; the real part of a real tensor is the tensor."""
    if not isinstance(z, Complex):
        return z
    return shapes.select(g, _as_floats(z), len(g.shape(z)) - 1, index)


def angle(g: Lowering, z: Complex) -> str:
    return g.b.add(Atan2(), part(g, z, 1), part(g, z, 0))


def angle_of_real(g: Lowering, x: str) -> str:
    """Return pi for negative numbers, and NaN for NaN."""
    (x,) = to_float(g, x)
    nothing = elementwise.where(g, elementwise.compare(g, Ne(), x, x), x, 0.0)
    return elementwise.where(g, elementwise.compare(g, Lt(), x, 0.0), pi, nothing)


def _as_floats(z: Complex) -> str:
    """Return the float tensor that represents a complex one."""
    return str(z)


def _conj(g: Lowering, z: str) -> str:
    return g.b.add(Mul(), z, g.b.const("conjugate", np.array([1, -1], np.float32)))


# --- arithmetic -------------------------------------------------------------------------------------------------


def _operand(g: Lowering, x: Value) -> Complex | str:
    """Return a complex operand, or a real one with a last dimension of 1."""
    if isinstance(x, Complex):
        return x
    if isinstance(x, str):
        return shapes.unsqueeze(g, to_float(g, x)[0], -1)
    if isinstance(x, complex):
        return Complex(g.b.const("scalar", np.array([x.real, x.imag], np.float32)))
    return g.b.const("scalar", np.array([x], np.float32))


def _as_complex(g: Lowering, x: Value) -> Complex:
    """Convert to complex numbers."""
    z = _operand(g, x)
    if isinstance(z, Complex):
        return z
    return Complex(g.b.add(Mul(), z, g.b.const("real", np.array([1, 0], np.float32))))


def sum_of(g: Lowering, op: Add | Sub, x: Value, y: Value, alpha: Any = 1) -> Complex:
    if alpha != 1:
        y = mul(g, _as_complex(g, y), alpha)
    return Complex(g.b.add(op, _as_complex(g, x), _as_complex(g, y)))


def mul(g: Lowering, x: Value, y: Value) -> Complex:
    a, b = _operand(g, x), _operand(g, y)
    if not (isinstance(a, Complex) and isinstance(b, Complex)):
        return Complex(g.b.add(Mul(), a, b))
    (ar, ai), (br, bi) = ([part(g, z, i) for i in (0, 1)] for z in (a, b))
    re = g.b.add(Sub(), g.b.add(Mul(), ar, br), g.b.add(Mul(), ai, bi))
    im = g.b.add(Add(), g.b.add(Mul(), ar, bi), g.b.add(Mul(), ai, br))
    return make(g, re, im)


def div(g: Lowering, x: Value, y: Value, rounding_mode: str | None = None) -> Complex:
    """Divide by a complex number: multiply by its conjugate, divide by its squared absolute value."""
    if isinstance(y, complex):
        return mul(g, x, 1 / y)
    if not isinstance(y, Complex):
        return Complex(elementwise.div(g, _as_complex(g, x), _operand(g, y)))
    numerator = mul(g, x, Complex(_conj(g, y)))
    return Complex(elementwise.div(g, numerator, shapes.unsqueeze(g, g.b.add(Magnitude(squared=True), y), -1)))


def power(g: Lowering, z: Value, exponent: Value) -> Complex:
    if exponent not in (1, 2, 3) or not isinstance(z, Complex):
        raise CompileError(f"pow: complex numbers to the power {exponent} are not supported", need="1, 2 or 3")
    result = z
    for _ in range(int(exponent) - 1 if not isinstance(exponent, (str, complex)) else 0):
        result = mul(g, result, z)
    return result


# --- shapes: the operator of the float tensor, which has one dimension more -------------------------------------


def _axis(g: Lowering, z: str, axis: int) -> int:
    return axis % max(len(g.shape(z)) - 1, 1)


def with_shape(row: Callable[..., str]) -> Callable[..., Complex]:
    """Wrap a row with an argument that is the new shape."""
    return lambda g, z, shape, *args: Complex(row(g, _as_floats(z), (*shape, 2), *args))


def with_axes(row: Build, axes: int = 1) -> Build:
    """Wrap a row whose first arguments are axes."""

    def lifted(g: Lowering, z: str, *args: Any) -> Result:
        made = row(g, _as_floats(Complex(z)), *(_axis(g, z, a) for a in args[:axes]), *args[axes:])
        return Complex(made) if isinstance(made, str) else tuple(map(Complex, made))

    return lifted


def permute(g: Lowering, z: Complex, dims: Ints) -> Complex:
    return Complex(g.permute(z, (*(_axis(g, z, d) for d in dims), len(g.shape(z)) - 1)))


def unsqueeze(g: Lowering, z: Complex, axis: int) -> Complex:
    return Complex(shapes.unsqueeze(g, z, axis + len(g.shape(z)) if axis < 0 else axis))


def squeeze(g: Lowering, z: Complex, dims: int | Ints | None = None) -> Complex:
    some = (dims,) if isinstance(dims, int) else range(len(g.shape(z)) - 1) if dims is None else dims
    return Complex(shapes.squeeze(g, z, tuple(_axis(g, z, d) for d in some)))


def join(g: Lowering, tensors: Any, axis: int = 0) -> Complex:
    whole = [_as_complex(g, t) for t in tensors]
    return Complex(shapes.cat(g, whole, _axis(g, whole[0], axis)))


def stack(g: Lowering, tensors: Any, axis: int = 0) -> Complex:
    whole = [_as_complex(g, t) for t in tensors]
    at = axis + len(g.shape(whole[0])) if axis < 0 else axis
    return Complex(shapes.cat(g, [shapes.unsqueeze(g, t, at) for t in whole], at))


def summary(row: Callable[..., str]) -> Callable[..., Complex]:
    """Wrap sum and mean: over the named axes, or all axes except that of the parts."""

    def lifted(g: Lowering, z: Complex, *rest: Any) -> Complex:
        axes, keepdim = (rest[0], rest[1]) if len(rest) == 3 else (None, False)
        named = (axes,) if isinstance(axes, int) else tuple(axes or ()) or range(len(g.shape(z)) - 1)
        return Complex(row(g, _as_floats(z), tuple(_axis(g, z, a) for a in named), keepdim, None))

    return lifted


ROWS: dict[str, AtenRow] = {
    **rows("_fft_r2c", r2c, Rfft, Fft, Mul),
    **rows("_fft_c2r", c2r, Irfft, Fft),
    **rows("_fft_c2c", c2c, Fft),
    **rows("complex", make, Cat),
    **rows("polar", polar, Mul, Sin, Cos),
    **rows("view_as_complex", view_as_complex),
    **rows("view_as_real", lambda g, z: _as_floats(z)),
    **rows("real", lambda g, z: part(g, z, 0), Slice),
    **rows("imag", lambda g, z: part(g, z, 1), Slice),
    **rows("angle", angle_of_real, Ne, Lt, Where, Atan2),
    **rows("to _to_copy", to, Cast),
    **rows("_conj _conj_physical conj_physical resolve_conj resolve_neg", shapes.same),
}

COMPLEX: dict[str, Build] = {
    "aten::_fft_c2r": c2r,
    "aten::_fft_c2c": c2c,
    "aten::view_as_real": ROWS["aten::view_as_real"].build,
    "aten::real": ROWS["aten::real"].build,
    "aten::imag": ROWS["aten::imag"].build,
    "aten::_conj": lambda g, z: Complex(_conj(g, z)),
    "aten::_conj_physical": lambda g, z: Complex(_conj(g, z)),
    "aten::conj_physical": lambda g, z: Complex(_conj(g, z)),
    "aten::resolve_conj": lambda g, z: z,
    "aten::resolve_neg": lambda g, z: z,
    "aten::clone": lambda g, z, *_: z,
    "aten::contiguous": lambda g, z, *_: z,
    "aten::detach": lambda g, z: z,
    "aten::alias": lambda g, z: z,
    "aten::_to_copy": cast,
    "aten::abs": lambda g, z: g.b.add(Magnitude(), z),
    "aten::angle": angle,
    "aten::neg": lambda g, z: Complex(g.b.add(Neg(), z)),
    "aten::add": lambda g, x, y, alpha=1: sum_of(g, Add(), x, y, alpha),
    "aten::sub": lambda g, x, y, alpha=1: sum_of(g, Sub(), x, y, alpha),
    "aten::rsub": lambda g, x, y, alpha=1: sum_of(g, Sub(), y, x, alpha),
    "aten::mul": mul,
    "aten::square": lambda g, z: mul(g, z, z),
    "aten::div": div,
    "aten::pow": power,
    "aten::sum": summary(reduce.sum_),
    "aten::mean": summary(reduce.mean),
    "aten::view": with_shape(shapes.reshape),
    "aten::reshape": with_shape(shapes.reshape),
    "aten::_unsafe_view": with_shape(shapes.reshape),
    "aten::expand": with_shape(expand),
    "aten::permute": permute,
    "aten::transpose": with_axes(shapes.transpose, 2),
    "aten::unsqueeze": unsqueeze,
    "aten::squeeze": squeeze,
    "aten::slice": with_axes(shapes.slice_),
    "aten::select": with_axes(shapes.select),
    "aten::unbind": with_axes(shapes.unbind),
    "aten::cat": join,
    "aten::stack": stack,
    "aten::constant_pad_nd": lambda g, z, padding, value=0: Complex(shapes.constant_pad(g, z, (0, 0, *padding), value)),
}


def is_complex(arg: Any) -> bool:
    """Report whether an argument, or one in a list of them, is complex."""
    return isinstance(arg, (Complex, complex)) or (isinstance(arg, tuple) and any(map(is_complex, arg)))


def row_of(target: str) -> Build:
    """Return the row of an operator with a complex operand."""
    if target not in COMPLEX:
        known = ", ".join(sorted(n.removeprefix("aten::") for n in COMPLEX if not n.startswith("aten::_")))
        raise CompileError(
            f"{target.removeprefix('aten::')} of complex numbers is not supported",
            need=f"one of {known}",
            try_="x.real, x.imag or torch.view_as_real(x), which are real tensors",
        )
    return COMPLEX[target]


def real_output(name: str, made: str) -> str:
    """Return an output, which cannot be complex."""
    if isinstance(made, Complex):
        raise CompileError(
            f"output {name} is complex",
            need="real outputs",
            try_="torch.view_as_real(y), whose last dimension is real and imaginary part, or y.abs()",
        )
    return made
