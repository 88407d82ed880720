"""A kind of accelerator unit is known in few files: adding another one touches as many."""

from __future__ import annotations

from pathlib import Path

import baretorch
from baretorch.machines.cluster.simulator import HERE
from baretorch.targets.boards import load_board
from baretorch.units import KINDS, units_of

ROOT = Path(baretorch.__file__).parent
MOST = 8


def test_few_files_know_a_unit() -> None:
    """ONNX's operator Gemm and the sources of its reader are something else."""
    files = [path for path in ROOT.rglob("*") if path.is_file() and path.suffix in (".py", ".c", ".h", ".toml")]
    own = [path.relative_to(ROOT) for path in files if "onnx" not in path.parts]
    knows = [str(path) for path in own if "gemm" in f"{path} {(ROOT / path).read_text()}".lower()]
    assert 4 <= len(knows) <= MOST, "\n".join(knows)


def test_each_kind_has_a_name_for_all() -> None:
    """The name of a kind is that of its table in the TOML, its executor, its kernels and its simulation."""
    cluster = load_board("cluster8").chip.cluster
    assert cluster is not None and KINDS.keys() <= cluster.units.keys()
    for unit in units_of(load_board("cluster8").chip):
        kind = unit.executor.kind
        assert KINDS[kind] and (HERE / f"{kind}.c").is_file()
        assert all(kernel.source.startswith(f"{kind}/") for kernel in unit.kernels.values())
