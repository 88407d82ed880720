"""The work and the targets of instructions agree with their encodings by GNU's assembler."""

from __future__ import annotations

import pytest

from baretorch.firmware import avr, riscv, thumb
from baretorch.firmware.instructions import Instruction, split
from baretorch.targets.cycles import Kind, Work

HERE = 0x1000

THUMB = [
    ("movs r3, #65", "2341", Work(Kind.ALU), None),
    ("muls r0, r1", "4348", Work(Kind.MULTIPLY), None),
    ("bx lr", "4770", Work(Kind.RETURN), None),
    ("blx r3", "4798", Work(Kind.CALL_BY_REGISTER), None),
    ("mov pc, r3", "469f", Work(Kind.RETURN), None),
    ("ldr r0, [pc, #4]", "4801", Work(Kind.LOAD), None),
    ("ldrsb r3, [r0, r1]", "5643", Work(Kind.LOAD), None),
    ("strh r3, [r0, r1]", "5243", Work(Kind.STORE), None),
    ("str r4, [sp, #0]", "9400", Work(Kind.STORE), None),
    ("push {r4, r5, r6, r7, lr}", "b5f0", Work(Kind.STORE_MANY, 5), None),
    ("pop {r4, pc}", "bd10", Work(Kind.LOAD_MANY, 2), None),
    ("stmia r0!, {r1, r2, r3}", "c00e", Work(Kind.STORE_MANY, 3), None),
    ("ite eq", "bf0c", Work(Kind.ALU), None),
    ("bne .-106", "d1c9", Work(Kind.BRANCH), HERE - 106),
    ("b .-4", "e7fc", Work(Kind.BRANCH), HERE - 4),
    ("cbz r1, .+12", "b121", Work(Kind.BRANCH), HERE + 12),
    ("bl .-1784", "f7ff fc82", Work(Kind.CALL), None),
    ("b.w .-364", "f7ff bf48", Work(Kind.BRANCH), HERE - 364),
    ("beq.w .+260", "f000 8080", Work(Kind.BRANCH), HERE + 260),
    ("le lr, .-12", "f00f c009", Work(Kind.LOOP_END), HERE - 12),
    ("dls lr, r2", "f042 e001", Work(Kind.ALU), None),
    ("ldrd r8, r9, [r1], #8", "e8f1 8902", Work(Kind.LOAD_MANY, 2), None),
    ("ldmia.w r0!, {r1, r2, r3, r8}", "e8b0 010e", Work(Kind.LOAD_MANY, 4), None),
    ("tbb [pc, r0]", "e8df f000", Work(Kind.RETURN), None),
    ("ldr.w r0, [r1], #64", "f851 0b40", Work(Kind.LOAD), None),
    ("strb.w r3, [r1, #1]!", "f801 3f01", Work(Kind.STORE), None),
    ("sxtb16 ip, r8", "fa2f fc88", Work(Kind.ALU), None),
    ("smlad r3, ip, sl, r3", "fb2c 330a", Work(Kind.MULTIPLY), None),
    ("umull r0, r1, r2, r3", "fba2 0103", Work(Kind.MULTIPLY_LONG), None),
    ("sdiv r0, r1, r2", "fb91 f0f2", Work(Kind.DIVIDE), None),
    ("vldr s0, [r0]", "ed90 0a00", Work(Kind.LOAD), None),
    ("vldmia r0!, {s0-s7}", "ecb0 0a08", Work(Kind.LOAD_MANY, 8), None),
    ("vadd.f32 s0, s1, s2", "ee30 0a81", Work(Kind.FLOAT), None),
    ("vfma.f32 s0, s1, s2", "eea0 0a81", Work(Kind.FLOAT_MULTIPLY_ADD), None),
    ("vdiv.f32 s0, s1, s2", "ee80 0a81", Work(Kind.FLOAT_DIVIDE), None),
    ("vsqrt.f32 s0, s1", "eeb1 0ae0", Work(Kind.FLOAT_DIVIDE), None),
    ("vmov s0, r0", "ee00 0a10", Work(Kind.FLOAT), None),
    ("vldrw.u32 q0, [r0], #16", "ecb0 1f04", Work(Kind.VECTOR_LOAD), None),
    ("vstrw.32 q0, [r0], #16", "eca0 1f04", Work(Kind.VECTOR_STORE), None),
    ("vadd.i32 q0, q1, q2", "ef22 0844", Work(Kind.VECTOR), None),
    ("vmladava.s8 r0, q1, q2", "eef2 0f24", Work(Kind.VECTOR), None),
]

