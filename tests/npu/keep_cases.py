"""Choose the files of payloads/: of each kind of graph a small one, with its inputs and expected outputs in one file.

    python -m tests.npu.keep_cases     with the Python of Vela's environment

They were made by Vela 5.2.0 and the TOSA reference model of tosa-tools 2026.8.0.
"""

from __future__ import annotations

import tempfile
import zipfile
from pathlib import Path

from tests.npu.tosa_cases import SYSTEMS, make
from tests.npu.tosa_kinds import KINDS

FOLDER = Path(__file__).parent / "payloads"
ONLY_U85 = ("resize", "reverse", "bits", "compare", "gather", "argmax")
CHOSEN = {"conv": "ethos-u65-512", "chain": "ethos-u85-512", "max_pool_steps": "ethos-u85-128"}
SIZE = 10500  # bytes that a file shall have about: some weights, not many
UNREAD = ("scratch_shape.npy", "scratch_fast_shape.npy", "scratch_fast_region.npy", "operators.npy")


def accelerator_for(kind: str, i: int) -> str:
    names = list(SYSTEMS)
    return CHOSEN.get(kind) or (names[6 + i % 5] if kind in ONLY_U85 else names[i % len(names)])


def keep(payload: Path, io: Path, path: Path) -> None:
    with zipfile.ZipFile(path, "w") as kept:
        for file in (payload, io):
            with zipfile.ZipFile(file) as archive:
                for name in sorted(archive.namelist()):
                    if name not in UNREAD and "quantization" not in name and "variable" not in name:
                        entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                        kept.writestr(entry, archive.read(name), zipfile.ZIP_DEFLATED, 9)


def main() -> None:
    for i, kind in enumerate(KINDS):
        accelerator = accelerator_for(kind, i)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            for seed in range(12):
                make(folder, kind, seed, accelerator)
            found = [path for path in folder.glob("*.npz") if not path.name.endswith(".io.npz")]
            best = min(
                found, key=lambda path: abs(path.stat().st_size - SIZE) + path.with_suffix(".io.npz").stat().st_size
            )
            keep(best, best.with_suffix(".io.npz"), FOLDER / f"{kind}-{accelerator}.npz")


if __name__ == "__main__":
    main()
