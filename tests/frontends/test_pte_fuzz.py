"""Damaged .pte files: read or refused with a CompileError, in little time and memory; nothing else happens."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

COUNT = 1300


def test_damaged_files_are_read_or_refused() -> None:
    script = Path(__file__).with_name("pte_fuzz.py")
    run = subprocess.run([sys.executable, str(script), str(COUNT)], capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    read, refused = map(int, run.stdout.split())
    assert read + refused >= 9 * COUNT
    assert refused > 9 * COUNT / 3  # the damage is real …
    assert read > COUNT / 4  # … and not so gross that only the first check is tried
