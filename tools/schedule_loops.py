"""Find the order of instructions in which hot assembly loops take the fewest cycles: `python tools/schedule_loops.py`.

It needs `pip install slothy==0.2.2`, in an environment of its own: neither Baretorch nor its tests use it. Cycles are
those of SLOTHY's models of Cortex-M7 and Cortex-M55, which say of themselves that they are approximate. The models lack
`sxtb16` and `vmladava`; here they learn these as if they were `pkhbt` and `vmlaldava`.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KERNELS = Path(__file__).parents[1] / "src" / "baretorch" / "kernels"


@dataclass(frozen=True)
class Loop:
    """The body of a loop: a number of lines of assembly, from the first that begins with `begin`."""

    file: str
    begin: str
    lines: int
    cpu: str
    registers: dict[str, str]

    def code(self) -> list[str]:
        found = re.findall(r'"([^"]*?)(?:\\n)?(?:\\t)?"', (KERNELS / self.file).read_text())
        first = next(i for i, line in enumerate(found) if line.startswith(self.begin))
        text = "\n".join(found[first : first + self.lines])
        for name, register in self.registers.items():
            text = text.replace(f"%[{name}]", register)
        return re.sub(r"\.[wn] ", " ", text).split("\n")


NAMES = ("odd", "x", "w0", "w1", "w", "even", "part", "low0", "both0", "low1", "both1")
ROWS = {name: f"r{i}" for i, name in enumerate(NAMES)}
FOUR = "ldrd %[w0], %[w1], [%[w]], #8"
LOOPS = (
    Loop("qlinear/dsp.c", FOUR, 17, "M7", ROWS),
    Loop("dsp_rows.h", FOUR, 17, "M7", ROWS),
    Loop("qlinear/mve.c", "vldrb.u8 q0, [r10], #16", 9, "M55", {}),
)
# The loop of qconv2d/dsp.c, whose macros make the same twice: four taps of three positions and two channels.
CONV = ["ldrd r5, r6, [r1], #8"]
for _w in ("r5", "r6"):
    _sums = [f"smlad r{s}, {_w}, r{x}, r{s}" for s, x in ((10, 2), (11, 3), (12, 4), (7, 2), (8, 3), (9, 4))]
    CONV += ["ldm r0!, {r2-r4}", *_sums[:3], f"sxtb16 {_w}, {_w}", *_sums[3:]]


def targets() -> dict[str, tuple[Any, Any]]:
    """SLOTHY's architectures and models by CPU, with what they lack."""
    import slothy.targets.arm_v7m.arch_v7m as v7m
    import slothy.targets.arm_v7m.cortex_m7 as m7
    import slothy.targets.arm_v81m.arch_v81m as v81m
    import slothy.targets.arm_v81m.cortex_m55r1 as m55

    def instruction(base: type, name: str, pattern: str, **what: list[str]) -> type:
        return type(name, (base,), {"pattern": pattern, **what})

    def learn(model: Any, like: type, *new: type) -> None:
        for table in (model.execution_units, model.inverse_throughput, model.default_latencies):
            value = next(v for k, v in table.items() if like in (k if isinstance(k, tuple) else (k,)))
            table.update(dict.fromkeys(new, value))

    one = {"inputs": ["Ra"], "outputs": ["Rd"]}
    pairs = (
        instruction(v7m.Armv7mLogical, "sxtb16", "sxtb16<width> <Rd>, <Ra>", **one),
        instruction(v7m.Armv7mLogical, "sxtb16_ror", "sxtb16<width> <Rd>, <Ra>, <barrel><imm>", **one),
    )
    sums = {"inputs": ["Qn", "Qm"], "in_outs": ["Rda"]}
    learn(m7, v7m.pkhbt, *pairs)
    learn(m55, v81m.vmlaldava, instruction(v81m.MVEInstruction, "vmladava", "vmladava.<dt> <Rda>, <Qn>, <Qm>", **sums))
    for architecture in (v7m, v81m):
        architecture.Instruction.all_subclass_leaves = architecture.all_subclass_leaves(architecture.Instruction)
    slots: Callable[[Any], None] = m7.add_dsp_slot_constraint

    def with_pairs(model: Any) -> None:
        slots(model)
        model.restrict_slots_for_instructions_by_class(list(pairs), [0])

    m7.add_dsp_slot_constraint = with_pairs
    return {"M7": (v7m, m7), "M55": (v81m, m55)}


def scheduled(code: list[str], target: tuple[Any, Any], moved: bool, renamed: bool = False) -> tuple[int, list[str]]:
    """Cycles of a turn of the loop, turn after turn, as it is or in the best order, and that order."""
    from slothy import Slothy
    from slothy.core.heuristics import Heuristics
    from slothy.helper import SourceLine

    logger = logging.getLogger("slothy")
    config = Slothy(*target, logger=logger).config
    config.variable_size = config.inputs_are_outputs = True
    config.selftest = False  # it has no memory where the pointers point; Baretorch's tests judge what is kept
    config.timeout = 120
    config.constraints.stalls_first_attempt = 8
    config.constraints.allow_reordering, config.constraints.allow_renaming = moved, renamed
    config.sw_pipelining.enabled, config.sw_pipelining.allow_pre = True, False
    config.sw_pipelining.allow_post = False
    found = Heuristics.optimize_binsearch([SourceLine(line) for line in code], logger, config)
    lines = [line.to_string().split("//")[0].strip() for line in found.code]
    return int(found.cycles), [line for line in lines if line]


def main() -> int:
    logging.disable(logging.CRITICAL)
    known = targets()
    rows = [(loop.file, loop.cpu, loop.code()) for loop in LOOPS]
    for file, cpu, code in (*rows, ("qconv2d/dsp.c", "M7", CONV)):
        now, _ = scheduled(code, known[cpu], moved=False)
        best, order = scheduled(code, known[cpu], moved=True)
        free, _ = scheduled(code, known[cpu], moved=True, renamed=True)
        print(f"{file} on {cpu}: {len(code)} instructions, {now} cycles, {best} in the best order, "
              f"{free} with any registers", flush=True)  # fmt: skip
        if best < now:
            print("\n".join(f"    {line}" for line in order), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
