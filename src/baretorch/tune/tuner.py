"""Prepare trials, measure candidates, improve the best of them, and write the configuration."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from itertools import zip_longest

import numpy as np

from baretorch.errors import CompileError
from baretorch.firmware.toolchain import find_toolchain
from baretorch.frontends.choices import Arguments
from baretorch.ir.graph import Graph
from baretorch.machines.host_program import on_host
from baretorch.measure.numbers import figure
from baretorch.measure.run import Show
from baretorch.quantize.precisions import Precision
from baretorch.targets.types import Board
from baretorch.tune.plan import (
    LEAST,
    PARTS,
    Harm,
    Point,
    even_points,
    find_harm,
    greedy_points,
    make_choice,
    starting_points,
    weight_set_of,
)
from baretorch.tune.refine import Grid, balance_channels, find_obstacle, retrain, round_weights
from baretorch.tune.result import (
    RESOLUTION,
    Budget,
    Candidate,
    Costs,
    TunedStep,
    best_first,
    format_accuracy,
    or_no_number,
    points,
)
from baretorch.tune.shrink import mask_of
from baretorch.tune.study import FinishedTrial, Mark, Space, Study, Suggestion, TrialResult
from baretorch.tune.workbench import Benches, Choice, Variant, Workbench
from baretorch.version import __version__

NEAR = (1.0, 0.985, 0.97, 0.95, 0.92, 0.88, 0.82, 0.75, 0.65, 0.5)  # parts of the budget
FREE = (0.9, 0.8, 0.7, 0.6, 0.5, 0.45, 0.4, 0.35, 0.3, 0.25)
TRAINED = 3  # candidates at most, as training takes long


@dataclass(frozen=True)
class Winner:
    """A candidate and its variant of the model."""

    candidate: Candidate
    variant: Variant


@dataclass(frozen=True)
class Confirmation:
    """The int8 graph that is compiled from a candidate's files, and its accuracy on the target, measured with `samples`
    inputs."""

    graph: Graph
    accuracy: float
    samples: int
    total: int


@dataclass
class Tuner:
    """Measures and improves candidates. `original` is the metric of the model itself, with the default width and size.
    `notes` are for the user."""

    benches: Benches
    metric: str
    original: float
    budget: Budget
    show: Show
    samples: int | None = None  # that evaluate() takes
    file: str = ""  # a hash of the model file, whose evaluate() may change
    steps: list[TunedStep] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    _harm: Harm | None = None

    @property
    def bench(self) -> Workbench:
        return self.benches.default

    def bench_of(self, variant: Variant) -> Workbench:
        return self.benches.of(variant.choice.arguments)

    def study(self, url: str, joined: bool) -> Study:
        return Study(self.name, url, self.space(), joined, self.mark)

    @property
    def mark(self) -> Mark:
        """Return the mark of a study: what its name does not contain, which is weights and calibration data."""
        bench = self.bench
        weights = [t.data for t in bench.graph.constants() if t.data is not None]
        inputs = [np.concatenate([x.ravel() for x in every]) for every in zip(*bench.samples, strict=True)]
        sums = tuple(float(np.abs(x.astype(np.float64)).sum()) for x in (*weights, *inputs))
        return Mark(self.original, (*sums, len(bench.samples)))

    @property
    def name(self) -> str:
        """Return the name of the study: it depends on the model except its weights, the board, and all options that
        change the results."""
        graph, board, budget, options = self.bench.graph, self.bench.board, self.budget, self.bench.options
        shapes = tuple(t.type for t in graph.tensors.values())
        given = (options.words(), self.metric, self.samples, self.file, budget.flash, budget.ram, budget.milliseconds)
        tools = find_toolchain(board, options.toolchain)
        made_by = (__version__, tools.name, tools.version)
        offered = tuple(self.benches.offer.choices.items())
        whole = repr((graph.nodes, shapes, given, offered, _describe_board(board), made_by))
        return f"{graph.name}-{board.name}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"

    @property
    def harm(self) -> Harm:
        if self._harm is None:
            self._harm = find_harm(self.bench, self.show)
        return self._harm

    def space(self) -> Space:
        """Return the choices, which must be the same in all processes. So they do not depend on measurements, which may
        differ between computers in their last bits."""
        layers = {name: [Precision.INT8, *self.bench.options_of(name)] for name in self.bench.layers}
        sets = [*(c.name for c in self.bench.sets), *map(weight_set_of, self.bench.thins)]
        return Space(layers, sets, LEAST, PARTS, self.benches.offer.choices)

    def begin(self, study: Study, trials: int) -> None:
        """Queue trials, the first with choices that are likely to be good."""
        every = [self._likely(arguments) for arguments in self.benches.all()]
        turns = [s for turn in zip_longest(*every) for s in turn if s is not None]
        study.queue(trials, turns if len(every) == 1 else turns[: max(trials // 2, len(every))])

    def _likely(self, arguments: Arguments) -> list[Suggestion]:
        """Return choices for one width and size, the best first. Harm was measured for the default width and size."""
        bench = self.benches.of(arguments)
        whole = bench.costs(bench.int8(bench.variant(Choice())))
        ways = (even_points(bench, self.harm), greedy_points(bench, self.harm, self.budget.milliseconds is not None))
        pairs = zip_longest(*(self._starting_points(list(points), bench, whole) for points in ways))
        found = [Suggestion(p.choice.layers, p.parts, arguments) for pair in pairs for p in pair if p is not None]
        return found if arguments == self.benches.offer.default else [Suggestion({}, {}, arguments), *found]

    def _starting_points(self, points: Sequence[Point], bench: Workbench, whole: Costs) -> list[Point]:
        weights = bench.weight_bytes
        if self.budget.flash is None and self.budget.milliseconds is None:
            return starting_points(points, FREE, [1.0] * len(FREE))
        sizes, works = [1.0] * len(NEAR), [1.0] * len(NEAR)
        if self.budget.flash is not None:
            sizes = [(self.budget.flash * near - (whole.flash - weights)) / weights for near in NEAR]
        if self.budget.milliseconds is not None and whole.milliseconds:
            works = [self.budget.milliseconds * near / whole.milliseconds for near in NEAR]
        return starting_points(points, sizes, works)

    def measure(self, suggested: Suggestion) -> TrialResult:
        """Measure a trial."""
        bench = self.benches.of(suggested.arguments)
        choice = make_choice(bench, suggested.layers, suggested.parts, suggested.arguments)
        found = self.candidate("", bench.variant(choice))
        costs = Costs(found.flash, found.ram, found.instructions, found.milliseconds, found.lacks)
        return TrialResult(found.accuracy, costs, list(self._excesses(found)))

    def candidate(self, label: str, variant: Variant) -> Candidate:
        bench = self.bench_of(variant)
        graph = bench.int8(variant)
        costs, accuracy = bench.costs(graph), bench.accuracy(graph, self.metric)
        return self._candidate(label, str(variant.choice), accuracy, costs)

    def _candidate(self, label: str, choice: str, accuracy: float, costs: Costs) -> Candidate:
        plain = Candidate(label, choice, accuracy, *astuple(costs))
        return replace(plain, over=tuple(self._over(plain)))

    def _excesses(self, c: Candidate) -> Iterator[float]:
        """Yield the relative excess over each budget and over the board's memory. The accuracy has none: it is an aim
        of the search."""
        budget = self.budget
        for have, most in ((c.flash, budget.flash), (c.ram, budget.ram), (c.milliseconds, budget.milliseconds)):
            if most is not None:
                yield 1.0 if have is None else have / most - 1.0
        yield c.lacks or -1.0

    def _excess(self, c: Candidate) -> float:
        """Return the largest relative excess over a budget."""
        return max(self._excesses(c))

    def _over(self, c: Candidate) -> Iterator[str]:
        budget = self.budget
        if c.lacks:
            yield f"no image for {self.bench.board.name}"
        if budget.flash is not None and c.flash > budget.flash:
            yield f"{c.flash - budget.flash:,} bytes of flash too many"
        if budget.ram is not None and c.ram > budget.ram:
            yield f"{c.ram - budget.ram:,} bytes of RAM too many"
        if budget.milliseconds is not None and (c.milliseconds is None or c.milliseconds > budget.milliseconds):
            yield (
                "too slow" if c.milliseconds is None else f"{figure(c.milliseconds - budget.milliseconds)} ms too slow"
            )

    def winners_of(self, done: Sequence[FinishedTrial]) -> list[Winner]:
        """Return the trials of a study as candidates."""
        winners = []
        for d in done:
            bench = self.benches.of(d.suggested.arguments)
            choice = make_choice(bench, d.suggested.layers, d.suggested.parts, d.suggested.arguments)
            made = self._candidate(f"trial {d.number}", str(choice), d.found.accuracy, d.found.costs)
            winners.append(Winner(made, Variant(choice, bench.graph, {}, {})))
        return winners

    def improve(self, winners: Sequence[Winner]) -> list[Winner]:
        """Improve the best candidates that meet all budgets except perhaps the accuracy's, by training and other
        steps."""
        every = self._rank([w for w in winners if not w.candidate.over])
        allowed = list({str(w.variant.choice): w for w in every}.values())
        better: list[Winner] = []
        train = self.bench.train
        skipped = train if isinstance(train, str) else find_obstacle(self.bench.graph)
        if skipped:
            self.notes.append(f"no training: {skipped}")
        elif self.smallest:
            better += self._teach_small(self._smaller(allowed))
        else:
            for i, winner in enumerate(allowed[:TRAINED]):
                better += self._teach(winner, i)
        tried = [*allowed, *better]
        if not tried:
            return better
        best = self._rank((self._smaller(tried) if self.smallest else []) or tried)[0]
        steps = {
            "balanced channels": self._balance,
            "rounding": self._round,
            "rounding and biases": self._round_and_correct,
        }
        for what, change in steps.items():
            self.show(what, 0, 0)
            kept = self._try_step(best, what, change)
            better += kept
            best = kept[0] if kept else best
        return better

    @property
    def smallest(self) -> bool:
        """Return whether the user wants the smallest model: there is no budget other than the accuracy's."""
        return self.budget.flash is None and self.budget.ram is None and self.budget.milliseconds is None

    def _smaller(self, winners: Sequence[Winner]) -> list[Winner]:
        """Return candidates smaller than the smallest that keeps the accuracy, which a step may improve. The smallest
        is first; those that another beats in size and accuracy are omitted."""
        least = min((w.candidate.flash for w in winners if self._keeps(w)), default=None)
        front: list[Winner] = []
        for w in sorted(winners, key=lambda w: (w.candidate.flash, -w.candidate.accuracy)):
            small = least is None or w.candidate.flash < least
            if small and (not front or w.candidate.accuracy > front[-1].candidate.accuracy):
                front.append(w)
        return front

    def _teach_small(self, front: Sequence[Winner]) -> list[Winner]:
        """Train the one in the middle; then a smaller one if it keeps the accuracy now, else a larger one."""
        better: list[Winner] = []
        for i in range(TRAINED):
            if front:
                middle = len(front) // 2
                kept = self._teach(front[middle], i)
                front = front[:middle] if any(map(self._keeps, kept)) else front[middle + 1 :]
                better += kept
        return better

    def _teach(self, winner: Winner, number: int) -> list[Winner]:
        self.show("train", number, TRAINED)
        return self._try_step(winner, "training", self._retrain)

    def _keeps(self, winner: Winner) -> bool:
        return winner.candidate.accuracy >= self.budget.accuracy

    def _try_step(self, winner: Winner, what: str, change: Callable[[Variant], Graph]) -> list[Winner]:
        """Return the candidate with another step, if that helps and meets the budgets; else nothing."""
        whole = self.rebuild(winner.variant)
        other = self.bench_of(whole).other(whole.choice, whole.removed, change(whole))
        made = self.candidate(f"{winner.candidate.label}, {what}", other)
        self.steps.append(TunedStep(f"{what} of {winner.candidate.label}", winner.candidate.accuracy, made.accuracy))
        return [Winner(made, other)] if self.steps[-1].kept and not made.over else []

    def rebuild(self, variant: Variant) -> Variant:
        """Return the variant with its own graph. Graphs of trials are not kept, but rebuilt when they are needed."""
        made = variant.removed or variant.weights or not (variant.choice.kept or variant.choice.thin)
        return variant if made else self.bench_of(variant).variant(variant.choice)

    def _retrain(self, variant: Variant) -> Graph:
        bench = self.bench_of(variant)
        assert not isinstance(bench.train, str)
        thin = {n.inputs[1]: mask_of(variant.graph, n) for n in bench.thin_nodes(variant)}
        return retrain(variant.graph, bench.grids(variant), bench.train, thin)

    def _balance(self, variant: Variant) -> Graph:
        return balance_channels(variant.graph, self.bench_of(variant).judged, on_host)

    def _round(self, variant: Variant) -> Graph:
        return round_weights(variant.graph, self._int4_grids(variant), self.bench_of(variant).judged, on_host)[0]

    def _round_and_correct(self, variant: Variant) -> Graph:
        return round_weights(variant.graph, self._int4_grids(variant), self.bench_of(variant).judged, on_host)[1]

    def _int4_grids(self, variant: Variant) -> Mapping[str, Grid]:
        return {name: grid for name, grid in self.bench_of(variant).grids(variant).items() if grid.bits == 4}

    def best(self, winners: Sequence[Winner]) -> Winner:
        """Return the first candidate that meets all budgets, in the order of `best_first`."""
        good = [w for w in winners if not w.candidate.over and self._keeps(w)]
        if not good:
            raise self._no_winner([w.candidate for w in winners])
        return self._rank(good, self.smallest)[0]

    def _rank(self, winners: Sequence[Winner], smallest: bool = False) -> list[Winner]:
        equal = points(self.original, RESOLUTION)
        return [winners[i] for i in best_first([w.candidate for w in winners], smallest, equal)]

    def confirm(
        self, winners: list[Winner], on_board: Callable[[Variant], Confirmation]
    ) -> tuple[Winner, Confirmation]:
        """Return the best winner that meets the budgets on the board too. Layers in float may be less accurate there,
        and the results of a study may be older than the data. `winners` are updated with the measurements."""
        while True:
            best = self.best(winners)
            variant = self.rebuild(best.variant)
            found = on_board(variant)
            accuracy, costs = or_no_number(found.accuracy), self.bench_of(variant).costs(found.graph)
            made = Winner(self._candidate(best.candidate.label, best.candidate.choice, accuracy, costs), variant)
            winners[:] = [made if w is best else w for w in winners]
            if self._keeps(made) and not made.candidate.over:
                return made, found
            lost = ", ".join((*made.candidate.over, format_accuracy(accuracy)))
            self.notes.append(f"{best.candidate.label} was not confirmed on the target: {lost}")

    def noise(self) -> dict[str, float]:
        """Return the noise of each layer in int4, if that was measured."""
        known = self._harm.layers if self._harm is not None else {}
        return {name: by[Precision.INT4] for name, by in known.items() if Precision.INT4 in by}

    def _no_winner(self, candidates: Sequence[Candidate]) -> CompileError:
        """Return an error that names the nearest candidates."""
        small = [c for c in candidates if not c.over]
        right = [c for c in candidates if c.accuracy >= self.budget.accuracy]
        have = []
        if small:
            best = max(small, key=lambda c: c.accuracy)
            have.append(f"within the other budgets at best {format_accuracy(best.accuracy)}: {best.choice}")
        else:
            best = min(candidates, key=self._excess)
            have.append(
                f"nearest to the other budgets: {', '.join(best.over)}, {format_accuracy(best.accuracy)}: {best.choice}"
            )
        if right:
            best = min(right, key=self._excess)
            have.append(f"nearest with that accuracy: {', '.join(best.over)}: {best.choice}")
        else:
            have.append(f"the most accurate: {format_accuracy(max(c.accuracy for c in candidates))}")
        teach = (
            []
            if callable(self.bench.train)
            else ["a train(model) in the model file, to compensate for removed channels"]
        )
        return CompileError(
            f"none of {len(candidates)} candidates meets all budgets",
            have=have,
            need=", ".join(f"{name} {words}" for name, words in self.budget.words()),
            try_=["more --trials, a larger --accuracy-drop, or more bytes or time", *teach],
        )


def _describe_board(board: Board) -> str:
    """Describe all of a board, reproducibly."""
    cpu = board.chip.cpu
    plain = replace(board, chip=replace(board.chip, cpu=replace(cpu, features=frozenset())))
    return repr((asdict(plain), sorted(f.name for f in cpu.features)))
