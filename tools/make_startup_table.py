"""Writes docs/reference/startup.md: which mistakes in start-up code the emulated chips notice.

    python tools/make_startup_table.py

Takes a minute: each mistake is built into an image, and that is started.
"""

from __future__ import annotations

import sys
from multiprocessing import get_context
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from make_docs import table  # noqa: E402
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
        "An emulated chip is only worth something if it does not start where a real one would not. So each step of",
        "the code that brings a chip up (`src/baretorch/runtime/chip/`, and what starts console and counter) is left",
        "out once, and exchanged once with the one after it. The image with that mistake is built and started from",
        "power-up, on the RP2040 and RP2350 also after another program; it must say that it is ready, answer rightly,",
        "keep time, and not wait in vain. `src/baretorch/boards/silicon/` has the rules, each with its source.",
        "",
        f"Of {len(every)} changes {len(every) - len(wrong)} are none by the chips' documents, such as two pins",
        f"set up in the other order. Of the other {len(wrong)}, {len(seen)} are noticed, {len(seen) / len(wrong):.1%}.",
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
