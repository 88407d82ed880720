"""Writing .pte files: ExecuTorch's host runtime runs them and agrees with PyTorch."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pte_cases import SOME, STATEFUL, Case, case, coder, eager
from test_pte_torch import Flattened
from tests.models import int8_model
from tests.pte import run_pte, write_pte
from torch import nn

from baretorch.errors import CompileError
from baretorch.frontends import from_module
from baretorch.frontends.pte.export import write_programs
from baretorch.frontends.pte.host import HostRuntime
from baretorch.frontends.torch.export import export_module, make_functional, plain_programs
from baretorch.frontends.torch.norms import fold_norms


@pytest.mark.parametrize("case", SOME)
def test_the_host_runtime_agrees_with_pytorch(case: Case, tmp_path: Path) -> None:
    module, inputs = case.module(), case.inputs()
    info = write_pte(module, inputs, tmp_path / "model.pte")
    assert info.bytes == (tmp_path / "model.pte").stat().st_size
    want = eager(module, inputs)
    got = run_pte(tmp_path / "model.pte", inputs)
    assert [g.shape for g in got] == [w.shape for w in want]
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", STATEFUL, ids=lambda c: c.name)
def test_the_host_runtime_remembers_as_pytorch_does(case: Case, tmp_path: Path) -> None:
    module = case.module()
    assert write_pte(module, case.inputs(), tmp_path / "model.pte").notes == ()
    runtime = HostRuntime((tmp_path / "model.pte").read_bytes())
    for i in range(3):
        x = (torch.full(case.shape, float(i)),)
        for got, want in zip(runtime.run(x), eager(module, x), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_methods_share_what_they_remember_and_their_weights(tmp_path: Path) -> None:
    module, methods = coder()
    info = write_pte(module, methods, tmp_path / "coder.pte")
    assert info.notes == ()
    assert info.operators["aten::linear"] == 3
    data = (tmp_path / "coder.pte").read_bytes()
    assert data.count(module.layer.weight.numpy().tobytes()) == 1
    runtime = HostRuntime(data)
    for method in ("score", "encode", "score", "forward", "encode", "encode", "score"):
        (got,) = runtime.run(methods[method], method)
        np.testing.assert_allclose(got, getattr(module, method)(*methods[method]).numpy(), rtol=1e-5, atol=1e-6)
    with pytest.raises(CompileError, match="the program has no method 'decode'"):
        runtime.run(methods["encode"], "decode")


def test_a_runtime_that_computes_something_else_is_reported(tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = Flattened().eval().requires_grad_(False).to(memory_format=torch.channels_last)
    x = torch.randn(1, 2, 4, 4).to(memory_format=torch.channels_last)
    (note,) = write_pte(module, (x,), tmp_path / "flat.pte").notes
    told = "warning: ExecuTorch's runtime returns another result than PyTorch: output 0 of forward differs by "
    assert note.startswith(told)
    error = np.abs(run_pte(tmp_path / "flat.pte", (x,))[0] - module(x).numpy()).max()
    assert float(note.removeprefix(told)) == pytest.approx(error, rel=1e-2) and error > 0.1


def test_a_runtime_without_a_kernel_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Sorts(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sort(x)[0]

    (note,) = write_pte(Sorts(), (torch.ones(3),), tmp_path / "sorts.pte").notes
    assert note == "warning: ExecuTorch's runtime refuses the program: Missing operator: [0] aten::sort.values"
    assert "operator_registry" not in capsys.readouterr().err
    assert (tmp_path / "sorts.pte").is_file()


def test_what_was_written_is_reported(tmp_path: Path) -> None:
    info = write_pte(case("cnn").module(), case("cnn").inputs(), tmp_path / "cnn.pte")
    assert info.operators == {
        "aten::convolution": 2,
        "aten::relu": 2,
        "aten::max_pool2d_with_indices": 2,
        "aten::linear": 1,
    }
    assert info.notes == ("BatchNorm folded: norm1, norm2",)
    assert [f.name for f in tmp_path.iterdir()] == ["cnn.pte"]


def test_the_module_is_left_as_it_was(tmp_path: Path) -> None:
    module = case("cnn").module()
    before = {k: v.clone() for k, v in module.state_dict().items()}
    write_pte(module, case("cnn").inputs(), tmp_path / "cnn.pte")
    after = module.state_dict()
    assert before.keys() == after.keys()
    assert all(torch.equal(before[k], after[k]) for k in before)


def folded(
    module: nn.Module, methods: Mapping[str, tuple[torch.Tensor, ...]]
) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return the constants that are folded in the programs of these methods, and the programs."""
    programs = plain_programs({m: make_functional(export_module(module, x, m)) for m, x in methods.items()}, {})
    return fold_norms(list(programs.values())), programs


