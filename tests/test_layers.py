"""Layers are a rule: which folder may import which. No two import each other, directly or by way of others."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import baretorch

ROOT = Path(baretorch.__file__).parent

# A folder, a file beside them, or a file of a folder that others may know without the rest of it; and what it imports.
# It reads downwards in the order of the data: nobody may import what stands further down.
LAYERS: dict[str, str] = {
    "version": "",
    "escape": "",
    "stopwatch": "",
    "errors": "escape",
    "files.read": "escape",
    "files.ownership": "errors files.read",
    "files.write": "errors files.ownership",
    "options": "errors escape",
    "targets.features": "",
    "npu.accelerators": "",
    "targets": "errors escape files.read npu.accelerators options targets.features",
    "ir": "errors",
    "ir.verify": "errors ir",
    "ops": "errors ir targets.features",
    "ir.text": "errors escape ir ops ir.verify",
    "ir.io": "errors ir ops",
    "ir.ties": "ir ops",
    "passes": "errors ir ops ir.verify",
    "units": "ir ops targets targets.features",
    "npu": "errors ir npu.accelerators ops options files.write passes targets",
    "firmware.cache": "errors files.read files.write",
    "firmware.tools": "",
    "emulators.hooks": "errors firmware.cache firmware.tools files.write",
    "emulators.npu": "emulators.hooks errors ir npu npu.accelerators",
    "frontends.runtimes": "errors",
    "ir.equivalence": "errors ir ops passes",
    "ir.layerwise": "ir passes",
    "frontends": "emulators.npu errors escape files.read ir ir.layerwise ir.equivalence npu npu.accelerators ops options files.write "
    "files.ownership passes ir.io frontends.runtimes stopwatch ir.verify",
    "quantize": "errors escape frontends files.read ir ir.equivalence ops options passes ir.io ir.verify",
    "plan": "errors ir ops options passes targets ir.text units",
    "emit": "errors escape ir ops options plan ir.text version",
    "firmware": "errors firmware.cache firmware.tools options files.write targets",
    "emulators": "emulators.hooks emulators.npu errors escape firmware firmware.cache ir npu npu.accelerators ir.io "
    "targets ir.ties",
    "devices": "emulators errors escape firmware files.read files.write targets",
    "machines.host_program": "emit errors firmware firmware.cache ir options files.write plan quantize targets",
    "pipeline": "emit emulators errors firmware frontends ir ir.equivalence npu machines.host_program options files.write files.ownership passes plan "
    "ir.io quantize stopwatch targets ir.text ir.verify",
    "debug": "devices emit emulators errors escape firmware ir files.ownership pipeline plan ir.io targets",
    "report": "emulators errors escape firmware frontends ir ir.layerwise npu ops options files.write files.ownership passes "
    "pipeline plan ir.io quantize targets targets.features ir.text ir.ties units version",
    "explore": "emit emulators errors firmware frontends ir ops options files.write passes pipeline "
    "plan ir.io report targets",
    "tune": "emulators errors escape firmware frontends files.read ir ir.equivalence machines.host_program ops options files.write files.ownership passes "
    "pipeline plan ir.io quantize report targets targets.features version",
    "exports": "debug emit emulators errors firmware frontends files.read ir npu npu.accelerators ops options files.write "
    "files.ownership pipeline ir.io report targets version",
    "api": "emulators errors escape explore firmware frontends machines.host_program options files.write pipeline ir.io quantize report "
    "targets",
    "__init__": "api errors version",
    "studio": "emit emulators errors firmware ir pipeline ir.io report targets",
    "cli": "debug devices emulators errors escape explore exports firmware frontends files.read options files.write "
    "pipeline plan report stopwatch studio targets targets.features tune units version",
    "__main__": "cli",
}


def layer_of(module: str) -> str:
    """Of the module's name behind `baretorch.`, the longest beginning that is in the table, else its first word."""
    words = module.split(".")
    names = [".".join(words[:n]) for n in range(len(words), 0, -1)]
    return next((name for name in names if name in LAYERS), words[0])


def imported(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of every module of ours that is imported anywhere in a file: in functions and for types too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "a relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "baretorch":
                yield node.lineno, name.removeprefix("baretorch").removeprefix(".") or "__init__"


def edges() -> Iterator[tuple[str, str, str]]:
    """Who imports whom, and where."""
    for file in sorted(ROOT.rglob("*.py")):
        path = file.relative_to(ROOT)
        inside = path.with_suffix("").parts
        own = layer_of(".".join(inside[:-1] if inside[-1] == "__init__" and len(inside) > 1 else inside))
        for line, name in imported(file.read_text()):
            other = layer_of(name)
            if other != own:
                yield own, other, f"{path}:{line}"


def test_nobody_imports_what_he_may_not() -> None:
    allowed = {name: set(others.split()) for name, others in LAYERS.items()}
    wrong = [f"{where}: {own} imports {other}" for own, other, where in edges() if other not in allowed.get(own, set())]
    assert not wrong, "see LAYERS:\n" + "\n".join(wrong)


def test_the_table_has_no_cycle() -> None:
    above: set[str] = set()
    for name, others in LAYERS.items():
        assert set(others.split()) <= above, f"{name} stands above something that it may import"
        above.add(name)


def test_the_table_tells_nothing_but_the_truth() -> None:
    found = {(own, other) for own, other, _ in edges()}
    told = {(name, other) for name, others in LAYERS.items() for other in others.split()}
    assert not told - found, f"nobody needs these any more: {sorted(told - found)}"


def test_imports_are_found_wherever_they_stand() -> None:
    source = """
import baretorch.plan.types
from baretorch import version
def f():
    from baretorch.emit.c import literal
if TYPE_CHECKING:
    from baretorch.targets.features import Feature
import numpy
"""
    found = [layer_of(name) for _, name in imported(source)]
    assert found == ["plan", "version", "emit", "targets.features"]
