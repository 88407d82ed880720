"""Files of several released versions of ExecuTorch mean what PyTorch computed when they were written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from baretorch.frontends.aten.methods import share_state
from baretorch.frontends.aten.table import to_graph
from baretorch.frontends.pte import reader
from baretorch.frontends.pte.reader import read_pte_methods
from baretorch.ir.graph import Array, interpret
from baretorch.ops.int8.quantize import Dequantize
from baretorch.passes.order import lower_graph
from baretorch.passes.wide_io import wide_io

DATA = Path(__file__).parent / "data"
FILES = sorted(DATA.glob("executorch-*/*.pte"))
STEPS = 3  # of an int8 output: each layer rounds once where CMSIS-NN rounds twice
PLAIN = {"half", "lstm", "methods", "net", "quantized", "state"}


def name_of(file: Path) -> str:
    return f"{file.parent.name}/{file.stem}"


def test_there_are_files_of_several_versions() -> None:
    found = {folder.name: {file.stem for file in folder.glob("*.pte")} for folder in DATA.glob("executorch-*")}
    cortex_m = {"cortex_m", "cortex_m_pools"}
    assert found == {
        "executorch-1.0.1": PLAIN | {"cortex_m"},
        "executorch-1.2.0": PLAIN | cortex_m,
        "executorch-1.5.1": PLAIN | cortex_m | {"cortex_m_nhwc", "cortex_m_div"},
    }


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_a_released_file_computes_what_pytorch_does(file: Path) -> None:
    """Consecutive runs give PyTorch's results: floats up to rounding, int8 within a few steps."""
    expected = np.load(file.parent / "expected.npz")
    programs = share_state(read_pte_methods(file.read_bytes(), file.stem))
    assert set(programs) == {key.split(".")[1] for key in expected.files if key.startswith(f"{file.stem}.")}
    for method, program in programs.items():
        graph = wide_io(lower_graph(to_graph(program)))
        scales = [node.op.scale for node in graph.nodes if isinstance(node.op, Dequantize)]
        memory: dict[str, Array] = {}
        spread: list[bool] = []
        for run in range(3):
            key = f"{file.stem}.{method}.{run}"
            given = [expected[f"{key}.in{i}"] for i in range(len(program.inputs))]
            stored = [x.transpose(i.order) for x, i in zip(given, program.inputs, strict=True)]
            inputs = [np.ascontiguousarray(x, graph[n].dtype.numpy) for x, n in zip(stored, graph.inputs, strict=True)]
            made = interpret(graph, inputs, memory=memory)
            assert f"{key}.out{len(graph.outputs)}" not in expected
            for i, (output, order) in enumerate(zip(graph.outputs, program.output_orders, strict=True)):
                want = expected[f"{key}.out{i}"].transpose(order)
                limit = STEPS * scales[-1] if scales else 1e-5
                limit = max(limit, 2.0**-9 if want.dtype == np.float16 else 0)
                assert made[output].shape == want.shape
                np.testing.assert_allclose(made[output], want.astype(np.float32), rtol=limit, atol=limit)
                spread.append(want.std() > limit)
        assert any(spread), "the results would fit anything"


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_each_call_of_a_released_file_has_a_known_schema(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every operator is matched by its name and the types of its arguments; no call passes unchecked."""
    matched: list[str] = []

    def find(operator: str, *rest: Any) -> Any:
        found = plain(operator, *rest)
        assert found is not None, f"{operator} has no schema"
        assert found.schema.operator == operator
        matched.append(operator)
        return found

    plain = reader.find_schema
    monkeypatch.setattr(reader, "find_schema", find)
    read_pte_methods(file.read_bytes(), file.stem)
    assert matched
    if file.stem.startswith("cortex_m"):
        assert any(operator.startswith("cortex_m::quantized_") for operator in matched)
    if file.stem.endswith("_nhwc"):
        assert any(operator.endswith("_nhwc") for operator in matched)
