"""Reference runtimes run in a child process: a crash, a timeout or a refusal there is reported, and has no other
effect."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from tests.cli.program import baretorch as command
from tests.cli.program import check_golden
from tests.frontends.tflite_files import Q, TfliteWriter

from baretorch.errors import CompileError
from baretorch.frontends import load
from baretorch.frontends.runtimes import process
from baretorch.frontends.runtimes.frames import decode_message, encode_message
from baretorch.frontends.runtimes.process import Crash, OpenModel, Refusal

DATA = Path(__file__).parent / "data"


@pytest.fixture(autouse=True)
def fresh_processes() -> object:
    """Begin and end without a child process: tests put stubs in the place of runtimes."""
    process.stop_all()
    yield
    process.stop_all()


def stub(folder: Path, monkeypatch: pytest.MonkeyPatch, invoke: str, package: str = "ai_edge_litert") -> None:
    """Put a LiteRT in front of the real one, whose interpreters do this when they are invoked."""
    text = f"""
        import os, sys, time
        import numpy as np
        class OpResolverType:
            BUILTIN_REF = BUILTIN_WITHOUT_DEFAULT_DELEGATES = 0
        class Interpreter:
            def __init__(self, **options): pass
            def allocate_tensors(self): print("a stray line on standard output")
            def set_tensor(self, index, value): self.value = value
            def get_tensor(self, index): return self.value
            def invoke(self):
                {invoke}
        """
    (folder / package).mkdir()
    (folder / package / "__init__.py").write_text("")
    (folder / package / "interpreter.py").write_text(textwrap.dedent(text))
    monkeypatch.syspath_prepend(str(folder))


def aborting(folder: Path) -> Path:
    """Write a file that our reader takes, and on which LiteRT 2.3.0 aborts: one operand of LESS lost its scale."""
    writer = TfliteWriter()
    g = writer.main
    g.output(g.op("LESS", [g.input((1, 4), "int8"), g.input((1, 4), Q(0.04, 5))], (1, 4), "bool", "LessOptions"))
    path = folder / "damaged.tflite"
    path.write_bytes(writer.bytes())
    return path


def test_a_file_that_aborts_litert_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line exits with 1, not with 134, and names the signal."""
    monkeypatch.chdir(tmp_path)
    ran = command("run", aborting(tmp_path).name, "--board", "host")
    assert ran.code == 1
    check_golden("error_litert_crash", ran.err)


def test_after_a_crash_others_are_asked_again(tmp_path: Path) -> None:
    """A crash ends the process with all models in it; the next one is opened in a new process."""
    with pytest.raises(Crash):
        load(str(aborting(tmp_path)))
    assert load(str(DATA / "lstm.tflite")).library == "LiteRT"


