"""The two compilers: GNU (arm-none-eabi-gcc and its relatives), and Zig's clang and lld from PyPI.

A Toolchain knows the command lines and nothing about what is built. Commands name files relative to the folder they
run in, so that the bytes they make do not depend on where that folder is.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from baretorch.errors import CompileError, InternalError
from baretorch.files.write import scratch, write_scratch
from baretorch.firmware.cache import cache_folder, fingerprint, recall, remember
from baretorch.firmware.elf import ARM, RISCV
from baretorch.firmware.tools import run_tool
from baretorch.options import Compiler, Optimize
from baretorch.targets.cpus import Cpu
from baretorch.targets.types import Board

NAMES = tuple(map(str, Compiler))

_WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
_CODE = (
    "-std=gnu99",
    "-ffunction-sections",
    "-fdata-sections",
    "-fno-common",
    "-fno-strict-aliasing",  # tensors of different types take turns in the arena's bytes
    "-fno-unwind-tables",
    "-fno-asynchronous-unwind-tables",
    "-ffp-contract=fast",  # fused multiply-add where the FPU has it
)
_LEVELS = {Optimize.SPEED: "-O2", Optimize.SIZE: "-Os"}
_PACKAGES = {
    "arm-none-eabi-": "gcc-arm-none-eabi",
    "riscv64-unknown-elf-": "gcc-riscv64-unknown-elf",
    "avr-": "gcc-avr avr-libc",
    "": "gcc",
}
_LLD_EMULATION = {ARM: "armelf", RISCV: "elf32lriscv"}


@dataclass(frozen=True)
class Toolchain:
    """One compiler for one CPU. `compiler` and `linker` start the command lines; `version` distinguishes builds."""

    name: str  # "gcc" or "zig"
    cpu: Cpu
    compiler: tuple[str, ...]
    linker: tuple[str, ...]  # for a linker script; GNU's is called by gcc, which knows the path of its libraries
    version: str
    debug: bool = False  # with debug information, which changes no byte that is loaded

    @property
    def hosted(self) -> bool:
        return self.cpu.name == "host"

    def compile_flags(self, optimize: Optimize, strict: bool = True) -> tuple[str, ...]:
        """Return all flags that affect an object file, except include folders; with warnings if `strict`."""
        target = self.cpu.gcc if self.name == "gcc" else self.cpu.zig or ()
        stack = ("-fstack-usage",) if self.name == "gcc" else ("-fstack-size-section", "-fno-sanitize=undefined")
        told = ("-g",) if self.debug else () if self.name == "gcc" else ("-g0",)
        place = ("-fno-pie",) if self.hosted else ("-ffreestanding",)
        return (*target, _LEVELS[optimize], *_CODE, *place, *stack, *told, *(_WARNINGS if strict else ()))

    @property
    def _maps(self) -> str:
        """Return the option that replaces paths; before version 8, gcc has it for -g only."""
        number = re.search(r"\) (\d+)\.", self.version)
        return "-fdebug-prefix-map" if number is not None and int(number[1]) < 8 else "-ffile-prefix-map"

    def compile(self, source: Path, output: Path, includes: Sequence[Path], optimize: Optimize) -> None:
        """Compile a C or assembly file to `output` (gcc also writes the stack use next to it, .su)."""
        said = self._compile(source, output, includes, optimize, strict=True)
        if said is not None:
            raise InternalError(f"{self.name} does not compile {source.name}\n{said}")

    def try_compile(self, source: Path, output: Path, includes: Sequence[Path], optimize: Optimize) -> str | None:
        """Compile a user's C file; return the compiler's error, or None. Warnings are left to the user."""
        return self._compile(source, output, includes, optimize, strict=False)

    def _compile(
        self, source: Path, output: Path, includes: Sequence[Path], optimize: Optimize, strict: bool
    ) -> str | None:
        """Compile with relative paths: compilers write paths into assembly unescaped, and a folder may have any
        name."""
        here = output.parent.resolve()
        near = {folder: os.path.relpath(folder.resolve(), here) for folder in (source.parent, *includes)}
        known = dict.fromkeys(near.values(), ".")
        if self.debug:
            known |= {str(here): ".", str(Path(self.compiler[0]).resolve().parents[1]): "toolchain"}
        prefixes = [f"{self._maps}={path}={known[path]}" for path in sorted(known, key=len)]  # the last that fits
        if source.suffix == ".S":
            prefixes.append("-g0")  # assemblers do not map
        folders = (f"-I{near[folder]}" for folder in includes)
        flags = (*self.compile_flags(optimize, strict), *folders, *prefixes)
        command = [*self.compiler, *flags, "-c", os.path.join(near[source.parent], source.name), "-o", output.name]
        run = _run(command, output.parent)
        return run.stderr if run.returncode else None

    def make(self, arguments: Sequence[str], folder: Path) -> None:
        """Run the compiler in a folder."""
        run = _run([*self.compiler, *arguments], folder)
        if run.returncode:
            raise InternalError(f"{self.name} does not compile a program for this computer\n{run.stderr}")

    def link(self, objects: Sequence[Path], script: Path, output: Path, map_file: Path) -> str | None:
        """Link a device image with a map and with relocations kept; return the linker's error, or None."""
        common = (
            f"-Map={map_file.name}",
            "--gc-sections",
            "--emit-relocs",
            "--build-id=none",
            *(() if self.debug else ("--strip-debug",)),
            "--nmagic",
        )
        names = [o.name for o in objects]
        if self.name == "gcc":
            options = ",".join(("-Wl", *common))
            command = [
                *self.linker,
                *self.cpu.gcc,
                *self.cpu.gcc_link,
                "-nostdlib",
                "-T",
                script.name,
                options,
                *names,
                *(f"-l{name}" for name in self.cpu.libraries),
            ]
        else:
            support = write_scratch(output.parent / "compiler_rt.o", _compiler_rt(self))
            emulation = ("-m", _LLD_EMULATION[self.cpu.elf_machine])
            lazy = ("--start-lib", support.name, "--end-lib")
            command = [*self.linker, *emulation, "-T", script.name, *common, *names, *lazy]
        return _complaint(_run([*command, "-o", output.name], output.parent))

    def link_host(self, objects: Sequence[Path], output: Path, measured: Path, map_file: Path) -> str | None:
        """Link a program for this computer, and link it again without the C library, with relocations, for
        measuring."""
        names = [o.name for o in objects]
        program = [
            *self.compiler,
            "-no-pie",
            *names,
            "-lm",
            "-Wl,--gc-sections",
            "-Wl,--build-id=none",
            "-o",
            output.name,
        ]
        failed = _complaint(_run(program, output.parent))
        if failed is not None:
            return failed
        open_ends = ("--gc-sections", "--emit-relocs", "--strip-debug", "--unresolved-symbols=ignore-all", "-e", "main")
        measure = [*self.linker, *open_ends, "-z", "norelro", f"-Map={map_file.name}", *names, "-o", measured.name]
        return _complaint(_run(measure, output.parent))


