"""baretorch new: a model file to start from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from baretorch.cli.flags import takes
from baretorch.cli.verb import Answer, verb

if TYPE_CHECKING:
    from baretorch.errors import CompileError
    from baretorch.options import Options

KINDS = ("mlp", "cnn")


@verb("new")
@click.argument("file", type=click.Path())
@click.option("--kind", type=click.Choice(KINDS), help="Select a perceptron or a convolutional network. Default: mlp.")
@click.option(
    "--from", "model", type=click.Path(), metavar="MODEL", help="Refer to an .onnx, .tflite, .pte or .pt2 file."
)
@takes("trust", "shape", "fix")
def new(as_json: bool, file: str, kind: str | None, model: str | None, options: Options) -> Answer:
    """Write a model file to start from.

    With --from, the file refers to an existing model and can hold its calibration data and task.
    """
    import os
    import shlex

    from baretorch.errors import CompileError
    from baretorch.escape import markup
    from baretorch.files.write import create

    if kind and model:
        raise click.UsageError("--kind and --from exclude each other")
    path = Path(file)
    if path.suffix != ".py":
        raise CompileError(f"{file} is not a Python file", need="a name that ends with .py", try_=f"{file}.py")
    if os.path.lexists(path):
        raise _exists(file)
    text = _starter(file, kind or "mlp") if model is None else _for_model(file, model, options)
    try:
        create(path, text)
    except FileExistsError:
        raise _exists(file) from None
    following = f"baretorch run {shlex.quote(file)} --board pico2w"
    data = {"file": file, **({"from": model} if model else {"kind": kind or "mlp"}), "next": following}
    return Answer(data, f"wrote {markup(file)}; now try\n  {markup(following)}")


def _exists(file: str) -> CompileError:
    from baretorch.errors import CompileError

    return CompileError(f"{file} exists already", have="the existing file, which is unchanged", try_="another name")


def _starter(file: str, kind: str) -> str:
    import shlex

    from baretorch.escape import python_text

    text = (Path(__file__).parent / "starters" / f"{kind}.py").read_text()
    return text.replace("FILE", python_text(shlex.quote(file)))


def _for_model(file: str, model: str, options: Options) -> str:
    """Return a file that refers to the model, with inputs of the right shapes."""
    import os
    import shlex

    from baretorch.errors import CompileError
    from baretorch.escape import python_text
    from baretorch.frontends.calibration import examples_of
    from baretorch.pipeline import read

    if model.endswith(".py"):
        raise CompileError(f"{model} is a Python file already", need="a file that holds a model")
    graph = read(model, options=options).graph
    there = Path(os.path.relpath(model, Path(file).parent)).as_posix()
    text = (Path(__file__).parent / "starters" / "named.py").read_text()
    if examples_of(Path(model), graph, []) is not None:
        text = _without_inputs(text)
    takes = graph.takes()
    arrays = ((_array(port.shape, port.dtype.label), python_text(port.tensor.name)) for port in takes)
    inputs = "".join(f"        {array},  # {name}\n" for array, name in arrays)
    return (
        text.replace("FILE", python_text(shlex.quote(file)))
        .replace('"MODEL"', f'"{python_text(there)}"')
        .replace("        rng.standard_normal((1, 1), np.float32),  # NAME\n", inputs)
    )


def _without_inputs(text: str) -> str:
    """Remove inputs(); the first sample of the .npz next to the model replaces it."""
    head, _, rest = text.partition("def inputs()")
    _, _, tail = rest.partition("    )\n")
    head = head.replace("from typing import Any\n\nimport numpy as np\n", "")
    return f"{head}# Example inputs: the first sample of the inputs.npz or calibration.npz next to the model.\n{tail}"


def _array(shape: tuple[int, ...], label: str) -> str:
    """Return Python code that makes random numbers of a type."""
    if label == "float32":
        return f"rng.standard_normal({shape}, np.float32)"
    return f"rng.integers(0, 2, {shape}).astype(np.{label}{'_' if label == 'bool' else ''})"
