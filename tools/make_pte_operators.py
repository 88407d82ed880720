"""Write the schemas of ATen operators that a `.pte` can call to src/baretorch/frontends/pte/aten.txt.

python tools/make_pte_operators.py

They are those of the installed torch: of each operator that has a row in the ATen table, the variants that write to
tensors of the caller, which are the only ones in a `.pte`.
"""

from __future__ import annotations

import re
from pathlib import Path

import torch

from baretorch.frontends.aten.table import TABLE

FILE = Path(__file__).resolve().parents[1] / "src" / "baretorch" / "frontends" / "pte" / "aten.txt"
HEAD = "# ATen operators that write to tensors of the caller. Written by tools/make_pte_operators.py.\n"
ALSO = ("aten::_to_copy", "aten::copy_", "aten::as_strided_copy")  # for these the reader has rules of its own


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
    FILE.write_text(HEAD + "".join(f"{line}\n" for line in schemas()), "utf-8")
    print(f"{FILE}: {len(schemas())} schemas")
