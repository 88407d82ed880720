"""A Python file whose model() returns the path of a model file: it brings example inputs, calibration and a task."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tests.cli.program import baretorch

from baretorch.errors import CompileError
from baretorch.passes.equivalence import run_graph
from baretorch.pipeline import read

DATA = Path(__file__).parent / "data"
FILE = """import numpy as np

def model():
    return "nets/sine.pte"

def inputs():
    return (np.full((1, 1), 0.5, np.float32),)

def calibration():
    return [(np.full((1, 1), x, np.float32),) for x in (0, 3, 6)]

def sweep():
    return [(np.full((1, 1), x, np.float32),) for x in (0, 1.5, 3)]

def evaluate(run):
    answers = [float(run(*x)[0, 0]) for x in sweep()]
    return {"largest": max(answers), "smallest": min(answers)}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "nets").mkdir()
    shutil.copy(DATA / "sine.pte", tmp_path / "nets")
    (tmp_path / "net.py").write_text(FILE)
    return tmp_path / "net.py"


def test_its_inputs_and_calibration_are_the_examples(file: Path) -> None:
    source = read(str(file))
    assert source.name == "net"
    assert np.array_equal(source.examples, [[[0.5]]])
    assert len(list(source.calibration or ())) == 3
    plain = read(str(DATA / "sine.pte"))
    assert [n.op for n in source.graph.nodes] == [n.op for n in plain.graph.nodes]


def test_without_inputs_they_are_those_of_the_file(file: Path) -> None:
    file.write_text("def model(): return 'nets/sine.pte'\n")
    assert np.array_equal(read(str(file)).examples, read(str(DATA / "sine.pte")).examples)


@pytest.mark.parametrize("verb", ["run", "compile", "inspect", "profile", "fit", "report", "evaluate", "monitor"])
def test_verbs(verb: str, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    more = {
        "compile": ["--out", "c"],
        "evaluate": ["--float"],
        "report": ["--evaluate"],
        "monitor": ["--count", "3"],
    }
    board = "mps2-an386" if verb in ("profile", "report") else "host"
    result = baretorch(verb, "net.py", "--board", board, *more.get(verb, []), "--json")
    assert result.code == 0, result.err
    if verb == "evaluate":
        metrics = result.json()["metrics"]
        assert list(metrics) == ["host", "target"]
        graph = read(str(DATA / "sine.pte")).graph
        answers = [run_graph(graph, [np.full((1, 1), x, np.float32)], 1)[0].item() for x in (0, 1.5, 3)]
        assert metrics["target"]["largest"] == pytest.approx(max(answers), rel=1e-5)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("'nets/other.pte'", "model() returns 'nets/other.pte', which does not exist"),
        ("'net.py'", "model() returns 'net.py', which is a Python file again"),
        ("3", "model() returns an int, which is not a model"),
    ],
)
def test_what_model_may_not_return(text: str, what: str, file: Path) -> None:
    file.write_text(f"def model(): return {text}\n")
    with pytest.raises(CompileError) as caught:
        read(str(file))
    assert caught.value.what == what


def test_inputs_that_the_file_does_not_take(file: Path) -> None:
    file.write_text(FILE.replace("np.full((1, 1), 0.5", "np.full((1, 2), 0.5"))
    with pytest.raises(CompileError) as caught:
        read(str(file))
    assert (*caught.value.have, *caught.value.need) == ("float32[1, 2]", "float32[1, 1]")


def test_torch_is_not_imported(file: Path) -> None:
    program = (
        "import sys; sys.modules['torch'] = None\n"
        "from baretorch.cli import main\n"
        f"sys.argv = ['baretorch', 'run', {str(file)!r}, '--board', 'host', '--json']\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=file.parent, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
