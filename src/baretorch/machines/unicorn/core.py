"""Run one core of an emulated chip: a Unicorn engine with hooks, and the boot ROM of core 1."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import unicorn as uc
from unicorn import arm_const as arm
from unicorn.unicorn_py3.unicorn import uclib

from baretorch.errors import CompileError
from baretorch.machines.code import Code
from baretorch.machines.counts import read_rows
from baretorch.machines.hooks import shared_library
from baretorch.machines.types import Block, DeviceFault
from baretorch.machines.unicorn import exceptions
from baretorch.machines.unicorn.boot_rom import Launch, RomFunctions, boot_rom
from baretorch.machines.unicorn.drivers import KEPT
from baretorch.machines.unicorn.state import HEADER, NEVER, NO_IRQ, STRUCTS, ChipState, Doze, StopReason, core_state
from baretorch.targets.parts import Usb
from baretorch.targets.types import Chip

HOOKS = ("unicorn.c", "registers.c", "interrupts.c", "alarm.c", "watchdog.c", "usb.c", "cores.c", "flash.c")
PAGE = 0x1000
SEV = (0xBF40).to_bytes(2, "little")
WFE, WFI = b"\x20\xbf", b"\x30\xbf"  # where Unicorn stops: it reports the first as invalid
DOZING = {
    Doze.AWAKE: StopReason.NOT_STOPPED,
    Doze.UNTIL_INPUT: StopReason.WAITS_FOR_INPUT,
    Doze.FOR_EVER: StopReason.SLEEPS,
}
DOZING[Doze.UNTIL_BITTEN] = StopReason.WATCHDOG_BITES
EVERYWHERE = (1, 0)  # an empty range means all addresses to Unicorn

REGISTERS = {f"r{i}": arm.UC_ARM_REG_R0 + i for i in range(13)} | {
    "sp": arm.UC_ARM_REG_SP,
    "lr": arm.UC_ARM_REG_LR,
    "pc": arm.UC_ARM_REG_PC,
}


@dataclass
class SharedMemory:
    """A memory bank that all cores share. The hooks record accesses to each byte in `touched`, if there is one."""

    name: str
    origin: int
    bytes: mmap.mmap
    access: int
    touched: mmap.mmap | None


class Core:
    """A core. It ignores WFE if it is the only one; core 1 of a pair begins in its boot ROM."""

    def __init__(
        self,
        chip: Chip,
        shared: ChipState,
        code: Code,
        memories: Sequence[SharedMemory],
        number: int,
        usb: Usb | None = None,
    ) -> None:
        """Map memories and registers. `usb` is the console, if it is on USB."""
        self.number = number
        self.pc = 0
        self.fault: DeviceFault | None = None
        self.heard: list[int] = []  # words that the boot ROM received
        self.state, self._rows = core_state(shared, code, number)
        self._chip = chip
        self._shared = shared
        self._code = code
        self._memories = memories
        self._rom: Generator[None, None, Launch] | None = None
        self._bad_access: tuple[str, int] | None = None
        self.explain: Callable[[int], list[str]] = lambda address: []  # reasons why a write there is invalid
        self.on_handled: Callable[[], None] = lambda: None  # called when an interrupt handler has returned
        self.before_sleep: Callable[[], object] = lambda: None  # called before it sleeps
        self.stepping = False  # stop after each instruction
        self._breakpoints: dict[int, int] = {}  # the hooks, by address
        self._passed: int | None = None  # the breakpoint from which it continues
        self._functions = RomFunctions(chip.boot) if usb is not None else None
        self._usb = usb
        self._hooks = ctypes.CDLL(str(shared_library(*HOOKS)))
        # With UC_MODE_MCLASS it would be a Cortex-M33 for every model.
        self.uc = uc.Uc(uc.UC_ARCH_ARM, uc.UC_MODE_THUMB)
        self.uc.ctl_set_cpu_model(getattr(arm, chip.cpu.unicorn or ""))
        for memory in memories:
            place = ctypes.addressof(ctypes.c_char.from_buffer(memory.bytes))
            self.uc.mem_map_ptr(memory.origin, len(memory.bytes), memory.access, place)
        self._map_registers()
        self._hook(uc.UC_HOOK_BLOCK, "bt_on_block", ctypes.pointer(self.state), EVERYWHERE)
        self.uc.hook_add(uc.UC_HOOK_MEM_INVALID, self._on_bad_access)

    def make_writable(self, memory: SharedMemory) -> None:
        self.uc.mem_protect(memory.origin, len(memory.bytes), memory.access | uc.UC_PROT_WRITE)

    def set_breakpoint(self, address: int) -> None:
        if address not in self._breakpoints:
            hook = self.uc.hook_add(uc.UC_HOOK_CODE, self._on_breakpoint, begin=address, end=address)
            self._breakpoints[address] = hook
            self.uc.ctl_flush_tb()

    def remove_breakpoint(self, address: int) -> None:
        hook = self._breakpoints.pop(address, None)
        if hook is not None:
            self.uc.hook_del(hook)
            self.uc.ctl_flush_tb()

    def pass_breakpoint(self) -> None:
        """Continue from the breakpoint at which the core stopped."""
        self._passed = self.pc if self.pc in self._breakpoints else None

    def _on_breakpoint(self, _uc: object, address: int, _size: int, _data: object) -> None:
        if address == self._passed:
            self._passed = None
            return
        self._shared.stopped = StopReason.BREAKPOINT
        self.uc.emu_stop()

    def time_flash(self) -> None:
        """Let the hooks see what is read from flash, and from memory that shares its cache."""
        path = self._chip.flash_path
        banks = {name for cache in path.caches for name in cache.beside} if path else ()
        kinds = {self._chip.code: ("bt_on_flash_read", uc.UC_HOOK_MEM_READ)}
        kinds |= dict.fromkeys(banks, ("bt_on_ram", uc.UC_HOOK_MEM_READ | uc.UC_HOOK_MEM_WRITE))
        for name, (function, kind) in kinds.items():
            bank = self._chip.memory(name)
            bounds = (bank.origin, bank.origin + bank.size - 1)
            self._hook(kind, function, ctypes.pointer(self.state), bounds)

    def begin(self, pc: int, sp: int, lr: int) -> None:
        self.uc.reg_write(arm.UC_ARM_REG_SP, sp)
        self.uc.reg_write(arm.UC_ARM_REG_LR, lr)
        self.pc = pc

    def pair(self, other: Core) -> None:
        """Connect the core with the other one, and record what both do to memory."""
        self.state.other = ctypes.pointer(other.state)
        for start, raw in self._code.stretches():
            for at in range(0, len(raw), 2):
                if raw[at : at + 2] == SEV:
                    self._hook(uc.UC_HOOK_CODE, "bt_on_signal", ctypes.pointer(self.state), (start + at,) * 2)
        self._banks = []
        for memory in self._memories:
            if memory.touched is not None:
                touched = ctypes.pointer(STRUCTS["bt_byte"].from_buffer(memory.touched))
                self._banks.append(STRUCTS["bt_bank"](ctypes.pointer(self.state), touched, memory.origin))
                bounds = (memory.origin, memory.origin + len(memory.bytes) - 1)
                kinds = uc.UC_HOOK_MEM_READ | uc.UC_HOOK_MEM_WRITE
                self._hook(kinds, "bt_on_touch", ctypes.pointer(self._banks[-1]), bounds)
        if self.number:
            self._rom = boot_rom(self)

    @property
    def alone(self) -> bool:
        return not self.state.other

    @property
    def clock(self) -> int:
        """Return the core's time in instructions, including those that it waited."""
        return int(self.state.instructions + self.state.idle)

    @property
    def in_rom(self) -> bool:
        return self._rom is not None

    @property
    def can_run(self) -> bool:
        return not self.state.halted and bool(not self.state.asleep or self.state.event)

    def run(self) -> StopReason:
        """Run until the hooks stop the core, it sleeps, or it faults."""
        if self.state.asleep and not self._wait():
            return StopReason.SLEEPS
        if self.state.dozing and (why := self._doze()) is not StopReason.NOT_STOPPED:
            return why
        while True:
            self._take_interrupt()
            waits = self._run_rom() if self.in_rom else self._emulate()
            if self.fault is not None:
                return StopReason.FAULT
            if self.state.dozing in (Doze.UNTIL_INPUT, Doze.UNTIL_BITTEN):
                return DOZING[Doze(self.state.dozing)]
            if self.state.halted or (waits and not self._wait()):
                return StopReason.SLEEPS
            if self._shared.stopped:
                return StopReason(self._shared.stopped)

    def blocks(self) -> tuple[Block, ...]:
        return read_rows(memoryview(self._rows), self.state.row_count)

    def peek(self, address: int, size: int) -> bytes:
        try:
            return bytes(self.uc.mem_read(address, size))
        except uc.UcError:
            return b""

    def place(self) -> list[str]:
        """Describe the core's position."""
        if self.in_rom:
            return ["in its boot ROM"]
        pc, lr = (self.uc.reg_read(REGISTERS[name]) for name in ("pc", "lr"))
        return [
            f"at {pc:#010x} in {self._code.function_at(pc)}",
            f"called from {lr & ~1:#010x} in {self._code.function_at(lr & ~1)}",
        ]

    def where(self) -> list[str]:
        cells = [f"{name} {self.uc.reg_read(number):08x}" for name, number in REGISTERS.items()]
        return [*self.place(), *("  ".join(cells[i : i + 4]) for i in range(0, len(cells), 4))]

    # The boot ROM's end of the mailbox.

    def has_mail(self) -> bool:
        return bool(self.state.mail_count)

    def take(self) -> int:
        self.heard.append(int(self._hooks.bt_take_mail(ctypes.byref(self.state))) & 0xFFFFFFFF)
        return self.heard[-1]

    def has_room(self) -> bool:
        return bool(self.state.other.contents.mail_count < HEADER.constants["MAIL_ROOM"])

    def send(self, word: int) -> None:
        self._hooks.bt_send_mail(ctypes.byref(self.state), ctypes.c_uint32(word))
        self._hooks.bt_signal(ctypes.byref(self.state))

    def _wait(self) -> bool:
        """Execute WFE; return whether the core continues."""
        return self.alone or bool(self._hooks.bt_wait(ctypes.byref(self.state)))

    def _emulate(self) -> bool:
        """Run instructions; return whether the core stopped to wait for an event."""
        error = None
        try:
            self.uc.emu_start(self.pc | 1, 0xFFFFFFFF, count=int(self.stepping))
        except uc.UcError as raised:
            error = raised
        self.pc = self.uc.reg_read(arm.UC_ARM_REG_PC)
        if self.state.handling and self.pc in exceptions.RETURNS:
            self._return()
            return False
        if self._functions is not None and self._functions.is_there(self.pc):
            self._bad_access = None
            self.pc, self.fault = self._functions.call(self.uc)
            return False
        opcode = self.peek(self.pc - 2, 2) if error is not None or not self._shared.stopped else b""
        if error is not None and (error.errno != uc.UC_ERR_INSN_INVALID or opcode not in (WFE, WFI)):
            self.fault = self._describe(error)
            self.fault.addresses = (self.uc.reg_read(REGISTERS["lr"]), self.state.site)
        if opcode == WFI:
            self._doze()
        if self.stepping and not self._shared.stopped:
            self._shared.stopped = StopReason.BREAKPOINT
        return opcode == WFE

    def sleeps_until_alarm(self) -> bool:
        """Report whether an alarm ends the core's sleep. If so, time passes until then."""
        state, alarm = self.state, self.state.alarm
        if not state.dozing or not alarm.wakes or alarm.due == NEVER:
            return False
        state.idle = max(state.idle, alarm.due - state.instructions)
        return True

    def _doze(self) -> StopReason:
        """Execute WFI; return the reason to stop."""
        self.before_sleep()
        dozing = Doze(self._hooks.bt_doze(ctypes.byref(self.state)))
        self.state.halted = dozing is Doze.FOR_EVER
        return DOZING[dozing]

    def _take_interrupt(self) -> None:
        state, irq = self.state, self._shared.taken_irq
        if irq == NO_IRQ or state.handling or not state.enabled[irq // 32] & state.pending[irq // 32] & 1 << irq % 32:
            return
        state.masked = exceptions.is_masked(self.uc)
        if state.masked:
            return
        state.pending[irq // 32] &= ~(1 << irq % 32)
        state.handling = 1
        self.pc = exceptions.enter(self.uc, irq, self.pc, state.kept[KEPT["VTOR"]], self._chip.cpu.has_fpu)

    def _return(self) -> None:
        self._bad_access = None
        self.pc = exceptions.leave(self.uc, self.pc)
        self.state.handling = 0
        self.on_handled()

    def _run_rom(self) -> bool:
        assert self._rom is not None
        try:
            next(self._rom)
        except StopIteration as end:
            self._rom = None
            self._launch(end.value)
            return False
        return True

    def _launch(self, launch: Launch) -> None:
        ours = self.state.other.contents.kept[KEPT["VTOR"]]
        ram = [m for m in self._chip.memories if m.kind == "ram" and m.origin < launch.stack <= m.origin + m.size]
        wrong = {
            "an entry without the Thumb bit": not launch.entry & 1,
            "another vector table than core 0's": launch.vectors != ours,
            "a stack pointer that is not a multiple of 8 in RAM": launch.stack % 8 != 0 or not ram,
        }
        words = {"vector table": launch.vectors, "stack pointer": launch.stack, "entry": launch.entry}
        if any(wrong.values()):
            self.fault = DeviceFault(
                "core 1 cannot be started so",
                have=[
                    *(what for what, is_so in wrong.items() if is_so),
                    ", ".join(f"{name} {word:#010x}" for name, word in words.items()),
                ],
            )
        self.state.kept[KEPT["VTOR"]] = launch.vectors
        self.begin(launch.entry & ~1, launch.stack, 0xFFFFFFFF)

    def _hook(self, kind: int, function: str, data: object, bounds: tuple[int, int]) -> None:
        place = ctypes.cast(self._hooks[function], ctypes.c_void_p)
        begin, end = map(ctypes.c_uint64, bounds)
        uclib.uc_hook_add(self.uc._uch, ctypes.byref(ctypes.c_size_t()), kind, place, data, begin, end)

    def _map_registers(self) -> None:
        npu = self._chip.npu
        spaces = [space for space in self._chip.peripherals if npu is None or space[0] != npu.base]  # which maps itself
        self._ranges = [STRUCTS["bt_range"](ctypes.pointer(self.state), origin) for origin, _ in spaces]
        for (origin, size), one in zip(spaces, self._ranges, strict=True):
            is_usb = self._usb is not None and self._usb.base == origin
            names = ("bt_on_usb_read", "bt_on_usb_write") if is_usb else ("bt_on_read", "bt_on_write")
            read, write = (ctypes.cast(self._hooks[name], ctypes.c_void_p) for name in names)
            place = ctypes.byref(self.state if is_usb else one)
            if uclib.uc_mmio_map(self.uc._uch, origin, size, read, place, write, place) != uc.UC_ERR_OK:
                raise CompileError(
                    f"the register space of {self._chip.name} cannot be mapped",
                    have=f"{size:#x} bytes at {origin:#x}",
                    need=f"multiples of {PAGE:#x} that overlap nothing",
                )

    def _on_bad_access(self, _uc: object, access: int, address: int, size: int, _value: int, _data: object) -> bool:
        if (
            access == uc.UC_MEM_READ_UNMAPPED
            and self._functions is not None
            and self._functions.appear(self.uc, address)
        ):
            return True
        kinds = {uc.UC_MEM_WRITE_UNMAPPED: "write", uc.UC_MEM_WRITE_PROT: "write"}
        kinds |= {uc.UC_MEM_FETCH_UNMAPPED: "instruction fetch", uc.UC_MEM_FETCH_PROT: "instruction fetch"}
        self._bad_access = f"{kinds.get(access, 'read')} of {size} bytes", address
        return False

    def _describe(self, error: uc.UcError) -> DeviceFault:
        what = "the image stopped" if self.alone else f"the image stopped on core {self.number}"
        if self._bad_access is not None:
            kind, address = self._bad_access
            return DeviceFault(f"{what}: bad {kind} at {address:#010x}", have=[*self.explain(address), *self.where()])
        kind = {
            uc.UC_ERR_INSN_INVALID: "an instruction that the core does not have",
            uc.UC_ERR_EXCEPTION: "an exception: unaligned access, breakpoint, supervisor call or missing FPU",
        }.get(error.errno, str(error))
        pc = self.uc.reg_read(arm.UC_ARM_REG_PC)
        halfwords = " ".join(f"{int.from_bytes(self.peek(pc + i, 2), 'little'):04x}" for i in (0, 2))
        return DeviceFault(f"{what}: {kind}", have=[f"opcode {halfwords}", *self.where()])
