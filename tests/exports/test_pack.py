"""The pack's description keeps the rules of its schema, and what it lists builds."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree
from zipfile import ZipFile

import pytest

from baretorch.exports import BY_NAME
from baretorch.exports.project import project_files
from tests.exports.pdsc import faults
from tests.exports.test_projects import FIGURES, MODELS, all_right, answers, compiled, exact, in_folder, numbers, steps


@pytest.mark.parametrize("model", [pytest.param(m, marks=() if m == "sine" else pytest.mark.slow) for m in MODELS])
def test_a_pack(model: str, tmp_path: Path) -> None:
    files = project_files(compiled(model, "host"), BY_NAME["cmsis-pack"], FIGURES)
    name = f"Baretorch.{model}.pdsc"
    assert faults(name, files[name], files) == []
    listed = list(ElementTree.fromstring(files[name]).iter("file"))
    sources = [e.attrib["name"] for e in listed if e.attrib["category"] == "source"]
    below = {e.attrib["name"] for e in listed if e.attrib["category"] in ("source", "header")}
    assert below == {f for f in files if f.startswith(f"{model}/") and f.endswith((".c", ".h", ".inc"))}
    folder = in_folder(files, tmp_path)
    exact(folder / "example/main.c")
    command = ["cc", "-O2", "-fno-strict-aliasing", "-ffp-contract=fast", f"-I{model}", "example/main.c", *sources]
    subprocess.run([*command, "-o", "example/run"], cwd=folder, check=True)
    done = subprocess.run(["example/run"], cwd=folder, check=True, capture_output=True, text=True)
    assert all_right(done.stdout, model, steps(model)) and numbers(done.stdout) == answers(model, "host")


@pytest.mark.skipif(not shutil.which("zip"), reason="zip is not installed")
def test_the_command_that_packs_it(tmp_path: Path) -> None:
    """The command in README.md packs everything that the description lists."""
    files = project_files(compiled("sine", "host"), BY_NAME["cmsis-pack"], FIGURES)
    command = re.search(r"`(zip [^`]*)`", files["README.md"])
    assert command is not None
    folder = in_folder(files, tmp_path)
    subprocess.run(shlex.split(command[1]), cwd=folder, check=True, capture_output=True)
    (pack,) = folder.glob("*.pack")
    assert pack.name == "Baretorch.sine.1.0.0.pack"
    packed = {name: None for name in ZipFile(pack).namelist() if not name.endswith("/")}
    assert faults("Baretorch.sine.pdsc", files["Baretorch.sine.pdsc"], packed) == []


def test_a_solution_names_its_compiler() -> None:
    """csolution ends with "compiler undefined" else."""
    files = project_files(compiled("sine", "host"), BY_NAME["cmsis-pack"], FIGURES)
    lines = files["example/sine_example.csolution.yml"].splitlines()
    assert lines[0] == "solution:"
    assert [line.split("#")[0].rstrip() for line in lines if "compiler" in line] == ["  compiler: GCC"]


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("<vendor>Baretorch</vendor>", "", "package lacks vendor"),
        ("<vendor>Baretorch", "<vendor>Bare torch", "vendor says 'Bare torch'"),
        ("<name>sine", "<name>cosine", "the file is called Baretorch.sine.pdsc, not Baretorch.cosine.pdsc"),
        ('version="1.0.0"', 'version="1.0"', "release: version is '1.0'"),
        ('Cgroup="Model" ', "", "component lacks the attribute Cgroup"),
        ('category="doc"', 'category="docs"', "file: category is 'docs'"),
        ("README.md", "READYOU.md", "READYOU.md is not in the pack"),
        ("<keywords>", "<keywords><word/>", "word does not belong in keywords"),
        ('schemaVersion="1.7.32"', 'schemaVersion="1.7.32" colour="red"', "package has no attribute colour"),
        ("sine/LICENSE", "sine/LICENCE", "sine/LICENCE is not in the pack"),
        ("</package>", "", "no element found"),
    ],
)
def test_the_checker_finds_what_is_wrong(old: str, new: str, fault: str) -> None:
    files = project_files(compiled("sine", "host"), BY_NAME["cmsis-pack"], FIGURES)
    text = files["Baretorch.sine.pdsc"]
    assert old in text
    found = faults("Baretorch.sine.pdsc", text.replace(old, new, 1), files)
    assert any(fault in one for one in found), found
