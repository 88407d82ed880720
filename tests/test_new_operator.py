"""A new operator takes few files: this test adds the one of tests/new_operator/, in float, in int8 and for one more
CPU, to a copy of the package by the steps of docs/contributing/operators.md."""

from __future__ import annotations

import filecmp
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import baretorch

PACKAGE = Path(baretorch.__file__).parent
NEW = Path(__file__).parent / "new_operator"
MOST_FILES = 8
MOST_FILES_OF_A_VARIANT = 3
MOST_FILES_OF_ELEMENTWISE = 4

# What is written into tables: file, the line that it stands behind, and the new lines.
ROWS = (
    ("ops/__init__.py", "    layout,\n", "    lerp,\n"),
    (
        "ops/__init__.py",
        "\n\nOPS: tuple[OpRow, ...] = (\n",
        "    OpRow(lerp.Lerp, lerp.KERNELS, lerp.int8, Scaled.OWN),\n    OpRow(lerp.QLerp, lerp.INT8_KERNELS),\n",
    ),
    ("frontends/aten/elementwise.py", "from __future__ import annotations\n", "from baretorch.ops.lerp import Lerp\n"),
    (
        "frontends/aten/elementwise.py",
        "ROWS: dict[str, AtenRow] = {\n",
        '    **rows("lerp", lambda g, a, b, weight: g.b.add(Lerp(weight), a, b), Lerp),\n',
    ),
)

# The same for an elementwise operator of all formats, whose int8 form is a table as of all functions of one tensor.
ELEMENTWISE = (
    (
        "ops/functions.py",
        '"""x rounded toward zero."""\n',
        '\n\nclass Frac(\n    Function, name="frac", value=lambda x: x - np.trunc(x),\n'
        '    aten="frac", onnx="Frac", tflite="FRAC", tinygrad="frac",\n):\n    """The part of x after the point."""\n',
    ),
    ("ops/functions.py", "OPS: tuple[type[Elementwise], ...] = (\n", "    Frac,\n"),
    (
        "kernels/functions/ref.c",
        "BT_FUNCTION_REF(bt_trunc_f32_ref, bt_trunc_f32(v))\n",
        "BT_FUNCTION_REF(bt_frac_f32_ref, v - bt_trunc_f32(v))\n",
    ),
    (
        "kernels/functions/functions.h",
        "void bt_trunc_f32_ref(const bt_unary *p, const float *x, float *y);\n",
        "void bt_frac_f32_ref(const bt_unary *p, const float *x, float *y);\n",
    ),
)


def build_tree(tree: Path, rows: tuple[tuple[str, str, str], ...]) -> list[str]:
    """Write the rows into a copy of the package, and return the files that differ from the package."""
    for file, behind, lines in rows:
        text = (tree / file).read_text()
        assert text.count(behind) == 1, f"{file} has no line {behind!r}"
        (tree / file).write_text(text.replace(behind, behind + lines))
    written = [f.relative_to(tree).as_posix() for f in tree.rglob("*") if f.is_file()]
    same = filecmp.cmpfiles(PACKAGE, tree, written, shallow=False)[0]
    return sorted(set(written) - set(same))


def run_in(tree: Path, script: str) -> Any:
    """Run a script of tests/new_operator/ with the package in this tree, and return what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(tree.parent)}
    command = [sys.executable, str(NEW / script)]
    done = subprocess.run(command, env=environment, cwd=tree.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_an_elementwise_operator_of_all_formats_costs_four_files_at_most(tmp_path: Path) -> None:
    tree = tmp_path / "src" / "baretorch"
    shutil.copytree(PACKAGE, tree, ignore=shutil.ignore_patterns("__pycache__"))
    changed = build_tree(tree, ELEMENTWISE)
    assert len(changed) <= MOST_FILES_OF_ELEMENTWISE, f"it costs {len(changed)} files: {', '.join(changed)}"
    made = run_in(tree, "elementwise.py")
    assert made["tables"] == [True] * 4
    assert made["float"]["steps"] == ["linear", "frac"] and made["float"]["error"] < 1e-5
    assert made["int8"]["steps"][-1] != "frac" and made["int8"]["error"] < 0.1


def test_a_new_operator_costs_eight_files_at_most(tmp_path: Path) -> None:
    tree = tmp_path / "src" / "baretorch"
    shutil.copytree(PACKAGE, tree, ignore=shutil.ignore_patterns("__pycache__"))
    for part in ("ops", "kernels"):
        shutil.copytree(NEW / part, tree / part, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    changed = build_tree(tree, ROWS)
    assert len(changed) <= MOST_FILES, f"it costs {len(changed)} files: {', '.join(changed)}"

    variant = [file for file in changed if "bt_qlerp_dsp" in (tree / file).read_text()]
    assert len(variant) <= MOST_FILES_OF_A_VARIANT, f"a variant costs {len(variant)} files: {', '.join(variant)}"

    made = run_in(tree, "compiled.py")
    assert made["float"]["kernels"] == ["bt_lerp_f32_ref"]
    assert made["int8"]["kernels"] == ["bt_qlerp_ref"]
    assert made["emulated"]["kernels"] == ["bt_qlerp_dsp"]
    # It is computed in the convolutions' order, and only the result is moved.
    assert made["float"]["steps"][-3:] == ["conv2d", "lerp", "permute"]
    assert made["float"]["error"] < 1e-5
    assert made["int8"]["error"] < 0.1
    assert made["emulated"]["outputs"] == made["int8"]["outputs"]
