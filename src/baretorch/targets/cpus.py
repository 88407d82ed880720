"""List the processor cores that Baretorch generates code for, with their names in each compiler and emulator."""

from __future__ import annotations

from dataclasses import dataclass

from baretorch.targets import cycles
from baretorch.targets.features import Feature

_ELF_MACHINES = {"arm-none-eabi-": 40, "riscv64-unknown-elf-": 243, "avr-": 83, "": 62}  # the last is x86-64

_ZIG_RV32 = ("-target", "riscv32-freestanding-none", "-mabi=ilp32", "-mcmodel=medany")

# A pointer to flash must not become one to RAM; the linker script has no place for tables of jumps; and gcc would leave
# arguments of several calls on the stack before it takes them off again.
_AVR_CODE = ("-Waddr-space-convert", "-fno-jump-tables", "-maccumulate-args")


@dataclass(frozen=True)
class Cpu:
    """A processor core, and its names in compilers and emulators."""

    name: str
    features: frozenset[Feature]
    gcc: tuple[str, ...]  # flags for arm-none-eabi-gcc / riscv64-unknown-elf-gcc / avr-gcc / the host's cc
    gcc_prefix: str  # "arm-none-eabi-", "riscv64-unknown-elf-", "avr-", "" for the host
    zig: tuple[str, ...] | None = None  # flags for `zig cc`; None if it does not support the CPU
    unicorn: str | None = None  # name of Unicorn's CPU model constant; None if it has none
    gcc_link: tuple[str, ...] = ()  # flags that replace those of `gcc` when it links, so that it finds its library
    libraries: tuple[str, ...] = ("gcc",)  # with the arithmetic that gcc calls
    flash_reach: int | None = None  # bytes of flash that short pointers reach, if flash is a separate address space
    largest_array: int | None = None  # bytes, if that is less than memory can hold
    timing: cycles.Timing | None = None  # None: the emulator counts cycles, or they are unknown

    @property
    def elf_machine(self) -> int:
        """The number of the architecture in ELF files."""
        return _ELF_MACHINES[self.gcc_prefix]

    @property
    def flash_apart(self) -> bool:
        """Report whether flash and RAM are separate address spaces."""
        return self.flash_reach is not None

    @property
    def has_dsp(self) -> bool:
        return Feature.DSP in self.features

    @property
    def prefers_narrow(self) -> bool:
        """Report whether requantizing in 32 bits saves much time: CV32E40P takes 5 cycles for a product of 64 bits."""
        return Feature.XCV in self.features

    @property
    def has_fpu(self) -> bool:
        return Feature.FPU in self.features


def _cortex_m(
    name: str, zig: str, timing: cycles.Timing, *features: Feature, gcc: str = "", fpu: str = "", unicorn: str = ""
) -> Cpu:
    """Return a Cortex-M with its name and features in Zig, its name in gcc if that differs, gcc's name of its FPU where
    the core does not imply it, and the last part of Unicorn's name."""
    hard = Feature.FPU in features
    # Zig ignores -mfpu and -mfloat-abi: without the FPU among its features it silently emits soft-float calls.
    flags = (f"-mcpu={gcc or name}", "-mthumb", *((f"-mfpu={fpu}",) if fpu else ()))
    return Cpu(
        name=name,
        features=frozenset(features),
        gcc=(*flags, "-mfloat-abi=hard") if hard else flags,
        gcc_prefix="arm-none-eabi-",
        zig=("-target", f"thumb-freestanding-eabi{'hf' if hard else ''}", f"-mcpu={zig}"),
        unicorn=f"UC_CPU_ARM_CORTEX_{unicorn}" if unicorn else None,
        timing=timing,
    )


_M4 = (Feature.V7M, Feature.DSP, Feature.FPU)
_M55 = (*_M4, Feature.DP, Feature.MVE)

