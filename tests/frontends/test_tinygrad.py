"""tinygrad's methods and layers: the Graph of each gives what tinygrad gives."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.program import baretorch as baretorch_cli
from tests.frontends.tinygrad_cases import CASES, layer

from baretorch.errors import CompileError
from baretorch.frontends import Source
from baretorch.frontends.tinygrad.hook import watch_tinygrad
from baretorch.frontends.tinygrad.source import from_callable
from baretorch.frontends.tinygrad.table import TABLE
from baretorch.frontends.tinygrad.trace import Trace
from baretorch.ir.graph import Shape, interpret
from baretorch.ops.conv2d import Conv2d
from baretorch.ops.linear import Linear
from baretorch.ops.recurrent import Lstm
from baretorch.pipeline import lower, read

PTE = Path(__file__).parent / "data" / "sine.pte"


def traced(function: Callable[..., Any], *shapes: Shape) -> Source:
    rng = np.random.default_rng(len(shapes))
    inputs = tuple(rng.uniform(-1, 1, shape).astype(np.float32) for shape in shapes)
    return from_callable(function, {"forward": inputs}, "net")


@pytest.mark.parametrize(("name", "shapes", "function"), CASES, ids=[f"{i}_{c[0]}" for i, c in enumerate(CASES)])
def test_cases(
    name: str, shapes: tuple[Shape, ...], function: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before and after all passes; and the row was asked, or there is none."""
    from tinygrad import Tensor

    called = set[str]()
    call = Trace.call

    def spy(self: Trace, name: str, *rest: Any) -> Any:
        if not self._inside:
            called.add(name)
        return call(self, name, *rest)

    function(*(Tensor(np.zeros(shape, np.float32)) for shape in shapes))  # lazily: the layers are there now
    monkeypatch.setattr(Trace, "call", spy)
    source = traced(function, *shapes)
    lower(source)  # which compares them with tinygrad's answers
    assert name in called


def test_every_row_has_a_case() -> None:
    assert set(TABLE) - {"dropout"} <= {name for name, _, _ in CASES}


def test_layers_stay_whole() -> None:
    """They get our kernels, and the names of the objects that hold their parameters."""
    with watch_tinygrad():
        from tinygrad import Tensor

    class Net:
        def __init__(self) -> None:
            self.conv = layer("Conv2d", 1, 2, 3)
            self.out = layer("Linear", 8, 3)
            self.between = [Tensor.relu, Tensor.dropout]

        def __call__(self, x: Any) -> Any:
            return self.out(self.conv(x).sequential(self.between).flatten(1).realize())

    source = traced(Net(), (1, 1, 4, 4))
    (graph,) = lower(source).graphs.values()
    layers = {type(n.op): graph[n.outputs[0]].origin for n in graph.nodes}
    assert layers[Conv2d].path == "conv"
    assert layers[Linear].path == "out"
    assert Path(layers[Linear].source.partition(":")[0]).name == "test_tinygrad.py"
    assert "conv.weight" in {t.name for t in source.graph.constants()}


def test_a_cell_is_a_layer() -> None:
    graph = traced(layer("LSTMCell", 3, 4), (2, 3)).graph
    assert [type(n.op) for n in graph.nodes if isinstance(n.op, Lstm)] == [Lstm]


def test_jit_is_its_function() -> None:
    with watch_tinygrad():
        from tinygrad import TinyJit

    class Net:
        @TinyJit
        def __call__(self, x: Any) -> Any:
            return (x + 1).relu().realize()

    for net in (TinyJit(lambda x: (x + 1).relu().realize()), Net()):
        source = traced(net, (2, 3))
        assert len(lower(source).graph.nodes) == 1
        assert source.eager is not None
        x = np.full((2, 3), -0.5, np.float32)
        for _ in range(4):  # tinygrad plays a recording from the third call on
            assert np.array_equal(source.eager()(x), np.full((2, 3), 0.5, np.float32))


def test_methods() -> None:
    class Net:
        def encode(self, x: Any) -> Any:
            return x * 2

        def decode(self, x: Any) -> Any:
            return x / 2

    x = np.ones((1, 2), np.float32)
    source = from_callable(Net(), {"encode": (x,), "decode": (x,)}, "net", "decode")
    assert list(source.graphs) == ["encode", "decode"]
    assert np.array_equal(source.expected or (), [[[0.5, 0.5]]])


def refused(function: Callable[..., Any], *shapes: Shape) -> CompileError:
    with pytest.raises(CompileError) as caught:
        traced(function, *(shapes or ((2, 3),)))
    return caught.value


