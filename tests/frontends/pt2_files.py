"""A tiny `.pt2`, taken apart and put together again: what the tests of damaged and evil files start from."""

from __future__ import annotations

import copy
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import torch

PROGRAM, SAMPLES = "models/model.json", "data/sample_inputs/model.pt"
WEIGHTS, CONSTANTS = "data/weights/model_weights_config.json", "data/constants/model_constants_config.json"


class Tiny(torch.nn.Module):
    """A parameter, a buffer that changes, a constant, and outputs in a dict and a list."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)
        self.register_buffer("count", torch.zeros(1, 3))
        self.offset = torch.tensor([1.0, 2.0, 3.0])

    def forward(self, x: torch.Tensor) -> dict[str, Any]:
        self.count.add_(1)
        return {"y": torch.relu(self.layer(x)) + self.count + self.offset * 2, "z": list(x.split(2, 1))}


class Pt2:
    """The members of a `.pt2`, to be changed. `program`, `weights` and `constants` are its JSON."""

    def __init__(self, members: dict[str, bytes]) -> None:
        self.members = members
        self.program = json.loads(members[PROGRAM])
        self.weights = json.loads(members[WEIGHTS])
        self.constants = json.loads(members[CONSTANTS])

    @staticmethod
    def read(file: Path | io.BytesIO) -> Pt2:
        with zipfile.ZipFile(file) as archive:
            return Pt2({n.partition("/")[2]: archive.read(n) for n in archive.namelist()})

    def copy(self) -> Pt2:
        return copy.deepcopy(self)

    @property
    def graph(self) -> Any:
        return self.program["graph_module"]["graph"]

    @property
    def signature(self) -> Any:
        return self.program["graph_module"]["module_call_graph"][0]["signature"]

    def write(self, path: Path, compression: int = zipfile.ZIP_STORED) -> Path:
        changed = {PROGRAM: self.program, WEIGHTS: self.weights, CONSTANTS: self.constants}
        members = self.members | {name: json.dumps(value).encode() for name, value in changed.items()}
        with zipfile.ZipFile(path, "w", compression) as archive:
            for name, raw in members.items():
                archive.writestr(f"tiny/{name}", raw)
        return path


def tiny() -> Pt2:
    torch.manual_seed(0)
    raw = io.BytesIO()
    torch.export.save(torch.export.export(Tiny().eval(), (torch.ones(1, 4),)), raw)
    return Pt2.read(raw)
