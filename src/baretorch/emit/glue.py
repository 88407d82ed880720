"""glue.c: what ties a method to the image's server; see runtime/bt_runtime.h."""

from __future__ import annotations

from baretorch.emit.names import Method, Names, Port
from baretorch.emit.spell import banner, tensor_of


def glue_c(names: Names, method: Method) -> str:
    def rows(ports: tuple[Port, ...]) -> str:
        return ", ".join(f"{{ (void *){p.macro}, {tensor_of(method, p).bytes}u }}" for p in ports)

    nulls = ", ".join("NULL" for _ in method.ports)
    return f"""{banner(names, "its place in the image")}
#include "bt_runtime.h"
#include "model.h"

static const bt_buffer inputs[] = {{ {rows(method.inputs)} }};
static const bt_buffer outputs[] = {{ {rows(method.outputs)} }};

const bt_model bt_the_model = {{
    .name = "{names.model}",
    .inputs = inputs,
    .outputs = outputs,
    .input_count = {len(method.inputs)},
    .output_count = {len(method.outputs)},
}};

/* Emulators count instructions from {method.run} to the label behind its call. */
__attribute__((noinline)) void bt_model_call(void)
{{
    {method.run}({nulls});
    __asm__ volatile(".globl bt_model_returned\\nbt_model_returned:" ::: "memory");
}}

void bt_model_reset(void)
{{
    {f"{names.model}_reset();" if method.plan.state else "/* it remembers nothing */"}
}}
"""
