"""A chip made from its description, on Unicorn's Cortex-M: the very image that is flashed boots and answers.

Memories and register space are where the chip has them; the console and the counter behave, other registers read
as zero or as the value the chip's description calls ready. There are no interrupts and no exceptions: what would be a
fault on the chip ends the emulation with a DeviceFault. One kind passes unnoticed and takes QEMU to be found: LDM,
LDRD and VLDR at unaligned addresses on Armv7-M and later.
"""

from __future__ import annotations

import ctypes
import mmap
import time

import unicorn as uc
from unicorn import arm_const as arm
from unicorn.unicorn_py3.unicorn import uclib

from baretorch.emulators.code import Code, read_code
from baretorch.emulators.hooks import shared_library
from baretorch.emulators.registers import chip_registers
from baretorch.emulators.rows import ROW_ROOM, ROWS, read_rows
from baretorch.emulators.types import Block, DeviceFault, DeviceHang
from baretorch.errors import CompileError
from baretorch.firmware.boot import BOOT2, FLASH, check_rp2040, check_rp2350
from baretorch.firmware.chunks import loaded
from baretorch.firmware.types import Image
from baretorch.firmware.uf2 import decode_uf2, flash_contents
from baretorch.targets.types import Chip

PAGE = 0x1000
BOOT2_ADDRESS = 0x20041F00  # where the RP2040's boot ROM copies the second stage to
UNSET = b"\xa5"  # RAM holds nothing useful after power-up
OUTPUT_ROOM = 1 << 20
CALL_ROOM = 1 << 12
WAITS_FOR_INPUT, OUTPUT_IS_FULL, TIME_IS_UP, UNALIGNED = (
    1,
    2,
    3,
    4,
)  # why emulation stopped, as hooks/unicorn.c counts them
WAIT_INSTRUCTIONS = (b"\x20\xbf", b"\x30\xbf")  # WFE, WFI: invalid to Unicorn, harmless here

REGISTERS = {f"r{i}": arm.UC_ARM_REG_R0 + i for i in range(13)} | {
    "sp": arm.UC_ARM_REG_SP,
    "lr": arm.UC_ARM_REG_LR,
    "pc": arm.UC_ARM_REG_PC,
}


class _Register(ctypes.Structure):
    """bt_register of hooks/unicorn.c."""

    _fields_ = [(name, ctypes.c_uint32) for name in ("address", "kind", "empty", "filled")]


class _Block(ctypes.Structure):
    """bt_block of hooks/unicorn.c."""

    _fields_ = [
        ("executed", ctypes.c_uint64),
        ("taken", ctypes.c_uint64),
        ("bytes", ctypes.c_uint32),
        ("instructions", ctypes.c_uint32),
    ]


class _State(ctypes.Structure):
    """bt_machine of hooks/unicorn.c."""

    _fields_ = [
        ("stop", ctypes.c_void_p),
        ("peek", ctypes.c_void_p),
        ("registers", ctypes.POINTER(_Register)),
        ("code", ctypes.c_char_p),
        ("input", ctypes.c_char_p),
        ("output", ctypes.POINTER(ctypes.c_char)),
        ("calls", ctypes.POINTER(ctypes.c_uint64)),
        ("blocks", ctypes.POINTER(_Block)),
        ("touched", ctypes.POINTER(ctypes.c_uint32)),
        ("rows", ctypes.c_void_p),
        ("last", ctypes.c_void_p),
        ("deadline", ctypes.c_double),
        ("ticks_per_instruction", ctypes.c_double),
        ("instructions", ctypes.c_uint64),
        ("entered", ctypes.c_uint64),
        ("next_look", ctypes.c_uint64),
        ("call_count", ctypes.c_uint64),
        ("row_count", ctypes.c_uint64),
        ("register_count", ctypes.c_uint32),
        ("input_bytes", ctypes.c_uint32),
        ("input_taken", ctypes.c_uint32),
        ("output_bytes", ctypes.c_uint32),
        ("output_room", ctypes.c_uint32),
        ("call_room", ctypes.c_uint32),
        ("row_room", ctypes.c_uint32),
        ("code_origin", ctypes.c_uint32),
        ("code_bytes", ctypes.c_uint32),
        ("run", ctypes.c_uint32),
        ("returned", ctypes.c_uint32),
        ("home", ctypes.c_uint32 * 4),
        ("running", ctypes.c_uint32),
        ("at_home", ctypes.c_uint32),
        ("site", ctypes.c_uint32),
        ("last_end", ctypes.c_uint32),
        ("touched_count", ctypes.c_uint32),
        ("polls", ctypes.c_uint32),
        ("stopped", ctypes.c_uint32),
    ]


class _Range(ctypes.Structure):
    """bt_range of hooks/unicorn.c."""

    _fields_ = [("machine", ctypes.POINTER(_State)), ("origin", ctypes.c_uint64)]