def test_all_that_is_unknown_is_named_at_once() -> None:
    error = refused(lambda x: (x.cummax(1)[0] + x.bitcast("int32").float()).cumprod(0))
    assert error.what == "3 methods of Tensor are not supported: bitcast, cummax, cumprod"
    assert all("test_tinygrad.py:" in at for at in error.at)


def test_what_was_not_seen_is_no_constant() -> None:
    with watch_tinygrad():
        from tinygrad import Tensor

    error = refused(lambda x: Tensor(x.uop * 2) + 1)
    assert error.what.startswith("the model computes with more than methods of Tensor")
    assert error.at[0].startswith("test_tinygrad.py:")
    assert refused(lambda x: Tensor(x.uop * 2)).at == ("the output",)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * x.numpy().max(),
        lambda x: x * x.sum().item(),
        lambda x: x * x.max().tolist(),
        lambda x: x * float(x._buffer().numpy()[0]),
        lambda x: x * x._data()[0],
    ],
)
def test_values_are_refused(function: Callable[..., Any]) -> None:
    error = refused(function)
    assert "needs values, which are known only when the model runs" in error.what
    assert error.at[0].startswith("test_tinygrad.py:")


def test_values_of_constants_are_fine() -> None:
    from tinygrad import Tensor

    factor = Tensor([3.0])
    source = traced(lambda x: x * factor.item(), (2, 3))
    assert np.array_equal(source.expected or (), [3 * source.examples[0]])


def test_changes_in_place_are_refused() -> None:
    def adds(x: Any) -> Any:
        x += 1
        return x

    def sets(x: Any) -> Any:
        x[0] = 1
        return x

    assert refused(adds).what.startswith("assign(), or +=, changes a tensor in place")
    assert refused(sets).what.startswith("x[…] = y changes a tensor in place")


class Sums:
    def __init__(self) -> None:
        from tinygrad import Tensor

        self.total = Tensor([[0.0, 0.0, 0.0]])

    def __call__(self, x: Any) -> Any:
        self.total = (self.total + x).realize()
        return self.total * 2


class Counts:
    calls = 0

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        return x * self.calls


def test_what_remembers_is_refused() -> None:
    """Callables that keep state are detected by their attributes, or by different results. An attribute that no call
    reads is accepted."""
    what = "the model remembers something from one run to the next: "
    assert refused(Sums(), (1, 3)).what == what + "in total"
    with pytest.raises(CompileError, match=what + "its results change"):
        lower(traced(Counts(), (2, 3)))

    class Shows:
        seen: Any = None

        def __call__(self, x: Any) -> Any:
            self.seen = x + 1
            return self.seen * 2

    lower(traced(Shows(), (2, 3)))


def test_products_of_integers_are_refused() -> None:
    """tinygrad's wrap around, and ours would be rounded."""
    from tinygrad import Tensor

    for function in (lambda x: x.int() @ x.int().T, lambda x: Tensor.einsum("ij,kj->ik", x.int(), x.int())):
        assert "products of integers are not supported" in refused(function).what


def test_numbers_that_their_type_does_not_hold() -> None:
    assert refused(lambda x: x.cast("uint8") - 5).what == "sub: uint8 is not supported"
    assert refused(lambda x: x.int() + 2**40).what == "the number 1099511627776 does not fit into int32"


def test_a_layer_that_is_no_constant() -> None:
    """The weights of a layer are not among the arguments of its call."""
    from tinygrad import Tensor, nn

    def scaled(x: Any) -> Any:
        norm = nn.LayerNorm(3)
        norm.weight = Tensor(x.uop * 2)[0]
        return norm(x)

    assert refused(scaled).what.startswith("the model computes with more than methods of Tensor")


def test_random_numbers() -> None:
    from tinygrad import Tensor

    error = refused(lambda x: x + Tensor.rand(2, 3))
    assert error.what == "random numbers inside a model are not supported"
    assert error.at[0].startswith("test_tinygrad.py:")


def test_dropout_in_training() -> None:
    from tinygrad import Context

    def drops(x: Any) -> Any:
        with Context(TRAINING=1):
            return x.dropout(0.5)

    assert refused(drops).what == "dropout is in training mode"


def test_inputs_that_tinygrad_has_no_answer_to() -> None:
    with pytest.raises(CompileError, match=r"inputs\(\) has NaN, for which tinygrad has no defined result"):
        from_callable(lambda x: x.max(axis=1), {"forward": (np.float32([[np.nan, 1]]),)}, "net")
    with watch_tinygrad():
        from tinygrad import Tensor, nn
    table = nn.Embedding(5, 2)
    table.weight = Tensor(np.arange(10, dtype=np.float32).reshape(5, 2))
    for at in (5, -1):
        with pytest.raises(CompileError, match=rf"inputs\(\) has the index {at}, and there are 5 entries"):
            from_callable(table, {"forward": (np.int32([1, at]),)}, "net")


