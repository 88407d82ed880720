"""Write the C of a Plan: model.h, model.c, weights.h, weights.c, the kernels they use, and glue.c for the image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from baretorch.emit.cores import cores_of, helpers
from baretorch.emit.glue import RUN_ALONE, glue_c
from baretorch.emit.header import model_h
from baretorch.emit.model import included_name, model_c
from baretorch.emit.names import make_names
from baretorch.emit.spell import copy_headers
from baretorch.emit.weights import weights_c, weights_h
from baretorch.options import Optimize
from baretorch.plan.types import Plan

KERNELS = Path(__file__).parent.parent / "kernels"


@dataclass(frozen=True)
class CFiles:
    """The generated program: text by file name, relative to one folder."""

    run: str  # the run function
    files: dict[str, str]
    sources: tuple[str, ...]  # files to compile; the rest is included
    glue: str  # glue.c's text, for images of ours
    checked: bool = False  # it has a function that checks inputs, which images call
    cores: int = 1  # that an image needs
    call: str = ""  # what an application calls
    lines: tuple[int, ...] = ()  # of model.c, on which the steps of the served method are on core 0


def emit(
    name: str,
    plans: Mapping[str, Plan],
    optimize: Optimize = Optimize.SPEED,
    served: str | None = None,
    blank: bool = False,
    checked: bool = False,
    command: str = "",
    alone: bool = False,
    team: bool = False,
) -> CFiles:
    """Generate the C of a model with these methods. The image's server calls the method `served`, else the first.
    `optimize` for speed: one instance of a kernel per kind of layer; for size: one per kernel. `blank`: weights are
    zeros, which is quicker and does not change sizes. `checked`: add a function per method that finds NaN and infinity
    among its inputs. `command`: the command line for the same C. `alone`: the model runs on core 1, which it does not
    share. `team`: cores are those of a cluster."""
    names = replace(make_names(name, plans, checked), command=command, alone=alone, team=team)
    cores = cores_of(names)
    method = names.methods[served] if served else names.first
    computation = model_c(names, optimize)
    files = {
        "model.h": model_h(names),
        "model.c": computation.text,
        "weights.h": weights_h(names),
        "weights.c": weights_c(names, blank),
    }
    inline = optimize == Optimize.SPEED
    kernel_sources = sorted({s.kernel.source for plan in plans.values() for s in plan.steps})
    for path in _with_includes(
        [
            *kernel_sources,
            "bt.h",
            *(["finite.h"] if checked else []),
            *helpers(names),
            *copy_headers(names),
        ]
    ):
        files[f"kernels/{included_name(path) if inline else path}"] = (KERNELS / path).read_text()
    sources = ["model.c", "weights.c"]
    if not inline:
        sources += [f"kernels/{s}" for s in kernel_sources]
    call = f"{method.prefix}_start" if alone else method.run
    return CFiles(
        run=RUN_ALONE if alone else method.run,
        files=files,
        sources=tuple(sources),
        glue=glue_c(names, method),
        checked=checked,
        cores=cores,
        call=call,
        lines=next(computation.lines[key] for key, m in names.methods.items() if m is method),
    )


def _with_includes(paths: list[str]) -> list[str]:
    """Return the files and all files that they include with quotes, once each."""
    found: list[str] = []
    waiting = list(paths)
    while waiting:
        path = waiting.pop(0)
        if path in found:
            continue
        found.append(path)
        for line in (KERNELS / path).read_text().splitlines():
            if line.startswith('#include "'):
                target = (KERNELS / path).parent / line.split('"')[1]
                waiting.append(str(target.resolve().relative_to(KERNELS.resolve())))
    return found
