"""Grow a random Program: each statement is tried in PyTorch as it is added, so shapes are what PyTorch says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace

import torch
from torch import nn
from torch.nn import functional as F

from tests.fuzz.program import Program, Statement

LARGEST = 4096  # elements of a value
# Continuous functions, so that a last bit does not decide between two answers.
ACTIVATIONS = (
    *("torch.relu({x})", "F.relu6({x})", "F.leaky_relu({x}, 0.1)", "F.hardswish({x})", "F.silu({x})", "F.gelu({x})"),
    *("torch.sigmoid({x})", "torch.tanh({x})", "F.elu({x})", "F.hardsigmoid({x})", "F.mish({x})", "F.softplus({x})"),
    *("F.gelu({x}, approximate='tanh')", "F.hardtanh({x}, -0.5, 0.75)", "torch.clamp({x}, -1, 2)", "F.softsign({x})"),
    *("torch.abs({x})", "-{x}", "torch.exp(-torch.abs({x}))", "torch.sqrt(torch.abs({x}) + 0.1)", "{x} * {x}"),
    *("torch.sin({x})", "torch.log(torch.abs({x}) + 1)", "torch.where({x} > 0, {x}, 0.25 * {x})", "{x}.square()"),
    *("{x} * 0.5 + 0.25", "1 - {x}", "torch.maximum({x}, {x}.mean())", "{x} / (1 + {x}.abs())", "torch.erf({x})"),
)
# In place, on a value of their own.
IN_PLACE = ("{y}.mul_(0.5).add_(0.1)", "F.relu_({y})", "{y}.clamp_(min=-0.5)", "{y}[:, :1] = 0.5", "{y} += {y} * 0.5")


@dataclass
class Grower:
    """The program so far, and the values that its statements have for example inputs."""

    seed: int
    random: Random = field(init=False)
    values: dict[str, torch.Tensor] = field(default_factory=dict)
    inputs: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    me: SimpleNamespace = field(default_factory=SimpleNamespace)
    numbers: int = 0

    def __post_init__(self) -> None:
        self.random = Random(self.seed)

    def pick(self, *ranks: int) -> str | None:
        """A value of one of these ranks; late ones are more likely, so that programs grow deep."""
        names = [n for n, v in self.values.items() if v.dim() in ranks]
        if not names:
            return None
        return names[max(self.random.randrange(len(names)) for _ in range(3))]

    def alike(self, x: str) -> str:
        """Another value of the same shape, if there is one."""
        same = [n for n, v in self.values.items() if v.shape == self.values[x].shape]
        return self.random.choice(same)

    def shape(self, x: str) -> tuple[int, ...]:
        return tuple(self.values[x].shape)

    def add(self, expression: str, layer: str = "", before: str = "", after: str = "") -> None:
        """Append `v = expression`. `layer` makes `self.{l}`; `{v}` and `{l}` are filled in. What PyTorch refuses, or
        what is too large, empty or not a number, is left out."""
        self.numbers += 1
        name, own = f"v{self.numbers}", f"layer{self.numbers}"
        lines = [before, f"{name} = {expression}", after]
        code = "\n".join(line for line in lines if line).replace("{v}", name).replace("{l}", own)
        layer = layer.replace("{l}", own)
        scope = {"torch": torch, "nn": nn, "F": F, "self": self.me, **self.values}
        try:
            with torch.no_grad():
                exec(layer, scope)
                for module in vars(self.me).values():
                    if isinstance(module, nn.Module):
                        module.eval()
                exec(code, scope)
        except (RuntimeError, ValueError, IndexError, TypeError, AssertionError):
            return
        made = scope[name]
        parts = list(made) if isinstance(made, (tuple, list)) else [made]
        parts = [p.detach() if isinstance(p, torch.Tensor) else p for p in parts]
        if not all(isinstance(p, torch.Tensor) and 0 < p.numel() <= LARGEST for p in parts):
            return
        if not all(bool(torch.isfinite(p).all()) and float(p.abs().max()) < 100 for p in parts):
            return
        if isinstance(made, (tuple, list)):
            names = tuple(f"{name}_{i}" for i in range(len(parts)))
            code = code.replace(f"{name} =", f"{', '.join(names)}{',' if len(names) == 1 else ''} =", 1)
        else:
            names = (name,)
        self.values |= dict(zip(names, (p.clone() for p in parts), strict=True))
        self.statements.append(Statement(names, code, layer))


def image(g: Grower) -> None:
    x, r = g.pick(4), g.random
    if x is None:
        return
    c = g.shape(x)[1]
    out, kernel, stride = r.choice((1, 3, 4, 5, 8, 12)), r.choice((1, 2, 3, 3, 5)), r.choice((1, 1, 2))
    groups = c if r.random() < 0.3 else 2 if c % 2 == 0 and r.random() < 0.2 else 1
    out = groups * max(out // groups, 1)
    bias, pad = r.random() < 0.7, r.randrange(kernel)
    match r.randrange(17):
        case 0 | 1 | 2 | 3:
            text = f"nn.Conv2d({c}, {out}, {kernel}, {stride}, {pad}, {r.choice((1, 1, 2))}, {groups}, {bias})"
            g.add(f"self.{{l}}({x})", f"self.{{l}} = {text}")
            if r.random() < 0.5:
                batch_norm(g)
        case 4:
            text = f"nn.ConvTranspose2d({c}, {out}, {kernel}, {stride}, {min(pad, 1)}, groups={groups}, bias={bias})"
            g.add(f"self.{{l}}({x})", f"self.{{l}} = {text}")
        case 5:
            g.add(f"F.max_pool2d({x}, {kernel}, {stride}, {kernel // 2 * r.randrange(2)})")
        case 6:
            g.add(f"F.avg_pool2d({x}, {kernel}, {stride}, {kernel // 2 * r.randrange(2)})")
        case 7:
            g.add(f"F.adaptive_avg_pool2d({x}, ({r.choice((1, 2))}, {r.choice((1, 3))}))")
        case 8:
            mode = r.choice(("mode='nearest'", "mode='bilinear', align_corners=False"))
            g.add(f"F.interpolate({x}, scale_factor=2, {mode})")
        case 9:
            sides = tuple(r.randrange(3) for _ in range(4))
            g.add(f"F.pad({x}, {sides}, mode='{r.choice(('constant', 'reflect', 'replicate'))}')")
        case 10:
            g.add(f"F.pixel_shuffle({x}, 2)" if c % 4 == 0 else f"F.pixel_unshuffle({x}, 2)")
        case 11:
            g.add(f"self.{{l}}({x})", f"self.{{l}} = nn.GroupNorm({2 if c % 2 == 0 else 1}, {c})")
        case 12:
            g.add(f"{x}.mean(({r.choice(('2, 3', '1', '3', '2'))},), keepdim={r.random() < 0.5})")
        case 13:  # by its indices, which alone could depend on a last bit
            at = f"F.adaptive_max_pool2d({x}, ({r.choice((2, 3))}, {r.choice((1, 4))}), return_indices=True)[1]"
            g.add(f"{x}.flatten(2).gather(2, {at}.flatten(2))")
        case 14:
            size, mode = (r.choice((3, 5, 9)), r.choice((2, 4, 10))), r.choice(("bilinear", "bicubic"))
            g.add(f"F.interpolate({x}, size={size}, mode='{mode}', antialias=True)")
        case 15:
            text = f"nn.ConvTranspose3d({c}, {out}, (2, {kernel}, {kernel}), {stride}, groups={groups}, bias={bias})"
            g.add(f"self.{{l}}({x}.unsqueeze(2)).flatten(1, 2)", f"self.{{l}} = {text}")
        case _:
            g.add(r.choice((f"{x}.flatten(1)", f"{x}.flatten(2)", f"{x}.permute(0, 2, 3, 1).contiguous()")))


def batch_norm(g: Grower) -> None:
    x = list(g.values)[-1]
    if g.values[x].dim() == 4:
        g.add(f"self.{{l}}({x})", f"self.{{l}} = nn.BatchNorm2d({g.shape(x)[1]})")
    elif g.values[x].dim() in (2, 3):
        g.add(f"self.{{l}}({x})", f"self.{{l}} = nn.BatchNorm1d({g.shape(x)[1]})")


def sequence(g: Grower) -> None:
    x, r = g.pick(3), g.random
    if x is None:
        return
    t, d = g.shape(x)[1:]
    out = r.choice((2, 4, 6, 8))
    match r.randrange(15):
        case 0 | 1:
            g.add(f"self.{{l}}({x})", f"self.{{l}} = nn.Linear({d}, {out}, {r.random() < 0.7})")
        case 2:
            kernel = r.choice((1, 3, 5))
            text = f"nn.Conv1d({t}, {out}, {kernel}, {r.choice((1, 2))}, {kernel // 2}, {r.choice((1, 2))})"
            g.add(f"self.{{l}}({x})", f"self.{{l}} = {text}")
            if r.random() < 0.5:
                batch_norm(g)
        case 3:
            g.add(f"self.{{l}}({x})", f"self.{{l}} = nn.LayerNorm({d})")
        case 4:
            g.add(f"self.{{l}}({x})", f"self.{{l}} = nn.RMSNorm({d}, 1e-5)")
        case 5:
            heads = 2 if d % 2 == 0 else 1
            text = f"nn.MultiheadAttention({d}, {heads}, batch_first=True)"
            y = g.alike(x)
            g.add(f"self.{{l}}({x}, {y}, {y}, need_weights=False)[0]", f"self.{{l}} = {text}")
        case 6:
            causal = r.random() < 0.5
            g.add(f"F.scaled_dot_product_attention({x}, {g.alike(x)}, {g.alike(x)}, is_causal={causal})")
        case 7:
            kind = r.choice(("LSTM", "GRU"))
            g.add(f"self.{{l}}({x})[0]", f"self.{{l}} = nn.{kind}({d}, {out}, batch_first=True)")
        case 8:
            g.add(f"torch.softmax({x}, {r.choice((1, 2, -1))})")
        case 9:
            g.add(f"{x} @ {x}.transpose(1, 2) * {round(d**-0.5, 3)}")
        case 10:
            g.add(f"{x}.transpose(1, 2)")
        case 11:
            g.add(f"{x}.{r.choice(('mean(1)', 'amax(1)', 'sum(2)', 'amin(2)', 'mean(2, keepdim=True)'))}")
        case 12:
            g.add(r.choice((f"F.max_pool1d({x}, 2)", f"F.avg_pool1d({x}, 3, 1, 1)")))
        case 13:
            g.add(r.choice((f"{x}[:, -1]", f"{x}[:, ::2]", f"{x}[..., 1:]", f"{x}.unsqueeze(1)", f"{x}.flatten(1)")))
        case _:
            g.add(f"{x}.cumsum(1) * 0.25")


def row(g: Grower) -> None:
    x, r = g.pick(2), g.random
    if x is None:
        return
    n, d = g.shape(x)
    out = r.choice((1, 3, 4, 8, 10, 16))
    match r.randrange(10):
        case 0 | 1 | 2:
            g.add(f"self.{{l}}({x})", f"self.{{l}} = nn.Linear({d}, {out}, {r.random() < 0.7})")
            if r.random() < 0.3:
                batch_norm(g)
        case 3:
            g.add(f"self.{{l}}({x})", f"self.{{l}} = nn.LayerNorm({d})")
        case 4:
            g.add(f"torch.softmax({x}, -1)" if r.random() < 0.7 else f"torch.log_softmax({x}, -1)")
        case 5:
            parts = next((p for p in (4, 3, 2) if d % p == 0), 1)
            g.add(f"{x}.reshape({n}, {parts}, {d // parts})")
        case 6:
            g.add(f"{x} @ self.{{l}}", f"self.{{l}} = nn.Parameter(torch.randn({d}, {out}) * 0.3)")
        case 7:
            g.add(f"{x}.unsqueeze({r.choice((1, 2))})")
        case 8:  # of two bags, which begin where a tensor says
            begin = f"torch.arange(2) * {r.choice((1, 3))} + ({x}[0, :2] * 0).long()"
            index, mode = f"torch.arange(6) % {n}", r.choice(("sum", "mean", "max"))
            g.add(f"F.embedding_bag({index}, {x}, {begin}, mode='{mode}', padding_idx={r.choice((None, 0))})")
        case _:
            g.add(f"F.normalize({x}, dim=-1)" if d > 2 else f"{x}.flip(1)")


def anything(g: Grower) -> None:
    """Add a statement that can apply to any value, alone or with another."""
    x, r = g.pick(2, 3, 4), g.random
    assert x is not None
    y, rank = g.alike(x), g.values[x].dim()
    axis = r.randrange(1, rank)
    match r.randrange(12):
        case 0 | 1 | 2 | 3:
            g.add(r.choice(ACTIVATIONS).replace("{x}", x))
        case 4 | 5:
            g.add(f"{x} {r.choice('+-*')} {y}")
        case 6:
            g.add(f"torch.cat([{x}, {y}], {axis})")
        case 7:
            g.add(f"{x}.chunk(2, {axis})" if g.shape(x)[axis] > 1 else f"torch.split({x}, 1, {axis})")
        case 8:
            g.add(f"{x}.clone()", after=r.choice(IN_PLACE).replace("{y}", "{v}"))
        case 9:
            g.add(r.choice((f"{x}.flip({axis})", f"{x}.roll(1, {axis})", f"{x}.narrow({axis}, 0, 1)")))
        case 10:
            scale = "self.{l}.view(1, -1" + ", 1" * (rank - 2) + ")"
            make = f"self.{{l}} = nn.Parameter(torch.rand({g.shape(x)[1]}) + 0.5)"
            g.add(f"{x} {r.choice('*+')} {scale}", make)
        case _:
            g.add(r.choice((f"torch.minimum({x}, {y})", f"torch.maximum({x}, {y})", f"torch.stack([{x}, {y}], 1)")))


def remember(g: Grower) -> None:
    """State: a mean that moves on, or a window of the last values."""
    x, r = g.pick(2, 3), g.random
    if x is None or any("self.state" in s.code for s in g.statements):
        return
    shape = g.shape(x)
    buffer = f"self.register_buffer('state', torch.zeros({shape}))"
    g.me.register_buffer = lambda name, value: setattr(g.me, name, value)
    if r.random() < 0.5:
        g.add("self.state * 1.0", buffer, before=f"self.state.mul_(0.5).add_(0.5 * {x})")
    else:
        axis = r.randrange(1, len(shape))
        last = f"torch.cat([self.state.narrow({axis}, 1, {shape[axis] - 1}), {x}.narrow({axis}, 0, 1)], {axis})"
        g.add(last, buffer, after="self.state.copy_({v})")


KINDS: tuple[Callable[[Grower], None], ...] = (image, image, sequence, sequence, row, row, anything, anything, anything)
SHAPES = ((1, 3, 12, 12), (1, 8, 7, 5), (2, 4, 6, 6), (1, 10, 8), (1, 6, 12), (2, 5, 4), (1, 16), (1, 24), (3, 6))


def grow(seed: int, statements: int | None = None) -> Program:
    """Return the program of this seed: 3 to 12 statements over one or two inputs. Values that no statement reads are
    outputs, at most three. One in five programs has state."""
    g = Grower(seed)
    torch.manual_seed(seed)
    shape = g.random.choice(SHAPES)
    shapes = [shape] if g.random.random() < 0.7 else [shape, g.random.choice((shape, g.random.choice(SHAPES)))]
    for i, own in enumerate(shapes):
        g.inputs.append((f"x{i}", own))
        g.values[f"x{i}"] = torch.randn(own)
    wanted = statements or g.random.randint(3, 12)
    state = g.random.random() < 0.2
    for _ in range(20 * wanted):
        if len(g.statements) >= wanted:
            break
        g.random.choice(KINDS)(g)
    if state:
        remember(g)
    read = {name for s in g.statements for name in s.reads}
    last = [r for s in g.statements for r in s.results if r not in read][-3:]
    return Program(seed, tuple(g.inputs), tuple(g.statements), tuple(last)).live()
