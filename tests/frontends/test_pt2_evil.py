"""Nothing in a `.pt2` runs: files that make torch.export.load create a file make Baretorch refuse them."""

from __future__ import annotations

import io
import json
import pickle
import stat
import subprocess
import sys
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from pt2_files import SAMPLES, Pt2, tiny
from tests.cli.program import check_golden

from baretorch import frontends
from baretorch.errors import CompileError
from baretorch.options import Options

TINY = tiny()


class Payload:
    """Its pickle creates a file when it is read."""

    def __init__(self, marker: str) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return Path(self.marker).touch, ()


def pickled(marker: str) -> bytes:
    raw = io.BytesIO()
    torch.save(((Payload(marker),), {}), raw)
    return raw.getvalue()


def touch(marker: str) -> str:
    return f"__import__('pathlib').Path({marker!r}).touch()"


def weight(file: Pt2, marker: str) -> None:
    file.weights["config"]["layer.weight"]["use_pickle"] = True
    file.members["data/weights/weight_0"] = pickled(marker)


def old_weights(file: Pt2, marker: str) -> None:
    file.members["data/weights/model.pt"] = pickled(marker)


def constant(file: Pt2, marker: str) -> None:
    file.constants["config"]["offset"]["use_pickle"] = True
    file.members["data/constants/tensor_0"] = pickled(marker)


def opaque_object(file: Pt2, marker: str) -> None:
    file.constants["config"]["offset"] |= {"use_pickle": True, "path_name": "opaque_obj_0"}
    file.members["data/constants/opaque_obj_0"] = pickle.dumps(Payload(marker))


def samples(file: Pt2, marker: str) -> None:
    file.members[SAMPLES] = pickled(marker)


def bare_samples(file: Pt2, marker: str) -> None:
    """A pickle by itself, in no archive of torch.save."""
    file.members[SAMPLES] = pickle.dumps(((Payload(marker),), {}))


def size(file: Pt2, marker: str) -> None:
    file.graph["tensor_values"]["x"]["sizes"][0] = {"as_expr": {"expr_str": touch(marker), "hint": None}}


def weight_size(file: Pt2, marker: str) -> None:
    meta = file.weights["config"]["layer.weight"]["tensor_meta"]
    meta["sizes"][0] = {"as_expr": {"expr_str": touch(marker), "hint": None}}


def guard(file: Pt2, marker: str) -> None:
    file.program["guards_code"] = [touch(marker)]


def value_name(file: Pt2, marker: str) -> None:
    name = f"relu = {touch(marker)}; relu"
    text = json.dumps(file.program)
    file.program = json.loads(text.replace('"relu"', json.dumps(name)))


def parameter_name(file: Pt2, marker: str) -> None:
    name = f"layer.weight\", open({marker!r}, 'w'), \""
    text = json.dumps(file.program)
    file.program = json.loads(text.replace('"layer.weight"', json.dumps(name)))
    file.weights["config"][name] = file.weights["config"].pop("layer.weight")


def argument_name(file: Pt2, marker: str) -> None:
    file.signature["forward_arg_names"] = [f"x=({touch(marker)})"]


def keyword(file: Pt2, marker: str) -> None:
    version, tree = json.loads(file.signature["in_spec"])
    tree["children_spec"][1] |= {
        "context": json.dumps([f"x=({touch(marker)})"]),
        "children_spec": [{"type": None, "context": None, "children_spec": []}],
    }
    tree["children_spec"][0]["children_spec"] = []
    file.signature["in_spec"] = json.dumps([version, tree])
    file.signature["forward_arg_names"] = None


def function(file: Pt2, marker: str) -> None:
    node = next(n for n in file.graph["nodes"] if n["name"] == "relu")
    node["target"] = "torch.os.mkdir"
    node["inputs"] = [{"name": "", "arg": {"as_string": marker}, "kind": 1}]


def file_operator(file: Pt2, marker: str) -> None:
    node = next(n for n in file.graph["nodes"] if n["name"] == "relu")
    node["target"] = "torch.ops.aten.from_file.default"
    node["inputs"] = [
        {"name": "filename", "arg": {"as_string": marker}, "kind": 1},
        {"name": "shared", "arg": {"as_bool": True}, "kind": 1},
        {"name": "size", "arg": {"as_int": 3}, "kind": 1},
    ]


