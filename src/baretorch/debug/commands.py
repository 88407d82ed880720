"""Commands for gdb, which runs this file. Other modules cannot import it.

baretorch-model FILE       load the model that debug.json describes; debug.hex next to it has the reference's values
layers                     list all layers, and mark the program's position
break-layer NAME           set a breakpoint before a layer, or before the first layer of a module
print-tensor NAME [compare]   print a tensor of the arena, and compare it with the reference's value
"""

from __future__ import annotations

import json
import os
import struct
from typing import Any, NamedTuple

import gdb

CODES = {"float32": "f", "int8": "b", "uint8": "B", "int16": "h", "int32": "i", "int64": "q", "bool": "?"}


class Position(NamedTuple):
    """The program's position in a run: before a step, or inside it."""

    step: int
    inside: bool


class DebuggedModel:
    """The model as described in debug.json."""

    def __init__(self, path: str) -> None:
        with open(path, encoding="utf-8") as file:
            facts = json.load(file)
        self.name: str = facts["model"]
        self.run: str = facts["run"]
        self.source: str = facts["source"]
        self.layers: list[dict[str, Any]] = facts["layers"]
        self.tensors: list[dict[str, Any]] = facts["tensors"]
        self.values = os.path.join(os.path.dirname(path), "debug.hex")

    def steps(self, name: str) -> list[int]:
        """Return the steps of a layer, of a module, or of the layer that computes a tensor."""
        found = [i for i, row in enumerate(self.layers) if name in (row["name"], row["makes"])]
        inner = [i for i, row in enumerate(self.layers) if row["name"].startswith(f"{name}.")]
        if not found and not inner:
            raise gdb.GdbError(f"{self.name} has no layer {name}; `layers` lists them")
        return found or inner

    def tensor(self, name: str) -> dict[str, Any]:
        """Return the tensor of this name, or the last tensor of the layer of this name."""
        named = [row for row in self.tensors if row["name"] == name]
        made = sorted((row for row in self.tensors if row["layer"] == name), key=lambda row: int(row["made"]))
        if not named and not made:
            raise gdb.GdbError(f"{self.name} has no tensor {name} in RAM; `layers` lists them")
        return (named or made)[-1]

    def position(self) -> Position | None:
        """Return the position in the run; None outside of a run."""
        frame, inside = gdb.newest_frame(), False
        while frame is not None:
            function = frame.function()
            if function is not None and function.name in (self.run, f"{self.run}_in"):
                line = frame.find_sal().line
                lines = [row["line"] for row in self.layers]
                if line in lines:
                    return Position(lines.index(line), inside)
                return Position(sum(one < line for one in lines), False)
            frame, inside = frame.older(), True
        return None


def current_model() -> DebuggedModel:
    if not MODELS:
        raise gdb.GdbError("first `baretorch-model` and the path of debug.json")
    return MODELS[-1]


MODELS: list[DebuggedModel] = []


class Load(gdb.Command):  # type: ignore[misc]
    """baretorch-model FILE: load the model that a debug.json describes."""

    def __init__(self) -> None:
        super().__init__("baretorch-model", gdb.COMMAND_FILES, gdb.COMPLETE_FILENAME)

    def invoke(self, argument: str, from_tty: bool) -> None:
        try:
            MODELS.append(DebuggedModel(os.path.expanduser(argument)))
        except (OSError, ValueError, KeyError) as error:
            raise gdb.GdbError(f"{argument}: {error}") from None


class Layers(gdb.Command):  # type: ignore[misc]
    """layers: list all layers of the model in their order, and mark the program's position."""

    def __init__(self) -> None:
        super().__init__("layers", gdb.COMMAND_STATUS)

    def invoke(self, argument: str, from_tty: bool) -> None:
        model = current_model()
        where = model.position()
        for i, row in enumerate(model.layers):
            mark = ("*" if where.inside else ">") if where is not None and where.step == i else " "
            tensor = next((t for t in model.tensors if t["name"] == row["makes"]), None)
            print(f"{mark} {i + 1:3} {row['name']}: {row['operator']} -> {kind(tensor) if tensor else row['makes']}")


class BreakLayer(gdb.Command):  # type: ignore[misc]
    """break-layer NAME: set a breakpoint before a layer, or before the first layer of a module."""

    def __init__(self) -> None:
        super().__init__("break-layer", gdb.COMMAND_BREAKPOINTS)

    def invoke(self, argument: str, from_tty: bool) -> None:
        model = current_model()
        row = model.layers[model.steps(argument.strip())[0]]
        gdb.Breakpoint(f"{model.source}:{row['line']}")

    def complete(self, text: str, word: str) -> list[str]:
        return complete(text, word, [row["name"] for row in current_model().layers])


