"""Write docs/reference/startup.md: which mistakes in start-up code the emulated chips detect.

    python tools/make_startup_table.py

It takes a minute, because an image with each mistake is built and started.
"""

from __future__ import annotations

import sys
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from markdown_tables import table  # noqa: E402
from tests.machines.mutants import BOARDS, Outcome, outcomes  # noqa: E402

PAGE = ROOT / "docs" / "reference" / "startup.md"


def page(found: dict[str, list[Outcome]]) -> str:
    """A table for each chip, one row per mistake."""
    every = [o for each in found.values() for o in each]
    wrong = [o for o in every if o.free is None]
    seen = [o for o in wrong if o.noticed is not None]
    text = [
        "<!-- Written by `python tools/make_startup_table.py`; do not edit. -->",
        "",
        "# Mistakes in start-up code",
        "",
        "An emulated chip is useful if it fails to start where a real one would. Therefore each step of the code that",
        "starts a chip, its console and its counter (`src/baretorch/runtime/chip/` and others) is removed once, and",
        "swapped once with the next step. The image with that mistake is built and started from power-up, on the",
        "RP2040 and RP2350 also after another program. It must report that it is ready, compute the right result, keep",
        "time, and not wait for ever. `src/baretorch/boards/silicon/` has the rules, each with its source.",
        "",
        f"{len(every) - len(wrong)} of {len(every)} changes are allowed by the chips' documents, such as",
        f"two pins set up in the other order. {len(seen)} of the other {len(wrong)} are detected:",
        f"{len(seen) / len(wrong):.1%}.",
    ]
    for board, each in found.items():
        text += ["", f"## {board}", "", *table(("in", "mistake", "noticed"), list(map(_row, each)), "lll")]
    return "\n".join(text) + "\n"


def _row(outcome: Outcome) -> tuple[str, ...]:
    result = outcome.noticed or (f"no mistake: {outcome.free}" if outcome.free else "**no**")
    return outcome.place, outcome.what, result


if __name__ == "__main__":
    with get_context("spawn").Pool(2) as pool:
        PAGE.write_text(page(dict(zip(BOARDS, pool.map(outcomes, BOARDS, chunksize=1), strict=True))))
