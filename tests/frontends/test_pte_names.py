"""Names in a `.pte` are data: none of them runs, whatever it says."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from executorch.exir import ExecutorchBackendConfig
from pte_cases import export
from torch import nn

from baretorch import frontends, pipeline
from baretorch.targets.boards import load_board

PLAIN = "state_" + "x" * 122
RUNS = (  # would make a file as soon as the program starts
    '*/int open(const char*,int,int);__attribute__((constructor))static void e(void){open("RAN",65,384);}/*'
)
EVIL = {
    "comment": RUNS,
    "line": "\n" + RUNS + "\n",
    "directive": "*/\n#include \"/etc/passwd\"\n/*",
    "splice": "*\\\n/ int x; /",
    "trigraph": "*??/\n/ int x; /",
    "terminal": "\x1b]0;RAN\x07\u202e",
    "html": "</code><script>alert(1)</script>",
    "string": "\";system(\"touch RAN\");\"",
    "nul": "a\0*/",
    "format": "%s%n%s%n",
}  # fmt: skip


class Level(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.register_buffer(PLAIN, torch.zeros(1, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        getattr(self, PLAIN).copy_(torch.tanh(self.layer(x) + getattr(self, PLAIN)))
        return getattr(self, PLAIN) * 1


@pytest.fixture(scope="module")
def file() -> bytes:
    torch.manual_seed(0)
    data = export(
        Level().requires_grad_(False), (torch.ones(1, 4),), ExecutorchBackendConfig(emit_mutable_buffer_names=True)
    )
    assert data.count(PLAIN.encode()) >= 1
    return data


def named(data: bytes, name: str) -> bytes:
    """The file with another name of the same length for its state."""
    raw = name.encode()
    return data.replace(PLAIN.encode(), raw + b" " * (len(PLAIN) - len(raw)))


@pytest.mark.parametrize("case", EVIL)
def test_state_is_only_a_name(case: str, file: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("evil.pte").write_bytes(named(file, EVIL[case]))
    source = frontends.load("evil.pte")
    assert source.graph.state[0].name.rstrip(" ") == EVIL[case]
    c = pipeline.compile_source(source, load_board("host")).c
    plain = pipeline.compile_source(_renamed(file), load_board("host")).c
    for name in ("model.h", "model.c", "weights.h", "weights.c"):
        assert _shape(c.files[name]) == _shape(plain.files[name])
    assert _shape(c.glue) == _shape(plain.glue)


def _renamed(file: bytes) -> frontends.Source:
    Path("plain.pte").write_bytes(file)
    return frontends.load("plain.pte")


def _shape(text: str) -> str:
    """C without its comments, and with one word for every name."""
    return re.sub(r"\w+", "w", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))


def test_code_in_a_name_does_not_run(file: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("evil.pte").write_bytes(named(file, RUNS))
    compiled = pipeline.compile_source(frontends.load("evil.pte"), load_board("host"))
    run = pipeline.run_image(compiled, pipeline.build_image(compiled, Path("b")))
    assert np.isfinite(run.outputs[0]).all()
    assert not list(Path().rglob("RAN")), "the name was compiled"


def test_methods_are_only_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    data = (Path(__file__).parent / "data" / "methods.pte").read_bytes()
    for old, new in (("encode", "*/;/*\n"), ("score", '../x"')):
        assert data.count(old.encode()) == 1
        data = data.replace(old.encode(), new.encode())
    Path("methods.pte").write_bytes(data)
    compiled = pipeline.compile_source(frontends.load("methods.pte"), load_board("host"))
    image = pipeline.build_image(compiled, Path("b"))
    assert image.elf.is_file() and sorted(p.name for p in Path().iterdir()) == ["b", "methods.pte"]
