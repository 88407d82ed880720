"""Generated C on this computer under ASan and UBSan, with guards around arena, static data and the caller's buffers.

Several models share one program. Each is called as often as there are inputs for it. Before each call, outputs and all
of the arena but the state are filled with a pattern; after it, guards and inputs must be as they were. The caller's
buffers begin at odd multiples of 4, which is all that a model may ask for. What is copied begins where its type may.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from baretorch.emit import emit
from baretorch.emit.names import CNames, CPort, Method, make_names
from baretorch.emit.spell import port_tensor
from baretorch.ir.graph import Array
from baretorch.options import Optimize
from baretorch.plan.types import InArena, Plan
from tests.ops.host import make
from tests.sanitized import SANITIZERS

HERE = Path(__file__).parent
WARNINGS = ("-std=gnu99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror")
FLAGS = ("-g1", *SANITIZERS, "-ffp-contract=off", *WARNINGS)

Outputs = tuple[Array, ...]


class Fault(Exception):
    """A model touched what is not its own, or its program ended; `model` is its name."""

    def __init__(self, model: str, text: str) -> None:
        super().__init__(f"{model}: {text}")
        self.model = model


@dataclass(frozen=True)
class Guarded:
    """A model by its plans, and the inputs of each call, with the method. Without `pointers`, what is in the arena is
    written and read there, and NULL is passed for it."""

    name: str
    plans: Mapping[str, Plan]
    calls: Sequence[tuple[str, Sequence[Array]]]
    pointers: bool = True
    optimize: Optimize = Optimize.SIZE

    @property
    def names(self) -> CNames:
        return make_names(self.name, self.plans)


def run_guarded(models: Sequence[Guarded], folder: Path, level: str = "-O1") -> dict[str, list[Outputs]]:
    """The outputs of every call, by the models' names. Raises Fault with what a sanitizer or a guard reports."""
    objects: dict[str, Path] = {}
    for model in models:
        objects |= _compiled(model, folder / model.name, level)
    runs = "".join(f"extern void {m.name}_calls(FILE *, FILE *);\n" for m in models)
    calls = "".join(f'    fprintf(stderr, "{m.name}\\n");\n    {m.name}_calls(in, out);\n' for m in models)
    text = f"#include <stdio.h>\n{runs}\nint main(int argc, char **argv)\n{{\n    (void)argc;\n"
    text += f'    FILE *in = fopen(argv[1], "rb"), *out = fopen(argv[2], "wb");\n{calls}    return fclose(out);\n}}\n'
    (folder / "main.c").write_text(text)
    make("gcc", *FLAGS, "-O0", folder / "main.c", *objects.values(), "-lpthread", "-o", folder / "program")
    given = (np.ascontiguousarray(x).tobytes() for m in models for _, inputs in m.calls for x in inputs)
    (folder / "inputs").write_bytes(b"".join(given))
    environment = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "print_stacktrace=1"}
    command = [str(folder / name) for name in ("program", "inputs", "outputs")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=600)
    if done.returncode:
        known = [line for line in done.stderr.splitlines() if line in {m.name for m in models}]
        raise Fault(known[-1] if known else "?", f"ended with {done.returncode}\n{done.stderr[-6000:]}")
    raw, at, found = (folder / "outputs").read_bytes(), 0, dict[str, list[Outputs]]()
    for model in models:
        for method, _ in model.calls:
            graph, outputs = model.plans[method].graph, list[Array]()
            for t in graph.of(graph.outputs):
                outputs.append(np.frombuffer(raw, t.dtype.numpy, t.count, at).reshape(t.shape))
                at += t.bytes
            found.setdefault(model.name, []).append(tuple(outputs))
    assert at == len(raw), "the program wrote more than the outputs"
    return found


def _compiled(model: Guarded, folder: Path, level: str) -> dict[str, Path]:
    """Return the object files of a model, by what is in them. Kernels of the same name are linked once."""
    c = emit(model.name, model.plans, model.optimize)
    files = {**c.files, "calls.c": _calls_c(model), "guard.h": (HERE / "guard.h").read_text()}
    if "kernels/cores.h" in files:
        files["kernels/cores.h"] = (HERE / "cores.h").read_text()
    files["unit.c"] = '#include "model.c"\n#include "weights.c"\n#include "calls.c"\n'
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    unit = folder / "unit.o"
    make("gcc", *FLAGS, level if model.optimize is Optimize.SPEED else "-O0", "-c", folder / "unit.c", "-o", unit)
    objects = {model.name: unit}
    for name in c.sources:
        if name.startswith("kernels/"):
            objects[name] = folder / f"{len(objects)}.o"
            make("gcc", *FLAGS, level, "-c", folder / name, "-o", objects[name])
    return objects


