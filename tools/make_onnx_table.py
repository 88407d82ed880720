"""Write docs/reference/onnx.md: the outcome of ONNX's own node tests, and of the model files in its package.

    python tools/make_onnx_table.py

It takes half a minute. A test compares a part of the page with the compiler, and `make test-all` all of it.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.onnx_nodes.cases import Kind, node_cases, outcome  # noqa: E402
from tests.onnx_nodes.files import outcomes_by_folder  # noqa: E402
from tests.onnx_nodes.page import PAGE, page  # noqa: E402


def main() -> None:
    found = [outcome(case) for case in node_cases().values()]
    files = outcomes_by_folder()
    bugs = [
        str(o) for o in (*found, *(o for some in files.values() for o in some)) if o.kind in (Kind.WRONG, Kind.CRASHED)
    ]
    if bugs:
        sys.exit("\n".join(bugs))
    PAGE.write_text(page(found, files))
    print(f"{PAGE.name}: {sum(o.kind is Kind.PASSED for o in found)} of {len(found)} pass")


if __name__ == "__main__":
    main()
