"""What a target is: a CPU, a chip around it, a board around that. All of it data."""

from __future__ import annotations

from dataclasses import dataclass, replace

from baretorch.errors import CompileError
from baretorch.options import Console
from baretorch.targets.features import Feature
from baretorch.targets.silicon import Condition, Silicon


@dataclass(frozen=True)
class Cpu:
    """A processor core, and how the compilers and emulators spell it."""

    name: str
    features: frozenset[Feature]
    gcc: tuple[str, ...]  # flags for arm-none-eabi-gcc / riscv64-unknown-elf-gcc / avr-gcc / the host's cc
    gcc_prefix: str  # "arm-none-eabi-", "riscv64-unknown-elf-", "avr-", "" for the host
    zig: tuple[str, ...] | None  # flags for `zig cc`; None where it makes no code for it
    unicorn: str | None  # name of Unicorn's CPU model constant, None where it has none
    elf_machine: int  # e_machine: 40 Arm, 243 RISC-V, 62 x86-64, 83 AVR
    gcc_link: tuple[str, ...] = ()  # what the linker must be told instead, for gcc to find its library
    libraries: tuple[str, ...] = ("gcc",)  # with the arithmetic that gcc calls
    flash_reach: int | None = (
        None  # bytes of flash, where it is read by other instructions than RAM, with short pointers
    )

    largest_array: int | None = None  # bytes, where that is less than memory can hold

    @property
    def flash_apart(self) -> bool:
        """Flash is another address space than RAM."""
        return self.flash_reach is not None

    @property
    def has_dsp(self) -> bool:
        return Feature.DSP in self.features

    @property
    def has_fpu(self) -> bool:
        return Feature.FPU in self.features


@dataclass(frozen=True)
class MemoryBank:
    """A bank of the chip's memory map. kind: "flash" (holds the image) or "ram". `slow` says why it answers later than
    RAM does; empty if it does not."""

    name: str
    kind: str
    origin: int
    size: int
    slow: str = ""


@dataclass(frozen=True)
class Uart:
    """The console. `driver` names runtime/uart/<driver>.c; `clock_hz` is what its baud divider divides, and
    `fallback_hz` what it divides if the clocks that start-up code asks for do not come up; None: the same. `irq` is its
    interrupt, which lets the core sleep until a byte comes; None: it stays awake."""

    driver: str
    base: int
    clock_hz: int
    baud: int
    fallback_hz: int | None = None
    irq: int | None = None


@dataclass(frozen=True)
class Usb:
    """A USB device controller, which can be the console: runtime/usb/<driver>.c. Its interrupt is `irq`."""

    driver: str
    base: int
    irq: int


@dataclass(frozen=True)
class Counter:
    """A free-running counter for timing on the device: runtime/counter/<driver>.c. `fallback_hz` as for the console.
    `irq` is the interrupt by which it counts further than its register does; None: it needs none."""

    driver: str
    base: int
    hz: int
    fallback_hz: int | None = None
    irq: int | None = None


@dataclass(frozen=True)
class Interrupts:
    """The interrupt controller: runtime/interrupts/<driver>.c."""

    driver: str
    base: int


@dataclass(frozen=True)
class Alarm:
    """A timer that can end sleep: runtime/alarm/<driver>.c. `irq` is its interrupt, None if that is the core's own.
    `fallback_hz` as for the console."""

    driver: str
    base: int
    hz: int
    irq: int | None = None
    fallback_hz: int | None = None


