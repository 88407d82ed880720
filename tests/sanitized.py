"""How tests compile C for this computer: with ASan and UBSan, and with guards around arenas and weights.

`host_programs` makes the toolchain of board `host` do so, for images and for the programs that calibrate int8 models.
What the compiler adds would be in sizes and times, so the files in `PLAIN`, which are about these, go without.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

from baretorch.firmware import toolchain
from baretorch.firmware.toolchain import Toolchain
from baretorch.targets.cpus import Cpu

# gcc guards no array in a section of its own, as arenas and weights are, unless it is told to.
SECTIONS = "-fsanitize-sections=.bss.bt_arena.*,.rodata.bt_weights.*,.data.bt_weights.*"
# Tensors are aligned to 4 bytes. All cores that we know load and store int64_t there, which C does not promise.
ALIGNED = "-fno-sanitize=alignment"
SANITIZERS = ("-fsanitize=address,undefined", ALIGNED, "-fno-sanitize-recover=all", "-fno-strict-aliasing", SECTIONS)
PLAIN = ("tests/firmware/",)
_GCC = toolchain._gcc

os.environ.setdefault("ASAN_OPTIONS", "detect_leaks=0")  # programs end by being killed


@contextmanager
def host_programs(enabled: bool = True) -> Iterator[None]:
    """Let the compiler for this computer add sanitizers to all that it compiles and links."""

    def with_sanitizers(cpu: Cpu) -> Toolchain | None:
        found = _GCC(cpu)
        if found is None or cpu.gcc_prefix:
            return found
        flags = (*found.compiler, *SANITIZERS)
        return replace(found, compiler=flags, version=f"{found.version} {' '.join(SANITIZERS)}")

    with mock.patch.object(toolchain, "_gcc", with_sanitizers if enabled else _GCC):
        yield
