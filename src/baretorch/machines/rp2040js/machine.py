"""Run an image on rp2040js, in a process of node."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from baretorch.firmware.boot import check_rp2040
from baretorch.firmware.types import Image
from baretorch.firmware.uf2 import decode_uf2, flash_contents
from baretorch.machines.code import read_code
from baretorch.machines.process import Process
from baretorch.machines.rp2040js.attached import Attached, AttachedEvents
from baretorch.machines.rp2040js.node import find_node, find_package
from baretorch.machines.types import Block, Cores

PROGRAM = Path(__file__).parent / "js" / "main.mjs"


class Rp2040JsMachine(Process):
    """An image on rp2040js; js/ is the process, and counts."""

    name = "rp2040js"

    def __init__(
        self,
        image: Image,
        run_symbol: str,
        quad: bool = True,
        app: bool = False,
        attached: Attached | None = None,
        gdb: Path | None = None,
    ) -> None:
        """Start node.

        Unless `quad`, its flash chip cannot be read with four lines. An image with an `app` may have a camera and a
        display `attached`, and does not use frames. At the socket `gdb` it waits for a debugger before the first
        instruction, and a Ctrl-C at the terminal does not reach it.
        """
        node, library = find_node(), find_package()
        chip, uf2 = image.board.chip, image.uf2
        assert uf2 is not None and chip.uf2_family is not None  # targets/checks.py
        check_rp2040(flash_contents(decode_uf2(uf2.read_bytes()), chip.uf2_family))
        code = read_code(image, run_symbol)
        self._counts = tempfile.TemporaryFile()  # noqa: SIM115
        self.events = AttachedEvents()
        about = {
            "library": str(library),
            "uf2": str(uf2.absolute()),
            "counts": self._counts.fileno(),
            "quad": quad,
            "usb": image.board.usb is not None,
            "cores": image.cores,
            "code": [code.addresses.start, code.addresses.stop],
            "run": code.run,
            "returned": code.returned,
            "home": code.home,
            "core1_home": code.core1_home,
            "meets": [address for function in code.meets for address in function],
            "app": app,
            "gdb": str(gdb) if gdb else None,
            "attached": attached.about(image.board, self.events.file.fileno()) if attached else None,
        }
        files = (self._counts, self.events.file)
        super().__init__([node, str(PROGRAM), json.dumps(about)], inherit=files, keep=files, apart=gdb is not None)
        self._counted: dict[str, Any] = {"instructions": [], "cycles": [], "flash": "", "cores": [], "rows": []}

    def instructions(self) -> tuple[int, ...]:
        return tuple(self._read()["instructions"])

    def cycles(self) -> tuple[int, ...]:
        return tuple(self._read()["cycles"])

    def cores(self) -> Cores | None:
        each = self._read()["cores"]
        if len(each) < 2:
            return None
        path = each[0]["path"]
        return Cores(
            instructions=tuple(core["instructions"] for core in each),
            critical_path=path,
            waiting=tuple(max(0, path - (core["instructions"] - core["met"])) for core in each),
        )

    def blocks(self) -> tuple[Block, ...]:
        return tuple(Block(*row) for row in self._read()["rows"])

    def flash_command(self) -> str:
        """Return the command with which flash was read in the last call."""
        return str(self._read()["flash"])

    def _read(self) -> dict[str, Any]:
        """Read what the process wrote at the end of the last call."""
        if not self._counts.closed:
            written = os.pread(self._counts.fileno(), os.fstat(self._counts.fileno()).st_size, 0)
            self._counted = json.loads(written) if written else self._counted
        return self._counted
