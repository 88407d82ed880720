"""Write docs/reference/opinfo.md: the outcome of PyTorch's own samples of each operator.

    python tools/make_opinfo_table.py

It takes minutes, because each sample is exported and compiled.
"""

from __future__ import annotations

import sys
from collections import Counter
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from markdown_tables import table  # noqa: E402
from tests.opinfo.operators import OPERATORS  # noqa: E402
from tests.opinfo.samples import Kind, Outcome, outcomes  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "opinfo.md"
TITLES = ("operator", "types", "passed", "refused", "not exportable", "reasons of refusals")


def page(found: dict[str, list[Outcome]]) -> str:
    """The table, one row per operator."""
    count = Counter(o.kind for each in found.values() for o in each)
    bugs = count[Kind.WRONG] + count[Kind.CRASHED]
    return "\n".join(
        [
            "<!-- Written by `python tools/make_opinfo_table.py`; do not edit. -->",
            "",
            "# PyTorch's own samples",
            "",
            "PyTorch tests its operators with the samples of its OpInfo database. `make test-all` compiles small",
            "samples of each operator below, of float32, int64 or bool, and compares the results of the graph with",
            f"PyTorch's. There are {count.total()} samples of {len(found)} operators: {count[Kind.PASSED]} pass,",
            f"{count[Kind.REFUSED]} are refused with a reason, {count[Kind.NOT_EXPORTABLE]} cannot be exported by",
            f"torch.export, and {bugs} compute something else or fail.",
            "",
            *table(TITLES, [_row(name, each) for name, each in found.items()], "llrrrl"),
            "",
        ]
    )


def _row(name: str, found: list[Outcome]) -> tuple[str, ...]:
    count = Counter(o.kind for o in found)
    reasons = dict.fromkeys(o.reason for o in found if o.kind is Kind.REFUSED)
    shown = (count[k] for k in (Kind.PASSED, Kind.REFUSED, Kind.NOT_EXPORTABLE))
    plain, _, variant = name.partition("/")
    title, types = f"`{plain}` {variant}".rstrip(), ", ".join(OPERATORS[name])
    return (title, types, *(str(n or "") for n in shown), "; ".join(reasons))


if __name__ == "__main__":
    names = sorted(OPERATORS, key=lambda name: name.removeprefix("nn.functional.").lower())
    with get_context("spawn").Pool(2) as pool:
        PAGE.write_text(page(dict(zip(names, pool.map(outcomes, names, chunksize=1), strict=True))))
