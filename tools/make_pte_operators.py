"""Write the schemas of ATen operators that a `.pte` can call to src/baretorch/frontends/pte/aten.txt.

    python tools/make_pte_operators.py
    python tools/make_pte_operators.py --check FOLDER…

They are those of the installed torch: of each operator that has a row in the ATen table, the variants that write to
tensors of the caller, which are the only ones in a `.pte`. With --check, list the schemas that an ExecuTorch defines
and that executorch.txt lacks. Each folder is the package `executorch` of a version, such as that of an unpacked wheel.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from baretorch.frontends.aten.table import TABLE
from baretorch.frontends.pte.operators import Schema, known_schemas, parse

FILE = Path(__file__).resolve().parents[1] / "src" / "baretorch" / "frontends" / "pte" / "aten.txt"
HEAD = "# ATen operators that write to tensors of the caller. Written by tools/make_pte_operators.py.\n"
ALSO = ("aten::_to_copy", "aten::copy_", "aten::as_strided_copy")  # for these the reader has rules of its own
DEFINED = {
    "cortex_m": "backends/cortex_m/ops/operators.py",
    "dim_order_ops": "exir/passes/dim_order_ops_registry.py",
}
NOT_CALLED = ("dim_order_ops::_empty_dim_order",)  # `baretorch ops` does not list it


def defined(folder: Path) -> Iterator[Schema]:
    """Yield the schemas of `out` variants that an ExecuTorch defines."""
    for namespace, file in DEFINED.items():
        for node in ast.walk(ast.parse((folder / file).read_text("utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "define" and node.args:
                text = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
                if isinstance(text, str) and "out(" in text:
                    yield parse(f"{namespace}::{' '.join(text.split()).partition(' -> ')[0]}")


def unknown(folder: Path) -> list[str]:
    """Return the schemas of an ExecuTorch that executorch.txt lacks."""
    return [s.text for s in defined(folder) if s.operator not in NOT_CALLED and _types(s) not in _known(s)]


def _known(schema: Schema) -> list[list[tuple[str, str, bool, bool]]]:
    return [_types(s) for s in known_schemas().get(schema.operator, []) if s.overload == schema.overload]


def _types(schema: Schema) -> list[tuple[str, str, bool, bool]]:
    """Return what a file shows of a schema. A Scalar of ExecuTorch's own operators is stored as a whole number."""
    return [(p.name, "int" if p.type == "Scalar" else p.type, p.is_list, p.optional)
            for p in schema.parameters]  # fmt: skip


def schemas() -> list[str]:
    """Return the lines of the file, sorted."""
    found = set()
    for schema in torch._C._jit_get_all_schemas():
        name = schema.name
        if not name.startswith("aten::") or not (name in ALSO or _plain(name) in TABLE):
            continue
        if any(a.alias_info is not None and a.alias_info.is_write for a in schema.arguments):
            text = str(schema).partition(" -> ")[0]
            if "Tensor" in text and not re.search(r"\b(Dimname|t)\b|\[\]\(a!\)", text):  # no lists of Python
                found.add(text)
    return sorted(found)


def _plain(name: str) -> str:
    return name.removesuffix("_copy") if name.endswith("_copy") else name.removesuffix("_")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        missing = [f"{folder}: {text}" for folder in sys.argv[2:] for text in unknown(Path(folder))]
        sys.exit("\n".join(missing) or 0)
    FILE.write_text(HEAD + "".join(f"{line}\n" for line in schemas()), "utf-8")
    print(f"{FILE}: {len(schemas())} schemas")
