"""Write docs/reference/onnx.md: the outcome of each of ONNX's node tests, and of the model files in its package and
onnxruntime's."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.onnx_nodes.cases import ROUNDING, Kind, Outcome, node_cases, operator

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "onnx.md"
SHOWN = 10  # names of files with one reason
CASE = re.compile(r"`(\w+)`(?: \(([^)]*)\))?")


def page(found: Sequence[Outcome], files: Mapping[str, Sequence[Outcome]]) -> str:
    count = Counter(o.kind for o in found)
    passed = sorted((o for o in found if o.kind is Kind.PASSED), key=lambda o: o.name)
    frozen, folded = sum(bool(o.frozen) for o in passed), sum(o.all_frozen for o in passed)
    by_op: dict[str, list[Outcome]] = {}
    for o in sorted(found, key=lambda o: (about(o).lower(), o.name)):
        by_op.setdefault(about(o), []).append(o)
    why = Counter(reason(o) for o in found if o.kind is Kind.REFUSED)
    numbers = {text: i for i, (text, _) in enumerate(sorted(why.items(), key=lambda t: (-t[1], t[0])), 1)}
    lines = [
        "<!-- Written by `python tools/make_onnx_table.py`; do not edit. -->",
        "",
        "# ONNX's own node tests",
        "",
        f"The package `onnx` tests its operators with {len(found):,} small models and their expected outputs. Each",
        "model is compiled. The outputs of the interpreted graph, and of the C on the host, are compared with the",
        "expected ones in value, shape and type, within the tolerance of the case. Opsets from 6 on are read.",
        "",
        f"{count[Kind.PASSED]:,} pass, {count[Kind.REFUSED]:,} are refused with a reason, "
        f"{count[Kind.WRONG] + count[Kind.CRASHED]} compute something else or fail.",
        "",
        "Axes, shapes, weights and scales must be known before an image is built, but many cases have them as inputs.",
        "If the compiler needs such a constant, the input is *frozen* to its value in the case. Of the cases that",
        f"pass, {frozen} have frozen inputs, which the lists below name in brackets. All inputs of {folded} cases are",
        "frozen, so the result is computed while the file is read.",
        "",
        *_rounded([o for o in passed if o.rounded]),
        *file_section(files),
        "## By operator",
        "",
        "Cases whose names end in `expanded` compute an operator with others; they are counted with that operator.",
        "",
        "| operator | pass | of these with frozen inputs | refused | why (numbers below) |",
        "|---|--:|--:|--:|---|",
    ]
    for op, some in by_op.items():
        good = [o for o in some if o.kind is Kind.PASSED]
        bad = Counter(numbers[reason(o)] for o in some if o.kind is Kind.REFUSED)
        reasons = ", ".join(f"{n}" if times == 1 else f"{n} ({times} times)" for n, times in sorted(bad.items()))
        cells = (len(good), sum(bool(o.frozen) for o in good), len(some) - len(good))
        lines.append(f"| `{op}` | {' | '.join(str(c or '') for c in cells)} | {reasons} |")
    lines += ["", "## Why cases are refused", ""]
    lines += [f"{n}. {text} ({why[text]})" for text, n in numbers.items()]
    lines += ["", "## Every case", "", "The names begin with `test_`."]
    for op, some in by_op.items():
        lines += ["", f"**{op}**", ""]
        good = [_shown(o) for o in some if o.kind is Kind.PASSED]
        if good:
            lines.append(f"- pass: {', '.join(good)}")
        for text, n in numbers.items():
            names = [_shown(o) for o in some if o.kind is Kind.REFUSED and reason(o) == text]
            if names:
                lines.append(f"- refused, {n}: {', '.join(names)}")
    return "\n".join(lines) + "\n"


def file_section(files: Mapping[str, Sequence[Outcome]]) -> list[str]:
    """Return a table of the model files in each folder, and why some are refused."""
    rows = []
    why: dict[str, list[str]] = {}
    for folder, some in files.items():
        kinds = Counter(o.kind for o in some)
        rows.append(f"| {folder} | {kinds[Kind.PASSED]} | {kinds[Kind.REFUSED]} | {_bugs(kinds)} |")
        for o in some:
            if o.kind is Kind.REFUSED:
                why.setdefault(reason(o), []).append(o.name)
    every = Counter(o.kind for some in files.values() for o in some)
    return [
        "## Model files in the packages onnx and onnxruntime",
        "",
        "Results are compared with the outputs stored next to a file, otherwise with onnxruntime's.",
        "",
        "| folder | read, equal results | refused | wrong |",
        "|---|--:|--:|--:|",
        *rows,
        f"| all | {every[Kind.PASSED]} | {every[Kind.REFUSED]} | {_bugs(every)} |",
        "",
        *(f"- {text} ({len(names)}): {_names(names)}" for text, names in sorted(why.items())),
        "",
    ]


def _bugs(kinds: Counter[Kind]) -> int:
    return kinds[Kind.WRONG] + kinds[Kind.CRASHED]


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:SHOWN])
    return f"{shown} and {len(names) - SHOWN} more" if len(names) > SHOWN else shown


def _rounded(some: Sequence[Outcome]) -> list[str]:
    """List the cases that need more than their own tolerance, and how much more is allowed."""
    if not some:
        return []
    return [
        f"In addition to its tolerance, a number may differ by {ROUNDING:.1e} times the largest of its output, which",
        f"is two of float32's last bits. The expected outputs of {', '.join(_shown(o) for o in some)} are themselves",
        "rounded more than their tolerance allows, and some other Fourier transforms need it in C. Outputs of",
        "float16 and bfloat16 may differ by [the tolerance of their type](../arithmetic.md#halves).",
        "",
    ]


def recorded(text: str) -> dict[str, tuple[bool, tuple[str, ...]]]:
    """Return, for each case on the page, whether it passes, and its frozen inputs."""
    found = {}
    for line in text.partition("## Every case")[2].splitlines():
        if line.startswith("- "):
            for name, frozen in CASE.findall(line):
                inputs = tuple(frozen.split(", ")) if frozen else ()
                found[f"test_{name}"] = (line.startswith("- pass"), inputs)
    return found


def _shown(o: Outcome) -> str:
    name = f"`{o.name.removeprefix('test_')}`"
    return f"{name} ({', '.join(o.frozen)})" if o.frozen else name


def about(o: Outcome) -> str:
    """The operator that a case is about; of one that is spelled out by others, that of the case it was made of."""
    whole = node_cases().get(re.sub(r"_expanded.*$", "", o.name))
    return operator(whole) if whole is not None else o.op


def reason(o: Outcome) -> str:
    """Return the reason without the names of inputs, so that equal reasons are equal."""
    text = re.sub(r"^the (input|constant) '[^']*'(:| has| is)", r"an \1\2", o.reason).replace(
        "an constant", "a constant"
    )
    return text.replace("|", "/")