@pytest.mark.parametrize(("up", "down"), [(True, False), (False, True), (False, False)])
def test_infinity_of_a_sign(up: bool, down: bool) -> None:
    x = np.float32([np.inf, -np.inf, 1])
    source = from_callable(lambda t: t.isinf(up, down), {"forward": (x,)}, "net")
    (have,) = interpret(source.graph, [x]).values()
    assert have.tolist() == [up, down, False]


def test_what_the_model_raises() -> None:
    assert refused(lambda x: x.reshape(5)).what.startswith("the model failed: ValueError")
    assert refused(lambda x: 3).what == "the model returns no tensors"
    assert "float16 is not supported" in refused(lambda x: x.half()).what


FILE = """import numpy as np
from tinygrad import Tensor

WEIGHT = Tensor(np.eye(4, 3, dtype=np.float32))

def model(): return lambda x: (x @ WEIGHT).relu()
def inputs(): return Tensor([[1.0, -2.0, 3.0, 4.0]])
def calibration(): return [(inputs() * i,) for i in (-1, 0.5, 1)]
def evaluate(run): return {"sum": float(run(inputs()).sum())}
"""


def test_a_model_file_without_torch(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(FILE)
    for verb, flag in (("run", "--int8"), ("evaluate", "--float")):
        program = (
            "import sys; sys.modules['torch'] = None\n"
            "from baretorch.cli import main\n"
            f"sys.argv = ['baretorch', {verb!r}, 'net.py', '--board', 'host', {flag!r}, '--json']\n"
            "main()\n"
        )
        done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        if verb == "run":
            assert '"dtype": "int8"' in done.stdout
        else:
            assert '"tinygrad": {' in done.stdout
            assert done.stdout.count('"sum": 4.0') == 3


def test_a_file_that_does_not_need_it_does_not_import_it(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(f"def model(): return {str(PTE)!r}\n")
    program = "import sys; from baretorch.pipeline import read; read('net.py'); print('tinygrad' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


def test_a_model_file_that_takes_methods_early(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(FILE + "RELU = Tensor.relu\ndef model(): return lambda x: RELU(x @ WEIGHT)\n")
    source = read(str(tmp_path / "net.py"))
    assert np.array_equal(source.expected or (), [[[1, 0, 3]]])
    assert source.library == "tinygrad"


def test_in_python() -> None:
    import baretorch

    net = layer("Linear", 3, 2)
    x = np.array([[1, 2, 3]], np.float32)
    model = baretorch.compile(net, (x,), board="host")
    from tinygrad import Tensor

    np.testing.assert_allclose(model.run(Tensor(x)), net(Tensor(x)).numpy(), rtol=1e-6)
    model.close()


def test_every_look_at_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(FILE)
    text = baretorch_cli("inspect", "net.py", "--stage", "source").out
    assert "float[1, 3] = matmul(float[1, 4], float[4, 3], False, None)  # net.py:6" in text
    assert "2 tinygrad calls" in baretorch_cli("inspect", "net.py").out
    wrong = baretorch_cli("inspect", "net.py", "--stage", "aten").err
    assert wrong.endswith("try   `--stage source` shows the model as it was read\n")
    for verb, *more in (("report", "--evaluate"), ("fit",), ("profile",), ("monitor", "--count", "1")):
        done = baretorch_cli(verb, "net.py", "--board", "mps2-an386", *more, "--json")
        assert done.code == 0, (verb, done.err)


@pytest.mark.slow
@pytest.mark.skipif((sys.platform, platform.machine()) != ("linux", "x86_64"), reason="Zig compiles for no other yet")
def test_kernels_by_zig(tmp_path: Path) -> None:
    """Where neither DEV nor clang is there, the image's answers are those of kernels that Zig compiled."""
    (tmp_path / "net.py").write_text(FILE.replace("(x @ WEIGHT)", "(x.softmax() @ WEIGHT)"))
    program = (
        "import baretorch.frontends.tinygrad.zig as zig, numpy\n"
        "zig._has_clang = lambda: False\n"
        "from baretorch.pipeline import read\n"
        "source = read('net.py')\n"
        "from tinygrad import Device\n"
        "print(Device.DEFAULT, numpy.ravel(source.expected[0]).round(3))\n"
    )
    plain = {k: v for k, v in os.environ.items() if k not in ("DEV", "CC")} | {"CACHELEVEL": "0"}
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, env=plain)
    assert done.stdout == "CPU [0.035 0.002 0.259]\n", done.stderr