AVR = [
    ("adiw r24, 1", "9601", Kind.PAIR, None),
    ("sbiw r28, 40", "97a8", Kind.PAIR, None),
    ("sbi 5, 1", "9a29", Kind.PAIR, None),
    ("mul r16, r17", "9f01", Kind.MULTIPLY, None),
    ("muls r16, r17", "0201", Kind.MULTIPLY, None),
    ("mulsu r16, r17", "0301", Kind.MULTIPLY, None),
    ("lpm r17, Z+", "9115", Kind.LOAD_CODE, None),
    ("lpm", "95c8", Kind.LOAD_CODE, None),
    ("elpm r17, Z+", "9117", Kind.LOAD_CODE, None),
    ("ld r16, X+", "910d", Kind.LOAD, None),
    ("ldd r24, Y+1", "8189", Kind.LOAD, None),
    ("lds r24, 0x100", "9180 0100", Kind.LOAD, None),
    ("pop r28", "91cf", Kind.LOAD, None),
    ("st X+, r0", "920d", Kind.STORE, None),
    ("std Y+2, r25", "839a", Kind.STORE, None),
    ("sts 0x100, r24", "9380 0100", Kind.STORE, None),
    ("push r28", "93cf", Kind.STORE, None),
    ("in r28, 0x3d", "b7cd", Kind.ALU, None),
    ("out 0x3e, r29", "bfde", Kind.ALU, None),
    ("movw r2, r24", "011c", Kind.ALU, None),
    ("subi r28, 128", "58c0", Kind.ALU, None),
    ("cpse r1, r2", "1012", Kind.SKIP, None),
    ("sbrs r4, 7", "fe47", Kind.SKIP, None),
    ("sbic 5, 1", "9929", Kind.SKIP, None),
    ("rjmp .-4", "cffe", Kind.BRANCH, HERE - 2),
    ("brne .-10", "f7d9", Kind.BRANCH, HERE - 8),
    ("ijmp", "9409", Kind.BRANCH, None),
    ("jmp 0x1234", "940c 091a", Kind.JUMP_FAR, 0x1234),
    ("call 0x21234", "940f 091a", Kind.CALL_FAR, None),
    ("rcall .+6", "d003", Kind.CALL, None),
    ("icall", "9509", Kind.CALL_BY_REGISTER, None),
    ("ret", "9508", Kind.RETURN, None),
    ("reti", "9518", Kind.RETURN, None),
]

RISCV = [
    ("c.addi sp, -32", "1101", Kind.ALU, None),
    ("c.lw a0, 0(a1)", "4188", Kind.LOAD, None),
    ("c.swsp ra, 28(sp)", "ce06", Kind.STORE, None),
    ("c.jr ra", "8082", Kind.RETURN, None),
    ("c.mv a0, a1", "852e", Kind.ALU, None),
    ("c.j .-4", "bff5", Kind.BRANCH, HERE - 4),
    ("c.bnez a5, .-4", "fff5", Kind.BRANCH, HERE - 4),
    ("lb a0, 0(a1)", "00058503", Kind.LOAD, None),
    ("fsw fa0, 0(a1)", "00a5a027", Kind.STORE, None),
    ("mul a0, a0, a1", "02b50533", Kind.MULTIPLY, None),
    ("mulh a0, a0, a1", "02b51533", Kind.MULTIPLY_LONG, None),
    ("divu a0, a0, a1", "02b55533", Kind.DIVIDE, None),
    ("fmadd.s fa0, fa1, fa2, fa0", "50c5f543", Kind.FLOAT_MULTIPLY_ADD, None),
    ("fdiv.s fa0, fa1, fa2", "18c5f553", Kind.FLOAT_DIVIDE, None),
    ("fadd.s fa0, fa1, fa2", "00c5f553", Kind.FLOAT, None),
    ("bne a0, a1, .-20", "feb516e3", Kind.BRANCH, HERE - 20),
    ("jal ra, .+2048", "001000ef", Kind.CALL, None),
    ("j .-2048", "801ff06f", Kind.BRANCH, HERE - 2048),
    ("jalr zero, 0(a5)", "00078067", Kind.RETURN, None),
]


