"""Damage to the arguments of operators in a `.pte`: other kinds, other values, others in number and order."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from baretorch.frontends.flatbuffer import Bytes, Table
from baretorch.frontends.pte.schema import IDENTIFIER

KINDS = {1: "None", 2: "int", 3: "bool", 4: "float", 5: "Tensor", 6: "str", 7: "int[]", 10: "Tensor[]", 11: "Tensor?[]"}


@dataclass(frozen=True)
class PteCall:
    """A call of an operator: where its list of arguments is in the file (a count, then values by number), and where
    the byte is that says of each value what kind it is."""

    operator: str
    at: int
    arguments: tuple[int, ...]
    kinds_at: tuple[int, ...]


def calls(data: bytes) -> Iterator[PteCall]:
    """Find all calls of a sound file."""
    file = Bytes(data, ".pte", IDENTIFIER, "an ExecuTorch program")
    root = Table(file, file.integer("I", 0))
    for plan in root.tables(1):
        kinds = [v.at(0) for v in plan.tables(2)]
        names = [o.text(0) for o in plan.tables(6)]
        for instruction in (i for chain in plan.tables(5) for i in chain.tables(2)):
            kind, call = instruction.union(0)
            at = call._target(1)
            if kind == 1 and at is not None:
                found = call.integers(1, "i")
                places = tuple(p for p in (kinds[i] for i in found) if p is not None)
                assert len(places) == len(found)
                yield PteCall(names[call.integer(0, "i")], at, found, places)


def with_kind(data: bytes, call: PteCall, argument: int, kind: int) -> bytes:
    """Return the file with an argument of another kind."""
    at = call.kinds_at[argument]
    return data[:at] + bytes([kind]) + data[at + 1 :]


def with_arguments(data: bytes, call: PteCall, arguments: tuple[int, ...]) -> bytes:
    """Return the file with other arguments, of which there are not more than before."""
    made = bytearray(data)
    struct.pack_into(f"<I{len(arguments)}i", made, call.at, len(arguments), *arguments)
    return bytes(made)


def retyped(data: bytes, rng: random.Random) -> bytes:
    """Change the arguments of one or two calls."""
    found = [c for c in calls(data) if len(c.arguments) > 1]
    for call in rng.sample(found, min(len(found), rng.randint(1, 2))):
        arguments, at = list(call.arguments), rng.randrange(len(call.arguments))
        match rng.randrange(4):
            case 0:
                data = with_kind(data, call, at, rng.choice([*KINDS, 8, 9, 12]))
                continue
            case 1:
                del arguments[at]
            case 2:
                arguments[at] = rng.choice(rng.choice(found).arguments)
            case _:
                other = rng.randrange(len(arguments))
                arguments[at], arguments[other] = arguments[other], arguments[at]
        data = with_arguments(data, call, tuple(arguments))
    return data
