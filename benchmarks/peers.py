"""List the figures of other systems for the same models, and our goals.

Peers: TFLM = TensorFlow Lite Micro 90b983c2 with CMSIS-NN, in int8 with int8-only registrations; ExecuTorch 1.4.1, -O2,
its best hand-pruned size. Counts are executed instructions per inference on QEMU 7.2, arm-none-eabi-gcc 12.2, second
inference. Code is .text + .rodata of the whole image without the model; RAM is .data + .bss + arena, without stack.
Figures for M0+ are of Armv6-M code on the M3 machine.
"""

from __future__ import annotations

from dataclasses import dataclass

TOOLCHAIN = "gcc"
M4F, M33, M55, M0PLUS = "mps2-an386", "mps2-an505", "mps3-an547", "mps2-an385-v6m"
STACK = 512  # goal: below


@dataclass(frozen=True)
class Figures:
    """Instructions, bytes of code and bytes of RAM; None if a figure was not measured."""

    instructions: int | None = None
    code: int | None = None
    ram: int | None = None


NOTHING = Figures()


@dataclass(frozen=True)
class Peers:
    """Our goal, and the figures of other systems. In `executorch`, constants were propagated ahead of time; `plain` is
    ExecuTorch's default export."""

    goal: Figures
    tflm: Figures = NOTHING
    executorch: Figures = NOTHING
    plain: Figures = NOTHING


# (model, dtype, board)
PEERS: dict[tuple[str, str, str], Peers] = {
    ("kws", "int8", M4F): Peers(
        goal=Figures(3_850_000, 9_000, 9_000),
        tflm=Figures(7_699_732, 53_408, 24_356),
        executorch=Figures(8_482_200, 52_016, 28_000),
    ),
    ("vww", "int8", M4F): Peers(Figures(12_000_000, 14_000, 38_000), Figures(24_101_541, 53_408, 102_244)),
    ("ic", "int8", M4F): Peers(Figures(15_000_000, 10_000, 35_000), Figures(29_863_145, 51_212, 56_532)),
    ("ad", "int8", M4F): Peers(Figures(380_000, 3_000, 900), Figures(582_863, 28_152, 2_860)),
    ("tinyrps", "int8", M4F): Peers(
        goal=Figures(9_300_000, 9_000, 20_000), executorch=Figures(16_928_320, 51_704, 44_400)
    ),
    ("mnist_mlp", "int8", M4F): Peers(goal=Figures(440_000), executorch=Figures(655_000)),
    ("sine", "int8", M4F): Peers(goal=Figures(1_500), tflm=Figures(3_498), executorch=Figures(4_200)),
    ("kws", "int8", M55): Peers(Figures(1_450_000), Figures(1_815_662)),
    ("vww", "int8", M55): Peers(Figures(5_200_000), Figures(6_557_947)),
    ("ic", "int8", M55): Peers(Figures(4_400_000), Figures(4_911_513)),
    ("ad", "int8", M55): Peers(Figures(120_000), Figures(149_924)),
    ("kws", "int8", M0PLUS): Peers(Figures(14_500_000), Figures(29_004_011)),
    ("vww", "int8", M0PLUS): Peers(Figures(43_000_000), Figures(86_903_540)),
    ("ic", "int8", M0PLUS): Peers(Figures(55_000_000), Figures(97_557_341)),
    ("ad", "int8", M0PLUS): Peers(Figures(1_100_000), Figures(1_762_907)),
    ("sine", "int8", M0PLUS): Peers(Figures(3_500), Figures(7_091)),
    ("sine", "float32", M4F): Peers(
        goal=Figures(1_200, 1_500, 200),
        tflm=Figures(3_419, 31_928, 1_112),
        executorch=Figures(7_760, 54_712, 1_400),
        plain=Figures(27_520, 224_804),
    ),
    ("softmax", "float32", M4F): Peers(goal=Figures(900), plain=Figures(2_360)),
    ("rfft512", "float32", M4F): Peers(goal=Figures(14_000)),
    ("mnist_mlp", "float32", M4F): Peers(
        goal=Figures(650_000, 2_000, 5_000),
        executorch=Figures(2_878_800, 54_712, 5_800),
        plain=Figures(21_962_000, ram=1_260_000),
    ),
    ("tinyrps", "float32", M4F): Peers(
        goal=Figures(20_000_000), executorch=Figures(612_083_320), plain=Figures(636_264_880)
    ),
    ("kws", "float32", M4F): Peers(goal=Figures(9_000_000), executorch=Figures(287_460_800)),
    ("ic", "float32", M4F): Peers(goal=Figures(32_000_000), tflm=Figures(88_732_905)),
    ("vww", "float32", M4F): Peers(goal=Figures(24_000_000), tflm=Figures(80_595_760)),
}