def find_toolchain(board: Board, prefer: str | None = None) -> Toolchain:
    """Return the requested toolchain, else gcc if it is installed, else Zig. Raises CompileError with the remedy if
    there is none."""
    if prefer is not None and prefer not in NAMES:
        raise CompileError(f"unknown toolchain {prefer}", have=prefer, need=f"one of {', '.join(NAMES)}")
    cpu = board.chip.cpu
    for name in NAMES if prefer is None else (prefer,):
        found = _gcc(cpu) if name == "gcc" else _zig(cpu)
        if found is not None:
            return found
    gcc = f"{cpu.gcc_prefix}gcc" if cpu.gcc_prefix else "cc"
    remedies = {"gcc": f"`apt-get install {_PACKAGES[cpu.gcc_prefix]}`", "zig": "`pip install ziglang`"}
    if cpu.zig is None:
        have = f"--toolchain zig, which makes no code for {cpu.name}" if prefer == "zig" else None
        raise CompileError(f"no compiler for {board.name}", have=have, need=f"{gcc} and avr-libc", try_=remedies["gcc"])
    raise CompileError(
        f"no compiler for {board.name}",
        need=gcc
        if prefer == "gcc"
        else "the Python package ziglang"
        if prefer
        else f"{gcc} or the Python package ziglang",
        try_=remedies[prefer] if prefer else f"{remedies['zig']} or {remedies['gcc']}",
    )


def _gcc(cpu: Cpu) -> Toolchain | None:
    path = shutil.which(f"{cpu.gcc_prefix}gcc" if cpu.gcc_prefix else "cc")
    if path is None:
        return None
    if not all(_has_library(path, cpu.gcc, name) for name in cpu.libraries if name != "gcc"):
        return None
    linker = (path,) if cpu.gcc_prefix else ("ld",)
    return Toolchain("gcc", cpu, (path,), linker, _version(path))


def _zig(cpu: Cpu) -> Toolchain | None:
    found = importlib.util.find_spec("ziglang")
    if found is None or found.origin is None or cpu.zig is None:
        return None
    zig = str(Path(found.origin).parent / "zig")
    return Toolchain("zig", cpu, (zig, "cc"), (zig, "ld.lld"), importlib.metadata.version("ziglang"))


@cache
def _has_library(compiler: str, flags: tuple[str, ...], name: str) -> bool:
    """Report whether a library that does not come with gcc is installed."""
    asked = [compiler, *flags, f"-print-file-name=lib{name}.a"]
    found = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    return Path(found).is_absolute()


@cache
def _version(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True).stdout.splitlines()[0]


def _compiler_rt(toolchain: Toolchain) -> bytes:
    """Return Zig's support routines (soft float, 64-bit division …) for this CPU, one section each, built once."""
    zig = Path(toolchain.compiler[0])
    target = [f for f in toolchain.cpu.zig or () if not f.startswith("-mabi")]  # build-obj takes it from the features
    key = fingerprint(toolchain.version, *target)
    if kept := recall("compiler_rt", key):
        return kept["compiler_rt.o"]
    source = zig.parent / "lib" / "compiler_rt.zig"
    shape = ("-O", "ReleaseSmall", "-ffunction-sections", "-fdata-sections", "-fno-unwind-tables", "-fstrip")
    with scratch() as folder:
        made = folder / "compiler_rt.o"
        run = _run([str(zig), "build-obj", str(source), *target, *shape, f"-femit-bin={made.name}"], folder)
        if run.returncode:
            raise InternalError(f"zig does not build compiler_rt for {toolchain.cpu.name}\n{run.stderr}")
        data = made.read_bytes()
    remember("compiler_rt", key, {made.name: data})
    return data


def _run(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a compiler. Zig does not detect a damaged object in its cache, so objects use a cache of their own for each
    command, and a failed command runs again without the cache of Zig's libraries."""
    with scratch() as empty:
        environment = os.environ | {"LC_ALL": "C", "ZIG_LOCAL_CACHE_DIR": str(empty)}
        run = run_tool(command, folder, environment | {"ZIG_GLOBAL_CACHE_DIR": str(cache_folder() / "zig")})
        if run.returncode and "zig" in Path(command[0]).name and "ld.lld" not in command and "-c" not in command:
            run = run_tool(command, folder, environment | {"ZIG_GLOBAL_CACHE_DIR": str(empty)})
    return run


def _complaint(run: subprocess.CompletedProcess[str]) -> str | None:
    return run.stderr or f"exit code {run.returncode}" if run.returncode else None
