"""C for this computer is compiled with sanitizers in tests, and they see the end of arenas and weights."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from baretorch.firmware.toolchain import find_toolchain
from baretorch.machines.host_program import computer
from baretorch.targets.boards import load_board
from tests.sanitized import SANITIZERS, host_programs

PROGRAM = """
#include <stdint.h>
#include "bt.h"
BT_ARENA(m) uint32_t m_arena[4];
BT_WEIGHTS(m) const int8_t m_weights[6] = {{ 1, 2, 3 }};
int main(int count, char **all)
{{
    (void)all;
    {line}
    return 0;
}}
"""


@pytest.mark.parametrize("board", [load_board("host"), computer()], ids=["images", "calibration"])
def test_programs_have_sanitizers(board: object) -> None:
    assert set(SANITIZERS) <= set(find_toolchain(board).compiler)
    with host_programs(False):
        assert not set(SANITIZERS) & set(find_toolchain(board).compiler) - {"-fno-strict-aliasing"}


def test_chips_have_none() -> None:
    assert find_toolchain(load_board("mps2-an386")).compiler[1:] == ()


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("m_arena[count] = 1;", ""),
        ("uint32_t *volatile p = m_arena; p[count + 3] = 1;", "global-buffer-overflow"),
        ("const int8_t *volatile p = m_weights; return p[count + 5];", "global-buffer-overflow"),
        ("return (count << 30) + (count << 30) > 0;", "signed integer overflow"),
    ],
    ids=["right", "beyond an arena", "beyond weights", "undefined"],
)
def test_sanitizers_see(line: str, error: str, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(PROGRAM.format(line=line))
    kernels = Path(__file__).parents[1] / "src" / "baretorch" / "kernels"
    find_toolchain(load_board("host")).make(("-O0", f"-I{kernels}", "main.c", "-o", "main"), tmp_path)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=False)
    assert error in done.stderr and (done.returncode != 0) == bool(error)
