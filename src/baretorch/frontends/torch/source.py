"""Converts torch.export's results to a Source: from an nn.Module, a Python model file, or a .pt2. torch is imported
when it is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from baretorch.frontends.aten.methods import LoweredMethods, share_state
from baretorch.frontends.aten.program import AtenProgram, check_program_sizes
from baretorch.frontends.source import LoadRequest, Source, Torch, one_of, random_inputs
from baretorch.ir.graph import Array
from baretorch.ir.io import Runner
from baretorch.passes.equivalence import Reference
from baretorch.stopwatch import timed


def from_module(module: Any, inputs: Sequence[Any], name: str) -> Source:
    """Make a Source of an nn.Module and its example inputs."""
    return from_methods(module, {"forward": tuple(inputs)}, name)


def from_methods(module: Any, methods: Mapping[str, tuple[Any, ...]], name: str, method: str | None = None) -> Source:
    """Make a Source of an nn.Module with example inputs for each of its methods."""
    from baretorch.frontends.torch import export as torch_export
    from baretorch.frontends.torch.notices import collect
    from baretorch.frontends.torch.plain import writes

    method = one_of(methods, method)
    module = getattr(module, "_orig_mod", module)  # the module inside torch.compile's
    for m, x in methods.items():
        torch_export.check_inputs(module, x, m, "inputs()" if m == "forward" else f"methods() of {m!r}")
    with collect() as heard:
        made = export_methods(module, methods)
        source = _source(name, method, made)
    notes = () if writes(made.plain[method]) else torch_export.batch_notes(made.module, methods[method], method)
    return replace(source, warnings=tuple(heard), notes=(*source.notes, *notes))


def export_methods(module: Any, methods: Mapping[str, tuple[Any, ...]]) -> Torch:
    """Export each method of a module."""
    from baretorch.frontends.torch import export as torch_export
    from baretorch.frontends.torch.snapshot import copy_module, restore_after

    changes = torch_export.check_module(module, methods)
    module = copy_module(module) if changes else module  # the user's own stays as it is
    programs = {}
    for m, x in methods.items():
        with restore_after(module) if changes else nullcontext():  # torch leaves fake tensors in the module
            programs[m] = torch_export.export_module(module, x, m)
    return Torch(module, methods, programs, *_plain(programs, methods, module, changes))


def load_pt2(request: LoadRequest) -> Source:
    """Load a file of torch.export.save."""
    from baretorch.frontends.pt2.reader import given_inputs, inputs_in_file, load_program, read_pt2, report_errors
    from baretorch.frontends.torch.notices import collect

    request.need_fixed("a .pt2")
    with timed("model"), collect() as heard:
        read, samples = load_program(request.file, request.trust)
        program = read_pt2(read, request.file, request.name)
        if not request.trust:
            check_program_sizes(program)  # before anything is computed
        args = inputs_in_file(samples, program) if request.inputs is None else given_inputs(request.inputs, program)
        methods = {} if args is None else {"forward": args}
        programs = {"forward": read}
        plain, references = report_errors(
            request.file, lambda: _plain(programs, methods, read.module(check_guards=False))
        )
        source = _source(request.name, "forward", Torch(None, methods, programs, plain, references), str(request.file))
        return replace(source, warnings=tuple(heard))


def _source(name: str, method: str, torch: Torch, file: str = "") -> Source:
    """Make the Source from a model's plain programs and from its outputs for the example inputs, if there are any."""
    from baretorch.frontends.torch.export import print_core_aten
    from baretorch.frontends.torch.read import read_plain

    plain, references = torch.plain, torch.references
    programs = share_state({m: replace(read_plain(p, name, plain.values()), file=file) for m, p in plain.items()})
    program, graphs = programs[method], LoweredMethods(programs)
    source = Source(
        name,
        graphs,
        random_inputs((i.stored, i.dtype) for i in program.inputs),
        method=method,
        notes=program.notes,
        texts={"aten": program.text, "core": lambda: print_core_aten(torch.exported[method])},
        calls=len(program.calls),
        calls_are="ATen call",
        torch=torch,
    )
    if method not in references:
        return source
    expected, again = in_memory(references[method], program)
    known = {m: for_passes(r, programs[m], plain[m], torch.inputs[m]) for m, r in references.items()}

    def eager() -> Runner:
        from baretorch.frontends.torch.export import InPyTorch
        from baretorch.frontends.torch.modes import orders_elements

        program = torch.exported[method]
        module = program.module(check_guards=False) if torch.module is None else torch.module
        return InPyTorch(module, method, torch.inputs[method], graphs[method], orders_elements(program))

    return replace(
        source,
        examples=known[method].inputs,
        expected=expected,
        expected_again=again,
        library="PyTorch",
        arithmetic=references[method].arithmetic,
        references=known,
        eager=eager,
    )


def _plain(
    exported: Mapping[str, Any], methods: Mapping[str, tuple[Any, ...]], module: Any, changes: bool = False
) -> tuple[dict[str, Any], dict[str, Reference]]:
    """Return the plain program of each method, and the module's outputs that it was checked with. If the module
    `changes` when it is called, its state is compared as well."""
    from baretorch.frontends.torch import export as torch_export
    from baretorch.frontends.torch.snapshot import copy_module
    from baretorch.frontends.torch.state import check_state

    made = {m: torch_export.make_functional(e) for m, e in exported.items()}
    for m, x in methods.items() if changes else ():
        check_state(module, m, made[m], x)
    state = any(program.graph_signature.buffers_to_mutate for program in made.values())
    references = {
        m: torch_export.outputs_of(copy_module(module) if state else module, m, made[m], x) for m, x in methods.items()
    }
    return torch_export.plain_programs(made, {m: (methods[m], references[m]) for m in methods}), references


def in_memory(reference: Reference, program: AtenProgram) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Return the outputs of the first and the second call, in the order of the C interface."""
    count = len(program.outputs)
    arranged = [
        np.array(a.transpose(program.output_orders[i % count]), order="C") for i, a in enumerate(reference.answers)
    ]
    return tuple(arranged[:count]), tuple(arranged[-count:])


def for_passes(reference: Reference, program: AtenProgram, plain: Any, inputs: Sequence[Any]) -> Reference:
    """Return the reference for the passes, with its inputs."""
    from baretorch.frontends.torch import export as torch_export
    from baretorch.frontends.torch.calls import flat_tensors

    if program.quantized:
        unrounded = torch_export.unrounded_reference(plain, inputs, reference.runs)
        reference = replace(unrounded, arithmetic=reference.arithmetic)
    flat = zip(flat_tensors(inputs), program.inputs, strict=True)
    return replace(reference, inputs=tuple(torch_export.to_numpy(x, i.order) for x, i in flat))
