"""What other systems measure for the same models, and our goals.

Peers: TFLM = TensorFlow Lite Micro 90b983c2 with CMSIS-NN; ET = ExecuTorch 1.4.1, -O2, its best hand-pruned size.
Counts are executed instructions per inference on QEMU 7.2 (mps2-an386), arm-none-eabi-gcc 12.2, second inference.
Code is .text + .rodata of the whole image without the model; RAM is .data + .bss + arena, without stack.
"""

from __future__ import annotations

from dataclasses import dataclass

BOARD, TOOLCHAIN = "mps2-an386", "gcc"


@dataclass(frozen=True)
class Figures:
    """Instructions, bytes of code, bytes of RAM; None where nobody measured it."""

    instructions: int | None = None
    code: int | None = None
    ram: int | None = None


NOTHING = Figures()


@dataclass(frozen=True)
class Peers:
    """`plain` is ExecuTorch as its default export makes it, `folded` with constants propagated ahead of time."""

    goal: Figures
    tflm: Figures = NOTHING
    plain: Figures = NOTHING
    folded: Figures = NOTHING


# (model, dtype) on mps2-an386
PEERS: dict[tuple[str, str], Peers] = {
    ("sine", "float32"): Peers(
        goal=Figures(1_200, 1_500, 200),
        tflm=Figures(3_419, 31_928, 1_112),
        plain=Figures(27_520, 224_804),
        folded=Figures(7_760, 54_712, 1_400),
    ),
    ("softmax", "float32"): Peers(goal=Figures(900), plain=Figures(2_360)),
    ("mnist_mlp", "float32"): Peers(
        goal=Figures(650_000, 2_000, 5_000),
        plain=Figures(21_962_000, ram=1_260_000),
        folded=Figures(2_878_800, 54_712, 5_800),
    ),
    ("tinyrps", "float32"): Peers(goal=Figures(20_000_000), plain=Figures(636_264_880), folded=Figures(612_083_320)),
    ("kws", "float32"): Peers(goal=Figures(9_000_000), folded=Figures(287_460_800)),
    ("ic", "float32"): Peers(goal=Figures(32_000_000), tflm=Figures(88_732_905)),
    ("vww", "float32"): Peers(goal=Figures(24_000_000), tflm=Figures(80_595_760)),
}