@dataclass(frozen=True)
class Watchdog:
    """What restarts the chip if it is not fed: runtime/watchdog/<driver>.c. It counts down from at most `most`."""

    driver: str
    hz: int
    most: int

    @property
    def longest_ms(self) -> int:
        return self.most * 1000 // self.hz

    def count(self, ms: int) -> int:
        """What it counts down from in so many milliseconds, or a little longer."""
        return -(-ms * self.hz // 1000)


@dataclass(frozen=True)
class Cores:
    """Several cores alike. `driver` names runtime/cores/<driver>.c, which starts core 1; the register at `base` reads
    as the number of the core that reads it."""

    count: int
    driver: str
    base: int


@dataclass(frozen=True)
class Npu:
    """An Arm Ethos-U beside the core: runtime/npu/<driver>.c. Its `accelerator`, `system_config` and `memory_mode` are
    Vela's words. It reaches the bank of RAM `ram`, where the arena lies then, and reads command streams and weights in
    `constants`: the chip's own code bank, or a bank of RAM that they are copied to at start. `irq` lets the core sleep
    while it works; None: the core looks again and again."""

    driver: str
    accelerator: str
    base: int
    system_config: str
    memory_mode: str
    ram: str
    constants: str
    irq: int | None = None


@dataclass(frozen=True)
class FlashCache:
    """A cache that cores read flash through; a hit makes no core wait. It `serves` "code", "data" or both. Data of the
    banks of RAM in `beside` takes its lines too. It is on `when` registers say so."""

    name: str
    serves: tuple[str, ...]
    size: int
    ways: int  # of which the least recently used makes room
    line: int  # bytes
    beside: tuple[str, ...]
    when: tuple[Condition, ...]

    @property
    def sets(self) -> int:
        return self.size // (self.ways * self.line)


@dataclass(frozen=True)
class FlashPath:
    """The way from the cores to the bank that holds the image, where that takes longer than RAM.

    A miss reads so many bytes of a line (`fills`): as assumed first, then what is possible too where no source tells.
    `controller` is a row of CONTROLLERS in targets/flash.py, which tells from the chip's registers what that costs.
    `fill_cycles` is what it comes to for data as our start-up code leaves the registers, `next_cycles` if it goes on
    where the one before ended: for plans, which are made without a run.
    """

    controller: str
    caches: tuple[FlashCache, ...]
    fills: tuple[int, ...]
    fill_cycles: int
    next_cycles: int

    @property
    def cycles_per_byte(self) -> float:
        """What a core waits for each byte that it reads once, in order."""
        return self.next_cycles / self.fills[0]

    def cache_of(self, what: str) -> FlashCache | None:
        """The cache that serves "code" or "data"; None if there is none."""
        return next((cache for cache in self.caches if what in cache.serves), None)


@dataclass(frozen=True)
class Dma:
    """An engine that copies rows of bytes while cores work. `start_cycles` pass before the first byte moves; of its
    `channels` each has one copy at a time."""

    base: int
    bytes_per_cycle: int
    start_cycles: int
    channels: int


@dataclass(frozen=True)
class Gemm:
    """A unit that multiplies int8 matrices in the scratchpad, for convolutions with bias, requantization, clamp and max
    pool: each cycle a tile of `rows` windows by `columns` channels takes `depth` products more per number. It takes
    kernels, strides and pools up to a size, and multiples of `channels` input channels."""

    base: int
    rows: int
    columns: int
    depth: int
    start_cycles: int
    kernel: int
    stride: int
    pool: int
    channels: int


@dataclass(frozen=True)
class Cluster:
    """Cores around a scratchpad, as the emulator `cluster` simulates them. Words that follow each other lie in banks
    that do, each of which serves one core in a cycle; other memories let a core wait `slow_cycles`, registers
    `register_cycles`. `barrier` is the address of the event unit, whose first word is granted to all cores in the cycle
    after the last has asked, or `barrier_cycles` later."""

    cores: int
    scratchpad: str
    banks: int
    slow_cycles: int
    register_cycles: int
    barrier: int
    barrier_cycles: int
    stack_bytes: int  # of each core but the first
    dma: Dma | None
    gemm: Gemm | None


@dataclass(frozen=True)
class FlashDma:
    """An engine that copies from flash beside the cores: runtime/dma/<driver>.c. Flash is read by its controller's
    stream, set up at `stream`, whose words come at `fifo` when the request `dreq` says so."""

    driver: str
    base: int
    stream: int
    fifo: int
    dreq: int


@dataclass(frozen=True)
class Chip:
    """Silicon. `banks` name the memory for: "code" (image), "data" (.data, .bss, stack, arena)."""

    name: str
    cpu: Cpu
    memories: tuple[MemoryBank, ...]
    code: str
    data: str
    uart: Uart
    counter: Counter
    clock_hz: int
    init: str  # runtime/chip/<init>.c: clocks, pins, resets
    boot: str  # "vectors", "boot2" (RP2040), "image_def", "image_def_riscv" (RP2350), "riscv", "avr", "host"
    stack_bytes: int  # reserved for the stack
    uf2_family: int | None  # family ID where the boot ROM takes UF2
    peripherals: tuple[tuple[int, int], ...]  # (origin, size) of register space an emulator must map
    silicon: Silicon | None  # how clocks, resets and supplies behave; None: they are not emulated
    cores: Cores | None = None  # None: one core
    flash_path: FlashPath | None = None  # None: the image is read as fast as RAM
    interrupts: Interrupts | None = None  # None: nothing interrupts
    watchdog: Watchdog | None = None  # None: there is none, or we do not know it
    alarm: Alarm | None = None  # None: a frame that is never finished is waited for
    usb: Usb | None = None  # None: it has no controller, or none that we know
    npu: Npu | None = None  # None: it has none
    cluster: Cluster | None = None  # None: its cores have no scratchpad
    dma: FlashDma | None = None  # None: there is none, or none that we know

    @property
    def starts_clocks(self) -> bool:
        """Whether its start-up code has something to wait for."""
        return self.init != "none"

    @property
    def core_count(self) -> int:
        if self.cluster is not None:
            return self.cluster.cores
        return 1 if self.cores is None else self.cores.count

    @property
    def cpus(self) -> str:
        """Its cores, for people."""
        return self.cpu.name if self.core_count == 1 else f"{self.core_count} × {self.cpu.name}"

    def stacks(self, cores: int) -> int:
        """Bytes that are reserved for the stacks of so many cores."""
        return self.stack_bytes + (cores - 1) * (self.cluster.stack_bytes if self.cluster else self.stack_bytes)

    def memory(self, name: str) -> MemoryBank:
        return next(m for m in self.memories if m.name == name)


@dataclass(frozen=True)
class Avrdude:
    """How avrdude speaks to a board's boot loader, in its own words."""

    part: str
    programmer: str
    baud: int


@dataclass(frozen=True)
class Fvp:
    """A Fixed Virtual Platform of Arm's: the program, and the names of its parts and parameters."""

    program: str
    terminal: str  # of the UART that is the console
    npu: str | None
    vectors: tuple[str, ...]  # parameters that say where the core starts
    on: tuple[str, ...]  # parameters that are set to 1


@dataclass(frozen=True)
class Board:
    """What a person holds. `emulators`, names of options.Emulator in order of preference, may be empty."""

    name: str
    title: str
    chip: Chip
    emulators: tuple[str, ...]
    qemu_machine: str | None
    flash_methods: tuple[str, ...]  # "uf2", "pyocd", "avrdude"
    pyocd_target: str | None
    notes: str  # one line for people: UART pins, probe
    simavr_mcu: str | None = None
    fvp: Fvp | None = None
    avrdude: Avrdude | None = None
    console: Console = Console.UART  # what images talk over unless another is asked for
    pins: tuple[tuple[str, str, int], ...] = ()  # part, what for, number: for applications, as BT_PIN_<PART>_<WHAT>

    @property
    def usb(self) -> Usb | None:
        """What images talk over, if that is USB."""
        return self.chip.usb if self.console is Console.USB else None

    def with_console(self, console: Console | None) -> Board:
        """The board with another console than its own; CompileError if its chip has none such."""
        if console is Console.USB and self.chip.usb is None:
            raise CompileError(
                f"--console usb: {self.name} has no USB that images can talk over",
                need="a chip whose TOML describes [usb], as those of pico and pico2w do",
                try_="leave it out: the console is the UART",
            )
        return self if console is None else replace(self, console=console)
