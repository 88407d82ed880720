"""Reading Vela's output: what is there is found, and what is damaged is refused in words."""

from __future__ import annotations

import io
import random
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from baretorch.errors import CompileError
from baretorch.npu.accelerators import ACCELERATORS, ACCELERATORS_BY_NAME, by_config
from baretorch.npu.payload import INPUT, OUTPUT, SCRATCH, WEIGHTS, Payload, read_payload

HERE = Path(__file__).parent / "payloads"
FILE = HERE / "depthwise-ethos-u55-128.npz"  # written by Vela 5.2.0
APART = HERE.parent / "apart" / "sum-ethos-u55-256.npz"  # the same, with --separate-io-regions: two inputs, two outputs


def as_blocks(payload: Payload, commands: bytes) -> bytes:
    """Return the payload as ExecuTorch packs it."""

    def slots(name: str) -> bytes:
        each = getattr(payload, name)
        rows = (struct.pack("<9i", *s.shape, s.element, s.offset, s.region) for s in each)
        return struct.pack("<i", len(each)) + b"".join(rows)

    blocks = {
        "vela_bin_stream": b"",
        "cmd_data": commands,
        "weight_data": payload.weights,
        "scratch_size": struct.pack("<I", payload.scratch),
        "inputs": slots("inputs"),
        "outputs": slots("outputs"),
        "vela_end_stream": b"",
    }
    return b"".join(
        name.encode().ljust(16, b"\0") + struct.pack("<4I", len(data), 0, 0, 0) + data + bytes(-len(data) % 16)
        for name, data in blocks.items()
    )


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(parts: dict[str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return made.getvalue()


def npy(value: object) -> bytes:
    made = io.BytesIO()
    np.save(made, np.asarray(value))
    return made.getvalue()


def test_what_vela_writes() -> None:
    payload = read_payload(FILE.read_bytes())
    assert payload.accelerator.name == "ethos-u55-128"
    assert payload.commands[-4:] == struct.pack("<I", 0xFFFF << 16), "a stream ends with STOP"
    assert len(payload.inputs) == len(payload.outputs) == 1
    assert payload.inputs[0].element == 1
    assert payload.inputs[0].offset + payload.inputs[0].size <= payload.scratch
    assert len(payload.weights) > 10 * payload.outputs[0].shape[-1], "ten bytes of scale per channel at least"


def test_inputs_and_outputs_apart() -> None:
    payload = read_payload(APART.read_bytes())
    assert payload.accelerator.name == "ethos-u55-256"
    assert payload.commands[-4:] == struct.pack("<I", 0xFFFF << 16)
    assert [(s.region, s.offset) for s in payload.inputs] == [(INPUT, 0), (INPUT, 1024)]
    assert [(s.region, s.offset) for s in payload.outputs] == [(OUTPUT, 1024), (OUTPUT, 0)]
    assert payload.room(INPUT) == payload.room(OUTPUT) == 2048
    assert (payload.room(WEIGHTS), payload.room(SCRATCH)) == (256, 0)


@pytest.mark.parametrize("word", range(1, 12))
def test_heads_of_the_second_form_are_checked(word: int) -> None:
    """But for the version of the form, and of its head."""
    parts = members(APART)
    data = np.load(APART)["cmd_data"].tobytes()
    changed = data[: 4 * word] + struct.pack("<I", 0xDEAD0000) + data[4 * word + 4 :]
    parts["cmd_data.npy"] = npy(np.frombuffer(changed, f"S{len(changed)}"))
    if word in (1, 3, 8, 9):
        assert read_payload(zipped(parts)).commands == read_payload(APART.read_bytes()).commands
    else:
        with pytest.raises(CompileError):
            read_payload(zipped(parts))


def test_what_executorch_packs_is_the_same() -> None:
    payload = read_payload(FILE.read_bytes())
    commands = np.load(FILE)["cmd_data"].tobytes()
    assert read_payload(as_blocks(payload, commands)) == payload


def test_accelerators_are_distinguished() -> None:
    assert len({a.config for a in ACCELERATORS}) == len(ACCELERATORS)
    for each in ACCELERATORS:
        assert by_config(each.config) is each is ACCELERATORS_BY_NAME[each.name]
    assert by_config(0) is None


@pytest.mark.parametrize(
    ("member", "value", "words"),
    [
        ("cmd_data", b"COP2" + bytes(12), "no driver action that starts"),
        ("cmd_data", b"COP3" + bytes(12), "no driver actions"),
        ("cmd_data", b"COP1" + bytes(4), "no driver action is 0x00000000"),
        ("cmd_data", b"COP1" + struct.pack("<3I", 0x100001, 0x1807, 0x10066001), "no command stream"),
        ("cmd_data", b"COP1" + struct.pack("<3I", 0x100001, 0x1234, 0x10066001), "configuration 0x00001234"),
        ("scratch_size", 1 << 40, "bytes of memory"),
        ("scratch_size", 8, "of 8"),
        ("scratch_size", 1.5, "not a whole number"),
        ("input_offset", [-16], "at -0x10"),
        ("input_shape", [[1, 1, 1, 0, 4, 4]], "no tensor"),
        ("output_elem_size", [3], "of 3 bytes each"),
        ("output_region", [7], "region 7"),
        ("weight_region", 4, "unusual numbers"),
    ],
)
def test_refused(member: str, value: object, words: str) -> None:
    parts = members(FILE)
    parts[f"{member}.npy"] = npy(value)
    with pytest.raises(CompileError) as error:
        read_payload(zipped(parts), "model.npz")
    assert words in error.value.what
    assert error.value.at == ("model.npz",)


def test_missing() -> None:
    parts = members(FILE)
    del parts["weight_data.npy"]
    with pytest.raises(CompileError, match="weight_data is missing"):
        read_payload(zipped(parts))


def test_objects_never_run() -> None:
    """A pickle in a member that is read is refused; in one that is not, it is not even looked at."""
    parts = members(FILE)
    made = io.BytesIO()
    np.save(made, np.array([{}], dtype=object), allow_pickle=True)
    assert read_payload(zipped({**parts, "input_quantization.npy": made.getvalue()})) == read_payload(FILE.read_bytes())
    with pytest.raises(CompileError, match="kind of content"):
        read_payload(zipped({**parts, "input_shape.npy": made.getvalue()}))


def test_a_small_file_allocates_little() -> None:
    parts = members(FILE)
    head = npy(np.zeros(1, np.int64))
    parts["input_offset.npy"] = head.replace(b"(1,)", b"(9**9,)")
    with pytest.raises(CompileError):
        read_payload(zipped(parts))
    parts["input_offset.npy"] = npy(np.zeros(1, np.int64)).replace(b"'shape': (1,), ", b"'shape': (9999999999,), ")
    with pytest.raises(CompileError):
        read_payload(zipped(parts))


def test_damage_ends_in_words() -> None:
    """Whatever happens to a file, it is read or refused, and what is read is consistent."""
    whole = FILE.read_bytes()
    payload = read_payload(FILE.read_bytes())
    stored = zipped(members(FILE))
    blocks = as_blocks(payload, np.load(FILE)["cmd_data"].tobytes())
    rng = random.Random(17)
    read = 0
    for i in range(600):
        data = bytearray((whole, stored, blocks)[i % 3])
        for _ in range(rng.choice((1, 1, 3, 20))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        if rng.random() < 0.2:
            del data[rng.randrange(len(data)) :]
        try:
            found = read_payload(bytes(data))
        except CompileError:
            continue
        read += 1
        for slot in (*found.inputs, *found.outputs):
            assert 0 <= slot.offset <= slot.offset + slot.size <= found.room(slot.region)
    assert 0 < read < 600
