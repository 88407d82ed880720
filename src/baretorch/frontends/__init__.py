"""File or object -> Source: the ATen program, example inputs, and PyTorch's own answers to them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from baretorch.errors import CompileError
from baretorch.escape import LONGEST
from baretorch.frontends.limits import check_sizes
from baretorch.frontends.model_file import load_model_file, need_file
from baretorch.frontends.program import AtenProgram, AtenState
from baretorch.ir import Array
from baretorch.net import Reference
from baretorch.stopwatch import timed

NAMED = 60  # letters of a file's name that its model is called by
WEIGHT_FILES = (".pt", ".pth", ".bin", ".ckpt", ".safetensors")  # of torch.save, TorchScript, and other libraries
OF_WEIGHTS = (
    "a Python model file (`baretorch new` makes one) whose model() loads it",
    "torch.export.save(torch.export.export(model.eval(), inputs), 'net.pt2'), which keeps the program too",
)
ODD_INPUTS = "inputs: inputs() has NaN or infinite values, which hide differences between answers"
ODD_INT8 = (
    "inputs: inputs() has NaN or infinite values, which int8 cannot hold: its answers cannot be compared with float"
)


@dataclass(frozen=True)
class Source:
    """A model as read. `examples` are in the memory order of the C interface, `expected` what PyTorch gives for
    them, and `expected_again` what it gives for them once more, which differs if it remembers; None where there is no
    PyTorch model to ask. `exported` is torch's own program, where there is one. `method` is the one that this is all
    about; `methods` are all that are compiled, over shared weights."""

    name: str
    program: AtenProgram
    examples: tuple[Array, ...]
    expected: tuple[Array, ...] | None
    expected_again: tuple[Array, ...] | None = None
    module: Any = None
    torch_inputs: tuple[Any, ...] = ()
    exported: Any = None
    quantized: tuple[Array, ...] | None = None  # of an int8 model: what its pt2e reference gives for the examples
    float_program: AtenProgram | None = None  # of an int8 model: the program before it was quantized
    samples: tuple[tuple[Array, ...], ...] = ()  # of an int8 model: calibration data, as `examples` are
    kept_float: tuple[str, ...] = ()  # of an int8 model: layers that are float because the user said so
    warnings: tuple[str, ...] = ()
    method: str = "forward"
    methods: Mapping[str, AtenProgram] = field(default_factory=dict)
    method_inputs: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)  # of each, if there is a `module`
    plain: Any = None  # torch's program in the form that is read and quantized
    references: Mapping[str, Reference] = field(default_factory=dict)  # of each method, where PyTorch can be asked

    def __post_init__(self) -> None:
        check_name(self.name)
        if not self.methods:
            object.__setattr__(self, "methods", {self.method: self.program})


def check_name(name: str) -> None:
    """A model's name is part of C names and of the names of files."""
    if not re.fullmatch(r"[A-Za-z]\w*", name, flags=re.ASCII) or len(name) > LONGEST:
        shown = name if len(name) <= 40 else f"{name[:40]}…"
        raise CompileError(
            f"{shown!r} is no name for a model", need=f"at most {LONGEST} letters, digits and _, the first a letter"
        )


@dataclass(frozen=True)
class Int8:
    """How to quantize: layers to leave in float, and the observer ("histogram" or "minmax"). With `unless_done` a model
    that is quantized already stays as it is."""

    keep_float: tuple[str, ...] = ()
    observer: str = "histogram"
    unless_done: bool = False


def load(path: str, method: str | None = None, int8: Int8 | None = None, trust: bool = False) -> Source:
    """Read a model file: .py with model() and inputs(), .pt2, or .pte. Of several methods, `method` or the first.
    With `int8` a model file is quantized, with the data of its calibration(). A .py file is code and runs; of the
    others nothing does, unless it is a .pt2 that the user says to `trust`."""
    file = need_file(path)
    name = _name(file)
    if file.suffix == ".py":
        with timed("import"):
            import baretorch.frontends.torch_export

            if int8 is not None:
                import baretorch.quantize.flow  # noqa: F401
        with timed("model"):
            module, methods, calibration = load_model_file(file)
        with timed("export"):
            source = from_methods(module, methods, name, method)
        if int8 is None:
            return source
        with timed("quantize"):
            return quantized(source, int8, calibration)
    if int8:
        raise CompileError(f"--int8 quantizes model files, and {path} is already exported", need="a .py model file")
    with timed("model"):
        if file.suffix == ".pt2":
            return _from_pt2(file, name, trust)
        if file.suffix == ".pte":
            return _from_pte(file, name, method, trust)
    raise CompileError(
        f"{path}: unknown kind of model file {file.suffix!r}",
        need="a .py, .pt2 or .pte file",
        try_=OF_WEIGHTS if file.suffix in WEIGHT_FILES else None,
    )


