"""Source -> the same in int8."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from baretorch.errors import CompileError
from baretorch.frontends.aten.source import Lowered
from baretorch.frontends.source import ODD_INPUTS, ODD_INT8, Int8, Source
from baretorch.frontends.torch.export import flat_inputs, to_numpy
from baretorch.frontends.torch.plain import answers
from baretorch.frontends.torch.read import read_plain
from baretorch.frontends.torch.source import for_passes, in_memory
from baretorch.quantize.flow import quantize_module


def quantized(source: Source, int8: Int8, samples: Iterable[Any] | None) -> Source:
    """The same model in int8: `expected` stays what PyTorch gives in float, `quantized` is what pt2e's int8 gives."""
    if source.quantized is not None:
        if int8.unless_done:
            return source
        raise CompileError(
            "--int8: model() returns a model that is quantized already",
            try_="leave out --int8: it compiles to int8 as it is",
        )
    if len(source.graphs) > 1:
        raise CompileError(
            "--int8: a model with several methods cannot be quantized yet", have=", ".join(source.graphs)
        )
    if source.torch is None or source.method not in source.references:
        raise CompileError(
            f"{source.name} cannot be quantized: it does not come from PyTorch with its example inputs",
            need="an nn.Module, or a .py model file",
        )
    method, plain, inputs = source.method, source.torch.plain[source.method], source.torch.inputs[source.method]
    reference = source.references[method]
    done = quantize_module(plain, inputs, samples, reference, int8.keep_float, int8.observer)
    program = read_plain(done.module, source.name)
    reference = for_passes(reference, program, done.module, inputs)
    orders = [i.order for i in program.inputs]
    kept = (zip(flat_inputs(sample), orders, strict=True) for sample in done.samples)
    return replace(
        source,
        graphs=Lowered({method: program}),
        float_graphs=source.graphs,
        texts={**source.texts, "aten": program.text},
        calls=len(program.calls),
        notes=program.notes,
        quantized=in_memory(replace(reference, answers=answers(done.module, inputs)), program)[0],
        references={method: reference},
        kept_float=int8.keep_float,
        samples=tuple(tuple(to_numpy(x, order) for x, order in pairs) for pairs in kept),
        warnings=(*(ODD_INT8 if w == ODD_INPUTS else w for w in source.warnings), *done.warnings),
    )