def structure(file: Pt2, marker: str) -> None:
    """defaultdict imports the module of its factory."""
    folder = Path(marker).parent
    (folder / "evil_factory.py").write_text(f"{touch(marker)}\nmake = dict\n")
    version, tree = json.loads(file.signature["out_spec"])
    context = {"default_factory_module": "evil_factory", "default_factory_name": "make", "dict_context": ["y", "z"]}
    tree |= {"type": "collections.defaultdict", "context": context}
    file.signature["out_spec"] = json.dumps([version, tree])


EVIL = {
    f.__name__: f
    for f in (
        weight,
        constant,
        opaque_object,
        samples,
        bare_samples,
        size,
        weight_size,
        guard,
        value_name,
        parameter_name,
        argument_name,
        keyword,
        function,
        file_operator,
        structure,
        old_weights,
    )
}
HARMLESS = ("guard", "old_weights")  # what is evil is not even looked at
REAL = (  # what torch 2.13 runs; the rest only could be
    "weight",
    "old_weights",
    "constant",
    "opaque_object",
    "samples",
    "bare_samples",
    "size",
    "guard",
    "parameter_name",
    "structure",
)


def evil(tmp_path: Path, name: str) -> tuple[Path, Path]:
    marker = tmp_path / "marker"
    file = TINY.copy()
    EVIL[name](file, str(marker))
    return file.write(tmp_path / "evil.pt2"), marker


@pytest.mark.parametrize("name", EVIL)
def test_nothing_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, marker = evil(tmp_path, name)
    monkeypatch.syspath_prepend(str(tmp_path))
    if name in HARMLESS:
        assert frontends.load(str(path)).expected is not None
    else:
        with pytest.raises(CompileError):
            frontends.load(str(path))
    assert not marker.exists()
    assert not {p.name for p in tmp_path.iterdir()} - {"evil.pt2", "evil_factory.py"}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a file that is left open
