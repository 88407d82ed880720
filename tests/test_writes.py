"""Only baretorch/files/write.py creates, replaces and removes files. It follows no links and replaces only our files.

A write anywhere else in src/ fails this test."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import baretorch

ROOT = Path(baretorch.__file__).parent
WRITER = "files/write.py"

# File and call, and why it may be there.
EXCEPTIONS = {
    ("cli/__init__.py", "open"): "the null device takes the place of a closed standard stream",
    ("cli/__init__.py", "os.open"): "the null device takes the place of a closed standard stream",
    ("npu/reference.py", "np.save"): "into memory",
    ("tune/search.py", "zipfile.ZipFile"): "into memory",
    ("tune/search.py", "parts.open"): "a part of that",
    ("cli/studio.py", "webbrowser.open"): "an address",
    ("machines/npu/interpreter.py", "memory.write_bytes"): "the emulated NPU's memory",
    ("machines/qemu/machine.py", "tempfile.NamedTemporaryFile"): "QEMU has to find the image's first bytes by a name",
}
METHODS = {
    *("write_text", "write_bytes", "mkdir", "touch", "unlink", "rmdir", "rename", "symlink_to", "hardlink_to"),
    *("makedirs", "removedirs", "rmtree", "copyfile", "copytree", "copy2", "extractall", "tofile", "savetxt"),
    *("mkstemp", "mkdtemp", "NamedTemporaryFile", "TemporaryDirectory", "savez", "savez_compressed"),
}
FUNCTIONS = {
    *(f"os.{name}" for name in ("replace", "rename", "remove", "unlink", "link", "symlink", "truncate", "mkfifo")),
    *("shutil.copy", "shutil.move", "np.save", "torch.save"),
}
WRITING_FLAGS = {"O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND"}


def writes(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of every call that may write a file."""
    tree = ast.parse(source)
    imported = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module in ("os", "shutil", "tempfile", "zipfile")
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            name = imported.get(name, name)
            if _writes(name, node):
                yield node.lineno, name if name in FUNCTIONS or "." not in name else _short(name)


def _short(name: str) -> str:
    return ".".join(name.split(".")[-2:])


def _writes(name: str, call: ast.Call) -> bool:
    last = name.rpartition(".")[2]
    if name == "os.open":
        return any(flag in ast.unparse(call) for flag in WRITING_FLAGS)
    if last in ("open", "ZipFile"):
        return _mode(call, 0 if "." in name and last == "open" else 1)
    if last == "replace" and isinstance(call.func, ast.Attribute):
        return name == "os.replace" or (len(call.args) == 1 and not call.keywords)  # that of a str takes two
    return (last in METHODS and "." in name) or name in FUNCTIONS


def _mode(call: ast.Call, at: int) -> bool:
    """Whether the mode of open(FILE, MODE), PATH.open(MODE) or ZipFile(FILE, MODE) lets it write."""
    given = call.args[at : at + 1] or [k.value for k in call.keywords if k.arg == "mode"]
    return any(not isinstance(mode, ast.Constant) or set(str(mode.value)) & set("wax+") for mode in given)


def test_only_one_module_writes_files() -> None:
    found = {
        (str(file.relative_to(ROOT)), name): line
        for file in sorted(ROOT.rglob("*.py"))
        if file.relative_to(ROOT) != Path(WRITER)
        for line, name in writes(file.read_text("utf-8"))
    }
    wrong = [f"{file}:{line}: {name}" for (file, name), line in found.items() if (file, name) not in EXCEPTIONS]
    assert not wrong, f"use baretorch.{WRITER.removesuffix('.py')} instead:\n" + "\n".join(wrong)
    assert not set(EXCEPTIONS) - set(found), "exceptions that nothing needs any more"


# What may be imported from `fs`: reading, and writing to descriptors that Python has opened.
HARMLESS_IN_JS = {"readFileSync", "readSync", "existsSync", "writeSync", "ftruncateSync"}


def test_javascript_writes_no_files() -> None:
    imports = re.compile(
        r"import\s+(.*?)\s+from\s+['\"](?:node:)?fs(?:/promises)?['\"]|(?:import|require)\(\s*['\"](?:node:)?fs", re.S
    )
    found = {
        f"{file.relative_to(ROOT)}: {name.strip()}"
        for pattern in ("*.mjs", "*.js", "*.cjs")
        for file in sorted(ROOT.rglob(pattern))
        for names in imports.findall(file.read_text("utf-8"))
        for name in (names.strip("{} \n").split(",") if names.startswith("{") else [names or "fs as a whole"])
        if name.strip() not in HARMLESS_IN_JS
    }
    assert not found, "send the bytes to Python, which writes them with baretorch.files.write"


@pytest.mark.parametrize(
    "call",
    [
        *('open(p, "w")', 'open(p, mode="ab")', "open(p, m)", 'p.open("x")', 'p.write_text("")', "p.replace(q)"),
        *("os.replace(p, q)", "os.open(p, os.O_WRONLY | os.O_CREAT)", "shutil.copy(p, q)", "np.save(p, x)"),
        *('zipfile.ZipFile(p, "w")', "tempfile.mkdtemp()", "p.parent.mkdir()", "shutil.rmtree(p)", "p.unlink()"),
        *("from os import rename\nrename(p, q)", "from tempfile import TemporaryDirectory as T\nT()"),
    ],
)
def test_writes_are_found(call: str) -> None:
    assert list(writes(call))


@pytest.mark.parametrize(
    "call",
    [
        *("open(p)", 'open(p, "rb")', "p.open()", 'p.open(mode="rb")', 's.replace("a", "b")', "replace(x, a=1)"),
        *("zipfile.ZipFile(p)", "os.open(p, os.O_RDONLY)", "line.copy()", "touch(port)"),
    ],
)
def test_reads_are_not(call: str) -> None:
    assert not list(writes(call))
