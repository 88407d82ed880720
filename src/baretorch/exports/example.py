"""Write example.h and example.c: an input of the model, the expected output, and a check that any program can call.

A float model is compared with the outputs of its own framework. An int8 model must return the exact bits of
docs/arithmetic.md. A model with state is compared in several consecutive runs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from baretorch.emit.c import c_type, float_literal, values
from baretorch.emit.names import CNames, CPort, Method, make_names
from baretorch.emit.spell import banner
from baretorch.errors import CompileError
from baretorch.frontends.consecutive_calls import start_reference
from baretorch.ir.graph import Array, interpret
from baretorch.ir.io import real_outputs, store_inputs
from baretorch.measure.facts import largest_magnitude as largest
from baretorch.measure.facts import tolerance_of
from baretorch.pipeline import Compiled

SHOWN = 16  # numbers of the first output that an example prints
STEPS = 4  # runs of a model with state, one after the other


@dataclass(frozen=True)
class Example:
    """The inputs and outputs of the model's first runs after a reset, in the types of the C interface; outputs that are
    halves as float32."""

    names: CNames
    inputs: tuple[Array, ...]  # of each run
    answers: tuple[tuple[Array, ...], ...]  # of each run all outputs
    allowed: float  # difference; 0 asks for the same bits
    judge: str

    @property
    def method(self) -> Method:
        return self.names.first

    @property
    def steps(self) -> int:
        return len(self.answers)

    @property
    def outputs(self) -> tuple[Array, ...]:
        """Return for each output its values in all runs."""
        return tuple(np.stack(each) for each in zip(*self.answers, strict=True))


def example_of(compiled: Compiled) -> Example:
    """Return the served method's example inputs and the expected outputs."""
    if len(compiled.plans) > 1:
        raise CompileError("a project has one method", have=", ".join(compiled.plans), try_="name it: MODEL::METHOD")
    names = make_names(compiled.graph.name, compiled.plans, compiled.c.checked)
    if any(p.pulled for p in names.first.inputs):
        raise CompileError("a project gives its model whole inputs", have="--input rows", try_="leave it out")
    inputs = tuple(store_inputs(compiled.graph, compiled.source.examples))
    if compiled.graph.is_int8 or any(t.is_quantized for t in compiled.graph.of(compiled.graph.outputs)):
        return Example(names, inputs, _interpret_runs(compiled, inputs), 0.0, "the arithmetic of int8, bit for bit")
    answers, judge = _run_original(compiled), compiled.source.library
    if answers is None:
        runs = _interpret_runs(compiled, inputs)
        answers, judge = tuple(real_outputs(compiled.graph, y) for y in runs), "the model's graph, in NumPy"
    return Example(names, inputs, answers, tolerance_of(compiled.source) * max(map(largest, answers)), judge)


def _interpret_runs(compiled: Compiled, inputs: tuple[Array, ...]) -> tuple[tuple[Array, ...], ...]:
    memory: dict[str, Array] = {}
    runs = range(STEPS if compiled.graph.state else 1)
    return tuple(tuple(interpret(compiled.graph, inputs, memory=memory).values()) for _ in runs)


def _run_original(compiled: Compiled) -> tuple[tuple[Array, ...], ...] | None:
    """Return the original model's outputs for the example, for several runs if it has state; None without the
    original."""
    source, graph = compiled.source, compiled.graph
    if source.expected is None:
        return None
    answers = [source.expected]
    if graph.state and source.eager is not None:
        ask = start_reference(source, graph)[0]()
        answers = [ask(source.examples) for _ in range(STEPS)]
    elif graph.state and source.expected_again is not None:
        answers.append(source.expected_again)
    types = [tensor.dtype.computed.numpy for tensor in graph.of(graph.outputs)]
    return tuple(tuple(map(np.asarray, ys, types)) for ys in answers)


