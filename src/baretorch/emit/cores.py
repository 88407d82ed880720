"""What a model has for a second core: a part of every run, or all runs.

Where both share the work, `NAME_run` on core 0 says what it works with, and meets core 1, which waits in `NAME_core1`;
then each does its part, and they meet between phases and at the end. Where the model has core 1 for itself,
`NAME_start` asks for a run by meeting core 1, and `NAME_done` sees it wait again when it is done.
"""

from __future__ import annotations

from baretorch.emit.names import Method, Names
from baretorch.emit.spell import declared, parameters
from baretorch.plan.types import Executor


def shares(method: Method) -> bool:
    """Whether both cores work on a run."""
    return Executor.CORE1 in method.plan.schedule.executors


def uses_core1(names: Names) -> bool:
    return names.alone or any(map(shares, names.methods.values()))


def meet(names: Names, core: int) -> str:
    return f"    bt_meet(&{names.model}_meeting, {core});"


def job(names: Names) -> str:
    """What core 0 tells core 1."""
    if not uses_core1(names):
        return ""
    fields = "".join(_fields(names, m) for m in names.methods.values())
    which = "    uint32_t method;\n" if len(names.methods) > 1 else ""
    runs = f"static int {names.model}_runs; /* core 1 was asked for a run; for core 0 */\n" if names.alone else ""
    return f"""/* What core 0 tells core 1, which must not read it before they meet. */
static volatile struct {{
{which}{fields}}} {names.model}_job;
static bt_meeting {names.model}_meeting;
{runs}
"""


def _fields(names: Names, method: Method) -> str:
    lines = "".join(f"        {field};\n" for field in arguments(names, method).values())
    return f"    struct {{\n{lines}    }} {method.prefix};\n"


def arguments(names: Names, method: Method) -> dict[str, str]:
    """What core 1 needs of what a method is called with, and how that is declared: all of it, or what is not copied to
    and from the arena."""
    ports = method.ports if names.alone else method.callers.values()
    return {a.parameter: f"void *{a.parameter}" for a in method.arenas} | {p.name: declared(method, p) for p in ports}


def _told(names: Names, method: Method) -> str:
    """What a method was called with, as core 1 finds it."""
    return ", ".join(f"{names.model}_job.{method.prefix}.{name}" for name in arguments(names, method))


def _tell(names: Names, method: Method, given: dict[str, str] | None = None) -> str:
    lines = [
        f"    {names.model}_job.{method.prefix}.{name} = {(given or {}).get(name, name)};"
        for name in arguments(names, method)
    ]
    if len(names.methods) > 1:
        lines.append(f"    {names.model}_job.method = {list(names.methods.values()).index(method)};")
    return "\n".join(lines)


def ask_core1(names: Names, method: Method) -> str:
    """Before the first phase."""
    return f"{_tell(names, method)}\n{meet(names, 0)} /* core 1 begins */\n"


def core1_part(names: Names, method: Method, body: str) -> str:
    """A function with what core 1 does of a run."""
    given = arguments(names, method)
    unused = "".join(f"    (void){name};\n" for name in given)
    return f"""static void {method.prefix}_part1({", ".join(given.values())})
{{
{unused}{body}
}}

"""


def core1(names: Names) -> str:
    """What core 1 runs for ever."""
    if not uses_core1(names):
        return ""
    return f"""{_on_core0(names) if names.alone else ""}
void {names.model}_core1(void)
{{
    for (;;) {{
    {meet(names, 1)}
{_calls(names, "run_in" if names.alone else "part1")}
    {meet(names, 1)}
    }}
}}
"""


def _calls(names: Names, function: str) -> str:
    methods = list(names.methods.values())
    if len(methods) == 1:
        return f"        {methods[0].prefix}_{function}({_told(names, methods[0])});"
    cases = "\n".join(
        f"        case {i}:\n            {m.prefix}_{function}({_told(names, m)});\n            break;"
        for i, m in enumerate(methods)
    )
    return f"        switch ({names.model}_job.method) {{\n{cases}\n        }}"


def _on_core0(names: Names) -> str:
    """How core 0 asks for runs. A run is between two meetings: core 1 waits at the second when it is done."""
    model = names.model
    starts = "".join(
        f"""
void {m.prefix}_start({parameters(m)})
{{
    while (!{model}_done())
        bt_wait_event();
{_tell(names, m, {a.parameter: a.name for a in m.arenas})}
    {model}_runs = 1;
{meet(names, 0)}
}}
"""
        for m in names.methods.values()
    )
    return f"""
int {model}_done(void)
{{
    if ({model}_runs && bt_other_waits(&{model}_meeting, 0)) {{
    {meet(names, 0)}
        {model}_runs = 0;
    }}
    return !{model}_runs;
}}
{starts}"""
