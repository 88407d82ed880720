"""Kernels compile without a warning with gcc and clang, alone and inlined; portable ones need few helpers."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from baretorch.ops import OPS, PLAN_OPS
from baretorch.targets.boards import board_names, load_board
from baretorch.targets.cpus import CPUS
from baretorch.units import units_of
from tests.ops.host import CLANG, KERNELS, WARNINGS, make, run

CHIPS = {board.chip.name: board.chip for board in map(load_board, board_names())}
UNITS = [kernel for chip in CHIPS.values() for unit in units_of(chip) for kernel in unit.kernels.values()]
ALL = [*(kernel for row in (*OPS, *PLAN_OPS) for kernel in row.kernels), *UNITS]
PORTABLE = sorted({kernel.source for kernel in ALL if not kernel.needs})
CPU = {cpu.name: cpu for cpu in CPUS}
M0 = (*CLANG, *(CPU["cortex-m0plus"].zig or ()), "-fno-unwind-tables")
PORTABLY = {"gcc": ("gcc",), "clang": CLANG, "cortex-m0plus": M0}
VARIANTS = ("cortex-m0plus", "cortex-m55", "rv32", "cv32e40p", "computer")  # which together run every kernel there is
AVR = "avr5"  # which clang makes no code for, and whose flash C++ cannot read
CPP17 = ("-std=gnu++17", "-Wall", "-Wextra", "-Wno-missing-field-initializers", "-Werror")  # what is not said is zero
FORMS = pytest.mark.parametrize("form", [(), ("-DBT_INLINE_KERNELS",)], ids=["out-of-line", "inlined"])


def compile_all(compiler: tuple[str, ...], sources: list[str], folder: Path, level: str = "-O2") -> None:
    """Compile all kernels in one file, like a model that includes them: they must not conflict with each other."""
    everything = folder / "all.c"
    everything.write_text("".join(f'#include "{s}"\n' for s in sources))
    make(*compiler, *WARNINGS, level, f"-I{KERNELS}", "-c", everything, "-o", folder / "all.o")
    assert (folder / "all.o").stat().st_size > 0


@FORMS
@pytest.mark.parametrize("compiler", PORTABLY.values(), ids=PORTABLY)
def test_portable_kernels_give_no_warning(compiler: tuple[str, ...], form: tuple[str, ...], tmp_path: Path) -> None:
    compile_all((*compiler, *form), PORTABLE, tmp_path)


@FORMS
@pytest.mark.parametrize(("name", "compiler"), [*((n, c) for n in VARIANTS for c in ("gcc", "clang")), (AVR, "gcc")])
def test_kernels_of_a_cpu_give_no_warning(name: str, compiler: str, form: tuple[str, ...], tmp_path: Path) -> None:
    cpu = CPU[name]
    zig = (*CLANG, *(cpu.zig or ()), "-fno-unwind-tables")
    command = (f"{cpu.gcc_prefix}gcc", *cpu.gcc) if compiler == "gcc" else zig
    own = sorted({k.source for k in ALL if k.needs and k.needs.met_by(cpu.features)})
    compile_all((*command, "-ffreestanding", *form), own, tmp_path)


@FORMS
@pytest.mark.parametrize("level", ["-O0", "-Og"])
@pytest.mark.parametrize("name", [*VARIANTS, AVR])
def test_kernels_compile_in_debug_builds(name: str, level: str, form: tuple[str, ...], tmp_path: Path) -> None:
    """SDKs compile kernels with the flags of the application. With -O0, gcc 12 did not terminate."""
    cpu = CPU[name]
    own = sorted({k.source for k in ALL if k.needs and k.needs.met_by(cpu.features)})
    compile_all((f"{cpu.gcc_prefix}gcc", *cpu.gcc, "-ffreestanding", *form), own, tmp_path, level)


@FORMS
@pytest.mark.parametrize("name", ["portable", *VARIANTS])
def test_kernels_are_c_plus_plus_too(name: str, form: tuple[str, ...], tmp_path: Path) -> None:
    """Arduino and Mbed compile what they are given, and some applications include it."""
    cpu = CPU.get(name)
    command = (f"{cpu.gcc_prefix}gcc", *cpu.gcc, "-ffreestanding") if cpu else ("gcc",)
    own = sorted({k.source for k in ALL if k.needs and k.needs.met_by(cpu.features)}) if cpu else PORTABLE
    assert own
    everything = tmp_path / "all.cpp"
    everything.write_text("".join(f'#include "{s}"\n' for s in own))
    run(*command, *form, *CPP17, f"-I{KERNELS}", "-fsyntax-only", everything)


@pytest.mark.skipif(not shutil.which("avr-gcc"), reason="gcc-avr is not installed")
def test_kernels_do_not_need_an_int_of_32_bits(tmp_path: Path) -> None:
    compile_all(("avr-gcc", "-mmcu=avr6", "-Waddr-space-convert", "-DBT_INLINE_KERNELS"), PORTABLE, tmp_path)


def test_the_variants_are_all_there_are() -> None:
    features = [CPU[name].features for name in (*VARIANTS, AVR)]
    assert all(any(k.needs.met_by(f) for f in features) for k in ALL)


def test_every_source_belongs_to_a_kernel() -> None:
    sources = sorted({kernel.source for kernel in ALL})
    assert sources == sorted(str(p.relative_to(KERNELS)) for p in KERNELS.glob("*/*.c"))


def test_armv6m_needs_only_arithmetic_helpers(tmp_path: Path) -> None:
    """No libm, no libc but memcpy and memmove: what else is undefined is arithmetic of the compiler's own library."""
    everything, made = tmp_path / "all.c", tmp_path / "all.o"
    everything.write_text("".join(f'#include "{s}"\n' for s in PORTABLE))
    run(*M0, "-std=c99", "-Oz", f"-I{KERNELS}", "-c", everything, "-o", made)
    symbols = {line.split()[-1] for line in run("nm", "-u", made).splitlines()}
    assert symbols
    allowed = ("__aeabi_f", "__aeabi_i", "__aeabi_l", "__aeabi_u", "__aeabi_cf", "__aeabi_mem", "memcpy", "memmove")
    driver = {"bt_npu_run"}  # of runtime/npu, which only chips with an NPU have
    assert {s for s in symbols if not s.startswith(allowed)} == driver


def test_portable_kernels_say_what_is_in_flash() -> None:
    """The constants that are packed for them: an AVR reads those with other instructions."""
    for source, symbol in sorted({(k.source, k.symbol) for k in ALL if k.pack and not k.needs}):
        files = [KERNELS / source, *sorted((KERNELS / source).parent.glob("*.h"))]
        found = re.findall(rf"\b{symbol}\([^;{{]*", "\n".join(path.read_text() for path in files))
        assert any("BT_FLASH" in declaration for declaration in found), symbol
