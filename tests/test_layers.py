"""Layers are a rule: which folder may import which. Neither folders nor modules import each other in a cycle."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
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
    "ir.text": "escape ir",
    "ir.io": "errors ir ops",
    "ir.ties": "ir ops",
    "passes": "errors ir ir.verify ops",
    "units": "ir ops targets targets.features",
    "npu": "errors files.write ir npu.accelerators ops options passes targets",
    "firmware.cache": "errors files.read files.write",
    "firmware.tools": "",
    "machines.hooks": "errors files.write firmware.cache firmware.tools",
    "machines.npu": "errors firmware.cache ir machines.hooks npu npu.accelerators",
    "frontends.runtimes": "errors",
    "frontends": "errors escape files.ownership files.read files.write frontends.runtimes ir ir.io "
    "ir.verify machines.npu npu npu.accelerators ops options passes stopwatch",
    "quantize": "errors escape files.read frontends ir ir.io ops options passes",
    "plan": "errors ir ir.text ops options passes targets units",
    "emit": "errors escape ir ir.text ops options plan version",
    "firmware": "errors files.write firmware.cache firmware.tools options targets",
    "machines": "errors escape firmware ir ir.io ir.ties machines.hooks machines.npu npu.accelerators plan targets "
    "units",
    "machines.hardware": "errors escape files.read files.write firmware machines targets",
    "machines.host_program": "emit errors files.write firmware firmware.cache ir options plan quantize targets",
    "pipeline": "emit errors files.ownership files.write firmware frontends ir ir.io ir.text ir.verify "
    "machines machines.host_program machines.npu npu options passes plan quantize stopwatch targets units",
    "debug": "emit errors escape files.ownership firmware ir ir.io machines machines.hardware pipeline plan targets",
    "measure": "errors files.write firmware frontends ir ir.io ir.ties machines npu ops options passes "
    "pipeline plan quantize stopwatch targets units",
    "explore": "errors escape files.ownership files.read files.write firmware frontends ir ir.io ir.ties machines "
    "measure ops options passes pipeline plan targets units",
    "tune": "errors escape explore files.ownership files.read files.write firmware frontends ir ir.io machines "
    "machines.host_program measure ops options passes pipeline plan quantize targets targets.features "
    "version",
    "report": "errors escape explore files.ownership files.write firmware frontends ir ir.text measure npu ops options "
    "passes pipeline plan quantize targets targets.features tune units version",
    "exports": "debug emit errors files.ownership files.read files.write firmware frontends ir ir.io machines.npu "
    "measure npu npu.accelerators ops options pipeline targets version",
    "api": "errors escape explore exports files.write firmware frontends ir.io machines machines.hardware measure "
    "options pipeline report targets",
    "__init__": "api errors version",
    "studio": "emit errors firmware ir ir.io machines measure pipeline targets",
    "cli": "debug errors escape explore exports files.read files.write firmware frontends machines "
    "machines.hardware measure options pipeline plan report stopwatch studio targets targets.features "
    "tune units version",
    "__main__": "cli",
}


def layer_of(module: str) -> str:
    """Return the longest beginning of the module's name after `baretorch.` that is in the table, else its first
    word."""
    words = module.split(".")
    names = [".".join(words[:n]) for n in range(len(words), 0, -1)]
    return next((name for name in names if name in LAYERS), words[0])


def imported(source: str) -> Iterator[tuple[int, str]]:
    """Yield line and name of every module of Baretorch that is imported anywhere in a file, in functions and for types
    too."""
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


def test_modules_import_only_what_they_may() -> None:
    allowed = {name: set(others.split()) for name, others in LAYERS.items()}
    wrong = [f"{where}: {own} imports {other}" for own, other, where in edges() if other not in allowed.get(own, set())]
    assert not wrong, "see LAYERS:\n" + "\n".join(wrong)


def modules() -> dict[str, set[str]]:
    """Return every module of the package with those that it imports, also in functions and for types."""
    names = {".".join(("baretorch", *f.relative_to(ROOT).with_suffix("").parts)): f for f in ROOT.rglob("*.py")}
    files = {name.removesuffix(".__init__"): file for name, file in names.items()}
    found = {}
    for name, file in files.items():
        full = {f"baretorch.{other}".removesuffix(".__init__") for _, other in imported(file.read_text())}
        found[name] = {other if other in files else other.rpartition(".")[0] for other in full} - {name}
    return found


def test_no_modules_import_each_other() -> None:
    try:
        TopologicalSorter(modules()).prepare()
    except CycleError as error:
        raise AssertionError("a cycle of imports:\n" + "\n".join(error.args[1])) from None


def test_the_table_has_no_cycle() -> None:
    above: set[str] = set()
    for name, others in LAYERS.items():
        assert set(others.split()) <= above, f"{name} stands above something that it may import"
        above.add(name)


def test_the_table_lists_only_real_imports() -> None:
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


def test_those_who_measure_do_not_present() -> None:
    """The command line hands results to report/; what makes them does not know how they are shown."""
    wrong = [
        f"{where}: {own} imports {other}"
        for own, other, where in edges()
        if own.split(".")[0] in ("measure", "explore", "tune", "exports", "studio") and other.split(".")[0] == "report"
    ]
    assert not wrong, "\n".join(wrong)


def test_only_report_and_the_command_line_know_rich() -> None:
    found = {
        str(file.relative_to(ROOT).parts[0])
        for file in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "rich"
    }
    assert found <= {"report", "cli"}, found
