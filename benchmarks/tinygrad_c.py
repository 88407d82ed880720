"""Compare a tinygrad model compiled by Baretorch with the C that tinygrad renders: same compiler, same board.

`python benchmarks/tinygrad_c.py` writes its section of docs/benchmarks.md and its rows of benchmarks/results.json;
`make bench` writes them with all others. tinygrad 0.14.0 has no export. Its own renderer for C renders its optimized
kernels one by one, without vectors of Clang, and they are called in its order, with a buffer for each tensor.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from peers import M4F, TOOLCHAIN
from tables import ROOT, line, replace_section

from baretorch import pipeline
from baretorch.emit.c import values
from baretorch.firmware.build import build
from baretorch.frontends.model_file import load_model_file
from baretorch.ir.graph import Array
from baretorch.machines import open_machine
from baretorch.machines.run import run_on
from baretorch.measure.run import measure_model
from baretorch.options import Compiler, Console, Io, Options
from baretorch.targets.boards import load_board

MODEL = ROOT / "examples" / "mnist" / "in_tinygrad.py"
BOARDS = (M4F, "pico")


@dataclass(frozen=True)
class Rendered:
    """The kernels of tinygrad in the order of their calls: name, code, and the numbers of their buffers. A buffer has a
    number of elements, and its data if it is a constant. The first is the input, the last the output."""

    kernels: tuple[tuple[str, str, tuple[int, ...]], ...]
    buffers: tuple[tuple[int, Array | None], ...]


def render() -> Rendered:
    """Render the model with tinygrad."""
    model, methods, _ = load_model_file(MODEL)
    from tinygrad import Tensor
    from tinygrad.codegen import do_to_program
    from tinygrad.device import Compiler as TinyCompiler
    from tinygrad.helpers import Target
    from tinygrad.nn.state import get_state_dict
    from tinygrad.renderer.cstyle import ClangRenderer

    class Source(TinyCompiler):
        """A compiler whose result is the C itself."""

        def __init__(self) -> None:
            super().__init__(None)

        def compile(self, src: str) -> bytes:
            return src.encode()

    class Plain(ClangRenderer):
        """A renderer for one core, without vectors that only Clang knows."""

        has_threads = False
        supports_float4 = False

        def __init__(self) -> None:
            super().__init__(Target("CPU", arch="x86_64,native"))
            self.compiler = Source()

    x = Tensor(methods["forward"][0]).realize()
    layers = model.__closure__[0].cell_contents
    weights = {t.uop.base: t for t in get_state_dict(layers).values()}
    y = model(x)
    linear = y.schedule_linear()
    places = {x.uop.base: 0}
    for call in linear.src:
        for buffer in call.src[1:]:
            if buffer is not y.uop.base:
                places.setdefault(buffer, len(places))
    places[y.uop.base] = len(places)
    kernels = []
    for call in linear.src:
        (code,) = (part.arg for part in do_to_program(call.src[0], Plain()).src if part.op.name == "SOURCE")
        name = code.partition("(")[0].split()[-1]
        kernels.append((name, code, tuple(places[b] for b in call.src[1:])))
    held = [(int(np.prod(b.shape)), weights[b].numpy() if b in weights else None) for b in places]
    return Rendered(tuple(kernels), tuple(held))


def c_files(made: Rendered, name: str) -> dict[str, str]:
    """Return the kernels as a model with the interface of Baretorch's images, so that the same glue calls it."""
    offsets, at = {}, 0
    for i, (count, data) in enumerate(made.buffers):
        if data is None:
            offsets[i], at = at, at + 4 * count
    upper = name.upper()
    header = [
        "#include <stddef.h>",
        "#include <stdint.h>",
        f"extern uint32_t {name}_arena[{at // 4}];",
        f"#define {upper}_X ((float *)(void *)((uint8_t *){name}_arena + {offsets[0]}))",
        f"#define {upper}_Y ((float *)(void *)((uint8_t *){name}_arena + {offsets[len(made.buffers) - 1]}))",
        f"void {name}_run(const float *x, float *y);",
    ]
    body = ['#include "kernels/bt.h"', '#include "model.h"', f"BT_ARENA({name}) uint32_t {name}_arena[{at // 4}];"]
    for i, (count, data) in enumerate(made.buffers):
        if data is not None:
            body.append(f"BT_WEIGHTS(w{i}) static const float w{i}[{count}] = {{\n{values(data)}\n}};")
    body += [f"static {code.strip()}" for _, code, _ in made.kernels]
    body += [f"void {name}_run(const float *x, float *y)", "{", "    (void)x;", "    (void)y;"]
    for kernel, _, buffers in made.kernels:
        args = (
            f"(float *)w{b}"
            if made.buffers[b][1] is not None
            else f"(float *)(void *)({name}_arena + {offsets[b] // 4})"
            for b in buffers
        )
        body.append(f"    {kernel}({', '.join(args)});")
    return {"model.h": "\n".join(header) + "\n", "model.c": "\n".join([*body, "}", ""])}