def _calls_c(model: Guarded) -> str:
    """C that calls a model as its caller would."""
    names = model.names
    shared = any(len(m.plan.schedule.cores) > 1 for m in names.methods.values())
    arenas = "".join(
        f'    const guarded {a.name}_g = guard_new("{a.name}", {a.bytes}, 4);\n    guard_close(&{a.name}_g);\n'
        for a in names.arenas
    )
    start = (
        f"    static pthread_t other;\n    pthread_create(&other, NULL, {names.model}_other, NULL);\n" if shared else ""
    )
    reset = f"    {names.model}_reset_in({names.arenas[0].name}_g.data);\n" if names.first.plan.state else ""
    body = "".join(f"    {names.methods[key].run}_guarded(in, out{_given(names)});\n" for key, _ in model.calls)
    other = f"""
static void *{names.model}_other(void *nothing)
{{
    {names.model}_core1();
    return nothing;
}}
"""
    methods = "".join(_method_c(model, names, m) for m in names.methods.values())
    check = "".join(f'    guard_check(&{a.name}_g, "{model.name}");\n' for a in names.arenas)
    return f"""#include "guard.h"
{"#include <pthread.h>" if shared else ""}
void {model.name}_calls(FILE *in, FILE *out);
{methods}{other if shared else ""}
void {model.name}_calls(FILE *in, FILE *out)
{{
{arenas}{start}{reset}{body}{check}}}
"""


def _given(names: CNames) -> str:
    return "".join(f", &{a.name}_g" for a in names.arenas)


def _method_c(model: Guarded, names: CNames, method: Method) -> str:
    """One call: memory of the caller's own, patterns, the run, and what must hold afterwards."""
    arenas = "".join(f", const guarded *{a.name}_g" for a in names.arenas)
    unused = "".join(f"    (void){a.name}_g;\n" for a in names.arenas if a not in method.arenas)
    lines = [_fill(method, a.bank, a.name, a.bytes) for a in method.arenas]
    for p in method.ports:
        t = port_tensor(method, p)
        odd = 4 if p.direct or t.dtype.size >= 4 else t.dtype.size
        lines.append(f'    guarded {_own(p)} = guard_new("{p.name}", {t.bytes}, {odd});')
        lines.append(f"    guard_close(&{_own(p)});")
    lines += [f"    guard_read(&{_own(p)}, in);" for p in method.inputs]
    lines += [_row_source(method, p) for p in method.inputs if p.pulled]
    inside = [] if model.pointers else [p for p in method.ports if isinstance(p.place, InArena)]
    for p in inside:
        if p in method.inputs:
            lines.append(f"    memcpy({_in_arena(method, p)}, {_own(p)}.data, {_own(p)}.bytes);")
    arguments = [f"{a.name}_g->data" for a in method.arenas]
    arguments += ["NULL" if p in inside else _argument(method, p) for p in method.ports]
    lines.append(f"    {method.run}_in({', '.join(arguments)});")
    lines += [
        f"    memcpy({_own(p)}.data, {_in_arena(method, p)}, {_own(p)}.bytes);" for p in inside if p in method.outputs
    ]
    for p in method.ports:
        lines.append(f'    guard_check(&{_own(p)}, "{model.name}");')
        lines.append(f'    guard_unchanged(&{_own(p)}, "{model.name}");' if p in method.inputs else "")
    lines += [f"    fwrite({_own(p)}.data, 1, {_own(p)}.bytes, out);" for p in method.outputs]
    lines += [f"    free({_own(p)}.block);\n    free({_own(p)}.copy);" for p in method.ports]
    callbacks = "".join(_callback(method, p) for p in method.inputs if p.pulled)
    body = "\n".join(line for line in lines if line)
    return f"""
{callbacks}static void {method.run}_guarded(FILE *in, FILE *out{arenas})
{{
    (void)in;
{unused}{body}
}}
"""


def _fill(method: Method, bank: str, name: str, size: int) -> str:
    """The pattern in all of an arena but the state."""
    layout = method.plan.layout
    kept = sorted(
        (place.offset, place.offset + s.operand.size)
        for s in method.plan.state
        if isinstance(place := layout.place(s.operand), InArena) and place.bank == bank
    )
    starts, stops = [0, *(stop for _, stop in kept)], [*(start for start, _ in kept), size]
    return "\n".join(
        f"    memset({name}_g->data + {a}, PATTERN, {b - a});" for a, b in zip(starts, stops, strict=True) if a < b
    )


def _own(port: CPort) -> str:
    return f"own_{port.name}"


def _in_arena(method: Method, port: CPort) -> str:
    assert isinstance(port.place, InArena)
    return f"{method.arena(port.place.bank).name}_g->data + {port.place.offset}"


def _argument(method: Method, port: CPort) -> str:
    return f"&source_{port.name}" if port.pulled else f"(void *){_own(port)}.data"


def _row_source(method: Method, port: CPort) -> str:
    return f"    const bt_row_source source_{port.name} = {{ rows_{method.run}_{port.name}, {_own(port)}.data }};"


def _callback(method: Method, port: CPort) -> str:
    t = port_tensor(method, port)
    row = t.bytes // t.shape[1]
    return f"""static void rows_{method.run}_{port.name}(void *context, int32_t first, int32_t count, void *to)
{{
    memcpy(to, (const uint8_t *)context + {row} * first, {row} * (size_t)count);
}}

"""


def told(fault: Fault) -> str:
    """The line of a sanitizer's report that says what is wrong."""
    found = re.search(r"(ERROR: AddressSanitizer.*|.*runtime error: .*|.* was written)", str(fault))
    return found[1] if found else str(fault)[-500:]
