"""baretorch new: a model file to start from."""

from __future__ import annotations

import click

from baretorch.cli.verb import Answer, verb

KINDS = ("mlp", "cnn")


@verb("new")
@click.argument("file", type=click.Path())
@click.option("--kind", type=click.Choice(KINDS), default="mlp", show_default=True, help="Perceptron or convolutions.")
def new(as_json: bool, file: str, kind: str) -> Answer:
    """Write a model file to start from."""
    import shlex
    from pathlib import Path

    from baretorch.errors import CompileError
    from baretorch.escape import markup, python_text

    path = Path(file)
    if path.suffix != ".py":
        raise CompileError(f"{file} is not a Python file", need="a name that ends with .py", try_=f"{file}.py")
    text = (Path(__file__).parent / "starters" / f"{kind}.py").read_text()
    text = text.replace("FILE", python_text(shlex.quote(file)))
    if path.exists():
        raise CompileError(f"{file} exists already", try_="another name; it is left as it is")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("x", encoding="utf-8")
        try:
            with stream:
                stream.write(text)
        except OSError:  # a full disk
            path.unlink()
            raise
    except OSError as error:
        raise CompileError(f"cannot write {file}", have=str(error)) from error
    following = f"baretorch run {shlex.quote(file)} --board pico2w"
    data = {"file": file, "kind": kind, "next": following}
    return Answer(data, f"wrote {markup(file)}; now try\n  {markup(following)}")