@pytest.mark.parametrize(
    ("invoke", "how"),
    [("os.abort()", "signal 6 (SIGABRT)"), ("os._exit(3)", "exit status 3"), ("os.kill(os.getpid(), 11)", "signal 11")],
)
def test_each_way_to_end(invoke: str, how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub(tmp_path, monkeypatch, f"print('the last words', file=sys.stderr, flush=True); {invoke}")
    model = OpenModel[int]("LiteRT", b"")
    with pytest.raises(Crash, match="LiteRT crashed with") as crash:
        model.run({0: np.zeros(2)}, [0])
    assert how in crash.value.what and crash.value.have == ("a stray line on standard output", "the last words")
    with pytest.raises(Crash, match="LiteRT has ended"):
        model.run({0: np.zeros(2)}, [0])


def test_a_runtime_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No answer is a refusal, and the process is gone afterwards."""
    stub(tmp_path, monkeypatch, "time.sleep(3600)")
    model = OpenModel[int]("LiteRT", b"")
    pid = process._children["LiteRT"]._process.pid
    monkeypatch.setattr(process, "PATIENCE", 0.2)
    with pytest.raises(Refusal, match=r"LiteRT did not respond within 0\.2 s"):
        model.run({0: np.zeros(2)}, [0])
    assert not Path(f"/proc/{pid}").exists()


def test_exceptions_are_refusals_and_the_process_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub(tmp_path, monkeypatch, "self.value[0] or int('a word')")
    model = OpenModel[int]("LiteRT", b"")
    for _ in range(2):
        with pytest.raises(Refusal, match="LiteRT refuses the model") as refusal:
            model.run({0: np.zeros(2)}, [0])
        assert "a word" in refusal.value.have[0]
    np.testing.assert_array_equal(model.run({0: np.ones(2)}, [0])[0], np.ones(2))


def test_a_refusal_is_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A valid file that LiteRT cannot run is compiled without its answers."""
    stub(tmp_path, monkeypatch, "raise RuntimeError('no kernel')")
    source = load(str(DATA / "lstm.tflite"))
    assert source.expected is None and "no result to compare with: LiteRT refuses the model, no kernel" in source.notes


def test_state_is_kept_and_belongs_to_a_model() -> None:
    """Three runs in sequence carry state on; another one opened next to it begins with zeros."""
    source = load(str(DATA / "lstm.tflite"))
    assert source.eager is not None and source.expected is not None
    model, other = source.eager(), source.eager()
    first, second, third = (model(*source.examples) for _ in range(3))
    assert np.abs(first - second).max() > 1e-4 and np.abs(second - third).max() > 1e-5
    np.testing.assert_array_equal(other(*source.examples), first)
    model.reset()
    np.testing.assert_array_equal(model(*source.examples), first)
    np.testing.assert_array_equal(other(*source.examples), second)


def test_one_process_serves_all_and_models_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub(tmp_path, monkeypatch, "pass")
    models = [OpenModel[int]("LiteRT", b"") for _ in range(5)]
    child = process._children["LiteRT"]
    assert len({id(m._child) for m in models}) == 1
    del models[1:]
    gc.collect()
    assert len(child._forgotten) == 4
    models[0].run({0: np.zeros(1)}, [0])
    assert child._forgotten == []


def test_many_threads_may_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub(tmp_path, monkeypatch, "pass")
    model, wrong = OpenModel[int]("LiteRT", b""), list[int]()

    def ask(number: int) -> None:
        for _ in range(20):
            found = model.run({0: np.full(1000, number)}, [0])[0]
            if not np.array_equal(found, np.full(1000, number)):
                wrong.append(number)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


SCRIPT = """
import sys, os, time
import numpy as np
from baretorch.frontends.runtimes import process
model = process.OpenModel("LiteRT", b"")
print(process._children["LiteRT"]._process.pid, flush=True)
if sys.argv[1] == "wait":
    model.run({0: np.zeros(2)}, [0])
elif sys.argv[1] == "raise":
    raise SystemExit("an error")
"""


def gone(pid: int) -> bool:
    """Whether a process ends; it may take a moment."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("how", ["end", "raise", "interrupt", "kill"])
def test_the_child_never_remains(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the end, after an error, after Ctrl-C in the middle of a run, and after we are killed while it is idle."""
    running = tmp_path / "running"
    stub(tmp_path, monkeypatch, f"open({str(running)!r}, 'w').close(); time.sleep(3600)")
    waits = how == "interrupt"
    script = SCRIPT if how != "kill" else f"{SCRIPT}\ntime.sleep(3600)"
    paths = os.pathsep.join(path for path in sys.path if path)
    ours = subprocess.Popen(
        [sys.executable, "-c", script, "wait" if waits else how],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": paths},
        text=True,
    )
    assert ours.stdout is not None
    pid = int(ours.stdout.readline())
    if waits:
        deadline = time.monotonic() + 120
        while not running.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        ours.send_signal(signal.SIGINT)
    if how == "kill":
        ours.kill()
    ours.communicate(timeout=120)
    assert gone(pid)


def test_messages_hold_arrays_as_they_are() -> None:
    arrays = [np.arange(6, dtype=t).reshape(2, 3) for t in (np.int8, np.uint8, np.int16, np.int64, np.float16)]
    arrays += [np.array(1.5), np.zeros((0, 4), np.float32), np.array([True, False]), np.arange(6).reshape(2, 3).T]
    data, at = encode_message({"a": [1, "x"]}, arrays), 0

    def read(size: int) -> bytes:
        nonlocal at
        at += size
        return data[at - size : at]

    header, found = decode_message(read)
    assert header == {"a": [1, "x"]} and at == len(data)
    for have, want in zip(found, arrays, strict=True):
        assert have.dtype == want.dtype and have.shape == want.shape
        np.testing.assert_array_equal(have, want)
    with pytest.raises(ValueError, match="cannot be sent"):
        encode_message({}, [np.array(["a"], object)])


def test_a_crash_of_onnxruntime_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers then are those of onnx.reference."""
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper

    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [1, 4]) for n in "xy"]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", ports[:1], ports[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(tmp_path / "net.onnx"))
    assert load(str(tmp_path / "net.onnx")).library == "onnxruntime"
    process.stop_all()
    (tmp_path / "onnxruntime.py").write_text("import os\nos.abort()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    source = load(str(tmp_path / "net.onnx"))
    assert source.library == "onnx.reference"
    assert "onnxruntime crashed with signal 6 (SIGABRT) when it ran the model" in source.notes


def test_a_weight_as_an_input_is_refused(tmp_path: Path) -> None:
    """Found by the fuzzer: a damaged file lists a weight, which has a scale for each channel, as an input or output."""
    for role in ("inputs", "outputs"):
        writer = TfliteWriter()
        g = writer.main
        weight = g.const(np.ones((3, 4), np.float32), Q([0.1, 0.2, 0.3]))
        x = g.input((1, 4), Q(0.04, 5))
        g.output(g.op("FULLY_CONNECTED", [x, weight], (1, 3), Q(0.1), "FullyConnectedOptions"))
        getattr(g.graph, role).append(weight)
        path = tmp_path / "net.tflite"
        path.write_bytes(writer.bytes())
        with pytest.raises(CompileError, match="that has several scales is not supported"):
            load(str(path))