def measure_all() -> list[dict[str, Any]]:
    model, int8 = (pipeline.lower_file(str(MODEL), Options(int8=int8)) for int8 in (False, True))
    made = render()
    rows = []
    for name in BOARDS:
        board, folder = load_board(name), ROOT / "build" / "bench" / f"tinygrad-{name}"
        options = Options(toolchain=Compiler(TOOLCHAIN), console=Console.UART)
        compiled = pipeline.compile_lowered(model, board, options)
        small = pipeline.compile_lowered(int8.with_io(Io.INT8), board, replace(options, io=Io.INT8))
        rows.append(_theirs(made, compiled, folder / "tinygrad") | {"made_by": "tinygrad"})
        rows += [_ours(c, folder / f"baretorch-{dtype}") for dtype, c in (("float32", compiled), ("int8", small))]
    return rows


KEPT = ("model", "board", "toolchain", "optimize", "dtype", "macs", "instructions", "flash", "ram", "max_error")


def _ours(compiled: pipeline.Compiled, folder: Path) -> dict[str, Any]:
    facts = measure_model(compiled, folder).facts.to_json()
    return {key: facts[key] for key in KEPT} | {"made_by": "Baretorch"}


def _theirs(made: Rendered, compiled: pipeline.Compiled, folder: Path) -> dict[str, Any]:
    """Return the figures of tinygrad's C in the same image, after checking its results."""
    files = {**c_files(made, compiled.graph.name), "glue.c": compiled.c.glue}
    files["kernels/bt.h"] = compiled.c.files["kernels/bt.h"]
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    sources = [folder / "model.c", folder / "glue.c"]
    image = build(compiled.graph.name, compiled.board, folder, sources, folder, compiled.c.run, TOOLCHAIN)
    machine = open_machine(image, compiled.c.run, None)
    try:
        run = run_on(machine, compiled.graph, compiled.source.examples)
    finally:
        machine.close()
    expected = compiled.source.expected
    assert expected is not None
    error = float(np.abs(run.outputs[0] - expected[0]).max())
    assert error < 1e-4, f"tinygrad's C gives another result: {error}"
    flash, ram = image.flash, image.ram
    return {
        "model": compiled.graph.name,
        "board": compiled.board.name,
        "toolchain": TOOLCHAIN,
        "optimize": compiled.options.optimize.value,
        "dtype": "float32",
        "macs": compiled.graph.macs(),
        "instructions": run.instructions,
        "flash": {"model_code": flash.model_code, "weights": flash.weights},
        "ram": {"arena": ram.arena, "stack": ram.stack},
        "max_error": error,
    }


def section(rows: Sequence[dict[str, Any]]) -> str:
    """Return the section of the page."""
    lines = [
        "## Compared with tinygrad's own C",
        "",
        "The model is the classifier of digits, 784-400-10, in `examples/mnist/in_tinygrad.py`. It is compiled by",
        "Baretorch, and compared with the float32 C that tinygrad 0.14.0 renders for each of its kernels, called in",
        "its order. Compiler, flags and the rest of the image are the same.",
        "",
        "| board | made by | type | instructions | per MAC | model code | weights | arena | stack | max error |",
        "|---|---|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for r in rows:
        numbers = (r["flash"]["model_code"], r["flash"]["weights"], r["ram"]["arena"], r["ram"]["stack"])
        cells = [r["board"], r["made_by"], r["dtype"], f"{r['instructions']:,}", f"{r['instructions'] / r['macs']:.2f}"]
        lines.append(line([*cells, *(f"{n:,}" for n in numbers), f"{r['max_error']:.1e}"]))
    return "\n".join(lines) + "\n"


def main() -> None:
    rows = measure_all()
    results = ROOT / "benchmarks" / "results.json"
    others = [row for row in json.loads(results.read_text()) if "made_by" not in row]
    results.write_text(json.dumps([*others, *rows], indent=1) + "\n")
    replace_section(section(rows))


if __name__ == "__main__":
    main()
