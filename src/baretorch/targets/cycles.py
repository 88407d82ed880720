"""List the clock cycles that a core takes for each kind of instruction, with their possible range.

Memories answer at once in these tables: no wait states of flash, no caches that miss, no other user of the bus.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple


class Kind(Enum):
    """Kinds of instructions that take the same time on a core.

    FLOAT is scalar floating point, VECTOR is Helium. A MANY moves several registers. The last six are AVR's."""

    ALU = auto()
    MULTIPLY = auto()
    MULTIPLY_LONG = auto()
    DIVIDE = auto()
    LOAD = auto()
    STORE = auto()
    LOAD_MANY = auto()
    STORE_MANY = auto()
    BRANCH = auto()
    CALL = auto()
    CALL_BY_REGISTER = auto()  # BLX
    RETURN = auto()  # and other jumps to an address in a register
    LOOP_END = auto()  # LE, LETP
    FLOAT = auto()
    FLOAT_MULTIPLY_ADD = auto()
    FLOAT_DIVIDE = auto()
    VECTOR = auto()
    VECTOR_LOAD = auto()
    VECTOR_STORE = auto()
    PAIR = auto()  # arithmetic of two registers, or a bit of a peripheral
    LOAD_CODE = auto()  # LPM: from flash
    SKIP = auto()  # may skip the next instruction, of one word
    SKIP_LONG = auto()  # may skip one of two words
    JUMP_FAR = auto()  # JMP
    CALL_FAR = auto()  # CALL


CALLS = frozenset({Kind.CALL, Kind.CALL_BY_REGISTER, Kind.CALL_FAR})


class Work(NamedTuple):
    """The work of an instruction; `registers` counts those that a MANY moves, the program counter included."""

    kind: Kind
    registers: int = 1


@dataclass(frozen=True)
class CycleCost:
    """Cycles of one instruction: as expected, at best and at worst.

    `each` is for every register of a MANY. `paired` is expected where the instruction before is one of FRIENDS.
    `taken` is what is added when control goes elsewhere: `expected`, `best`, `worst` hold for going straight on.
    """

    expected: float
    best: float
    worst: float
    each: float = 0
    paired: float | None = None
    taken: tuple[float, float, float] = (0, 0, 0)  # expected, best, worst


# Which kinds overlap with which before them: neighbouring single loads and stores share their address phases, and
# Helium works on the halves of a load and of a computation at the same time.
FRIENDS: Mapping[Kind, frozenset[Kind]] = {
    Kind.LOAD: frozenset({Kind.LOAD, Kind.STORE}),
    Kind.STORE: frozenset({Kind.LOAD, Kind.STORE}),
    Kind.VECTOR: frozenset({Kind.VECTOR_LOAD, Kind.VECTOR_STORE}),
    Kind.VECTOR_LOAD: frozenset({Kind.VECTOR}),
    Kind.VECTOR_STORE: frozenset({Kind.VECTOR}),
}


@dataclass(frozen=True, eq=False)  # hashed by identity, since CPUs are keys of caches
class Timing:
    """The costs of a core, and their source."""

    source: str
    costs: Mapping[Kind, CycleCost]  # a kind that is not in it costs `other`
    other: CycleCost = CycleCost(1, 1, 1)
    exact: bool = False  # the costs have no range, so cycles are exact

    def cost(self, kind: Kind) -> CycleCost:
        return self.costs.get(kind, self.other)


def _armv6m(refill: int) -> dict[Kind, CycleCost]:
    """Return the costs of M0 and M0+, which differ in the length of the pipeline: `refill` cycles for a branch, one
    more for a BL."""
    branch = (refill,) * 3
    call = (refill + 1,) * 3
    return {
        Kind.LOAD: CycleCost(2, 2, 2),
        Kind.STORE: CycleCost(2, 2, 2),
        Kind.LOAD_MANY: CycleCost(1, 1, 1, each=1, taken=call),
        Kind.STORE_MANY: CycleCost(1, 1, 1, each=1),
        Kind.BRANCH: CycleCost(1, 1, 1, taken=branch),
        Kind.CALL: CycleCost(1, 1, 1, taken=call),
        Kind.CALL_BY_REGISTER: CycleCost(1, 1, 1, taken=branch),
        Kind.RETURN: CycleCost(1, 1, 1, taken=branch),
    }


