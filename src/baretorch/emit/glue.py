"""Generates glue.c, which connects a method to the image's server; see runtime/bt_runtime.h."""

from __future__ import annotations

from baretorch.emit.cores import uses_core1
from baretorch.emit.names import CNames, CPort, Method
from baretorch.emit.spell import banner, copy_headers, port_tensor, word_count
from baretorch.escape import c_string, comment

RUN_ALONE = "bt_model_on_core1"  # asks core 1 for a run, and waits


def glue_c(names: CNames, method: Method) -> str:
    def rows(ports: tuple[CPort, ...]) -> str:
        return ", ".join(f"{{ (void *){_memory(p)}, {port_tensor(method, p).bytes}u }}" for p in ports)

    arguments = ", ".join(_argument(method, p) for p in method.ports)
    events = '#include "kernels/cores.h"\n' if names.alone else ""
    events += '#include "kernels/stream.h"\n' if "stream.h" in copy_headers(names) else ""
    run = f"{RUN_ALONE}()" if names.alone else f"{method.run}({arguments})"
    sources = "".join(_own(method, p) for p in method.ports)
    name = f"static const {names.flash}char name[] = {c_string(names.model)};\n" if names.flash else ""
    return f"""{banner(names, "its place in the image")}
{events}#include "bt_runtime.h"
#include "model.h"
{sources}
{name}static const {names.flash}bt_buffer inputs[] = {{ {rows(method.inputs)} }};
static const {names.flash}bt_buffer outputs[] = {{ {rows(method.outputs)} }};

const {names.flash}bt_model bt_the_model = {{
    .name = {"name" if names.flash else c_string(names.model)},
    .inputs = inputs,
    .outputs = outputs,
    .input_count = {len(method.inputs)},
    .output_count = {len(method.outputs)},
}};

{_alone(names, method, arguments) if names.alone else ""}{_core1(names) if uses_core1(names) else ""}\
{comment(f"Emulators count instructions from {RUN_ALONE if names.alone else method.run} to the label after its call.")}
__attribute__((noinline)) void bt_model_call(void)
{{
    {run};
    __asm__ volatile(".globl bt_model_returned\\nbt_model_returned:" ::: "memory");
}}

void bt_model_reset(void)
{{
{"    bt_stream_start();" + chr(10) if "stream.h" in copy_headers(names) else ""}\
    {f"{names.model}_reset();" if method.plan.state else "/* the model has no state */"}
}}
{_wrong_input(names, method) if names.checked else ""}"""


def _core1(names: CNames) -> str:
    if names.team:
        return f"""void bt_core_main(uint32_t core)
{{
    {names.model}_core(core);
}}

"""
    return f"""void bt_core1_main(void)
{{
    {names.model}_core1();
}}

"""


def _alone(names: CNames, method: Method, arguments: str) -> str:
    """Return a call that waits for core 1; an application would do other work meanwhile."""
    return f"""__attribute__((noinline)) void {RUN_ALONE}(void);
void {RUN_ALONE}(void)
{{
    {method.prefix}_start({arguments});
    while (!{names.model}_done())
        bt_wait_event();
}}

"""


def _wrong_input(names: CNames, method: Method) -> str:
    """Return the check that the server calls before a run."""
    texts = [c_string(p.operand.tensor) for p in method.inputs]
    arrays = "".join(f"static const {names.flash}char name{i}[] = {text};\n    " for i, text in enumerate(texts))
    listed = ", ".join(f"name{i}" if names.flash else text for i, text in enumerate(texts))
    given = ", ".join(f"(const {port_tensor(method, p).dtype.c} *){_memory(p)}" for p in method.inputs)
    return f"""
const {names.flash}char *bt_model_wrong_input(void)
{{
    {arrays if names.flash else ""}static const {names.flash}char *const {names.flash}names[] = {{ 0, {listed} }};
    return names[{method.check}({given})];
}}
"""


def _memory(port: CPort) -> str:
    """Return the address of a port for the server."""
    return f"bt_memory_{port.name}" if port.pulled or port.direct else port.macro


def _argument(method: Method, port: CPort) -> str:
    if port.pulled:
        return f"&bt_source_{port.name}"
    return f"({port_tensor(method, port).dtype.c} *)bt_memory_{port.name}" if port.direct else "NULL"


def _own(method: Method, port: CPort) -> str:
    """Declare the buffer of a port that is not in the arena."""
    if port.pulled:
        return _source(method, port)
    if port.direct:
        return f"\nstatic uint32_t bt_memory_{port.name}[{word_count(port_tensor(method, port).bytes)}];\n"
    return ""


def _source(method: Method, port: CPort) -> str:
    """Return the row callback for an image that the server stores whole. A camera would supply rows as they arrive."""
    t = port_tensor(method, port)
    row = t.bytes // t.shape[1]
    return f"""
static uint32_t bt_memory_{port.name}[{word_count(t.bytes)}];

static void bt_rows_{port.name}(void *context, int32_t first, int32_t count, void *to)
{{
    (void)context;
    __builtin_memcpy(to, (const uint8_t *)bt_memory_{port.name} + {row} * first, {row} * (size_t)count);
}}

static const bt_row_source bt_source_{port.name} = {{ bt_rows_{port.name}, NULL }};
"""
