"""Reading .pte files: fixtures against their text, fresh exports against PyTorch, and the error texts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import flatbuffers
import numpy as np
import pytest
from pte_text import text_of
from tests.pte import read_pte

from baretorch.errors import CompileError
from baretorch.frontends import load
from baretorch.frontends.aten.program import AtenState
from baretorch.frontends.pte.reader import read_pte_methods
from baretorch.frontends.pte.schema import memory_order
from baretorch.ir.graph import DType

DATA = Path(__file__).parent / "data"
FIXTURES = sorted(DATA.glob("*.pte"))


def fixture(name: str) -> bytes:
    return (DATA / f"{name}.pte").read_bytes()


def refusal(data: bytes, method: str = "forward") -> str:
    with pytest.raises(CompileError) as caught:
        read_pte(data, "model", method)
    return caught.value.render()


def test_there_are_fixtures() -> None:
    plain = ["channels_last", "cnn", "methods", "sine", "state", "views"]
    assert [f.stem for f in FIXTURES] == sorted([*plain, "cortex_m", "cortex_m4", "quantized"])


@pytest.mark.parametrize("file", FIXTURES, ids=lambda f: f.stem)
def test_program_reads_as_its_text(file: Path) -> None:
    assert text_of(file.read_bytes(), file.stem) == file.with_suffix(".txt").read_text()


def test_reading_needs_neither_torch_nor_executorch() -> None:
    code = (
        "import sys; from pathlib import Path; from baretorch.frontends.pte.reader import read_pte_methods\n"
        f"read_pte_methods(Path({str(DATA / 'cnn.pte')!r}).read_bytes(), 'cnn')\n"
        "assert not {'torch', 'executorch', 'flatbuffers'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_memory_format_of_inputs_and_outputs() -> None:
    program = read_pte(fixture("channels_last"), "model")
    (x,) = program.inputs
    assert (x.shape, x.dtype, x.order) == ((1, 2, 12, 12), DType.FLOAT32, (0, 2, 3, 1))
    assert program.output_orders == ((0, 1),)
    assert read_pte(fixture("cnn"), "model").inputs[0].order == (0, 1, 2, 3)


def test_constants_are_contiguous_and_finite() -> None:
    for file in FIXTURES:
        for name, data in read_pte(file.read_bytes(), "model").constants.items():
            assert data.flags.c_contiguous and np.isfinite(data).all(), name


def test_methods_know_each_others_state() -> None:
    programs = read_pte_methods(fixture("methods"), "model")
    assert list(programs) == ["encode", "forward", "score"]
    for program in programs.values():
        assert [s.name for s in program.state] == ["state0"]
        np.testing.assert_array_equal(program.constants["state0"], np.float32([[1, 2, 3]]))
    assert programs["score"].state == (AtenState("state0", "state0"),)


def test_state_of_any_size_is_not_made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("baretorch.frontends.pte.reader.MAX_STATE", 63)
    assert refusal(fixture("state")) == "error: forward keeps 64 bytes between runs\n  need  at most 63"


def test_memory_order_prefers_contiguous_where_a_dimension_is_one() -> None:
    assert memory_order((1, 1, 4, 4), (0, 2, 1, 3)) == (0, 1, 2, 3)
    assert memory_order((1, 1, 4, 4), (0, 2, 3, 1)) == (0, 1, 2, 3)
    assert memory_order((1, 3, 4, 4), (2, 0, 3, 1)) == (0, 2, 3, 1)
    assert memory_order((2, 3, 1, 1), (0, 2, 3, 1)) == (0, 1, 2, 3)
    assert memory_order((2, 3, 4), (2, 0, 1)) == (2, 0, 1)
    assert memory_order((), ()) == ()


def test_example_inputs_are_next_to_it(tmp_path: Path) -> None:
    (tmp_path / "sine.pte").write_bytes((DATA / "sine.pte").read_bytes())
    np.savez(tmp_path / "inputs.npz", x=np.array([[[0.25]], [[0.5]]], np.float32))
    (x,) = load(str(tmp_path / "sine.pte")).examples
    assert x.tolist() == [[0.25]]


def test_not_a_pte() -> None:
    assert refusal(b"PK\x03\x04 is a zip archive") == (
        "error: not an ExecuTorch program\n"
        "  have  21 bytes with the identifier b' is '\n"
        "  need  a .pte file, identifier b'ET12'"
    )
    assert "0 bytes" in refusal(b"")


def test_unknown_method() -> None:
    assert refusal(fixture("sine"), "backward") == (
        "error: the program has no method 'backward'\n  have  forward\n  try   name one of these"
    )


def test_cut_file() -> None:
    data = fixture("sine")
    assert refusal(data[:1000]).startswith(
        "error: not a valid .pte file: the program ends at byte 2704 of 1000; is it cut short?"
    )
    assert "segment 0 ends at byte 3204 of 3200; is it cut short?" in refusal(data[:3200])


def test_a_small_file_cannot_ask_for_endless_work() -> None:
    """Tables may share what they point to: here 2,000 instructions are one, and its arguments are 2,000 values."""
    b = flatbuffers.Builder(1 << 16)

    def table(*fields: tuple[int, int]) -> int:
        b.StartObject(10)
        for slot, offset in fields:
            b.PrependUOffsetTRelativeSlot(slot, offset, 0)
        return b.EndObject()

    def vector(offsets: list[int]) -> int:
        b.StartVector(4, len(offsets), 4)
        for offset in offsets:
            b.PrependUOffsetTRelative(offset)
        return b.EndVector()

    args = b.CreateNumpyVector(np.zeros(2000, np.int32))
    call = table((1, args))
    b.StartObject(2)
    b.PrependUint8Slot(0, 1, 0)
    b.PrependUOffsetTRelativeSlot(1, call, 0)
    instruction = b.EndObject()
    operators = vector([table((0, b.CreateString("aten::relu")))])
    chains = vector([table((2, vector([instruction] * 2000)))])
    plan = table((0, b.CreateString("forward")), (5, chains), (6, operators))
    b.Finish(table((1, vector([plan]))), b"ET12")
    data = bytes(b.Output())
    assert len(data) < 20000
    assert refusal(data).startswith("error: not a valid .pte file: its tables refer to each other without end")
