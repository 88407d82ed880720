"""The tree stays within the budget of CONTRIBUTING.md, and tools/size.py counts what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
from size import budget, code_lines, sizes  # noqa: E402

EXAMPLE = '''"""A module."""

import os  # a comment


def f() -> str:
    """Do something
    over two lines."""
    # only a comment
    return """two
lines""" + os.sep
'''


def test_blank_lines_comments_and_docstrings_do_not_count() -> None:
    assert code_lines(EXAMPLE) == 4


def test_the_tree_is_within_its_budget() -> None:
    assert sum(lines for _, lines in sizes().values()) <= budget()


def test_the_tool_prints_every_package() -> None:
    run = subprocess.run([sys.executable, ROOT / "tools" / "size.py"], capture_output=True, text=True, check=True)
    assert all(package in run.stdout for package in ("frontends", "(root)", "total"))