@pytest.mark.parametrize(("text", "code", "work", "target"), THUMB, ids=[row[0] for row in THUMB])
def test_thumb(text: str, code: str, work: Work, target: int | None) -> None:
    first, *second = (int(halfword, 16) for halfword in code.split())
    i = Instruction(HERE, 4 if second else 2, first | sum(second) << 16)
    assert (thumb.work_of(i), thumb.jump_target(i)) == (work, target)


@pytest.mark.parametrize(("text", "code", "kind", "target"), RISCV, ids=[row[0] for row in RISCV])
def test_riscv(text: str, code: str, kind: Kind, target: int | None) -> None:
    i = Instruction(HERE, len(code) // 2, int(code, 16))
    assert (riscv.work_of(i), riscv.jump_target(i)) == (Work(kind), target)


@pytest.mark.parametrize(("text", "code", "kind", "target"), AVR, ids=[row[0] for row in AVR])
def test_avr(text: str, code: str, kind: Kind, target: int | None) -> None:
    raw = b"".join(int(word, 16).to_bytes(2, "little") for word in code.split())
    (i,) = split(raw, HERE, avr.is_long)
    assert i.size == len(raw)
    assert (avr.work_of(i), avr.jump_target(i)) == (Work(kind), target)


def test_avr_calls() -> None:
    calls = [
        Instruction(HERE, 4, 0x091A_940F),
        Instruction(HERE, 2, 0xD003),
        Instruction(HERE, 2, 0x9508),
    ]
    assert [avr.call_target(None, i) for i in calls] == [0x21234, HERE + 8, None]


def test_avr_frames() -> None:
    """Frames are those of gcc's prologues, and of libgcc's __prologue_saves__."""
    saves = range(0x2000, 0x2040)

    def growth(text: str) -> int:
        raw = b"".join(int(word, 16).to_bytes(2, "little") for word in text.split())
        return avr.stack_growth(split(raw, HERE, avr.is_long), 2, saves)

    assert growth("93cf 93df 9508") == 4, "two pushes and the return address"
    assert growth("93cf d000 9508") == 5, "rcall .+0"
    assert growth("b7cd 97a8 bfcd 96a8 9508") == 42, "sbiw and adiw of Y, which is the stack pointer"
    assert growth("97a8 9508") == 2, "which it is not here"
    assert growth("b7cd 55c8 40d1 bfcd 5ac8 4fde bfcd") == 2 + 0x158, "subi and sbci; the second pair adds"
    assert growth("b7cd 55c8 09d1 bfcd") == 2 + 0x58, "subi and sbc of nothing"
    assert growth("b7cd 55c8 40d1 bfcd 5bc8 40d1 b7ed 5bc8 40d1") == 2 + 0x158, "Y goes to far places of the frame"
    assert growth("e0a7 e0b1 940c 1002") == 2 + 18 + 0x107


def test_the_first_half_of_an_instruction_is_arithmetic() -> None:
    """A search for calls may begin within an instruction, and end within another one."""
    (half,) = split(bytes.fromhex("6feb"), HERE, riscv.is_long)
    assert riscv.work_of(half) == Work(Kind.ALU)
