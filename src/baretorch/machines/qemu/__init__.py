"""Run images on QEMU's machines, with an emulated NPU attached from outside."""

from __future__ import annotations

from baretorch.machines.gdb import serve, stop_at_faults
from baretorch.machines.qemu.machine import QemuMachine, find_qemu
from baretorch.machines.types import Driver, Tool

DRIVER = Driver(
    lambda image, run_symbol, timed: QemuMachine(image, run_symbol),
    need=find_qemu,
    debug=lambda image, run_symbol, path: serve(
        QemuMachine(image, run_symbol, path), path, stop_at_faults(image.board)
    ),
    tools=(
        Tool("qemu-system-arm", "program", "emulates the MPS2 and MPS3 boards", "apt-get install qemu-system-arm"),
        Tool("qemu-system-riscv32", "program", "emulates RISC-V boards", "apt-get install qemu-system-misc"),
    ),
)
