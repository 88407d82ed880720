"""Read a file or object into a Source: a Graph per method, example inputs, and the original model's results.

A new kind of file is a file here with a loader, and a row in KINDS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from baretorch.errors import CompileError
from baretorch.frontends.calibration import calibration_of
from baretorch.frontends.choices import Arguments
from baretorch.frontends.model_file import from_object, load_python, need_file
from baretorch.frontends.onnx.source import load_onnx
from baretorch.frontends.pte.source import load_pte
from baretorch.frontends.source import LoadRequest, Source, check_name, random_inputs
from baretorch.frontends.tflite.source import load_tflite
from baretorch.frontends.torch.source import from_methods, from_module, load_pt2
from baretorch.options import DEFAULT, Options

__all__ = [
    "KINDS",
    "LoadRequest",
    "Source",
    "check_name",
    "from_methods",
    "from_module",
    "from_object",
    "load",
    "loader_of",
    "random_inputs",
]

NAMED = 60  # letters of a file's name that its model is called by
WEIGHT_FILES = (".pt", ".pth", ".bin", ".ckpt", ".safetensors")  # files of torch.save, TorchScript, and other libraries
OF_WEIGHTS = (
    "a Python model file (`baretorch new` makes one) whose model() loads it",
    "torch.export.save(torch.export.export(model.eval(), inputs), 'net.pt2'), which keeps the program too",
)


Loader: TypeAlias = Callable[[LoadRequest], Source]

KINDS: Mapping[str, Loader] = {
    ".py": lambda request: load_python(request, lambda named: loader_of(str(named.file))(named)),
    ".pt2": load_pt2,
    ".pte": load_pte,
    ".onnx": load_onnx,
    ".tflite": load_tflite,
}


def load(
    path: str, method: str | None = None, options: Options = DEFAULT, arguments: Arguments | None = None
) -> Source:
    """Read a model file: .py with model() and inputs(), .pt2, .pte, .onnx or .tflite. Of several methods, `method` or
    the first is selected. A .py file is code and runs, with these arguments for the choices that it offers. The other
    files run nothing, except a .pt2 that the user trusts."""
    loader, file = loader_of(path), Path(path)
    if arguments and file.suffix != ".py":
        raise CompileError(
            f"--config: {' and '.join(arguments)} cannot be chosen of {file.name}", need="a Python model file"
        )
    given = Path(options.calibration) if options.calibration else None
    request = LoadRequest(
        file,
        _name(file),
        method,
        options.trust,
        None,
        options.shapes,
        options.state,
        options.fix,
        given,
        arguments or {},
    )
    source = replace(loader(request), kind=file.suffix.removeprefix("."))
    model = source.named or file
    if given is None and (source.calibration is not None or model.suffix == ".py" or not options.int8):
        return source
    samples = calibration_of(model, given, source.graph)
    return replace(source, calibration=samples, warnings=(*source.warnings, *(samples.warnings if samples else ())))


def loader_of(path: str) -> Loader:
    """Return the loader of an existing file."""
    file = need_file(path)
    if file.suffix not in KINDS:
        *most, last = KINDS
        raise CompileError(
            f"{path}: unknown kind of model file {file.suffix!r}",
            need=f"a {', '.join(most)} or {last} file",
            try_=OF_WEIGHTS if file.suffix in WEIGHT_FILES else None,
        )
    return KINDS[file.suffix]


def _name(file: Path) -> str:
    """Return the model's name: the file's, or its folder's if the file is called model.py."""
    stem = file.resolve().parent.name if file.stem in ("model", "main") else file.stem
    name = "".join(c if c.isalnum() and c.isascii() else "_" for c in stem)[:NAMED].strip("_").lower()
    return name if name and not name[0].isdigit() else f"model_{name}".rstrip("_")