def example_h(example: Example) -> str:
    name, up = example.names.model, example.names.model.upper()
    return f"""{banner(example.names, "an example, and its check")}
#ifndef {up}_EXAMPLE_H
#define {up}_EXAMPLE_H

#ifdef __cplusplus
extern "C" {{
#endif

{_run_comment(example)}
#define {up}_EXAMPLE_STEPS {example.steps}
void {name}_example_run(void);

/* Returns how many numbers of the last output differ from {example.judge}. */
int {name}_example_wrong(void);

/* The answer's first numbers, for people. */
#define {up}_EXAMPLE_SHOWN {min(SHOWN, example.answers[0][0].size)}
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
    for port, data in zip(method.outputs, example.outputs, strict=True):
        arrays.append(_array(f"{port.name}_expected", data, "BT_FLASH "))
        kind = method.plan.graph[port.operand.tensor].dtype.c
        arrays.append(f"static {kind} {port.name}_found[{max(data[0].size, 1)}];")
    arguments = ", ".join([f"{p.name}_given" for p in method.inputs] + [f"{p.name}_found" for p in method.outputs])
    checks = "\n".join(
        _check(method, p, data, example.allowed) for p, data in zip(method.outputs, example.outputs, strict=True)
    )
    state = bool(method.plan.graph.state)
    if state:
        arrays.append(f"static int32_t step = {example.steps - 1}; /* whose answer was found last */")
    begin = f"    step = (step + 1) % {example.steps};\n    if (step == 0)\n        {name}_reset();\n" if state else ""
    return f"""{banner(example.names, "an example, and its check")}
#include "kernels/bt.h"
{_header_of_halves(method)}
#include "example.h"
#include "model.h"

{chr(10).join(arrays)}

void {name}_example_run(void)
{{
{begin}    {method.run}({arguments});
}}

int {name}_example_wrong(void)
{{
    int wrong = 0;
{checks}
    return wrong;
}}

float {name}_example_answer(int i)
{{
    return {_real(method)};
}}
"""


def _header_of_halves(method: Method) -> str:
    halves = any(method.plan.graph[p.operand.tensor].dtype.is_half for p in method.outputs)
    return '#include "kernels/halves/halves.h"\n' if halves else ""


def _run_comment(example: Example) -> str:
    if not example.method.plan.graph.state:
        return "/* Runs the model on the example's input. To measure time, measure this. */"
    return (
        "/* Runs the model on the example's input once. To measure time, measure this. As the model remembers, each\n"
        f" * call is a step with an output of its own; after {example.steps} steps it is reset. */"
    )


def _array(name: str, data: Array, where: str = "") -> str:
    return f"static const {where}{c_type(data)} {name}[{max(data.size, 1)}] = {{\n{values(data) or 0}\n}};"


def _check(method: Method, port: CPort, data: Array, allowed: float) -> str:
    found = _output_value(method, port)
    at = "i" if len(data) == 1 else f"step * {data[0].size} + i"
    expected = f"{port.name}_expected[{at}]"
    differs = f"{found} != {expected}"
    if data.dtype == np.float32 and np.isnan(data).any():
        differs = f"({found} == {found} || {expected} == {expected}) && {differs}"
    if allowed > 0 and data.dtype == np.float32:
        difference = f"{found} - {expected}"
        limit = float_literal(allowed)
        differs = f"{differs} && !({difference} <= {limit} && {difference} >= -{limit})"
    return f"    for (int32_t i = 0; i < {data[0].size}; i++)\n        wrong += {differs};"


def _real(method: Method) -> str:
    port = method.outputs[0]
    tensor = method.plan.graph[port.operand.tensor]
    if tensor.is_quantized:
        return f"{port.macro}_SCALE * (float)({port.name}_found[i] - {port.macro}_ZERO_POINT)"
    return f"(float){_output_value(method, port)}"


def _output_value(method: Method, port: CPort) -> str:
    """Return an element of an output in C, widened if it is a half."""
    dtype = method.plan.graph[port.operand.tensor].dtype
    found = f"{port.name}_found[i]"
    return f"bt_from_{dtype.label}({found})" if dtype.is_half else found