def from_module(module: Any, inputs: Sequence[Any], name: str) -> Source:
    """An nn.Module and its example inputs."""
    return from_methods(module, {"forward": tuple(inputs)}, name)


def from_methods(module: Any, methods: Mapping[str, tuple[Any, ...]], name: str, method: str | None = None) -> Source:
    """An nn.Module and example inputs for each of its methods."""
    from baretorch.frontends import torch_export
    from baretorch.frontends.torch_read import read_plain

    method = _one_of(methods, method)
    inputs = methods[method]
    for m, x in methods.items():
        torch_export.check_inputs(module, x, m, "inputs()" if m == "forward" else f"methods() of {m!r}")
    exported = {m: torch_export.export_module(module, x, m) for m, x in methods.items()}
    plain, references = _plain(exported, methods, module)
    programs = shared_state({m: read_plain(p, name, plain.values()) for m, p in plain.items()})
    program = programs[method]
    expected, again = _answers(references[method], program)
    references = {m: _for_graph(r, programs[m], plain[m], methods[m]) for m, r in references.items()}
    return Source(
        name,
        program,
        references[method].inputs,
        expected,
        again,
        module,
        tuple(inputs),
        exported[method],
        expected if program.quantized else None,
        plain=plain[method],
        references=references,
        warnings=(ODD_INPUTS,) if torch_export.has_odd_values(inputs) else (),
        method=method,
        methods=programs,
        method_inputs=methods,
    )


def _plain(
    exported: Mapping[str, Any], methods: Mapping[str, tuple[Any, ...]], module: Any
) -> tuple[dict[str, Any], dict[str, Reference]]:
    """The plain program of each method, and the module's answers, which it was checked with."""
    from baretorch.frontends import torch_export

    made = {m: torch_export.functional(e) for m, e in exported.items()}
    state = any(program.graph_signature.buffers_to_mutate for program in made.values())
    references = {
        m: torch_export.reference_of(getattr(deepcopy(module) if state else module, m), made[m], x)
        for m, x in methods.items()
    }
    return torch_export.plain_programs(made, {m: (methods[m], references[m]) for m in methods}), references


def _answers(reference: Reference, program: AtenProgram) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """The first and the second answer, in the order of the C interface."""
    count = len(program.outputs)
    arranged = [
        np.array(a.transpose(program.output_orders[i % count]), order="C") for i, a in enumerate(reference.answers)
    ]
    return tuple(arranged[:count]), tuple(arranged[-count:])


def _for_graph(reference: Reference, program: AtenProgram, plain: Any, inputs: Sequence[Any]) -> Reference:
    """What the passes are held against, with its inputs."""
    from baretorch.frontends import torch_export

    if program.quantized:
        reference = torch_export.unrounded_reference(plain, inputs, reference.runs)
    flat = zip(torch_export.flat_inputs(inputs), program.inputs, strict=True)
    return replace(reference, inputs=tuple(torch_export.to_numpy(x, i.order) for x, i in flat))


