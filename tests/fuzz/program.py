"""A random module as text: a model file, statement by statement, so that a failure can be made smaller and kept.

A Program is a list of statements. Each makes values from earlier ones, and may need a layer or a buffer of its own.
`source` writes the model file, `make` runs that text: what is tested is what is written down.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

HEADER = '''"""{title}"""

import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, {inputs}):
        {body}
        return {outputs}


def model():
    torch.manual_seed({seed})
    net = Net().eval()
    for layer in net.modules():  # a BatchNorm that has seen data
        if isinstance(layer, nn.modules.batchnorm._BatchNorm):
            layer.running_mean.normal_(0, 0.3)
            layer.running_var.uniform_(0.5, 2)
            nn.init.uniform_(layer.weight, 0.5, 1.5)
            nn.init.normal_(layer.bias, 0, 0.3)
    return net


def _sample(seed):
    random = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(shape, generator=random) for shape in {shapes})


def inputs():
    return _sample({seed})


def calibration():
    return [_sample({seed} + i) for i in range(8)]
'''


@dataclass(frozen=True)
class Statement:
    """`code` makes `results`; `layer` is what __init__ needs for it."""

    results: tuple[str, ...]
    code: str
    layer: str = ""

    @property
    def reads(self) -> frozenset[str]:
        names = frozenset(re.findall(r"\b[xv]\d+(?:_\d+)?\b", self.code))
        return names - frozenset(self.results)

    def reading(self, old: str, new: str) -> Statement:
        return replace(self, code=re.sub(rf"\b{old}\b", new, self.code))


@dataclass(frozen=True)
class Program:
    seed: int
    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    statements: tuple[Statement, ...]
    outputs: tuple[str, ...]

    def source(self, title: str = "") -> str:
        lines = [line for s in self.statements for line in s.code.split("\n")]
        return HEADER.format(
            title=title or f"tests/fuzz, seed {self.seed}",
            init="\n        ".join(line for s in self.statements for line in s.layer.split("\n") if line) or "pass",
            inputs=", ".join(name for name, _ in self.inputs),
            body="\n        ".join(lines) or "pass",
            outputs=", ".join(self.outputs),
            shapes=[shape for _, shape in self.inputs],
            seed=self.seed,
        )

    def make(self) -> dict[str, Any]:
        """Define the functions of the model file: model, inputs, calibration."""
        namespace: dict[str, Any] = {"__name__": f"fuzz_{self.seed}"}
        exec(compile(self.source(), f"fuzz_{self.seed}.py", "exec"), namespace)
        return namespace

    def live(self) -> Program:
        """Return the program without statements whose results are not read."""
        wanted, kept = set(self.outputs), []
        for s in reversed(self.statements):
            if wanted & set(s.results) or "self.state" in s.code:
                wanted |= s.reads
                kept.append(s)
        return replace(self, statements=tuple(reversed(kept)))

    def smaller(self) -> Iterator[Program]:
        """Programs with less in them, the boldest cuts first; some may not run."""
        names = [r for s in self.statements for r in s.results]
        for name in names:  # end early
            if self.outputs != (name,):
                yield replace(self, outputs=(name,)).live()
        for i in range(len(self.outputs)):
            if len(self.outputs) > 1:
                yield replace(self, outputs=self.outputs[:i] + self.outputs[i + 1 :]).live()
        for i, s in enumerate(self.statements):  # leave one statement out; its readers get what it read
            rest = self.statements[:i] + self.statements[i + 1 :]
            for old in s.reads or {name for name, _ in self.inputs}:
                made = rest
                for r in s.results:
                    made = tuple(t.reading(r, old) for t in made)
                outputs = tuple(dict.fromkeys(old if o in s.results else o for o in self.outputs))
                yield replace(self, statements=made, outputs=outputs).live()