class Norms(nn.Module):
    """Only `a` may be folded: the others are read twice, shared, not last, or follow nothing foldable."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.BatchNorm1d(4)
        self.a, self.norm_a = nn.ConvTranspose1d(4, 4, 3, padding=1), nn.BatchNorm1d(4)
        self.b, self.norm_b = nn.Conv1d(4, 4, 3, padding=1), nn.BatchNorm1d(4)
        self.c, self.norm_c = nn.Conv1d(4, 4, 1), nn.BatchNorm1d(4)
        self.d, self.norm_d = nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.e, self.norm_e = nn.ConvTranspose1d(4, 4, 3, groups=2), nn.BatchNorm1d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm_a(self.a(self.first(x)))
        y = self.b(x)
        x = self.norm_b(y) + y
        x = self.norm_c(self.c(self.norm_c(self.c(x))))
        return self.norm_e(self.e(self.norm_d(self.d(x))))


def test_only_safe_batch_norms_are_folded() -> None:
    norms = Case("norms", Norms, (2, 4, 4))
    module, inputs = norms.module(), norms.inputs()
    names, programs = folded(module, {"forward": inputs})
    assert names == ("norm_a",)
    np.testing.assert_allclose(
        programs["forward"](*inputs).detach().numpy(), module(*inputs).detach().numpy(), rtol=1e-5, atol=1e-6
    )
    assert isinstance(module.norm_a, nn.BatchNorm1d), "the module stays as it is"


class Twice(nn.Module):
    """Folding `norm_a` would change what the second method gives; the other pair may be folded."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.norm_a = nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.b, self.norm_b = nn.Linear(4, 4), nn.BatchNorm1d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm_b(self.b(self.norm_a(self.a(x))))

    def features(self, x: torch.Tensor) -> torch.Tensor:
        return self.a(x)


def test_a_batch_norm_is_folded_only_if_it_may_be_in_every_method() -> None:
    twice = Case("twice", Twice, (2, 4))
    module, inputs = twice.module(), twice.inputs()
    names, programs = folded(module, {"forward": inputs, "features": inputs})
    assert names == ("norm_b",)
    for method in ("forward", "features"):
        got, want = programs[method](*inputs), getattr(module, method)(*inputs)
        np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_a_failed_export_leaves_no_file(tmp_path: Path) -> None:
    class Asks(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if x.sum() > 0 else -x

    with pytest.raises(CompileError, match="branches on the value of a tensor"):
        write_pte(Asks(), (torch.ones(2),), tmp_path / "asks.pte")
    assert list(tmp_path.iterdir()) == []


def test_an_operator_without_out_variant_is_a_compile_error(tmp_path: Path) -> None:
    class Spectrum(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.svdvals(x)

    with pytest.raises(CompileError, match="ExecuTorch cannot lower this model"):
        write_pte(Spectrum(), (torch.eye(3),), tmp_path / "spectrum.pte")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"cannot write .*model\.pte"):
        write_pte(case("sine").module(), case("sine").inputs(), tmp_path / "no" / "model.pte")


def test_a_file_that_is_not_a_program_does_not_run(tmp_path: Path) -> None:
    (tmp_path / "bad.pte").write_bytes(bytes(64))
    with pytest.raises(CompileError, match="refuses"):
        run_pte(tmp_path / "bad.pte", case("sine").inputs())


def test_missing_executorch_is_an_error_with_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "executorch.exir", None)
    with pytest.raises(CompileError) as caught:
        write_pte(case("sine").module(), case("sine").inputs(), tmp_path / "model.pte")
    assert caught.value.try_ == ('pip install "baretorch[executorch]"',)


def test_torch_export_runs_as_seldom_as_it_can(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for a model, also if it is quantized or written; once more if what is written is not what was exported:
    BatchNorm folded, or strides that ExecuTorch cannot take."""
    exports = []
    own = torch.export.export
    monkeypatch.setattr(torch.export, "export", lambda *args: exports.append(1) or own(*args))

    def count(module: torch.nn.Module, x: torch.Tensor) -> int:
        exports.clear()
        source = from_module(module, (x,), "m")
        int8_model(source, [(x,)])
        assert len(exports) == 1
        assert source.torch is not None
        before = [t.stride() for t in module.parameters()]
        assert write_programs(source.torch, tmp_path / "m.pte").notes in ((), ("BatchNorm folded: 1",))
        assert [t.stride() for t in module.parameters()] == before
        return len(exports)

    torch.manual_seed(0)
    depthwise = torch.nn.Conv2d(4, 4, 3, groups=4).eval()
    image = torch.randn(1, 4, 6, 6)
    assert count(torch.nn.Sequential(depthwise, torch.nn.ReLU()), image) == 1
    assert count(torch.nn.Sequential(depthwise, torch.nn.BatchNorm2d(4)).eval(), image) == 2
    assert count(depthwise.to(memory_format=torch.channels_last), image) == 2
    assert count(torch.nn.ReLU(), torch.randn(1, 1, 6, 6).to(memory_format=torch.channels_last)) == 2