CPUS: tuple[Cpu, ...] = (
    _cortex_m("cortex-m0", "cortex_m0", cycles.CORTEX_M0, Feature.V6M, unicorn="M0"),
    # Unicorn has no M0+, whose instructions are those of an M0.
    _cortex_m("cortex-m0plus", "cortex_m0plus", cycles.CORTEX_M0PLUS, Feature.V6M, unicorn="M0"),
    _cortex_m("cortex-m3", "cortex_m3", cycles.CORTEX_M3, Feature.V7M, unicorn="M3"),
    _cortex_m(
        "cortex-m4f",
        "cortex_m4+vfp4d16sp",
        cycles.CORTEX_M4F,
        *_M4,
        gcc="cortex-m4",
        fpu="fpv4-sp-d16",
        unicorn="M4",
    ),
    _cortex_m("cortex-m7", "cortex_m7+fp_armv8d16", cycles.CORTEX_M7, *_M4, Feature.DP, fpu="fpv5-d16", unicorn="M7"),
    _cortex_m("cortex-m33", "cortex_m33+dsp+fp_armv8d16sp", cycles.CORTEX_M33, *_M4, fpu="fpv5-sp-d16", unicorn="M33"),
    _cortex_m("cortex-m55", "cortex_m55+mve_fp+fp_armv8d16", cycles.CORTEX_M55, *_M55),
    # gcc 12 has no cortex-m85, and code for an M55 runs on it.
    _cortex_m("cortex-m85", "cortex_m85+mve_fp+fp_armv8d16", cycles.CORTEX_M85, *_M55, gcc="cortex-m55"),
    Cpu(
        name="rv32",
        features=frozenset({Feature.RV32, Feature.FPU}),
        gcc=("-march=rv32imafc", "-mabi=ilp32f", "-mcmodel=medany"),
        gcc_prefix="riscv64-unknown-elf-",
        zig=("-target", "riscv32-freestanding-none", "-mabi=ilp32f", "-mcpu=generic_rv32+m+a+f+c", "-mcmodel=medany"),
        timing=cycles.RV32,
    ),
    Cpu(  # of the RP2350; it has Zbs too, with which gcc 12 fails at the constant 2048, and Zbkb, which QEMU leaves off
        name="hazard3",
        features=frozenset({Feature.RV32}),
        gcc=("-march=rv32imac_zicsr_zba_zbb", "-mabi=ilp32", "-mcmodel=medany"),
        gcc_prefix="riscv64-unknown-elf-",
        zig=(*_ZIG_RV32, "-mcpu=generic_rv32+m+a+c+zba+zbb+zbs"),
        timing=cycles.HAZARD3,
        gcc_link=("-march=rv32imac",),
    ),
    Cpu(  # OpenHW's, with its own extensions (Xcv), which gcc 12 does not know
        name="cv32e40p",
        features=frozenset({Feature.RV32, Feature.XCV}),
        gcc=("-march=rv32imc_zicsr", "-mabi=ilp32", "-mcmodel=medany", "-DBT_XCV"),
        gcc_prefix="riscv64-unknown-elf-",
        zig=(
            *_ZIG_RV32,
            # without xcvbitmanip: this clang counts leading zeros wrong with it
            *("-mcpu=generic_rv32+m+c+xcvalu+xcvbi+xcvmac+xcvmem+xcvsimd", "-DBT_XCV"),
        ),
        gcc_link=("-march=rv32imc",),
    ),
    *(
        Cpu(
            name=name,  # gcc's name for ATmegas with at most 128 KB of flash, or with more
            features=frozenset({Feature.AVR}),
            gcc=(f"-mmcu={name}", *_AVR_CODE),
            gcc_prefix="avr-",
            timing=timing,
            libraries=("m", "gcc"),  # avr-libc's libm has the arithmetic of floats, which libgcc has elsewhere
            flash_reach=1 << 16,
            largest_array=(1 << 15) - 1,
        )
        for name, timing in (("avr5", cycles.AVR5), ("avr6", cycles.AVR6))
    ),
    Cpu(
        name="host",
        features=frozenset({Feature.FPU, Feature.DP}),
        gcc=(),
        gcc_prefix="",
        zig=(),
    ),
    Cpu(
        name="computer",  # the same with vectors; it runs models that are calibrated
        features=frozenset({Feature.FPU, Feature.DP, Feature.VECTORS}),
        gcc=(),
        gcc_prefix="",
        zig=(),
    ),
)


def find_cpu(name: str) -> Cpu:
    """Return the CPU of that name."""
    return next(cpu for cpu in CPUS if cpu.name == name)
