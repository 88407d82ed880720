"""Grow a random Program by who shares memory with whom: views, slices, cat, state, and outputs that are any of these.

Layers are few and small. What a plan can do wrong here is to give two tensors the same bytes, to overwrite one that is
still needed, or to leave an output unwritten.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

from tests.fuzz.grow import Grower
from tests.fuzz.program import Program

SHAPES = ((1, 4, 4), (2, 6, 4), (1, 5, 3), (4, 8), (1, 16), (3, 6), (1, 2, 4, 4), (2, 3, 4, 2), (8,), (12,))
STATES = 3  # at most, in a program


def compute(g: Grower) -> None:
    """A new tensor in memory of its own."""
    x, r = _any(g), g.random
    d = g.shape(x)[-1]
    match r.randrange(8):
        case 0 | 1:
            g.add(f"self.{{l}}({x})", f"self.{{l}} = nn.Linear({d}, {r.choice((1, 2, 3, d, 4, 8))})")
        case 2 | 3:
            g.add(r.choice((f"torch.relu({x})", f"torch.tanh({x})", f"{x} * 0.5 + 0.25", f"torch.sigmoid({x})")))
        case 4 | 5:
            g.add(f"{x} {r.choice('+-*')} {g.alike(x)}")
        case 6 if g.values[x].dim() == 4:
            c = g.shape(x)[1]
            kernel = r.choice((1, 3))
            text = f"nn.Conv2d({c}, {r.choice((1, 2, 4))}, {kernel}, padding={kernel // 2})"
            g.add(f"self.{{l}}({x})", f"self.{{l}} = {text}")
        case 7 if g.values[x].dim() == 3:
            kind = r.choice(("LSTM", "GRU"))
            last = r.choice(("", "[:, -1]", "[:, 1:]", "[0]"))
            g.add(f"self.{{l}}({x})[0]{last}", f"self.{{l}} = nn.{kind}({d}, {r.choice((2, 4))}, batch_first=True)")
        case _:
            g.add(f"{x} - {x}.mean()")


def view(g: Grower) -> None:
    """Return the same elements, or some of them, in another shape."""
    x, r = _any(g), g.random
    shape = g.shape(x)
    rank, axis = len(shape), r.randrange(len(shape))
    size, total = shape[axis], g.values[x].numel()
    low = r.randrange(size)
    high = r.randint(low + 1, size)
    part = ":, " * axis + f"{low}:{high}"
    match r.randrange(10):
        case 0 | 1 | 2:
            g.add(f"{x}[{part}]")
        case 3:
            g.add(f"{x}[{':, ' * axis}{r.randrange(size)}]" if rank > 1 else f"{x}[{low}:{high}]")
        case 4:
            g.add(f"{x}[{':, ' * axis}::2]")
        case 5:
            rows = r.choice([n for n in range(1, total + 1) if total % n == 0])
            g.add(f"{x}.reshape({r.choice((f'{total}', f'{rows}, {total // rows}', f'1, {total}'))})")
        case 6:
            g.add(r.choice((f"{x}.flatten()", f"{x}.unsqueeze({axis})", f"{x}.squeeze()", f"{x}.contiguous()")))
        case 7:
            dims = r.sample(range(rank), rank)
            g.add(f"{x}.permute({', '.join(map(str, dims))})" if rank > 1 else f"{x}.flip(0)")
        case 8:
            g.add(r.choice((f"{x}.chunk(2, {axis})", f"torch.split({x}, {max(1, size // 2)}, {axis})")))
        case _:
            g.add(r.choice((f"{x}.unbind({axis})", f"{x}.narrow({axis}, {low}, 1)", f"{x}.clone()", f"{x}.detach()")))


def join(g: Grower) -> None:
    """Several tensors in one: parts, wholes, and the same one twice."""
    x, r = _any(g), g.random
    rank = g.values[x].dim()
    axis = r.randrange(rank)
    others = [x, g.alike(x), g.alike(x)]
    if r.random() < 0.4:  # of other sizes along the axis
        alike = [n for n, v in g.values.items() if v.dim() == rank and _but(g.shape(n), axis) == _but(g.shape(x), axis)]
        others = [r.choice(alike) for _ in range(3)]
    parts = [x, *others[: r.randint(1, 2)]]
    r.shuffle(parts)
    if r.random() < 0.7:
        g.add(f"torch.cat([{', '.join(parts)}], {axis})")
    else:
        g.add(f"torch.stack([{x}, {g.alike(x)}], {r.randrange(rank + 1)})")


def change(g: Grower) -> None:
    """Overwrite a part of a tensor, which may have views, or of a copy of it."""
    x, r = _any(g), g.random
    shape = g.shape(x)
    axis = r.randrange(len(shape))
    low = r.randrange(shape[axis])
    part = ":, " * axis + f"{low}:{r.randint(low + 1, shape[axis])}"
    match r.randrange(4):
        case 0:
            g.add(f"{x}.clone()", after=f"{{v}}[{part}] = {r.choice(('0.5', '-1.0'))}")
        case 1:
            g.add(f"{x} * 1.5", after=f"{{v}}[{part}] = {x}[{part}]")
        case 2:
            g.add(f"torch.slice_scatter({x}, {x}[{part}] * 2, {axis}, {part.split(' ')[-1].replace(':', ', ')})")
        case _:
            g.add(f"{x} + 0.5", after=f"{{v}}[{part}].mul_(0.5)")


def remember(g: Grower) -> None:
    """State: shifted, replaced, exchanged with another one, or added to; read before and after that."""
    r = g.random
    known = _states(g)
    if len(known) >= STATES:
        return
    g.me.register_buffer = lambda name, value: setattr(g.me, name, value)
    x, own = _any(g), f"state{len(known)}"
    shape = g.shape(x)
    begin = r.choice((f"torch.zeros({shape})", f"torch.full({shape}, 0.25)"))
    buffer = f"self.register_buffer('{own}', {begin})"
    axis = r.randrange(len(shape))
    first = r.choice((f"self.{own} * 1.0", f"self.{own}", f"self.{own}.clone()", f"self.{own}[{':, ' * axis}:1]"))
    last = r.choice(("{v}", f"self.{own}", "{v} + 0.5"))
    match r.randrange(7):
        case 0:
            g.add(first, buffer, after=f"self.{own}.mul_(0.5).add_(0.5 * {x})")
        case 1:
            g.add(f"self.{own} + {x}", buffer, after=f"self.{own}.copy_({{v}})")
        case 2 if shape[axis] > 1:
            rest = f"self.{own}.narrow({axis}, 1, {shape[axis] - 1})"
            moved = f"torch.cat([{rest}, {x}.narrow({axis}, 0, 1)], {axis})"
            g.add(moved, buffer, after=f"self.{own}.copy_({{v}})")
        case 3:
            g.add(first, buffer, after=f"self.{own}.copy_({x})")
        case 4:
            g.add(f"torch.tanh(self.{own} + {x})", buffer, before=f"old{own} = self.{own}.clone()",
                  after=f"self.{own}.copy_(old{own} * 0.5 + {{v}})")  # fmt: skip
        case 5 if known and next(iter(known.values())).shape == shape:
            other = next(iter(known))
            exchange = f"keep = self.{own}.clone()\nself.{own}.copy_({other})\n{other}.copy_(keep)"
            g.add(f"self.{own} + {other}", buffer, after=exchange)
        case _:
            g.add(first, buffer, before=f"self.{own}[{':, ' * axis}:1] = {x}[{':, ' * axis}:1]")
            last = f"self.{own}"
    if r.random() < 0.5 and g.statements and own in g.statements[-1].code:
        g.add(last.replace("{v}", g.statements[-1].results[0]))


def assign(g: Grower) -> None:
    """State that is assigned, in the module itself or in a sub-module; its old value may be returned."""
    r, known = g.random, _states(g)
    if len(known) >= STATES:
        return
    x, own, deep = _any(g), f"state{len(known)}", r.random() < 0.5
    shape = g.shape(x)
    axis = r.randrange(len(shape))
    buffer = f"register_buffer('{own}', torch.full({shape}, {r.choice((0.0, 0.25))}))"
    place, layer = f"self.{own}", f"self.{buffer}"
    if deep:
        place, layer = f"self.{own}.{own}", f"self.{own} = nn.Module()\nself.{own}.{buffer}"
    else:
        g.me.register_buffer = lambda name, value: setattr(g.me, name, value)
    first = r.choice((place, place, f"{place}[{':, ' * axis}:1]", f"{place} + {x}", f"{place}.flatten()"))
    rest = f"{place}.narrow({axis}, 1, {shape[axis] - 1})"
    queue = f"torch.cat([{rest}, {x}.narrow({axis}, 0, 1)], {axis})" if shape[axis] > 1 else x
    alike = [name for name, value in known.items() if value.shape == shape]
    match r.randrange(7):
        case 0:
            g.add(first, layer, after=f"{place} = {queue}")
        case 1:
            g.add(f"torch.tanh({place} + {x})", layer, after=f"{place} = {{v}}")
        case 2:
            g.add(first, layer, after=f"{place} = {x}")
        case 3 if alike:
            other = r.choice(alike)
            g.add(first, layer, after=f"{place}, {other} = {other}, {place}")
        case 4:
            g.add(first, layer, before=f"{place}.mul_(0.5)", after=f"{place} = torch.tanh({place} + {x})")
        case 5:
            g.add(first, layer, after=f"{place} = {place} * 0.5\n{place}.add_({x})")
        case _ if deep:
            g.add(first, layer, after=f"self.{own}._buffers['{own}'] = {place} * 0.5 + {x}")
        case _:
            g.add(first, layer, after=f"{place} = {x} - {place}")
    if r.random() < 0.5 and g.statements and own in g.statements[-1].code:
        g.add(r.choice((place, f"{place} + 0.5", f"{place}[{':, ' * axis}:1]")))


def _states(g: Grower) -> dict[str, torch.Tensor]:
    """The states of a program, and their values."""
    layers = "\n".join(s.layer for s in g.statements)
    held = {name: value for name, value in vars(g.me).items() if name.startswith("state") and f"'{name}'" in layers}
    return {
        f"self.{name}.{name}" if isinstance(value, nn.Module) else f"self.{name}": getattr(value, name, value)
        for name, value in held.items()
    }


def constant(g: Grower) -> None:
    r = g.random
    text = r.choice(("self.{l}", "self.{l}[1:]", "self.{l}.flatten()", "self.{l} * 2"))
    g.add(text, f"self.{{l}} = nn.Parameter(torch.randn({r.choice(((2, 4), (3, 3), (4, 1)))}))")


def _any(g: Grower) -> str:
    found = g.pick(1, 2, 3, 4, 5)
    assert found is not None
    return found


def _but(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


KINDS: tuple[Callable[[Grower], None], ...] = (compute, compute, view, view, view, view, join, join, change)


def grow_aliases(seed: int) -> Program:
    """The program of this seed: 1 to 8 statements over one or two inputs, and one to five outputs, which may be any
    value that it has: inputs, constants, state, parts of each other, the same one twice. Half of them have state."""
    g = Grower(seed)
    torch.manual_seed(seed)
    r = g.random
    shape = r.choice(SHAPES)
    for i, own in enumerate([shape] if r.random() < 0.6 else [shape, r.choice((shape, r.choice(SHAPES)))]):
        g.inputs.append((f"x{i}", own))
        g.values[f"x{i}"] = torch.randn(own)
    wanted = r.randint(1, 8)
    extra = {r.randrange(wanted): r.choice((remember, assign)) for _ in range(r.choice((0, 0, 0, 1, 2, 3)))}
    extra |= {r.randrange(wanted): constant} if r.random() < 0.1 else {}
    for i in range(wanted):
        extra.get(i, r.choice(KINDS))(g)
    made = [name for s in g.statements for name in s.results]
    late = made[-4:] or list(g.values)
    outputs = [r.choice(late)]
    while r.random() < 0.65 and len(outputs) < 5:
        outputs.append(r.choice([*late, *g.values, *(outputs if r.random() < 0.3 else ())]))
    r.shuffle(outputs)
    return Program(seed, tuple(g.inputs), tuple(g.statements), tuple(outputs)).live()
