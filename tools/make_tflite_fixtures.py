"""Write the small `.tflite` files in tests/frontends/data, made by converters of others.

    python tools/make_tflite_fixtures.py [folder]

Makes environments of its own for litert-torch and tensorflow, 2 GB each. The files are not the same on every run:
weights and scales depend on the last bits of what these packages compute.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.frontends.environments import KERAS, LITERT_TORCH, convert  # noqa: E402


def make(folder: Path) -> None:
    convert("litert.py", LITERT_TORCH, str(ROOT / "zoo" / "kws.py"), str(folder / "kws_int8.tflite"), "--int8")
    convert("keras.py", KERAS, str(folder / "lstm_int8.tflite"), "--int8")
    convert("keras.py", KERAS, str(folder / "lstm.tflite"))


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "tests" / "frontends" / "data")
