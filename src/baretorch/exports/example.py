"""example.h and example.c: an input of the model, the answer it must give, and a check that any program can call.

A float model is held to what its own framework answered. An int8 model has to give the bits of docs/arithmetic.md,
which is more than a comparison with float could ask for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from baretorch.emit.c import c_type, float_literal, values
from baretorch.emit.names import Method, Names, make_names
from baretorch.emit.spell import banner
from baretorch.errors import CompileError
from baretorch.ir import Array, DType, interpret
from baretorch.pipeline import Compiled
from baretorch.ports import stored
from baretorch.report.facts import TOLERANCE, is_int8
from baretorch.report.facts import largest_magnitude as largest

SHOWN = 16  # numbers of the first output that an example prints


@dataclass(frozen=True)
class Example:
    """What an example knows of the model's first run after a reset, as the C interface has it."""

    names: Names
    inputs: tuple[Array, ...]
    expected: tuple[Array, ...]
    allowed: float  # difference; 0 asks for the same bits
    judge: str

    @property
    def method(self) -> Method:
        return self.names.first


def example_of(compiled: Compiled) -> Example:
    """The served method's example inputs and the answer to them."""
    if len(compiled.plans) > 1 or compiled.c.cores > 1:
        raise CompileError(
            "a project has one method on one core",
            have=f"{len(compiled.plans)} methods" if len(compiled.plans) > 1 else f"{compiled.c.cores} cores",
            try_="name a method with MODEL::METHOD, leave out --cores and --core",
        )
    names = make_names(compiled.graph.name, compiled.plans, compiled.c.checked)
    if any(p.pulled for p in names.first.inputs):
        raise CompileError("a project gives its model whole inputs", have="--input rows", try_="leave it out")
    inputs = tuple(stored(compiled.graph, compiled.source.examples))
    exact = tuple(interpret(compiled.graph, inputs).values())
    if is_int8(compiled.graph) or compiled.source.expected is None:
        return Example(names, inputs, exact, 0.0, "the arithmetic of int8, bit for bit")
    expected = tuple(np.asarray(y, e.dtype) for y, e in zip(compiled.source.expected, exact, strict=True))
    return Example(names, inputs, expected, TOLERANCE * largest(expected), compiled.source.library)


def example_h(example: Example) -> str:
    name, up = example.names.model, example.names.model.upper()
    return f"""{banner(example.names, "an example, and its check")}
#ifndef {up}_EXAMPLE_H
#define {up}_EXAMPLE_H

#ifdef __cplusplus
extern "C" {{
#endif

/* Runs the model on the example's input. To measure time, measure this. */
void {name}_example_run(void);

/* How many numbers of the answer differ from what {example.judge} says. */
int {name}_example_wrong(void);

/* The answer's first numbers, for people. */
#define {up}_EXAMPLE_SHOWN {min(SHOWN, example.expected[0].size)}
float {name}_example_answer(int i);

#ifdef __cplusplus
}}
#endif

#endif
"""


def example_c(example: Example) -> str:
    method, name = example.method, example.names.model
    arrays = []
    for port, data in zip(method.inputs, example.inputs, strict=True):
        arrays.append(_array(f"{port.name}_given", data))
    for port, data in zip(method.outputs, example.expected, strict=True):
        arrays.append(_array(f"{port.name}_expected", data))
        arrays.append(f"static {c_type(data)} {port.name}_found[{max(data.size, 1)}];")
    arguments = ", ".join([f"{p.name}_given" for p in method.inputs] + [f"{p.name}_found" for p in method.outputs])
    checks = "\n".join(
        _check(p.name, data, example.allowed) for p, data in zip(method.outputs, example.expected, strict=True)
    )
    reset = f"    {name}_reset();\n" if method.plan.graph.state else ""
    return f"""{banner(example.names, "an example, and its check")}
#include "kernels/bt.h"

#include "example.h"
#include "model.h"

{chr(10).join(arrays)}

void {name}_example_run(void)
{{
{reset}    {method.run}({arguments});
}}

int {name}_example_wrong(void)
{{
    int wrong = 0;
{checks}
    return wrong;
}}

float {name}_example_answer(int i)
{{
    return {_real(method, example.expected[0])};
}}
"""


def _array(name: str, data: Array) -> str:
    return f"static const {c_type(data)} {name}[{max(data.size, 1)}] = {{\n{values(data) or 0}\n}};"


def _check(port: str, data: Array, allowed: float) -> str:
    differs = f"{port}_found[i] != {port}_expected[i]"
    if data.dtype == np.float32 and np.isnan(data).any():
        differs = f"({port}_found[i] == {port}_found[i] || {port}_expected[i] == {port}_expected[i]) && {differs}"
    if allowed > 0 and data.dtype == np.float32:
        difference = f"{port}_found[i] - {port}_expected[i]"
        limit = float_literal(allowed)
        differs = f"{differs} && !({difference} <= {limit} && {difference} >= -{limit})"
    return f"    for (int32_t i = 0; i < {data.size}; i++)\n        wrong += {differs};"


def _real(method: Method, first: Array) -> str:
    port = method.outputs[0]
    tensor = method.plan.graph[port.operand.tensor]
    if tensor.dtype is DType.INT8 and tensor.quant is not None:
        return f"{port.macro}_SCALE * (float)({port.name}_found[i] - {port.macro}_ZERO_POINT)"
    return f"(float){port.name}_found[i]"