class PrintTensor(gdb.Command):  # type: ignore[misc]
    """print-tensor NAME [compare]: print a tensor of the arena, by its name or its layer's. `compare` also compares it
    with the reference's value. `set print elements` limits the number of values that are shown."""

    def __init__(self) -> None:
        super().__init__("print-tensor", gdb.COMMAND_DATA)

    def invoke(self, argument: str, from_tty: bool) -> None:
        model = current_model()
        words = argument.split()
        compare = len(words) == 2 and words[1] == "compare"
        if not words or len(words) > 1 + compare:
            raise gdb.GdbError("print-tensor NAME, or print-tensor NAME compare")
        row = model.tensor(words[0])
        code = f"<{size_of(row)}{CODES[row['type']]}"
        address = int(gdb.parse_and_eval(f"(unsigned long)&{row['symbol']}")) + row["offset"]
        raw = bytes(gdb.selected_inferior().read_memory(address, struct.calcsize(code)))
        numbers = struct.unpack(code, raw)
        print(f"{row['layer']}  {kind(row)}  at {row['symbol']} + {row['offset']} = {address:#x}")
        if doubt := presence(model, row):
            print(doubt)
        print(format_nested(numbers, row["shape"], limit()))
        if compare:
            with open(model.values, encoding="ascii") as file:
                file.seek(2 * row["value"])
                print(difference(numbers, struct.unpack(code, bytes.fromhex(file.read(2 * len(raw)))), row))

    def complete(self, text: str, word: str) -> list[str]:
        return complete(text, word, [name for row in current_model().tensors for name in (row["name"], row["layer"])])


def complete(text: str, word: str, names: list[str]) -> list[str]:
    """Return the completions of the last word, as gdb expects them: its words end at dots."""
    start = len(text) - len(word)
    return sorted({name[start:] for name in names if name.startswith(text)})


def kind(row: dict[str, Any]) -> str:
    scale = "" if row["scale"] is None else f" scale {row['scale']!r} zero point {row['zero_point']}"
    return f"{row['type']}{row['shape']}{scale}"


def size_of(row: dict[str, Any]) -> int:
    count = 1
    for n in row["shape"]:
        count *= n
    return count


def presence(model: DebuggedModel, row: dict[str, Any]) -> str:
    """Return a note if the bytes may not be the tensor now."""
    where = model.position()
    if where is None:
        return "" if row["until"] >= len(model.layers) else "its bytes may hold something else: no run is going on"
    if where.step <= row["made"]:
        maker = model.layers[row["made"]]["name"]
        return f"it is not there yet: {maker} makes it, which is layer {row['made'] + 1}"
    if where.step > row["until"]:
        return f"its bytes may hold something else: layer {row['until'] + 1} was the last to need it"
    if where.inside and where.step == row["until"]:
        return f"layer {where.step + 1} is running and may write over it"
    return ""


def limit() -> int:
    found = gdb.parameter("print elements")
    return int(found) if found else 1 << 62


def format_nested(numbers: tuple[Any, ...], shape: list[int], most: int) -> str:
    """Format as Python formats lists; `...` replaces what exceeds the limit."""

    def part(at: int, dims: list[int]) -> str:
        if not dims:
            return f"{numbers[at]:.9g}" if isinstance(numbers[at], float) else str(numbers[at])
        step = 1
        for n in dims[1:]:
            step *= n
        rows = [part(at + i * step, dims[1:]) for i in range(dims[0]) if at + i * step < most]
        return f"[{', '.join([*rows, *(['...'] if len(rows) < dims[0] else [])])}]"

    return part(0, list(shape))


def difference(have: tuple[Any, ...], want: tuple[Any, ...], row: dict[str, Any]) -> str:
    apart = [i for i, (a, b) in enumerate(zip(have, want)) if a != b and not (a != a and b != b)]  # noqa: B905
    if not apart:
        return f"all {len(have)} numbers are the reference's"
    worst = max(apart, key=lambda i: abs(have[i] - want[i]))
    index: list[int] = []
    rest = worst
    for n in reversed(row["shape"]):
        index.insert(0, rest % n)
        rest //= n
    most = max(abs(b) for b in want)
    return (
        f"{len(apart)} of {len(have)} numbers differ from the reference's, most at {index}: {have[worst]:.9g}, not "
        f"{want[worst]:.9g} (the largest is {most:.9g})"
    )


Load()
Layers()
BreakLayer()
PrintTensor()
