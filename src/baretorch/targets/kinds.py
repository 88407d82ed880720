"""Kinds of instructions: what a core takes the same time for."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple


class Kind(Enum):
    """FLOAT is scalar floating point, VECTOR is Helium. A MANY moves several registers. The last six are AVR's."""

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
    CALL_BY_REGISTER = auto()  # BLX: where to, a register says
    RETURN = auto()  # and other jumps to where a register says
    LOOP_END = auto()  # LE, LETP
    FLOAT = auto()
    FLOAT_MULTIPLY_ADD = auto()
    FLOAT_DIVIDE = auto()
    VECTOR = auto()
    VECTOR_LOAD = auto()
    VECTOR_STORE = auto()
    PAIR = auto()  # arithmetic of two registers, or a bit of a peripheral's
    LOAD_CODE = auto()  # LPM: from flash
    SKIP = auto()  # may leave out the next instruction, of one word
    SKIP_LONG = auto()  # or of two
    JUMP_FAR = auto()  # JMP
    CALL_FAR = auto()  # CALL


CALLS = frozenset({Kind.CALL, Kind.CALL_BY_REGISTER, Kind.CALL_FAR})


class Work(NamedTuple):
    """The work of an instruction; `registers` counts those that a MANY moves, the program counter included."""

    kind: Kind
    registers: int = 1