@pytest.mark.parametrize("name", REAL)
def test_the_payload_is_real(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each payload runs with --trust, which uses torch.export.load. This shows that the test above can fail."""
    path, marker = evil(tmp_path, name)
    monkeypatch.syspath_prepend(str(tmp_path))
    with suppress(CompileError):
        frontends.load(str(path), options=Options(trust=True))
    assert marker.exists()


def write(path: Path, *members: tuple[zipfile.ZipInfo | str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    """The tiny file with more members."""
    TINY.copy().write(path, compression)
    with zipfile.ZipFile(path, "a", compression) as archive:
        for name, raw in members:
            archive.writestr(name, raw)
    return path


def link(name: str) -> zipfile.ZipInfo:
    info = zipfile.ZipInfo(name)
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    return info


ARCHIVES = {
    "bomb": lambda p: write(p, ("tiny/extra/zeros", bytes(64 << 20)), compression=zipfile.ZIP_DEFLATED),
    "traversal": lambda p: write(p, ("tiny/../../evil.txt", b"x")),
    "absolute": lambda p: write(p, ("/tmp/evil.txt", b"x")),
    "backslash": lambda p: write(p, ("tiny/..\\evil.txt", b"x")),
    "link": lambda p: write(p, (link("tiny/extra/passwd"), b"/etc/passwd")),
    "two_folders": lambda p: write(p, ("other/extra/x", b"x")),
    "compiled": lambda p: write(p, ("tiny/data/aotinductor/model/model.so", b"\x7fELF")),
    "stranger": lambda p: write(p, ("tiny/setup.py", b"x")),
    "not_a_zip": lambda p: p.write_bytes(b"PK\x03\x04" + bytes(100)),
    "empty": lambda p: p.write_bytes(b""),
}


@pytest.mark.parametrize("name", ARCHIVES)
def test_archives_that_torch_would_not_write(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    ARCHIVES[name](path)
    with pytest.raises(CompileError) as caught:
        frontends.load(str(path))
    check_golden(f"pt2_{name}", caught.value.render().replace(str(tmp_path), "FOLDER") + "\n")
    assert [p.name for p in tmp_path.iterdir()] == ["model.pt2"]


def test_members_that_overlap(tmp_path: Path) -> None:
    """A hundred entries of the directory that name the same bytes."""
    path = write(tmp_path / "model.pt2", *((f"tiny/extra/{i:03}", bytes(100_000)) for i in range(2)))
    raw = path.read_bytes()
    end = raw.rindex(b"PK\x05\x06")
    start = int.from_bytes(raw[end + 16 : end + 20], "little")
    last = raw.rindex(b"PK\x01\x02")
    entry = raw[last:end]
    more = b"".join(entry.replace(b"extra/001", b"extra/%03d" % i) for i in range(2, 102))
    count = int.from_bytes(raw[end + 10 : end + 12], "little") + 100
    tail = raw[end : end + 8] + 2 * count.to_bytes(2, "little")
    tail += (len(raw[start:end]) + len(more)).to_bytes(4, "little") + raw[end + 16 :]
    path.write_bytes(raw[:end] + more + tail)
    with pytest.raises(CompileError, match="claim more than"):
        frontends.load(str(path))


def large_weight(file: Pt2) -> None:
    """A weight of 16 GB in 12 bytes: strides of 0."""
    meta = file.weights["config"]["layer.bias"]["tensor_meta"]
    meta |= {"sizes": [{"as_int": 1 << 32}], "strides": [{"as_int": 0}]}


def weight_beyond_its_data(file: Pt2) -> None:
    file.weights["config"]["layer.bias"]["tensor_meta"]["storage_offset"] = {"as_int": 1 << 40}


def overflowing_sizes(file: Pt2) -> None:
    meta = file.weights["config"]["layer.bias"]["tensor_meta"]
    meta |= {"sizes": [{"as_int": 1 << 33}] * 2, "strides": [{"as_int": 1}] * 2}


def lying_value(file: Pt2) -> None:
    """12 bytes are repeated to 12 GB in between, and said to be 12 bytes."""
    node = next(n for n in file.graph["nodes"] if n["name"] == "relu")
    node["target"] = "torch.ops.aten.repeat.default"
    node["inputs"].append({"name": "repeats", "arg": {"as_ints": [1 << 30, 1]}, "kind": 1})


def large_value(file: Pt2) -> None:
    """Return the same file with true sizes."""
    lying_value(file)
    for name in ("relu", "add", "add_1"):
        file.graph["tensor_values"][name]["sizes"][0] = {"as_int": 1 << 30}


def lying_weight(file: Pt2) -> None:
    file.graph["tensor_values"]["p_layer_weight"]["sizes"] = [{"as_int": 1}, {"as_int": 4}]


def no_data(file: Pt2) -> None:
    """torch makes zeros of any size for it."""
    file.members["data/weights/weight_0"] = b""
    meta = file.weights["config"]["layer.weight"]["tensor_meta"]
    meta["sizes"] = [{"as_int": 30_000}, {"as_int": 30_000}]


def on_cuda(file: Pt2) -> None:
    file.graph["tensor_values"]["x"]["device"]["type"] = "cuda"


def dynamic(file: Pt2) -> None:
    file.program["range_constraints"] = {"s0": {"min_val": 1, "max_val": 8}}


def other_samples(file: Pt2) -> None:
    raw = io.BytesIO()
    torch.save(((torch.ones(2, 4), torch.ones(1)), {}), raw)
    file.members[SAMPLES] = raw.getvalue()


def damaged_samples(file: Pt2) -> None:
    file.members[SAMPLES] = file.members[SAMPLES][:100]


def deep_json(file: Pt2) -> None:
    file.signature["out_spec"] = "[1," + "[" * 100_000


BROKEN = {
    f.__name__: f
    for f in (
        *(weight, samples, bare_samples, damaged_samples, opaque_object, size, parameter_name, function, structure),
        *(large_weight, weight_beyond_its_data, overflowing_sizes, large_value, lying_value, lying_weight, no_data),
        *(on_cuda, dynamic, other_samples, deep_json),
    )
}


@pytest.mark.parametrize("name", BROKEN)
def test_error_texts(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = TINY.copy()
    if name in EVIL:
        EVIL[name](file, "marker")
    else:
        BROKEN[name](file)
    file.write(Path("model.pt2"))
    with pytest.raises(CompileError) as caught:
        frontends.load("model.pt2")
    check_golden(f"pt2_{name}", caught.value.render() + "\n")


def test_sizes_are_looked_at_before_memory_is_taken(tmp_path: Path) -> None:
    """One process reads all files, and its memory is measured."""
    paths = []
    for f in (large_weight, overflowing_sizes, large_value, lying_value, no_data):
        file = TINY.copy()
        f(file)
        paths.append(str(file.write(tmp_path / f"{f.__name__}.pt2")))
    script = """
import sys
from baretorch import frontends
from baretorch.errors import CompileError
from tests.fuzz.worker import peak
for path in sys.argv[1:]:
    try:
        frontends.load(path)
    except CompileError:
        print(peak())
"""
    done = subprocess.run([sys.executable, "-c", script, *paths], capture_output=True, text=True, check=True)
    kilobytes = [int(line) for line in done.stdout.split()]
    assert len(kilobytes) == 5
    assert max(kilobytes) < 1_000_000
