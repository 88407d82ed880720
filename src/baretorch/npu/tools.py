"""Where Arm's programs are: Vela, and beside it in tests the TOSA reference model.

They cannot share an environment with everything that Baretorch can: their NumPy types are pinned. So a second
environment may have them: one below ours, called `vela`, or whichever the environment variable names.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from baretorch.errors import CompileError

VARIABLE = "BARETORCH_VELA"


def find(program: str) -> Path | None:
    """A program, in the folder that the variable names, in this environment, in the one below it, or on PATH."""
    folders = [Path(sys.executable).parent, Path(sys.prefix) / "vela" / "bin"]
    if named := os.environ.get(VARIABLE):
        folders = [Path(named), Path(named) / "bin"]
        if not folders[0].is_dir():
            raise CompileError(
                f"{VARIABLE} names no folder", have=named, need="an environment that has Vela, or its bin"
            )
    for folder in folders:
        if (folder / program).is_file():
            return folder / program
    found = None if named else shutil.which(program)
    return Path(found) if found else None
