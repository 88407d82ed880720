"""The models that a file offers, in all their widths and sizes: a workbench for each, made when it is needed first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product

from baretorch.frontends.choices import Arguments, Offer
from baretorch.tune.workbench import Workbench


@dataclass
class Benches:
    offer: Offer
    make: Callable[[Arguments], Workbench]
    _made: dict[object, Workbench] = field(default_factory=dict)

    def of(self, arguments: Arguments) -> Workbench:
        key = tuple(sorted(arguments.items()))
        if key not in self._made:
            self._made[key] = self.make(arguments)
        return self._made[key]

    @property
    def default(self) -> Workbench:
        return self.of(self.offer.default)

    def all(self) -> list[Arguments]:
        """What can be chosen; the default first, which is all where nothing is offered."""
        names = list(self.offer.choices)
        every = [dict(zip(names, values, strict=True)) for values in product(*self.offer.choices.values())]
        return sorted(every, key=lambda arguments: arguments != self.offer.default)
