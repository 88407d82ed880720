"""Find Arm's programs: Vela, and for tests the TOSA reference model.

Their NumPy versions are pinned, so they cannot share an environment with Baretorch's other dependencies. They may be in
a second environment: `vela` in Baretorch's, or the one that the environment variable names.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from baretorch.errors import CompileError

VARIABLE = "BARETORCH_VELA"


def find(program: str) -> Path | None:
    """Return the path of a program: in the folder that the variable names, in this environment, in the one inside it,
    or on PATH."""
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
