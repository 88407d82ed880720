"""baretorch export: a standard .pte for ExecuTorch's own runtime."""

from __future__ import annotations

import click

from baretorch.cli.flags import model_argument, takes
from baretorch.cli.verb import Answer, stages, verb
from baretorch.options import Options


@verb("export")
@model_argument
@click.option("--out", type=click.Path(), metavar="FILE", required=True, help="The .pte file to write.")
@takes()
def export(as_json: bool, model: str, options: Options, out: str) -> Answer:
    """Write a standard ExecuTorch .pte."""
    from pathlib import Path

    from baretorch.cli.work import read_model
    from baretorch.errors import CompileError
    from baretorch.escape import markup
    from baretorch.frontends.pte.export import write_programs

    with stages(as_json) as stage:
        source = read_model(model, options, stage)
        if source.torch is None or source.torch.module is None:
            raise CompileError(
                f"{model} holds no nn.Module to export",
                need="a Python file whose model() returns an nn.Module",
            )
        stage("export to ExecuTorch")
        info = write_programs(source.torch, Path(out))
    calls = ", ".join(f"{name} x{count}" if count > 1 else name for name, count in info.operators.items())
    data = {
        "model": source.name,
        "file": out,
        "bytes": info.bytes,
        "operators": dict(info.operators),
        "notes": list(info.notes),
    }
    lines = [f"[cyan]{markup(out)}[/]  {info.bytes:,} bytes", f"operators: {calls}", *map(markup, info.notes)]
    return Answer(data, "\n".join(lines))
