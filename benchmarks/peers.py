"""What other systems measure for the same models, and our goals; from shared/targets.md of this project.

Peers: TFLM = TensorFlow Lite Micro 90b983c2 with CMSIS-NN; ET = ExecuTorch 1.4.1, -O2, its best hand-pruned size.
Counts are executed instructions per inference on QEMU 7.2 (mps2-an386), arm-none-eabi-gcc 12.2, second inference.
Code is .text + .rodata of the whole image without the model; RAM is .data + .bss + arena, without stack.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Figures:
    """Instructions, bytes of code, bytes of RAM; None where nobody measured it."""

    instructions: int | None = None
    code: int | None = None
    ram: int | None = None


@dataclass(frozen=True)
class Peers:
    tflm: Figures
    executorch: Figures
    goal: Figures


# (model, dtype) on mps2-an386
PEERS: dict[tuple[str, str], Peers] = {
    ("sine", "float32"): Peers(
        tflm=Figures(3_419, 31_928, 1_112),
        executorch=Figures(7_760, 54_712, 1_400),
        goal=Figures(1_200, 1_500, 200),
    ),
}
