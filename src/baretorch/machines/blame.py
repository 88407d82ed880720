"""Find the layer in which an image stopped: each step of a model is one call in the run function."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

from baretorch.firmware.calls import calls_in
from baretorch.firmware.types import Image
from baretorch.machines.code import Code, read_code
from baretorch.machines.types import DeviceFault
from baretorch.plan.types import Plan

TEAM = "bt_team"  # functions that cores of a cluster call for each other
OTHERS = ("mem", "bt_stream", "bt_meet", TEAM)  # memcpy, __aeabi_memcpy4 …: in no name of a layer


def step_at(code: Code, addresses: Iterable[int], steps: int, core: int = 0) -> int | None:
    """Return the number, from 0, of the core's step in which an image stopped.

    `addresses` are return addresses from inside to outside; the first one that belongs to a step counts. Return None if
    there is no such address, or if the compiler did not make exactly one call of each step.
    """
    home = code.core1_home if core else code.home
    both = code.parts[core - 1 : core] if core and code.parts else (home[:2], home[2:])
    homes = [(first, end) for first, end in both if first != end]
    for address in (a & ~1 for a in addresses):
        for first, end in homes:
            calls = list(_calls(code, first, end))
            returns = [after for after, name in calls if not any(other in name for other in OTHERS)]
            if len(returns) != steps:
                continue
            if address in returns:
                return returns.index(address)
            if any(after == address and TEAM in name for after, name in calls):  # before the next step
                return min(bisect_left(returns, address), steps - 1)
    return None


def calls_of(code: Code) -> dict[int, str]:
    """Return the names of the functions that a model's cores call for its steps and for each other, by return
    address."""
    homes = (code.home[:2], code.home[2:], *code.parts)
    return {after: name for first, end in homes if first != end for after, name in _calls(code, first, end)}


def _calls(code: Code, first: int, end: int) -> Iterator[tuple[int, str]]:
    """Yield the return address of each call in the function, in code order, and the called function's name if it is
    known."""
    for after, target in calls_in(code.elf, first, end):
        yield after, "" if target is None else code.function_at(target & ~1)


def layer_that_ran(plan: Plan, run: str, image: Image, fault: DeviceFault) -> list[str]:
    """Return the name of the layer that ran, in words, if the addresses of the fault show it. `run` is the name of the
    model's run function."""
    core = 1 if image.cores > 1 and "core 1" in str(fault) else 0
    places: list[tuple[int, tuple[int, ...]]] = [(core, fault.addresses)]
    if image.board.chip.is_team:  # the first address is that of the core that stopped
        places = [(each, (address,)) for address in fault.addresses for each in range(image.cores)]
    steps, code = plan.steps, read_code(image, run)
    for core, addresses in places:
        own = [n for n, step in enumerate(steps) if step.executor.host.number == core and not step.is_empty]
        number = step_at(code, addresses, len(own), core)
        if number is not None:
            y = steps[own[number]].call.y
            layers = list(dict.fromkeys(step.call.y.name for step in steps))  # cores may share a layer
            return [f"in layer {layers.index(y.name) + 1} of {len(layers)}: {y.layer}"]
    return []


def layers_between(plan: Plan, meeting: int) -> dict[int, list[str]]:
    """Return the layers that each core works on between two meetings, of which the first is that before all phases."""
    met, found = 1, dict[int, list[str]]()
    for phase in plan.phases:
        met += phase.meet
        for step in phase.steps if met == meeting else ():
            y = step.call.y
            found.setdefault(step.executor.number, []).append(y.layer)
    return found
