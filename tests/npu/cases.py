"""Graphs that Vela has compiled, with inputs and what Arm's TOSA reference model answers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from baretorch.machines.npu.interpreter import run_payload
from baretorch.npu.payload import Payload, read_payload

FOLDER = Path(__file__).parent / "payloads"
FILES = [file for file in sorted(FOLDER.glob("*.npz")) if "y0" in np.load(file).files]  # others have no answers


@dataclass(frozen=True)
class Case:
    payload: Payload
    inputs: tuple[bytes, ...]
    right: np.ndarray[Any, Any]

    def answer(self) -> np.ndarray[Any, Any]:
        (data,) = run_payload(self.payload, self.inputs)
        return np.frombuffer(data, self.right.dtype).reshape(self.right.shape)


def read_case(payload: Path, io: Path | None = None) -> Case:
    with np.load(io or payload) as file:
        names = sorted(name for name in file.files if name[0] == "x" and name[1:].isdigit())
        return Case(read_payload(payload.read_bytes()), tuple(file[name].tobytes() for name in names), file["y0"])


def kept(name: str) -> Case:
    return read_case(FOLDER / f"{name}.npz")
