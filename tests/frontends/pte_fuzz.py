"""Read many damaged `.pte` files in a process of limited memory; run by test_pte_fuzz.py.

    python pte_fuzz.py <files per fixture>

Each is read, lowered and optimized. Prints how many were read and how many refused, then or later. Any exception
but CompileError ends it with a traceback.
"""

from __future__ import annotations

import random
import resource
import struct
import sys
import time
from dataclasses import replace
from pathlib import Path

from baretorch.errors import CompileError
from baretorch.frontends import shared_state
from baretorch.frontends.aten import to_graph
from baretorch.frontends.pte import read_pte_methods
from baretorch.pipeline import optimized

SECONDS = 0.5
MEMORY = 512 << 20
EXTREME = (0, 1, 2, 0x7F, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFC, 0xFFFFFFFF)


def flip_bits(data: bytearray, rng: random.Random) -> bytearray:
    for _ in range(rng.randint(1, 8)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return data


def cut(data: bytearray, rng: random.Random) -> bytearray:
    return data[: rng.randrange(len(data))]


def extreme_values(data: bytearray, rng: random.Random) -> bytearray:
    for _ in range(rng.randint(1, 3)):
        at = 4 * rng.randrange(len(data) // 4)
        struct.pack_into("<I", data, at, rng.choice(EXTREME))
    return data


def nudge(data: bytearray, rng: random.Random) -> bytearray:
    """Change a small number a little: offsets, lengths and indices that are off by one."""
    small = [at for at in range(0, len(data) - 3, 4) if 0 < struct.unpack_from("<I", data, at)[0] < 4096]
    at = rng.choice(small)
    struct.pack_into("<I", data, at, max(0, struct.unpack_from("<I", data, at)[0] + rng.choice((-4, -1, 1, 4))))
    return data


def splice(data: bytearray, rng: random.Random) -> bytearray:
    """Copy one place of the file over another, or take a piece out."""
    size = rng.randint(1, 256)
    a, b = rng.randrange(len(data)), rng.randrange(len(data))
    if rng.random() < 0.5:
        piece = data[a : a + size]
        data[b : b + len(piece)] = piece
    else:
        del data[a : a + size]
    return data


def main(count: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    rng = random.Random(20261115)
    read = refused = 0
    for file in sorted((Path(__file__).parent / "data").glob("*.pte")):
        base = file.read_bytes()
        structure = base[: struct.unpack_from("<Q", base, 16)[0]]  # without the weights, which are just bytes
        for i in range(count):
            mutate = rng.choice((flip_bits, flip_bits, cut, extreme_values, nudge, splice))
            damaged = bytes(mutate(bytearray(structure), rng)) + (b"" if mutate is cut else base[len(structure) :])
            began = time.process_time()
            try:
                programs = shared_state(read_pte_methods(damaged, file.stem))
                read += 1
                for program in programs.values():
                    optimized(to_graph(replace(program, file=file.name)))
            except CompileError as error:
                assert error.render().startswith("error: ")
                refused += 1
            except BaseException:
                print(f"{file.name}, damage {i} by {mutate.__name__}", file=sys.stderr)
                raise
            assert time.process_time() - began < SECONDS, f"{file.name}, damage {i} takes too long"
    print(read, refused)


if __name__ == "__main__":
    main(int(sys.argv[1]))
