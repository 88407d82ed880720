"""Every board that has an emulator boots a real image there, answers, and gives the same counts each time."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from baretorch.machines import open_machine
from baretorch.machines.frames import RUN as RUN_FRAME
from baretorch.machines.frames import Frame, encode_frame
from baretorch.machines.link import Link
from baretorch.machines.qemu.machine import QemuMachine
from baretorch.machines.types import Block, DeviceFault, DeviceHang, Machine
from baretorch.machines.unicorn.machine import UnicornMachine
from tests.machines.images import EMULATED, REVERSE, RUN, image

DATA = bytes(range(100, 116))
BOTH = sorted(
    name for name, emulator in EMULATED if emulator == "qemu" and (name, "unicorn") in EMULATED
)  # boards of two emulators
LOOP = ".syntax unified\\n movs r2, #100\\n 1: subs r2, #1\\n bne 1b\\n bx lr"  # 202 instructions
NAKED = """\
__attribute__((naked, noinline))
void toy_run(const void *from __attribute__((unused)), void *to __attribute__((unused)))
{{
    __asm__ volatile("{}");
}}"""


def counts(board: str, emulator: str, body: str | None = None, **how: str) -> tuple[int, ...]:
    machine = open_machine(image(board, **({} if body is None else {"body": body}), **how), RUN, emulator)
    try:
        Link(machine).run([DATA])
        return machine.instructions()
    finally:
        machine.close()


@pytest.mark.parametrize(("board", "emulator"), EMULATED)
def test_boots_and_answers(board: str, emulator: str) -> None:
    heard: list[str] = []
    machine = open_machine(image(board), RUN, emulator)
    link = Link(machine, heard.append)
    hello = link.hello("toy")
    replies = [link.run([DATA]) for _ in range(3)]
    calls = machine.instructions()
    machine.close()

    assert machine.name == emulator
    assert (hello.board, hello.inputs, hello.outputs) == (board, (16,), (16,))
    assert hello.counter_hz == image(board).board.chip.counter.hz
    assert [reply.outputs for reply in replies] == [(DATA[::-1],)] * 3
    assert "".join(heard) == f"baretorch: toy on {board}, ready\n"
    if emulator == "native":
        assert calls == ()
    else:
        assert len(calls) == 3 and len(set(calls)) == 1 and calls[0] > 200
        assert replies[0].ticks > 0
        least = 16 if image(board).board.chip.cpu.flash_apart else 64  # where a return address has two bytes
        assert least < replies[0].stack_peak < image(board).board.chip.stack_bytes


@pytest.mark.parametrize("board", [name for name, emulator in EMULATED if emulator == "unicorn"])
def test_sleeps_while_it_waits(board: str) -> None:
    """Before the first frame, and again after each, also after bytes that were no frame."""
    machine = UnicornMachine(image(board), RUN)
    link = Link(machine)
    for garbage in (b"", b"?", b"BT??", bytes(100)):
        machine.write(garbage)
        with pytest.raises(DeviceHang) as hang:
            while True:
                machine.read(5.0)
        assert (hang.value.what, hang.value.have) == ("the image waits for input", ("asleep",))
        machine.write(bytes(12))
        link.run([DATA])


@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547", "microbit", "virt-rv32"])
def test_sleeps_on_qemu_too(board: str) -> None:
    machine = QemuMachine(image(board), RUN)
    link = Link(machine)
    for _ in range(2):
        link.run([DATA])
        before = cpu_seconds(machine.pid)
        time.sleep(0.3)
        assert cpu_seconds(machine.pid) - before < 0.1  # awake it takes all it can get
    machine.close()


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("board", ["pico", "mps2-an386"])
def test_a_sleep_that_nothing_ends_is_an_error(board: str) -> None:
    machine = UnicornMachine(image(board, in_model('__asm__ volatile("wfi")')), RUN)
    link = Link(machine)
    link.hello()
    machine.write(bytes(100))
    with pytest.raises(DeviceHang) as hang:
        link.run([DATA])
    assert "the image sleeps forever: no interrupt that could wake it is enabled" in hang.value.have
    assert any(line.endswith(" in inner") for line in hang.value.have)


@pytest.mark.parametrize("toolchain", ["gcc", "zig"])
@pytest.mark.parametrize("board", BOTH)
def test_qemu_and_unicorn_count_the_same(board: str, toolchain: str) -> None:
    assert BOTH == ["microbit", "mps2-an385", "mps2-an385-v6m", "mps2-an386", "mps2-an500", "mps2-an505"]
    qemu, unicorn = (counts(board, emulator, toolchain=toolchain) for emulator in ("qemu", "unicorn"))
    assert qemu == unicorn != ()


def blocks(board: str, emulator: str) -> tuple[Block, ...]:
    """Return the blocks of a call of the toy model, with adjacent ones joined, because emulators may cut anywhere."""
    machine = open_machine(image(board), RUN, emulator)
    try:
        Link(machine).run([DATA])
        found = machine.blocks()
        assert sum(b.instructions * b.executed for b in found) == machine.instructions()[-1]
        return found
    finally:
        machine.close()


@pytest.mark.parametrize("board", ["mps2-an386", "mps2-an505", "microbit"])
def test_the_profiles_are_the_same_too(board: str) -> None:
    qemu, unicorn = (blocks(board, emulator) for emulator in ("qemu", "unicorn"))
    sites = list(dict.fromkeys(b.site for b in qemu))
    assert sites == list(dict.fromkeys(b.site for b in unicorn))
    assert sites[0] == 0 and len(sites) == 3  # the run function, its calls of mean and of clamp
    for site in sites:
        one, other = (
            sorted((b.address, b.instructions, b.executed, b.taken) for b in found if b.site == site and b.taken)
            for found in (qemu, unicorn)
        )
        assert one == other != []
    assert sum(b.executed for b in qemu if b.site == sites[2] and b.taken) >= len(DATA)


@pytest.mark.parametrize("emulator", ["qemu", "unicorn"])
@pytest.mark.parametrize("first", ["nop", "nop.w"])
def test_long_straight_code_has_no_branches(emulator: str, first: str) -> None:
    """Emulators cut it into blocks, at ends of pages even inside of an instruction."""
    code = f"{first}\\n .rept 1000\\n nop.w\\n .endr\\n bx lr"
    machine = open_machine(image("mps2-an386", NAKED.format(code)), RUN, emulator)
    Link(machine).run([DATA])
    found = machine.blocks()
    machine.close()
    assert len(found) > 1 and sum(b.instructions for b in found) == 1002
    assert [b.address for b in found if b.taken] == [max(b.address for b in found)]


@pytest.mark.parametrize("emulator", ["qemu", "unicorn"])
@pytest.mark.parametrize(
    ("board", "code", "instructions"),
    [
        ("mps2-an386", "bx lr", 1),
        ("mps2-an386", "nop\\n nop.w\\n bx lr", 3),
        ("mps2-an386", LOOP, 202),
        # An IT block counts in full, whichever way its condition goes.
        ("mps2-an386", "movs r2, #9\\n cmp r2, #4\\n"
                       " itet lt\\n movlt r3, #1\\n movge.w r3, #2\\n addlt r3, #1\\n bx lr", 7),
        ("mps2-an386", "cmp r0, r0\\n it eq\\n bxeq lr\\n udf", 3),
        ("mps2-an386", "push {r4, lr}\\n vmov s0, r0\\n vadd.f32 s1, s0, s0\\n vcmp.f32 s1, #0\\n"
                       " vmrs APSR_nzcv, fpscr\\n it mi\\n vnegmi.f32 s0, s0\\n pop {r4, pc}", 8),
        ("mps2-an385-v6m", LOOP, 202),
        ("microbit", LOOP, 202),
        # It calls itself: only the outermost call is a call of the model.
        ("mps2-an385", "push {r4, lr}\\n cbz r0, 1f\\n movs r0, #0\\n bl toy_run\\n 1: pop {r4, pc}", 8),
    ],
)  # fmt: skip
def test_hand_written_code_has_its_known_length(board: str, emulator: str, code: str, instructions: int) -> None:
    assert counts(board, emulator, NAKED.format(code)) == (instructions,)


@pytest.mark.parametrize("board", ["pico", "pico2", "nucleo-h743zi", "nucleo-wb55rg"])
def test_counts_on_chips_that_only_unicorn_has(board: str) -> None:
    assert counts(board, "unicorn", NAKED.format(LOOP)) == (202,)


@pytest.mark.parametrize(
    ("board", "code", "instructions"),
    [("virt-rv32", "li t0, 100\\n 1: addi t0, t0, -1\\n bnez t0, 1b\\n ret", 202),
     ("mps3-an547", LOOP, 202),
     # A loop of Armv8.1-M: DLS, then NOP and LE ten times.
     ("mps3-an547", "push {r4, lr}\\n movs r2, #10\\n dls lr, r2\\n 1: nop\\n le lr, 1b\\n pop {r4, pc}", 24)],
)  # fmt: skip
def test_counts_on_machines_that_only_qemu_has(board: str, code: str, instructions: int) -> None:
    assert counts(board, "qemu", NAKED.format(code)) == (instructions,)


def in_model(statement: str) -> str:
    return f"""\
