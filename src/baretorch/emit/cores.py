"""Generates a model's functions for other cores: a part of every run, or all runs on a second core.

Where both share the work, `NAME_run` on core 0 says what it works with, and meets core 1, which waits in `NAME_core1`;
then each does its part, and they meet between phases and at the end. Where the model has core 1 for itself,
`NAME_start` asks for a run by meeting core 1, and `NAME_done` sees it wait again when it is done.

The cores of a cluster are a team: they wait in `NAME_core`, and all of them meet at once.
"""

from __future__ import annotations

from baretorch.emit.names import CNames, Method
from baretorch.emit.spell import declare, parameters
from baretorch.escape import comment


def shares(method: Method) -> bool:
    """Report whether several cores work on a run."""
    return len(method.plan.schedule.cores) > 1


def cores_of(names: CNames) -> int:
    """Return the number of cores that an image needs."""
    return max(2 if names.alone else 1, *(len(m.plan.schedule.cores) for m in names.methods.values()))


def uses_core1(names: CNames) -> bool:
    return cores_of(names) > 1


def helpers(names: CNames) -> list[str]:
    """List the headers for communication between cores."""
    if not uses_core1(names):
        return []
    return ["team.h"] if names.team else ["cores.h"]


def meet(names: CNames, core: int) -> str:
    return "    bt_team_meet();" if names.team else f"    bt_meet(&{names.model}_meeting, {core});"


def job(names: CNames) -> str:
    """Declare the data that core 0 passes to the others."""
    if not uses_core1(names):
        return ""
    meeting = "" if names.team else f"static bt_meeting {names.model}_meeting;\n"
    others = "the other cores" if names.team else "core 1"
    fields = "".join(_fields(names, m) for m in names.methods.values())
    which = "    uint32_t method;\n" if len(names.methods) > 1 else ""
    runs = (
        f"static int {names.model}_runs; /* whether core 1 has a run to finish; core 0 reads it */\n"
        if names.alone
        else ""
    )
    return f"""{comment(f"The job that core 0 passes to {others}, which must not read it before they synchronize.")}
static volatile struct {{
{which}{fields}}} {names.model}_job;
{meeting}{runs}
"""


def _fields(names: CNames, method: Method) -> str:
    lines = "".join(f"        {field};\n" for field in arguments(names, method).values())
    return f"    struct {{\n{lines}    }} {method.prefix};\n"


def arguments(names: CNames, method: Method) -> dict[str, str]:
    """Return the parameters of a method that core 1 needs, with their declarations: all of them, or those that are not
    copied to and from the arena."""
    ports = method.ports if names.alone else method.callers.values()
    return {a.parameter: f"void *{a.parameter}" for a in method.arenas} | {p.name: declare(method, p) for p in ports}


def _job_arguments(names: CNames, method: Method) -> str:
    """Return the arguments of a method as core 1 reads them."""
    return ", ".join(f"{names.model}_job.{method.prefix}.{name}" for name in arguments(names, method))


def _set_job(names: CNames, method: Method, given: dict[str, str] | None = None) -> str:
    lines = [
        f"    {names.model}_job.{method.prefix}.{name} = {(given or {}).get(name, name)};"
        for name in arguments(names, method)
    ]
    if len(names.methods) > 1:
        lines.append(f"    {names.model}_job.method = {list(names.methods.values()).index(method)};")
    return "\n".join(lines)


def ask_core1(names: CNames, method: Method) -> str:
    """Return the code before the first phase, which starts core 1."""
    begin = "the others begin" if names.team else "core 1 begins"
    return f"{_set_job(names, method)}\n{meet(names, 0)} {comment(begin)}\n"


def part(names: CNames, method: Method, core: int, body: str) -> str:
    """Return the function with another core's part of a run."""
    given = arguments(names, method)
    unused = "".join(f"    (void){name};\n" for name in given)
    own = "BT_LAYER" if names.team else "static"  # it must be one function, which emulators know, with all its calls
    end = '\n    __asm__ volatile("");' if names.team else ""
    return f"""{own} void {method.prefix}_part{core}({", ".join(given.values())})
{{
{unused}{body}{end}
}}

"""


def core1(names: CNames) -> str:
    """Return the function that core 1 runs forever."""
    if not uses_core1(names):
        return ""
    if names.team:
        return _team(names)
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


def _team(names: CNames) -> str:
    """Return the function that each core except the first runs forever."""
    cases = "\n".join(
        f"        case {core}:\n{_calls(names, f'part{core}', core)}\n            break;"
        for core in range(1, cores_of(names))
    )
    return f"""
void {names.model}_core(uint32_t core)
{{
    for (;;) {{
    {meet(names, 0)}
        switch (core) {{
{cases}
        }}
    {meet(names, 0)}
    }}
}}
"""


def _calls(names: CNames, function: str, core: int = 1) -> str:
    methods = [m for m in names.methods.values() if names.alone or len(m.plan.schedule.cores) > core]
    if len(names.methods) == 1:
        return f"        {methods[0].prefix}_{function}({_job_arguments(names, methods[0])});"
    cases = "\n".join(
        f"        case {i}:\n            {m.prefix}_{function}({_job_arguments(names, m)});\n            break;"
        for i, m in enumerate(names.methods.values())
        if m in methods
    )
    return f"        switch ({names.model}_job.method) {{\n{cases}\n        }}"


def _on_core0(names: CNames) -> str:
    """Return the functions by which core 0 requests runs. A run is between two synchronizations: core 1 waits at the
    second when it is done."""
    model = names.model
    starts = "".join(
        f"""
void {m.prefix}_start({parameters(m)})
{{
    while (!{model}_done())
        bt_wait_event();
{_set_job(names, m, {a.parameter: a.name for a in m.arenas})}
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
