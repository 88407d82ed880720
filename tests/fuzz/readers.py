"""List what Baretorch reads from files and wires: valid examples, how to damage them, and how to read the result."""

from __future__ import annotations

import io
import json
import random
import shutil
import subprocess
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from baretorch.errors import CompileError
from baretorch.explore.check import read_baseline, read_checks
from baretorch.firmware.chunks import Chunk, load_chunks
from baretorch.firmware.elf import read_elf
from baretorch.firmware.uf2 import RP2040, RP2350_ARM, check_uf2, encode_uf2
from baretorch.frontends.aten.methods import share_state
from baretorch.frontends.aten.program import check_program_sizes
from baretorch.frontends.aten.table import to_graph
from baretorch.frontends.pte.reader import read_pte_methods
from baretorch.frontends.source import random_inputs
from baretorch.frontends.tflite import source
from baretorch.ir.graph import interpret
from baretorch.ir.text import to_text
from baretorch.machines.frames import KINDS, Decoder, Frame, encode_frame
from baretorch.passes.order import lower_graph
from baretorch.targets.boards import load_board
from tests.fuzz.mutate import damaged_bytes, damaged_json, damaged_text, json_text
from tests.fuzz.retype import retyped
from tests.graph_text import parse

DATA = Path(__file__).parents[1] / "frontends" / "data"
ETHOS_U = Path(__file__).parents[1] / "npu" / "executorch"
BOARDS = Path(__file__).parents[2] / "src" / "baretorch" / "boards"
SOURCE = "int a = 1, b; int f(int x) { return x + a; } int main(void) { return f(b); } void _start(void) { main(); }"


@dataclass(frozen=True)
class Reader:
    """`make` damages one of the sound files; `read` reads it, to its end."""

    make: Callable[[random.Random], bytes]
    read: Callable[[bytes], object]
    seconds: float = 1.0  # of processor time for one file


@cache
def ptes() -> tuple[bytes, ...]:
    """Return files of several versions of ExecuTorch; those of float16 are among them."""
    return tuple(file.read_bytes() for file in sorted(DATA.rglob("*.pte")))


def make_pte(rng: random.Random) -> bytes:
    base = rng.choice(ptes())
    if rng.random() < 0.25:
        return retyped(base, rng)
    size = int.from_bytes(base[16:24], "little")  # of the structure; behind it are weights, which are just bytes
    return damaged_bytes(base[:size], rng) + base[size:]


def read_pte(data: bytes) -> None:
    programs = share_state(read_pte_methods(data, "fuzz"))
    for program in programs.values():
        check_program_sizes(program)
        lower_graph(to_graph(replace(program, file="fuzz.pte")))


@cache
def ethos_us() -> tuple[bytes, ...]:
    return tuple(file.read_bytes() for file in sorted(ETHOS_U.glob("*.pte")))


def read_ethos_u(data: bytes) -> None:
    """Read the file like `read_pte`, and run the result on the emulated NPU."""
    for program in share_state(read_pte_methods(data, "fuzz")).values():
        check_program_sizes(program)
        graph = lower_graph(to_graph(replace(program, file="fuzz.pte")))
        interpret(graph, random_inputs((t.shape, t.dtype) for t in graph.of(graph.inputs)))