class UnicornMachine:
    """An image on an emulated chip. It runs only while `read` waits for it."""

    name = "unicorn"

    def __init__(self, image: Image, run_symbol: str) -> None:
        chip = image.board.chip
        self._code = read_code(image, run_symbol)
        self._rows = mmap.mmap(-1, ROWS.size * ROW_ROOM)  # costs what is written to it
        self._state = _state(chip, self._code, self._rows)
        self._input = b""
        self._fault: DeviceFault | None = None
        self._bad_access: tuple[str, int] | None = None
        # With UC_MODE_MCLASS it would be a Cortex-M33, whatever model is asked for.
        self._uc = uc.Uc(uc.UC_ARCH_ARM, uc.UC_MODE_THUMB)
        self._uc.ctl_set_cpu_model(getattr(arm, chip.cpu.unicorn or ""))
        self._map_memories(chip)
        self._add_hooks(chip)
        self._pc = self._boot(image)

    def write(self, data: bytes) -> None:
        state = self._state
        self._input = self._input[state.input_taken :] + data
        state.input, state.input_bytes, state.input_taken = self._input, len(self._input), 0

    def read(self, timeout: float) -> bytes:
        deadline = _now() + timeout
        while self._fault is None:
            why = self._run(deadline)
            if sent := self._take_output():
                return sent
            if why == TIME_IS_UP:
                raise DeviceHang(f"the image sent nothing in {timeout:g} s", have=self._where())
            if why == WAITS_FOR_INPUT:
                raise DeviceHang("the image waits for input")
        raise self._fault

    def instructions(self) -> tuple[int, ...]:
        count: int = self._state.call_count
        return tuple(self._state.calls[i % CALL_ROOM] for i in range(max(0, count - CALL_ROOM), count))

    def blocks(self) -> tuple[Block, ...]:
        return read_rows(memoryview(self._rows), self._state.row_count)

    def close(self) -> None:
        """Free the chip's memories; what was counted stays."""
        self._fault = DeviceFault("the emulation was closed")
        self.__dict__.pop("_uc", None)

    def _run(self, deadline: float) -> int:
        """Let the image run until the hooks stop it or it faults; why it stopped."""
        state = self._state
        state.deadline, state.stopped, state.polls = deadline, 0, 0
        while True:
            try:
                self._uc.emu_start(self._pc | 1, 0xFFFFFFFF)
            except uc.UcError as error:
                pc = self._uc.reg_read(arm.UC_ARM_REG_PC)
                if error.errno != uc.UC_ERR_INSN_INVALID or self._peek(pc - 2, 2) not in WAIT_INSTRUCTIONS:
                    self._fault = self._describe(error)
                    return 0
            self._pc = self._uc.reg_read(arm.UC_ARM_REG_PC)
            if state.stopped:
                return int(state.stopped)

    def _take_output(self) -> bytes:
        sent = bytes(self._state.output[: self._state.output_bytes])
        self._state.output_bytes = 0
        return sent

    def _map_memories(self, chip: Chip) -> None:
        for memory in chip.memories:
            size = -(-memory.size // PAGE) * PAGE
            if memory.kind == "flash":
                self._uc.mem_map(memory.origin, size, uc.UC_PROT_READ | uc.UC_PROT_EXEC)
            else:
                self._uc.mem_map(memory.origin, size)
                self._uc.mem_write(memory.origin, UNSET * size)

    def _add_hooks(self, chip: Chip) -> None:
        hooks = ctypes.CDLL(str(shared_library("unicorn.c")))
        engine, state = self._uc._uch, ctypes.pointer(self._state)
        pointer = {name: ctypes.cast(hooks[name], ctypes.c_void_p) for name in ("bt_on_read", "bt_on_write")}
        self._ranges = [_Range(state, origin) for origin, _ in chip.peripherals]
        for (origin, size), one in zip(chip.peripherals, self._ranges, strict=True):
            place = ctypes.byref(one)
            status = uclib.uc_mmio_map(
                engine, origin, size, pointer["bt_on_read"], place, pointer["bt_on_write"], place
            )
            if status != uc.UC_ERR_OK:
                raise CompileError(
                    f"the register space of {chip.name} cannot be mapped",
                    have=f"{size:#x} bytes at {origin:#x}",
                    need=f"multiples of {PAGE:#x} that overlap nothing",
                )
        every = (ctypes.c_uint64(1), ctypes.c_uint64(0))  # an empty range means all addresses
        block = ctypes.cast(hooks.bt_on_block, ctypes.c_void_p)
        uclib.uc_hook_add(engine, ctypes.byref(ctypes.c_size_t()), uc.UC_HOOK_BLOCK, block, state, *every)
        self._uc.hook_add(uc.UC_HOOK_MEM_INVALID, self._on_bad_access)

    def _on_bad_access(self, _uc: object, access: int, address: int, size: int, _value: int, _data: object) -> bool:
        kinds = {uc.UC_MEM_WRITE_UNMAPPED: "write", uc.UC_MEM_WRITE_PROT: "write"}
        kinds |= {uc.UC_MEM_FETCH_UNMAPPED: "instruction fetch", uc.UC_MEM_FETCH_PROT: "instruction fetch"}
        self._bad_access = f"{kinds.get(access, 'read')} of {size} bytes", address
        return False

    def _boot(self, image: Image) -> int:
        """Load the image and do what the chip does at reset; where execution starts."""
        chip = image.board.chip
        chunks = loaded(self._code.elf)
        vectors = chip.memory(chip.code).origin
        if image.uf2 is not None and chip.uf2_family is not None:
            chunks = flash_contents(decode_uf2(image.uf2.read_bytes()), chip.uf2_family)
        for chunk in chunks:
            self._uc.mem_write(chunk.address, chunk.data)
        code = self._code.addresses
        self._state.code = self._peek(code.start, len(code))
        if chip.boot == "boot2":
            check_rp2040(chunks)
            self._uc.mem_write(BOOT2_ADDRESS, self._peek(FLASH, BOOT2))
            self._uc.reg_write(arm.UC_ARM_REG_SP, BOOT2_ADDRESS)
            self._uc.reg_write(arm.UC_ARM_REG_LR, 0)
            return BOOT2_ADDRESS
        if chip.boot == "image_def":
            check_rp2350(chunks)
        self._uc.reg_write(arm.UC_ARM_REG_SP, self._word(vectors))
        self._uc.reg_write(arm.UC_ARM_REG_LR, 0xFFFFFFFF)
        return self._word(vectors + 4) & ~1

    def _peek(self, address: int, size: int) -> bytes:
        try:
            return bytes(self._uc.mem_read(address, size))
        except uc.UcError:
            return b""

    def _word(self, address: int) -> int:
        return int.from_bytes(self._peek(address, 4), "little")

    def _where(self) -> list[str]:
        values = {name: self._uc.reg_read(number) for name, number in REGISTERS.items()}
        cells = [f"{name} {value:08x}" for name, value in values.items()]
        at = f"at {values['pc']:#010x} in {self._code.function_at(values['pc'])}"
        caller = f"called from {values['lr'] & ~1:#010x} in {self._code.function_at(values['lr'] & ~1)}"
        return [at, caller, *("  ".join(cells[i : i + 4]) for i in range(0, len(cells), 4))]

    def _describe(self, error: uc.UcError) -> DeviceFault:
        if self._bad_access is not None:
            kind, address = self._bad_access
            return DeviceFault(f"the image stopped: bad {kind} at {address:#010x}", have=self._where())
        kind = {
            uc.UC_ERR_INSN_INVALID: "an instruction that the core does not have",
            uc.UC_ERR_EXCEPTION: "an exception: unaligned access, breakpoint, supervisor call or missing FPU",
        }.get(error.errno, str(error))
        pc = self._uc.reg_read(arm.UC_ARM_REG_PC)
        halfwords = " ".join(f"{int.from_bytes(self._peek(pc + i, 2), 'little'):04x}" for i in (0, 2))
        return DeviceFault(f"the image stopped: {kind}", have=[f"opcode {halfwords}", *self._where()])


def _state(chip: Chip, code: Code, rows: mmap.mmap) -> _State:
    """What the hooks need to know. A structure keeps the arrays alive that its pointers were made from."""
    registers = chip_registers(chip)
    return _State(
        stop=ctypes.cast(uclib.uc_emu_stop, ctypes.c_void_p).value,
        peek=ctypes.cast(uclib.uc_mem_read, ctypes.c_void_p).value,
        registers=(_Register * len(registers))(*(_Register(r.address, r.kind, r.empty, r.filled) for r in registers)),
        register_count=len(registers),
        input=b"",
        output=(ctypes.c_char * OUTPUT_ROOM)(),
        output_room=OUTPUT_ROOM,
        calls=(ctypes.c_uint64 * CALL_ROOM)(),
        call_room=CALL_ROOM,
        blocks=(_Block * (len(code.addresses) // 2 + 1))(),
        touched=(ctypes.c_uint32 * (len(code.addresses) // 2 + 1))(),
        rows=ctypes.addressof(ctypes.c_char.from_buffer(rows)),
        row_room=ROW_ROOM,
        code_origin=code.addresses.start,
        code_bytes=len(code.addresses),
        run=code.run,
        returned=code.returned,
        home=code.home,
        ticks_per_instruction=chip.counter.hz / chip.clock_hz,
    )


def _now() -> float:
    """The clock that hooks/unicorn.c looks at."""
    return time.clock_gettime(time.CLOCK_MONOTONIC)
