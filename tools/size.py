"""Print the size of the source tree: code lines of Python per package, without blank lines, comments and docstrings.

    python tools/size.py            the packages of src/baretorch
    python tools/size.py --budget   exit with 1 if the tree is larger than its budget

The budget is the number that CONTRIBUTING.md states.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "baretorch"
LAYOUT = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}
WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def code_lines(text: str) -> int:
    """Count the lines of a Python file that hold code."""
    lines = set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, WITH_DOCSTRING) and ast.get_docstring(node, clean=False) is not None:
            docstring = node.body[0]
            lines.difference_update(range(docstring.lineno, (docstring.end_lineno or docstring.lineno) + 1))
    return len(lines)


def sizes() -> dict[str, tuple[int, int]]:
    """Return files and code lines by package; `(root)` has the modules outside packages."""
    files, lines = Counter[str](), Counter[str]()
    for path in sorted(SOURCE.rglob("*.py")):
        inside = path.relative_to(SOURCE).parts
        package = inside[0] if len(inside) > 1 else "(root)"
        files[package] += 1
        lines[package] += code_lines(path.read_text())
    return {package: (files[package], lines[package]) for package in lines}


def budget() -> int:
    """Return the largest number of code lines that CONTRIBUTING.md allows."""
    found = re.search(r"at most ([\d,]+) code lines of Python", (ROOT / "CONTRIBUTING.md").read_text())
    assert found is not None, "CONTRIBUTING.md states no budget"
    return int(found[1].replace(",", ""))


def main() -> int:
    parser = argparse.ArgumentParser(description="Print the code lines of each package.")
    parser.add_argument("--budget", action="store_true", help="exit with 1 if the tree is larger than its budget")
    check = parser.parse_args().budget
    found = sizes()
    for package, (files, lines) in sorted(found.items(), key=lambda item: -item[1][1]):
        print(f"{package:<12} {files:>4} files {lines:>7,} lines")
    total = sum(lines for _, lines in found.values())
    print(f"{'total':<12} {sum(files for files, _ in found.values()):>4} files {total:>7,} lines of {budget():,}")
    return int(check and total > budget())


if __name__ == "__main__":
    sys.exit(main())
