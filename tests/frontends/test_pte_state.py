"""Mutable buffers and several methods in .pte files, in every form that ExecuTorch writes them."""

from __future__ import annotations

import copy
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.passes import MemoryPlanningPass
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from pte_cases import case, coder, eager, evaluate, export
from test_pte_torch import Branch, close
from tests.pte import read_pte, write_pte
from torch import nn

from baretorch import frontends, pipeline
from baretorch.errors import CompileError
from baretorch.frontends.aten.methods import share_state
from baretorch.frontends.aten.program import AtenProgram, Ref
from baretorch.frontends.pte.reader import read_pte_methods
from baretorch.machines import open_machine
from baretorch.machines.link import Link
from baretorch.machines.run import call_image
from baretorch.targets.boards import load_board

STORED = [InitializedMutableBufferPass([""])]
FORMS = {
    "stored": lambda: ExecutorchBackendConfig(passes=STORED),
    "stored_shared": lambda: ExecutorchBackendConfig(
        passes=STORED, memory_planning_pass=MemoryPlanningPass(share_mutable_buffers=True)
    ),
    "zeros": lambda: ExecutorchBackendConfig(),
    "zeros_named": lambda: ExecutorchBackendConfig(emit_mutable_buffer_names=True),
    "zeros_without_place": lambda: ExecutorchBackendConfig(
        emit_mutable_buffer_names=True, memory_planning_pass=MemoryPlanningPass(alloc_mutable_buffers=False)
    ),
}  # made anew each time, as a MemoryPlanningPass remembers what it planned


def agree_over_calls(program: AtenProgram, module: nn.Module, shape: tuple[int, ...]) -> None:
    """Three calls with inputs of their own."""
    memory: dict[str, torch.Tensor] = {}
    for i in range(3):
        x = torch.randn(shape, generator=torch.Generator().manual_seed(i))
        close(evaluate(program, (x,), memory), eager(module, (x,)))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [pytest.param("window", marks=pytest.mark.slow), "swap"])
def test_state_is_read(name: str, form: str) -> None:
    module = case(name).module()
    program = read_pte(export(module, case(name).inputs(), FORMS[form]()), name)
    assert len(program.state) == len(list(module.buffers()))
    if form.startswith("zeros"):
        first = program.state[0].name
        assert program.notes[0] == f"{first} begins as zeros, as in ExecuTorch: the file holds no initial value for it"
        for buffer in module.buffers():
            buffer.zero_()
    else:
        assert program.notes == ()
    agree_over_calls(program, module, case(name).shape)


def test_named_state_keeps_its_names() -> None:
    program = read_pte(export(case("window").module(), case("window").inputs(), FORMS["zeros_named"]()), "window")
    assert [s.name for s in program.state] == ["level", "window"]


class Cache(nn.Module):
    """A model whose buffer is written by an operator in place, and not by copy_, where export supports it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.ones(3, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.rows.index_put_((torch.tensor([1]),), x * 2)
        return self.rows + 1


def test_state_that_an_operator_changes_in_place() -> None:
    config = ExecutorchBackendConfig(passes=STORED, run_reinplace_pass=True)
    program = read_pte(export(Cache(), (torch.ones(1, 2),), config), "cache")
    (state,) = program.state
    (put,) = [c for c in program.calls if c.target == "aten::index_put"]
    assert put.args[0] == Ref(state.name) and put.results == (state.next,)
    np.testing.assert_array_equal(program.constants[state.name], np.ones((3, 2)))


class Overwrites(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x.mul_(2)
        return x + 1


def test_an_input_that_is_changed_is_refused() -> None:
    with pytest.raises(CompileError) as caught:
        read_pte(export(Overwrites(), (torch.ones(2),)), "model")
    assert caught.value.render() == (
        "error: the program changes its input v2 float32[2]\n"
        "  need  state in mutable buffers\n"
        "  try   self.register_buffer(...) for state, and a new tensor for the result"
    )


def together(methods: dict[str, tuple[nn.Module, tuple[torch.Tensor, ...]]], **options: object) -> bytes:
    exported = {m: torch.export.export(module, inputs) for m, (module, inputs) in methods.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return bytes(to_edge(exported, **options).to_executorch().buffer)


def test_methods_that_share_nothing_each_keep_their_own_state() -> None:
    first, second = case("window"), case("swap")
    data = together({"a": (first.module(), first.inputs()), "b": (second.module(), second.inputs())})
    programs = share_state(read_pte_methods(data, "both"))
    names = ["state0", "state1", "state2", "state3", "state4"]
    assert all([s.name for s in p.state] == names for p in programs.values())
    for method, one in (("a", first), ("b", second)):
        module = one.module()
        for buffer in module.buffers():
            buffer.zero_()
        agree_over_calls(programs[method], module, one.shape)


def test_one_of_several_methods_is_read() -> None:
    first, second = case("sine"), case("residual")
    data = together({"forward": (first.module(), first.inputs()), "other": (second.module(), second.inputs())})
    program = read_pte_methods(data, "both", "other")["other"]
    assert program.notes == ()
    close(evaluate(program, second.inputs()), eager(second.module(), second.inputs()))
    with pytest.raises(CompileError, match="the program has no method 'third'") as caught:
        read_pte_methods(data, "both", "third")
    assert caught.value.have == ("forward, other",)


def test_methods_that_cannot_be_read_are_in_the_way_unless_one_is_wanted() -> None:
    sine = case("sine")
    branch = (Branch(), (torch.ones(1, 3),))
    data = together({"forward": (sine.module(), sine.inputs()), "branch": branch}, constant_methods={"get_rate": 16000})
    with pytest.raises(CompileError, match="control flow is not supported") as caught:
        read_pte_methods(data, "model")
    assert caught.value.at == ("method branch",)
    programs = read_pte_methods(data, "model", "forward")
    assert list(programs) == ["forward"]
    assert set(programs["forward"].notes) == {
        "method branch is left out: control flow is not supported",
        "method get_rate only holds numbers and is left out",
    }


@pytest.mark.parametrize("method", ["encode", *(pytest.param(m, marks=pytest.mark.slow) for m in ("score", None))])
def test_a_file_with_methods_runs_as_pytorch_does(method: str | None, tmp_path: Path) -> None:
    """Written, read, compiled with all its methods, and called thrice on an emulated chip."""
    module, methods = coder()
    write_pte(module, methods, tmp_path / "coder.pte")
    source = frontends.load(str(tmp_path / "coder.pte"), method)
    assert (source.method, set(source.graphs)) == (method or "forward", set(methods))
    compiled = pipeline.compile_source(source, load_board("mps2-an386"))
    assert compiled.c.files["weights.c"].count("float32[24]") == 1, "the layer's weights are there once"
    machine = open_machine(pipeline.build_image(compiled, tmp_path / "image"), compiled.c.run)
    own = copy.deepcopy(module)
    try:
        link = Link(machine)
        for i in range(3):
            x = torch.full((1, 8), float(i))
            (have,) = call_image(link, compiled.graph, [x.numpy()])
            np.testing.assert_allclose(have, getattr(own, source.method)(x).numpy(), rtol=1e-5, atol=1e-6)
    finally:
        machine.close()
