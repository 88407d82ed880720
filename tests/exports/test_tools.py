"""The SDKs' own tools accept the projects' descriptions. Each tool is installed into an environment of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from baretorch.exports import BY_NAME
from baretorch.exports.project import project_files
from tests.exports.test_projects import FIGURES, MODELS, a_board, compiled, in_folder

pytestmark = pytest.mark.slow

# Zephyr's documented keys of module.yml, in pykwalify's words.
MODULE = """
type: map
mapping:
  name: {type: str}
  build:
    type: map
    mapping:
      cmake: {type: str}
      kconfig: {type: str}
      cmake-ext: {type: bool}
      kconfig-ext: {type: bool}
      depends: {type: seq, sequence: [{type: str}]}
  tests: {type: seq, sequence: [{type: str}]}
  samples: {type: seq, sequence: [{type: str}]}
  boards: {type: seq, sequence: [{type: str}]}
"""


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of programs."""
    folder = tmp_path_factory.mktemp("tools")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    packages = ["idf-component-manager==3.1.2", "platformio==6.2.0", "pykwalify==1.8.0", "setuptools"]
    pip = [folder / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
    done = subprocess.run(pip, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"pip cannot install them: {done.stderr.splitlines()[-1]}")
    return folder / "bin"


def said(folder: Path, *command: str | Path) -> tuple[int, str]:
    done = subprocess.run([str(c) for c in command], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("model", MODELS)
def test_espressifs_component_manager(model: str, tools: Path, tmp_path: Path) -> None:
    folder = in_folder(project_files(compiled(model, "host"), BY_NAME["esp-idf"], FIGURES), tmp_path)
    component = folder / "components" / model
    code, text = said(component, tools / "compote", "manifest", "lint", component)
    assert code == 0, text
    code, text = said(component, tools / "compote", "component", "pack", "--name", model)
    assert code == 0, text
    manifest = component / "idf_component.yml"
    manifest.write_text(manifest.read_text().replace("1.0.0", "one"))
    assert said(component, tools / "compote", "manifest", "lint", component)[0] != 0, "it would find something"


@pytest.mark.parametrize("model", MODELS)
def test_platformios_packer(model: str, tools: Path, tmp_path: Path) -> None:
    board = a_board("platformio")
    folder = in_folder(project_files(compiled(model, board), BY_NAME["platformio"], FIGURES), tmp_path)
    library = folder / "lib" / model
    code, text = said(library, tools / "pio", "pkg", "pack", ".", "-o", tmp_path / "x.tar.gz")
    assert code == 0 and (tmp_path / "x.tar.gz").is_file(), text
    description = library / "library.json"
    description.write_text(re.sub('"version": "1.0.0"', '"version": 3', description.read_text()))
    assert said(library, tools / "pio", "pkg", "pack", ".", "-o", tmp_path / "y.tar.gz")[0] != 0


def test_zephyrs_module(tools: Path, tmp_path: Path) -> None:
    folder = in_folder(project_files(compiled("sine", "mps2-an385"), BY_NAME["zephyr"], FIGURES), tmp_path)
    (tmp_path / "schema.yml").write_text(MODULE)
    module = folder / "modules/sine/zephyr/module.yml"
    command = (tools / "pykwalify", "-d", module, "-s", tmp_path / "schema.yml")
    code, text = said(folder, *command)
    assert code == 0, text
    module.write_text(module.read_text() + "colour: red\n")
    assert said(folder, *command)[0] != 0
