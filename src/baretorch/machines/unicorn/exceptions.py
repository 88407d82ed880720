"""Enter interrupts and return from their handlers as a Cortex-M does: Unicorn does neither."""

from __future__ import annotations

import struct

import unicorn as uc
from unicorn import arm_const as arm

EXCEPTIONS = 16  # before the first interrupt's vector
RETURNS = range(0xFFFFFFE0, 0x100000000)  # where handlers return to
RETURN, RETURN_WITH_FPU = 0xFFFFFFF9, 0xFFFFFFE9  # to the main stack, in thread mode
FPU_FRAME = 0x10  # of a return address: clear if the frame holds registers of the FPU
THUMB, PADDED, IT_STATE = 1 << 24, 1 << 9, 0x0600FC00  # in the PSR
FRAME = (*(arm.UC_ARM_REG_R0 + i for i in range(4)), arm.UC_ARM_REG_R12, arm.UC_ARM_REG_LR)
FLOATS = tuple(arm.UC_ARM_REG_D0 + i for i in range(8))
_FRAME, _FLOATS = struct.Struct("<8I"), struct.Struct("<8QII")


def clear_it_state(engine: uc.Uc) -> None:
    """Restore the IT state, which Unicorn changes before a memory hook inside an IT block; see hooks/unicorn.h."""
    psr = engine.reg_read(arm.UC_ARM_REG_XPSR)
    if psr & IT_STATE:
        engine.reg_write(arm.UC_ARM_REG_XPSR, psr & ~IT_STATE)


def is_masked(engine: uc.Uc) -> bool:
    return bool(engine.reg_read(arm.UC_ARM_REG_PRIMASK) & 1)


def enter(engine: uc.Uc, irq: int, pc: int, vectors: int, fpu: bool) -> int:
    """Save the registers of the interrupted code on its stack, and return the address of the handler. The registers of
    an FPU are always saved, as if they were in use."""
    sp, psr = engine.reg_read(arm.UC_ARM_REG_SP), engine.reg_read(arm.UC_ARM_REG_XPSR)
    padded = sp & 4
    sp -= padded
    if fpu:
        floats = [engine.reg_read(register) for register in FLOATS]
        sp -= _FLOATS.size
        engine.mem_write(sp, _FLOATS.pack(*floats, engine.reg_read(arm.UC_ARM_REG_FPSCR), 0))
    sp -= _FRAME.size
    saved = [engine.reg_read(register) for register in FRAME]
    engine.mem_write(sp, _FRAME.pack(*saved, pc, psr | (PADDED if padded else 0)))
    engine.reg_write(arm.UC_ARM_REG_SP, sp)
    engine.reg_write(arm.UC_ARM_REG_LR, RETURN_WITH_FPU if fpu else RETURN)
    engine.reg_write(arm.UC_ARM_REG_XPSR, THUMB | EXCEPTIONS + irq)
    (handler,) = struct.unpack("<I", engine.mem_read(vectors + 4 * (EXCEPTIONS + irq), 4))
    return int(handler) & ~1


def leave(engine: uc.Uc, address: int) -> int:
    """Restore the registers, and return the address at which the interrupted code continues."""
    sp = engine.reg_read(arm.UC_ARM_REG_SP)
    *saved, pc, psr = _FRAME.unpack(engine.mem_read(sp, _FRAME.size))
    sp += _FRAME.size
    if not address & FPU_FRAME:
        *floats, fpscr, _ = _FLOATS.unpack(engine.mem_read(sp, _FLOATS.size))
        sp += _FLOATS.size
        for register, value in zip(FLOATS, floats, strict=True):
            engine.reg_write(register, value)
        engine.reg_write(arm.UC_ARM_REG_FPSCR, fpscr)
    engine.reg_write(arm.UC_ARM_REG_XPSR, psr & ~PADDED)
    for register, value in zip(FRAME, saved, strict=True):
        engine.reg_write(register, value)
    engine.reg_write(arm.UC_ARM_REG_SP, sp + (4 if psr & PADDED else 0))
    return int(pc)