_JUMP = (2, 1, 3)  # the reference manuals of M3 and M4 state 1 to 3 cycles to refill the pipeline, mostly 2

_M3 = {
    Kind.MULTIPLY: CycleCost(1.5, 1, 2),
    Kind.MULTIPLY_LONG: CycleCost(5, 3, 7),
    Kind.DIVIDE: CycleCost(6, 2, 12),
    Kind.LOAD: CycleCost(2, 1, 2, paired=1),
    Kind.STORE: CycleCost(1, 1, 2, paired=1),
    Kind.LOAD_MANY: CycleCost(1, 1, 1, each=1, taken=_JUMP),
    Kind.STORE_MANY: CycleCost(1, 1, 1, each=1),
    Kind.BRANCH: CycleCost(1, 1, 1, taken=_JUMP),
    Kind.CALL: CycleCost(1, 1, 1, taken=_JUMP),
    Kind.CALL_BY_REGISTER: CycleCost(1, 1, 1, taken=_JUMP),
    Kind.RETURN: CycleCost(1, 1, 1, taken=_JUMP),
}

_M4 = _M3 | {
    Kind.MULTIPLY: CycleCost(1, 1, 1),
    Kind.MULTIPLY_LONG: CycleCost(1, 1, 1),
    Kind.FLOAT: CycleCost(1, 1, 2),  # one more if the next instruction needs the result
    Kind.FLOAT_MULTIPLY_ADD: CycleCost(3, 3, 4),
    Kind.FLOAT_DIVIDE: CycleCost(14, 14, 15),
}

_M33 = _M4 | {
    Kind.LOAD: CycleCost(1.5, 1, 2, paired=1),
    Kind.FLOAT_MULTIPLY_ADD: CycleCost(2, 1, 3),
}

_PREDICTED = (1, 0, 8)  # a predicted branch costs little

_M7 = {
    Kind.MULTIPLY: CycleCost(1, 0.5, 2),
    Kind.MULTIPLY_LONG: CycleCost(1, 1, 2),
    Kind.DIVIDE: CycleCost(6, 2, 12),
    Kind.LOAD: CycleCost(0.75, 0.5, 2),
    Kind.STORE: CycleCost(0.75, 0.5, 1),
    Kind.LOAD_MANY: CycleCost(1, 0, 2, each=0.5, taken=_PREDICTED),
    Kind.STORE_MANY: CycleCost(1, 0, 2, each=0.5),
    Kind.BRANCH: CycleCost(0.5, 0.5, 1, taken=(0.5, 0, 8)),
    Kind.CALL: CycleCost(1, 0.5, 1, taken=_PREDICTED),
    Kind.CALL_BY_REGISTER: CycleCost(1, 0.5, 1, taken=_PREDICTED),
    Kind.RETURN: CycleCost(1, 0.5, 1, taken=_PREDICTED),
    Kind.FLOAT: CycleCost(1, 0.5, 3),
    Kind.FLOAT_MULTIPLY_ADD: CycleCost(1.5, 1, 5),
    Kind.FLOAT_DIVIDE: CycleCost(15, 14, 30),
}

_M55 = _M33 | {
    Kind.LOAD: CycleCost(1, 1, 2),
    Kind.STORE: CycleCost(1, 1, 1),
    Kind.LOOP_END: CycleCost(0, 0, 1, taken=(0, 0, 1)),
    Kind.FLOAT_MULTIPLY_ADD: CycleCost(1, 1, 4),
    Kind.VECTOR: CycleCost(2, 1, 2, paired=1),
    Kind.VECTOR_LOAD: CycleCost(2, 1, 4, paired=1),
    Kind.VECTOR_STORE: CycleCost(2, 1, 4, paired=1),
}