__attribute__((noinline)) static void inner(const uint8_t *x)
{{
    {statement};
    __asm__ volatile("" : : "r"(x) : "memory"); /* no tail call */
}}
__attribute__((noinline)) void toy_run(const void *from, void *to)
{{
    inner(from);
    *(volatile uint8_t *)to = 1;
}}"""


FAULTS = {
    "read": "*(volatile uint32_t *)NOWHERE",
    "jump": "((void (*)(void))(NOWHERE + 1))()",
    "udf": '__asm__ volatile("udf #0")',
    "arm": "((void (*)(void))0x20000000u)()",
}


def fault(board: str, emulator: str, statement: str) -> DeviceFault:
    nowhere = "0x1f000000u" if board == "mps3-an547" else "0x90000000u"  # an address without memory
    body = f"#define NOWHERE {nowhere}\n" + in_model(statement)
    machine = open_machine(image(board, body), RUN, emulator)
    link = Link(machine)
    link.hello()
    with pytest.raises(DeviceFault) as caught:
        link.run([DATA], timeout=10)
    machine.close()
    return caught.value


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("board", ["mps2-an386", "pico", "pico2", "nucleo-h743zi", "microbit"])
def test_a_fault_on_unicorn_names_place_and_registers(board: str, kind: str) -> None:
    text = fault(board, "unicorn", FAULTS[kind]).render()
    assert "the image stopped" in text
    assert "in inner" in text
    assert "sp 2" in text and "pc " in text
    if kind in ("read", "jump"):
        assert "at 0x90000000" in text


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547", "microbit"])
def test_a_fault_on_qemu_is_reported_by_the_image(board: str, kind: str) -> None:
    error = fault(board, "qemu", FAULTS[kind])
    assert error.what.startswith("the device stopped: FAULT:")
    assert any(line.startswith("pc 0x") for line in error.have)


@pytest.mark.parametrize(("board", "emulator"), [("mps2-an386", "unicorn"), ("mps2-an386", "qemu"), ("host", "native")])
def test_an_endless_loop_is_a_hang(board: str, emulator: str) -> None:
    machine = open_machine(image(board, in_model("while (*(volatile const uint8_t *)x) {}")), RUN, emulator)
    link = Link(machine)
    link.hello()
    with pytest.raises(DeviceHang) as error:
        link.run([DATA], timeout=0.5)
    machine.close()
    assert error.value.what == "no response from the device within 0.5 s"
    assert error.value.have[-1] == f"heard: baretorch: toy on {board}, ready"


def test_a_hang_on_unicorn_is_reported_with_its_place() -> None:
    machine = open_machine(image("pico", in_model("while (*(volatile const uint8_t *)x) {}")), RUN, "unicorn")
    link = Link(machine)
    link.hello()
    with pytest.raises(DeviceHang) as error:
        link.run([DATA], timeout=0.2)
    assert error.value.have[0].endswith(" in inner")
    assert error.value.have[1].endswith(" in toy_run")


@pytest.mark.parametrize(("board", "emulator"), [("pico", "unicorn"), ("mps2-an386", "qemu"), ("host", "native")])
def test_garbage_on_the_line_is_survived(board: str, emulator: str) -> None:
    machine = open_machine(image(board), RUN, emulator)
    link = Link(machine)
    link.hello()
    good = encode_frame(Frame(RUN_FRAME, 200, DATA))
    for garbage in (b"\0\1\2\3", b"BBBT", b"BT?", good[:5] + b"\xff" + good[6:], good[:-1] + b"\0", bytes(range(256))):
        machine.write(garbage + bytes(40))
        assert link.run([DATA]).outputs == (DATA[::-1],)
    machine.close()


@pytest.mark.parametrize(("board", "emulator"), [("pico", "unicorn"), ("mps2-an386", "qemu"), ("host", "native")])
def test_kilobytes_pass(board: str, emulator: str) -> None:
    machine = open_machine(image(board, REVERSE, 8192, 8192), RUN, emulator)
    data = bytes(i * 7 % 251 for i in range(8192))
    assert Link(machine).run([data]).outputs == (data[::-1],)
    machine.close()


def unaligned(board: str, emulator: str) -> Machine:
    return open_machine(image(board, in_model("*(volatile const uint32_t *)(x + 1)")), RUN, emulator)


@pytest.mark.parametrize(("board", "emulator"), [("microbit", "qemu"), ("microbit", "unicorn"), ("pico", "unicorn")])
def test_armv6m_refuses_unaligned_reads(board: str, emulator: str) -> None:
    machine = unaligned(board, emulator)
    with pytest.raises(DeviceFault):
        Link(machine).run([DATA])
    machine.close()


@pytest.mark.parametrize("emulator", ["qemu", "unicorn"])
def test_armv7m_allows_unaligned_reads(emulator: str) -> None:
    machine = unaligned("mps2-an386", emulator)
    assert Link(machine).run([DATA]).outputs[0][0] == 1
    machine.close()


def test_unicorn_is_quick() -> None:
    machine = UnicornMachine(image("mps2-an386", in_model("for (volatile uint32_t i = 0; i < 2000000; i++) {}")), RUN)
    assert Link(machine).run([DATA], timeout=20).outputs[0][0] == 1
    assert machine.instructions()[0] > 8_000_000
