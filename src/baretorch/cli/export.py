"""baretorch export: a standard .pte for ExecuTorch's own runtime."""

from __future__ import annotations

import click

from baretorch.cli.flags import INT8, model_argument, takes
from baretorch.cli.verb import Answer, board_name_option, show_progress, verb
from baretorch.options import Options


@verb("export")
@model_argument
@click.option("--out", type=click.Path(), metavar="FILE", required=True, help="Write this .pte file.")
@click.option(
    "--npu", "delegate", is_flag=True, help="Delegate an int8 model, except conversions, to the board's Ethos-U."
)
@board_name_option("Compile for the NPU of this board.")
@takes(*INT8)
def export(as_json: bool, model: str, options: Options, out: str, delegate: bool, board: str | None) -> Answer:
    """Write a standard ExecuTorch .pte."""
    from pathlib import Path

    from baretorch.cli.stages import lower_model, read_source
    from baretorch.errors import CompileError
    from baretorch.escape import markup
    from baretorch.exports.ethos_u_pte import write_npu_pte
    from baretorch.frontends.pte.export import write_programs
    from baretorch.targets.boards import load_board

    if delegate != (board is not None):
        raise click.UsageError("--npu and --board go together: a delegate is for one NPU")
    if not delegate and (options.int8 or options.io is not None):
        raise click.UsageError("--int8 and --io go with --npu: models for ExecuTorch on a CPU are exported in float")
    target = load_board(board) if board else None
    with show_progress(as_json) as progress:
        source = read_source(model, options, progress)
        if target is not None:
            lowered = lower_model(source, options, progress)
            progress("compile for the NPU")
            info = write_npu_pte(lowered, target, Path(out))
        elif source.torch is None or source.torch.module is None:
            raise CompileError(
                f"{model} holds no nn.Module to export", need="a Python file whose model() returns an nn.Module"
            )
        else:
            progress("export to ExecuTorch")
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
