"""Run images on rp2040js, a second emulator of the RP2040, in node."""

from __future__ import annotations

from baretorch.machines.gdb import serve
from baretorch.machines.rp2040js.machine import Rp2040JsMachine
from baretorch.machines.rp2040js.node import PACKAGE, VERSION, find_node, find_package, installed_version
from baretorch.machines.types import Driver, Tool

DRIVER = Driver(
    lambda image, run_symbol, timed: Rp2040JsMachine(image, run_symbol),
    need=lambda board: (find_node(), find_package()),
    debug=lambda image, run_symbol, path: serve(Rp2040JsMachine(image, run_symbol, gdb=path), path),
    usb=True,
    tools=(
        Tool("node", "program", "runs rp2040js", "apt-get install nodejs npm"),
        Tool(
            PACKAGE,
            "npm",
            "emulates the RP2040, as a second opinion",
            f"npm install --global {PACKAGE}@{VERSION}",
            find=installed_version,
        ),
    ),
)