def quantized(source: Source, int8: Int8, samples: Iterable[Any] | None) -> Source:
    """The same model in int8: `expected` stays what PyTorch gives in float, `quantized` is what pt2e's int8 gives."""
    from baretorch.frontends import torch_export
    from baretorch.frontends.torch_plain import answers
    from baretorch.frontends.torch_read import read_plain
    from baretorch.quantize.flow import quantize_module

    if source.program.quantized:
        if int8.unless_done:
            return source
        raise CompileError(
            "--int8: model() returns a model that is quantized already",
            try_="leave out --int8: it compiles to int8 as it is",
        )
    if len(source.methods) > 1:
        raise CompileError(
            "--int8: a model with several methods cannot be quantized yet", have=", ".join(source.methods)
        )
    reference = source.references[source.method]
    done = quantize_module(source.plain, source.torch_inputs, samples, reference, int8.keep_float, int8.observer)
    program = read_plain(done.module, source.name)
    reference = _for_graph(reference, program, done.module, source.torch_inputs)
    orders = [i.order for i in program.inputs]
    kept = (zip(torch_export.flat_inputs(sample), orders, strict=True) for sample in done.samples)
    return replace(
        source,
        program=program,
        methods={source.method: program},
        quantized=_answers(replace(reference, answers=answers(done.module, source.torch_inputs)), program)[0],
        references={source.method: reference},
        float_program=source.program,
        kept_float=int8.keep_float,
        samples=tuple(tuple(torch_export.to_numpy(x, order) for x, order in pairs) for pairs in kept),
        warnings=(*(ODD_INT8 if w == ODD_INPUTS else w for w in source.warnings), *done.warnings),
    )


def shared_state(programs: Mapping[str, AtenProgram]) -> dict[str, AtenProgram]:
    """What one method changes is state to all of them: those that only read it, and those that do not know it."""
    initial = {s.name: p.constants[s.name] for p in programs.values() for s in p.state}
    shared = {}
    for name, p in programs.items():
        own = {s.name: s for s in p.state}
        state = tuple(own.get(s, AtenState(s, s)) for s in initial)
        shared[name] = replace(p, state=state, constants={**p.constants, **initial})
    return shared


def _one_of(methods: Mapping[str, Any], wanted: str | None) -> str:
    if wanted is None:
        return next(iter(methods))
    if wanted not in methods:
        raise CompileError(f"the model has no method {wanted!r}", have=", ".join(methods))
    return wanted


def _from_pt2(file: Path, name: str, trust: bool) -> Source:
    from baretorch.frontends.pt2 import example_inputs, load_pt2, read_pt2, told
    from baretorch.frontends.torch_read import read_plain

    exported, samples = load_pt2(file, trust)
    program = read_pt2(exported, file, name)
    if not trust:
        check_sizes(program)  # before anything is computed
    args = example_inputs(samples, program)
    methods = {} if args is None else {"forward": args}
    plain, references = told(file, lambda: _plain({"forward": exported}, methods, exported.module(check_guards=False)))
    program = replace(read_plain(plain["forward"], name), file=str(file))
    if args is None:
        return Source(name, program, random_inputs(program), None, exported=exported)
    expected, again = _answers(references["forward"], program)
    reference = _for_graph(references["forward"], program, plain["forward"], args)
    return Source(
        name,
        program,
        reference.inputs,
        expected,
        again,
        torch_inputs=args,
        exported=exported,
        plain=plain["forward"],
        references={"forward": reference},
        quantized=expected if program.quantized else None,
    )


def _from_pte(file: Path, name: str, method: str | None, trust: bool) -> Source:
    from baretorch.frontends.pte import read_pte_methods

    read = read_pte_methods(file.read_bytes(), name, method)
    programs = shared_state({m: replace(p, file=str(file)) for m, p in read.items()})
    for program in programs.values() if not trust else ():
        check_sizes(program)
    method = _one_of(programs, method or ("forward" if "forward" in programs else None))
    return Source(name, programs[method], random_inputs(programs[method]), None, method=method, methods=programs)


def random_inputs(program: AtenProgram) -> tuple[Array, ...]:
    """Seeded inputs for a program that brings none."""
    rng = np.random.default_rng(0)
    arrays = []
    for i in program.inputs:
        shape = tuple(i.shape[d] for d in i.order)
        if i.dtype.numpy.kind == "f":
            arrays.append(rng.standard_normal(shape).astype(i.dtype.numpy))
        else:
            arrays.append(rng.integers(0, 2, shape).astype(i.dtype.numpy))
    return tuple(arrays)


def _name(file: Path) -> str:
    """The model's name: the file's, or its folder's if the file is just called model.py."""
    stem = file.resolve().parent.name if file.stem in ("model", "main") else file.stem
    name = "".join(c if c.isalnum() and c.isascii() else "_" for c in stem)[:NAMED].strip("_").lower()
    return name if name and not name[0].isdigit() else f"model_{name}".rstrip("_")
