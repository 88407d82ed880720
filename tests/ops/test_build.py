"""Portable kernels compile without a warning, alone and inlined, and need nothing but arithmetic helpers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from baretorch.ops import OPS, PLAN_OPS
from tests.ops.host import KERNELS, WARNINGS, run

PORTABLE = sorted({kernel.source for row in (*OPS, *PLAN_OPS) for kernel in row.kernels if not kernel.needs})
CLANG = (sys.executable, "-m", "ziglang", "cc")
COMPILERS = {
    "gcc": ("gcc",),
    "clang": CLANG,
    "cortex-m0plus": (*CLANG, "-target", "thumb-freestanding-eabi", "-mcpu=cortex_m0plus", "-fno-unwind-tables"),
}


@pytest.mark.parametrize("form", [(), ("-DBT_INLINE_KERNELS",)], ids=["out-of-line", "inlined"])
@pytest.mark.parametrize("compiler", COMPILERS.values(), ids=COMPILERS)
def test_no_warning(compiler: tuple[str, ...], form: tuple[str, ...], tmp_path: Path) -> None:
    everything = tmp_path / "all.c"
    everything.write_text("".join(f'#include "{s}"\n' for s in PORTABLE))
    run(*compiler, *WARNINGS, *form, "-O2", f"-I{KERNELS}", "-c", everything, "-o", tmp_path / "all.o")
    assert (tmp_path / "all.o").stat().st_size > 0


def test_every_source_belongs_to_a_kernel() -> None:
    sources = sorted({kernel.source for row in (*OPS, *PLAN_OPS) for kernel in row.kernels})
    assert sources == sorted(str(p.relative_to(KERNELS)) for p in KERNELS.glob("*/*.c"))


def test_armv6m_needs_only_arithmetic_helpers(tmp_path: Path) -> None:
    """No libm, no libc but memcpy and memmove: what else is undefined is arithmetic of the compiler's own library."""
    objects = []
    for source in PORTABLE:
        objects.append(tmp_path / source.replace("/", "_").replace(".c", ".o"))
        run(*COMPILERS["cortex-m0plus"], "-std=c99", "-Oz", f"-I{KERNELS}", "-c", KERNELS / source, "-o", objects[-1])
    symbols = {line.split()[-1] for o in objects for line in run("nm", "-u", o).splitlines()}
    assert symbols
    allowed = ("__aeabi_f", "__aeabi_i", "__aeabi_l", "__aeabi_u", "__aeabi_cf", "__aeabi_mem", "memcpy", "memmove")
    assert all(s.startswith(allowed) for s in symbols), symbols