_RV32 = {
    Kind.MULTIPLY: CycleCost(1, 1, 5),
    Kind.MULTIPLY_LONG: CycleCost(1, 1, 5),
    Kind.DIVIDE: CycleCost(18, 2, 35),
    Kind.LOAD: CycleCost(1.5, 1, 3),
    Kind.BRANCH: CycleCost(1, 1, 1, taken=(1, 0, 3)),
    Kind.CALL: CycleCost(1, 1, 1, taken=(1, 0, 3)),
    Kind.RETURN: CycleCost(1, 1, 1, taken=(1, 0, 3)),
    Kind.FLOAT: CycleCost(1, 1, 4),
    Kind.FLOAT_MULTIPLY_ADD: CycleCost(1, 1, 5),
    Kind.FLOAT_DIVIDE: CycleCost(20, 8, 30),
}

_HAZARD3 = {
    Kind.DIVIDE: CycleCost(18, 18, 19),
    Kind.LOAD: CycleCost(1.5, 1, 2),  # one more if the next instruction needs what was loaded
    Kind.BRANCH: CycleCost(
        1, 1, 1, taken=(1, 0, 2)
    ),  # it predicts the branch taken last; an unaligned target takes one more fetch
    Kind.CALL: CycleCost(1, 1, 1, taken=(1, 1, 2)),
    Kind.RETURN: CycleCost(1, 1, 1, taken=(1, 1, 2)),
}


def _avr(return_bytes: int) -> dict[Kind, CycleCost]:
    """Return the costs of an AVR, in which a call and a return take a cycle for every byte of the address. Costs are
    exact: there is no pipeline to refill, no cache, and flash has no wait states."""
    call, far = return_bytes + 1, return_bytes + 2
    return {
        Kind.PAIR: CycleCost(2, 2, 2),
        Kind.MULTIPLY: CycleCost(2, 2, 2),
        Kind.LOAD: CycleCost(2, 2, 2),
        Kind.STORE: CycleCost(2, 2, 2),
        Kind.LOAD_CODE: CycleCost(3, 3, 3),
        Kind.BRANCH: CycleCost(1, 1, 1, taken=(1, 1, 1)),
        Kind.SKIP: CycleCost(1, 1, 1, taken=(1, 1, 1)),
        Kind.SKIP_LONG: CycleCost(1, 1, 1, taken=(2, 2, 2)),
        Kind.JUMP_FAR: CycleCost(3, 3, 3),
        Kind.CALL: CycleCost(call, call, call),
        Kind.CALL_BY_REGISTER: CycleCost(call, call, call),
        Kind.CALL_FAR: CycleCost(far, far, far),
        Kind.RETURN: CycleCost(far, far, far),
    }


AVR5 = Timing("AVR instruction set manual, exact", _avr(2), exact=True)
AVR6 = Timing("AVR instruction set manual, exact", _avr(3), exact=True)
CORTEX_M0 = Timing("cycle table of the Cortex-M0 manual, Arm DDI 0432", _armv6m(2))
CORTEX_M0PLUS = Timing("cycle table of the Cortex-M0+ manual, Arm DDI 0484, fast multiplier", _armv6m(1))
CORTEX_M3 = Timing("cycle table of the Cortex-M3 manual, Arm DDI 0337", _M3)
CORTEX_M4F = Timing("cycle table of the Cortex-M4 manual, Arm DDI 0439", _M4)
CORTEX_M33 = Timing("assumed: a Cortex-M4 with faster loads and multiply-adds", _M33)
CORTEX_M7 = Timing("assumed: two instructions a cycle at best", _M7, CycleCost(0.6, 0.5, 1))
CORTEX_M55 = Timing("assumed: half a vector a cycle, loads during computation", _M55)
CORTEX_M85 = Timing("assumed: half a vector a cycle, loads during computation", _M55, CycleCost(0.75, 0.5, 1))
HAZARD3 = Timing("Hazard3's documentation, instruction cycle counts, with fast multipliers", _HAZARD3)
RV32 = Timing("no core in particular: a short pipeline without caches", _RV32)
