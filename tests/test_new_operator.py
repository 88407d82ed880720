"""A new operator takes few files: this test adds the one of tests/new_operator/, in float, in int8 and for one more
CPU, to a copy of the package by the steps of docs/contributing/operators.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.adding import ChangedPackage

NEW = Path(__file__).parent / "new_operator"
MOST_FILES = 10
MOST_FILES_OF_A_VARIANT = 3
MOST_FILES_OF_ELEMENTWISE = 4

# What is inserted into tables: file, the line after which it goes, and the new lines.
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
    ("frontends/onnx/math.py", "from __future__ import annotations\n", "from baretorch.ops.lerp import Lerp\n"),
    (
        "frontends/onnx/math.py",
        "ROWS: dict[str, OnnxRow] = {\n",
        '    "Lerp": row(lambda g, a, b, *, weight: g.b.add(Lerp(weight), a, b)),\n',
    ),
    (
        "frontends/tflite/elementwise.py",
        "from __future__ import annotations\n",
        "from baretorch.ops.lerp import Lerp\n",
    ),
    ("frontends/tflite/elementwise.py", "ROWS: dict[str, TfliteRow] = {\n", '    "LERP": plain(Lerp(0.5)),\n'),
    ("frontends/tinygrad/math.py", "from __future__ import annotations\n", "from baretorch.ops.lerp import Lerp\n"),
    (
        "frontends/tinygrad/math.py",
        "ROWS: Mapping[str, Build] = {\n",
        '    "lerp": lambda g, a, b, weight: g.b.add(Lerp(weight), a, b),\n',
    ),
)

# The same for a convolution, whose int8 form has weights with a scale per output channel.
CONVOLUTION = (
    ("ops/__init__.py", "    cdist,\n", "    conv_tbc,\n"),
    (
        "ops/__init__.py",
        "\n\nOPS: tuple[OpRow, ...] = (\n",
        "    OpRow(conv_tbc.ConvTbc, conv_tbc.KERNELS, conv_tbc.int8, Scaled.LAYER),\n"
        "    OpRow(conv_tbc.QConvTbc, conv_tbc.INT8_KERNELS),\n",
    ),
    (
        "frontends/aten/conv.py",
        "from __future__ import annotations\n",
        "from baretorch.ops.conv_tbc import ConvTbc\n",
    ),
    (
        "frontends/aten/conv.py",
        "ROWS: dict[str, AtenRow] = {\n",
        "    **rows(\n"
        '        "conv_tbc",\n'
        "        lambda g, x, weight, bias, pad=0: g.b.add(ConvTbc(pad), x, g.permute(weight, (2, 0, 1)), bias),\n"
        "        ConvTbc,\n"
        "    ),\n",
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


def insert(package: ChangedPackage, rows: tuple[tuple[str, str, str], ...]) -> list[str]:
    """Insert the rows, and return the files that differ from those of the package."""
    for file, after, lines in rows:
        package.insert(file, after, lines)
    return package.changed()


def run_in(package: ChangedPackage, script: str) -> Any:
    """Run a script of tests/new_operator/ with the changed package, and return what it prints."""
    done = package.python(str(NEW / script))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_an_elementwise_operator_of_all_formats_costs_four_files_at_most(tmp_path: Path) -> None:
    package = ChangedPackage(tmp_path)
    changed = insert(package, ELEMENTWISE)
    assert len(changed) <= MOST_FILES_OF_ELEMENTWISE, f"it costs {len(changed)} files: {', '.join(changed)}"
    made = run_in(package, "elementwise.py")
    assert made["tables"] == [True] * 4
    assert made["float"]["steps"] == ["linear", "frac"] and made["float"]["error"] < 1e-5
    assert made["int8"]["steps"][-1] != "frac" and made["int8"]["error"] < 0.1


def test_a_convolution_with_int8_and_a_variant_costs_ten_files_at_most(tmp_path: Path) -> None:
    """PyTorch alone has this convolution. The other formats would cost a file each."""
    package = ChangedPackage(tmp_path)
    for file in (*(NEW / "convolution").rglob("*.py"), *(NEW / "convolution" / "kernels" / "conv_tbc").iterdir()):
        if file.parent != NEW / "convolution":
            package.write(file.relative_to(NEW / "convolution").as_posix(), file.read_text())
    changed = insert(package, CONVOLUTION)
    assert len(changed) + 3 <= MOST_FILES, f"it costs {len(changed)} files: {', '.join(changed)}"
    made = run_in(package, "convolution/compiled.py")
    assert made["float"]["kernels"] == ["bt_conv_tbc_f32_ref"] and made["float"]["error"] < 1e-5
    assert made["int8"]["kernels"] == ["bt_qconv_tbc_ref"] and made["int8"]["error"] < 0.1
    assert made["emulated"]["kernels"] == ["bt_qconv_tbc_dsp"]
    assert made["emulated"]["outputs"] == made["int8"]["outputs"]


def test_an_operator_of_all_formats_with_int8_and_a_variant_costs_ten_files_at_most(tmp_path: Path) -> None:
    """A layer such as a convolution has the same parts: float, int8, a DSP variant, and a row in each format."""
    package = ChangedPackage(tmp_path)
    for file in (*(NEW / "ops").glob("*.py"), *(NEW / "kernels" / "lerp").iterdir()):
        package.write(file.relative_to(NEW).as_posix(), file.read_text())
    changed = insert(package, ROWS)
    assert len(changed) <= MOST_FILES, f"it costs {len(changed)} files: {', '.join(changed)}"

    variant = [file for file in changed if "bt_qlerp_dsp" in (package.tree / file).read_text()]
    assert len(variant) <= MOST_FILES_OF_A_VARIANT, f"a variant costs {len(variant)} files: {', '.join(variant)}"

    made = run_in(package, "compiled.py")
    assert made["tables"] == [True] * 4
    assert made["float"]["kernels"] == ["bt_lerp_f32_ref"]
    assert made["int8"]["kernels"] == ["bt_qlerp_ref"]
    assert made["emulated"]["kernels"] == ["bt_qlerp_dsp"]
    # It is computed in the convolutions' order, and only the result is moved.
    assert made["float"]["steps"][-3:] == ["conv2d", "lerp", "permute"]
    assert made["float"]["error"] < 1e-5
    assert made["int8"]["error"] < 0.1
    assert made["emulated"]["outputs"] == made["int8"]["outputs"]
