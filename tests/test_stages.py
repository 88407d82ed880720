"""An int8 run goes through every stage once. A child process counts, so that nothing else is loaded there."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from baretorch.passes.order import FLOAT_PASSES

ROOT = Path(__file__).resolve().parents[1]

# Counts the calls of our functions by module and name. The bodies of modules and classes run when they are imported;
# they are not functions (code flag 1 marks those).
TRACED = """
import collections, contextlib, io, json, sys
from pathlib import Path
import baretorch
from baretorch.cli import main

root, entered = str(Path(baretorch.__file__).parent) + "/", collections.Counter()

def count(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_flags & 1 and code.co_filename.startswith(root):
        entered[code.co_filename.removeprefix(root).removesuffix(".py") + ":" + code.co_name] += 1

sys.setprofile(count)
with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
    main(sys.argv[1:])
sys.setprofile(None)
print(json.dumps({"run": json.loads(out.getvalue()), "entered": entered}))
"""


@cache
def traced(folder: Path) -> dict[str, Any]:
    words = ["run", str(ROOT / "zoo" / "kws.py"), "--int8", "--board", "mps2-an386", "--json"]
    done = subprocess.run([sys.executable, "-c", TRACED, *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def kws(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """An int8 run of the keyword spotter, and how often each function was called meanwhile."""
    return traced(tmp_path_factory.mktemp("kws"))


def test_each_float_pass_runs_once(kws: dict[str, Any]) -> None:
    listed = [f"{p.__module__.removeprefix('baretorch.').replace('.', '/')}:{p.__name__}" for p in FLOAT_PASSES]
    calls = {name: kws["entered"].get(name) for name in listed}
    assert calls == {name: listed.count(name) for name in listed}


def test_int8_operators_are_made_once(kws: dict[str, Any]) -> None:
    """The report compares layers with the float graph in the same pieces, so that graph goes through the pass too."""
    assert kws["entered"]["passes/to_int8:to_int8"] == 2 and kws["entered"]["passes/to_int8:_drop_round_trips"] == 1


def test_a_plan_and_c_are_made_for_calibration_and_for_the_board(kws: dict[str, Any]) -> None:
    made = [kws["entered"][name] for name in ("plan/planner:make_plan", "emit/__init__:emit")]
    assert made == [2, 2]


def test_few_modules_are_entered(kws: dict[str, Any]) -> None:
    modules = {name.partition(":")[0] for name in kws["entered"]}
    assert kws["run"]["dtype"] == "int8" and "pipeline" in modules
    assert len(modules) <= 270, sorted(modules)