@cache
def tflites() -> tuple[bytes, ...]:
    from tests.frontends.signal_files import preprocessor
    from tests.frontends.tflite_cases import Case
    from tests.frontends.tflite_move_cases import CASES
    from tests.frontends.tflite_sixteen_cases import EXACT, ONE_STEP, svdf_of_bytes

    sixteen = (Case("sixteen", build) for build in (*EXACT.values(), *ONE_STEP.values(), svdf_of_bytes))
    return (*(case.bytes() for case in (*CASES, *sixteen)), *[preprocessor()] * (len(CASES) // 10))


def read_tflite(data: bytes) -> None:
    lower_graph(source.read_tflite(data, "fuzz").graph)


@cache
def tomls() -> tuple[tuple[str, str], ...]:
    pairs = []
    for board in sorted(BOARDS.glob("*.toml")):
        text = board.read_text()
        chip = text.split('chip = "', 1)[1].split('"', 1)[0]
        pairs.append(
            (text.replace(f'chip = "{chip}"', 'chip = "chip"'), (BOARDS / "chips" / f"{chip}.toml").read_text())
        )
    return tuple(pairs)


def make_toml(rng: random.Random) -> bytes:
    texts = list(rng.choice(tomls()))
    which = rng.randrange(2)
    if rng.random() < 0.2:
        raw = [text.encode() for text in texts]
        raw[which] = damaged_bytes(raw[which], rng)
        return b"\xff\xfe".join(raw)
    texts[which] = damaged_text(texts[which], rng)
    return b"\xff\xfe".join(text.encode("utf-8", "surrogatepass") for text in texts)


def read_toml(data: bytes) -> None:
    board, _, chip = data.partition(b"\xff\xfe")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "board.toml").write_bytes(board)
        (Path(folder) / "chip.toml").write_bytes(chip)
        load_board(str(Path(folder) / "board.toml"))


@cache
def uf2s() -> tuple[bytes, ...]:
    chunks = (Chunk(0x10000000, bytes(range(256)) * 5), Chunk(0x10002000, b"end"))
    return encode_uf2(chunks, RP2040), encode_uf2(chunks, RP2350_ARM)


def read_uf2(data: bytes) -> None:
    chip, other = (load_board(board).chip for board in ("pico", "pico2w"))
    try:
        check_uf2(data, chip)
    except CompileError:
        check_uf2(data, other)


@cache
def elfs() -> tuple[bytes, ...]:
    made = []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a.c").write_text(SOURCE)
        for compiler in filter(shutil.which, ("arm-none-eabi-gcc", "riscv64-unknown-elf-gcc", "cc")):
            flags = ("-O1", "-nostdlib", "-static", "-ffreestanding", "-Wl,--emit-relocs", "-Wl,--build-id=none")
            subprocess.run([compiler, *flags, "a.c", "-o", "a.elf"], cwd=folder, check=True, capture_output=True)
            made.append((Path(folder) / "a.elf").read_bytes())
    assert made
    return tuple(made)


def read_elf_whole(data: bytes) -> None:
    elf = read_elf(data)
    load_chunks(elf)
    for symbol in elf.symbols:
        section = elf.section_at(symbol.address)
        if section is not None and section.data:
            elf.bytes_at(symbol.address, min(symbol.size, 64))


def make_frames(rng: random.Random) -> bytes:
    parts = []
    for _ in range(rng.randint(1, 6)):
        parts.append(rng.randbytes(rng.randrange(20)))
        frame = encode_frame(Frame(rng.choice(KINDS), rng.randrange(256), rng.randbytes(rng.randrange(200))))
        parts.append(damaged_bytes(frame, rng) if rng.random() < 0.5 else frame)
    return b"".join(parts)


def read_frames(data: bytes) -> None:
    rng = random.Random(len(data))
    decoder = Decoder(4096)
    items: list[Any] = []
    at = 0
    while at < len(data):
        size = rng.randint(1, 64)
        items += decoder.feed(data[at : at + size])
        at += size
    items += decoder.give_up()
    assert b"".join(encode_frame(i) if isinstance(i, Frame) else i for i in items) == data, "bytes are lost"


@cache
def graphs() -> tuple[str, ...]:
    return tuple(
        to_text(to_graph(program)) for raw in ptes() for program in share_state(read_pte_methods(raw, "fuzz")).values()
    )


def read_graph(data: bytes) -> None:
    parse(data.decode("utf-8", "surrogatepass"))


@cache
def pt2() -> dict[str, bytes]:
    from tests.frontends.pt2_files import tiny

    return dict(tiny().members)


def make_pt2(rng: random.Random) -> bytes:
    members = dict(pt2())
    what = rng.random()
    name = rng.choice([n for n in members if members[n]])
    if what < 0.5:
        name = rng.choice([n for n in members if n.endswith(".json")])
        members[name] = json_text(damaged_json(json.loads(members[name]), rng))
    elif what < 0.7:
        members[name] = damaged_bytes(members[name], rng)
    elif what < 0.75:
        del members[name]
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        for member, content in members.items():
            archive.writestr(f"tiny/{member}", content)
    return damaged_bytes(raw.getvalue(), rng) if what >= 0.75 else raw.getvalue()


def read_pt2(data: bytes) -> None:
    """Read the file, and compile one in four, which is slow because torch does most of the work."""
    from baretorch import frontends
    from baretorch.frontends.pt2.reader import load_program

    with tempfile.NamedTemporaryFile(suffix=".pt2") as file:
        file.write(data)
        file.flush()
        if zlib.crc32(data) % 4:
            load_program(Path(file.name))
        else:
            lower_graph(frontends.load(file.name).graph)


def make_onnx(rng: random.Random) -> bytes:
    from tests.fuzz.onnx_files import make_onnx

    return make_onnx(rng)


def read_onnx(data: bytes) -> None:
    from tests.fuzz.onnx_files import read_onnx

    read_onnx(data)


CHECKS = """tolerance = 1.5
[[model]]
file = "net.py"
name = "net"
board = "mps2-an386"
int8 = true
keep_float = ["head", "neck"]
ram = 20_000
at_most = { flash = 65_536, ram = 2e4, time_ms = 12.5 }
at_least = { accuracy = 0.95 }
target_samples = 20
[[model]]
file = "models/net.tflite"
board = "boards/mine.toml"
config = "tuned.toml"
shape = { x = "1,3,96,96" }
"""
BASELINE = """{"about": "Made by Baretorch check --update. Commit this file.", "version": 1, "models": {
"net": {"flash": 10456, "ram": 892, "instructions": 986, "time_ms": 0.015873}, "other": {"flash": 1}}}
"""


def make_check(rng: random.Random) -> bytes:
    """Damage the list of models or the baseline; its first byte is a brace."""
    text = damaged_text(rng.choice((CHECKS, CHECKS, BASELINE)), rng).encode("utf-8", "surrogatepass")
    return damaged_bytes(text, rng) if rng.random() < 0.2 else text


def read_check(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "check"
        path.write_bytes(data)
        read_baseline(path) if data[:1] == b"{" else read_checks(path)


READERS = {
    "pte": Reader(make_pte, read_pte),
    "ethos_u": Reader(lambda rng: damaged_bytes(rng.choice(ethos_us()), rng), read_ethos_u),
    "toml": Reader(make_toml, read_toml),
    "check": Reader(make_check, read_check),
    "uf2": Reader(lambda rng: damaged_bytes(rng.choice(uf2s()), rng), read_uf2),
    "elf": Reader(lambda rng: damaged_bytes(rng.choice(elfs()), rng), read_elf_whole),
    "frames": Reader(make_frames, read_frames),
    "graph": Reader(lambda rng: damaged_text(rng.choice(graphs()), rng).encode("utf-8", "surrogatepass"), read_graph),
    "tflite": Reader(lambda rng: damaged_bytes(rng.choice(tflites()), rng), read_tflite),
    "onnx": Reader(make_onnx, read_onnx),
    "pt2": Reader(make_pt2, read_pt2, seconds=10.0),
}
