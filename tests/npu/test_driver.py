"""Our driver and chips that are not the usual one: those that it must run on, those that it must refuse, faults that it
must name, and drivers with a mistake, which the emulated NPU must not let pass."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from baretorch.firmware import build
from baretorch.firmware.types import Image
from baretorch.ir.graph import interpret
from baretorch.machines.npu import device as npu
from baretorch.machines.run import run_on
from baretorch.machines.types import DeviceFault
from baretorch.machines.unicorn.machine import UnicornMachine
from baretorch.npu.accelerators import ACCELERATORS, Family
from baretorch.pipeline import Compiled
from baretorch.targets.runtime import RUNTIME, runtime_sources
from tests.npu.odd import OddNpu, make_odd
from tests.npu.test_judge import chain
from tests.npu.test_unicorn import built

DRIVER = RUNTIME / "npu" / "ethosu.c"
USUAL = OddNpu()


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> tuple[Compiled, Image]:
    return built(56, tmp_path_factory.mktemp("driver"))


def outcome(compiled: Compiled, image: Image, variant: OddNpu = USUAL, gating: int | None = None) -> str:
    """Return "right" if an image on such a chip answers as the graph does and keeps gating, else what went wrong.

    `gating`: an application sets this in CMD between two runs.
    """
    machine = UnicornMachine(image, compiled.c.run)
    assert machine.npu is not None
    make_odd(machine.npu.device, variant)
    rng = np.random.default_rng(1)
    inputs = [rng.integers(-128, 128, compiled.graph[name].shape).astype(np.int8) for name in compiled.graph.inputs]
    want = interpret(chain(), inputs)[compiled.graph.outputs[0]]
    try:
        run = run_on(machine, compiled.graph, inputs)
        if gating is not None:
            machine.npu.device.write(npu.CMD, gating)
            run = run_on(machine, compiled.graph, inputs)
    except DeviceFault as fault:
        return fault.render()
    assert machine.npu.device.runs >= 2
    if (left := machine.npu.device.read(npu.CMD)) != (npu.GATING if gating is None or variant.cuts_power else gating):
        return f"CMD is left at {left:#x}"
    return "right" if np.array_equal(run.outputs[0], want) else "wrong"


@pytest.mark.parametrize("bits", [0, npu.CUSTOM_DMA, npu.FUNCTIONAL_SAFETY, npu.CUSTOM_DMA | npu.FUNCTIONAL_SAFETY])
def test_additions_of_a_chip_do_not_matter(bits: int, image: tuple[Compiled, Image]) -> None:
    assert outcome(*image, OddNpu(config=bits)) == "right"


@pytest.mark.parametrize("word", [0x1010_4201, 0x1006_6001, 0x1FF0_0000])
def test_any_version_of_the_architecture(word: int, image: tuple[Compiled, Image]) -> None:
    """The U55's, the one that Vela writes into payloads, and a later one."""
    assert outcome(*image, OddNpu(id=word)) == "right"


@pytest.mark.parametrize(
    ("variant", "what", "words"),
    [
        (OddNpu(config=0x1000_0000), "product", "0x10001807 instead of 0x00001807"),
        (OddNpu(config=0x8), "MACs per cycle", "0x0000180f instead of 0x00001807"),
        (OddNpu(config=0x10), "command stream version", "0x00001817 instead of 0x00001807"),
        (OddNpu(id=0x2000_7001), "architecture", "0x00000002 instead of 0x00000001"),
        (OddNpu(id=0), "architecture", "0x00000000 instead of 0x00000001"),
    ],
)
def test_another_npu_is_refused(variant: OddNpu, what: str, words: str, image: tuple[Compiled, Image]) -> None:
    said = outcome(*image, variant)
    assert "the NPU is not the one that the model was compiled for" in said and f"{what} {words}" in said


@pytest.mark.parametrize("prot", [0, npu.NON_SECURE, npu.NON_SECURE | npu.PRIVILEGED])
def test_levels_that_the_npu_does_not_get(prot: int, image: tuple[Compiled, Image]) -> None:
    said = outcome(*image, OddNpu(prot=prot))
    assert "the NPU did not become secure and privileged" in said
    assert f"PROT 0x{prot:08x} instead of 0x00000001" in said


def test_a_memory_error(image: tuple[Compiled, Image]) -> None:
    said = outcome(*image, OddNpu(ecc=True))
    assert "the NPU found a memory error that it cannot correct" in said and "status 0x00000102" in said


@pytest.mark.parametrize("gating", [0, npu.CLOCK_GATING, npu.POWER_GATING, npu.GATING])
def test_gating_stays_as_it_is(gating: int, image: tuple[Compiled, Image]) -> None:
    assert outcome(*image, gating=gating) == "right"


@pytest.mark.parametrize("gating", [npu.POWER_GATING, npu.GATING])
def test_power_that_is_cut_between_runs(gating: int, image: tuple[Compiled, Image]) -> None:
    """The driver sets the NPU up again, and leaves power gating as it was."""
    assert outcome(*image, OddNpu(cuts_power=True)) == "right"
    assert outcome(*image, OddNpu(cuts_power=True), gating) == "right"


def mutated(monkeypatch: pytest.MonkeyPatch, folder: Path, old: str, new: str) -> tuple[Compiled, Image]:
    """Return an image whose driver differs in one place."""
    source = DRIVER.read_text()
    assert source.count(old) == 1
    other = folder / "ethosu.c"
    other.write_text(source.replace(old, new))

    def sources(*given: object, **named: object) -> tuple[Path, ...]:
        found = runtime_sources(*given, **named)  # type: ignore[arg-type]
        assert DRIVER in found
        return tuple(other if path == DRIVER else path for path in found)

    monkeypatch.setattr(build, "runtime_sources", sources)
    return built(56, folder / "image")


CUTS = OddNpu(cuts_power=True)
RESET_WAIT = "(STATUS & STATUS_RESETTING) != 0;"


@pytest.mark.parametrize(
    ("old", "new", "variant", "said"),
    [
        (
            "    CMD = powered | CMD_RUN;",
            "    CMD = CMD_RUN;",
            USUAL,
            "CMD = 0x1 changes clock and power gating from 0x4 to 0x0",
        ),
        (
            "    CMD = gating | CMD_CLEAR_IRQ;\n    bt_un",
            "    CMD = (gating & 0u) | CMD_CLEAR_IRQ;\n    bt_un",
            USUAL,
            "CMD = 0x2 changes clock",
        ),
        ("CMD_GATING 0xcu", "CMD_GATING 0x4u", USUAL, "CMD is left at 0x4"),
        ("0xf0000000u", "0xffffffffu", OddNpu(config=npu.CUSTOM_DMA), "the NPU is not the one"),
        ("= gating & ~CMD_POWER_GATING;", "= gating;", CUTS, "was not reset since power-up"),
        ("!ready || (PROT & PROT_LEVELS) != SECURE_AND_PRIVILEGED", "!ready", CUTS, "was not reset since power-up"),
        (RESET_WAIT, "0;", USUAL, "PROT 0x00000000 instead of 0x00000001"),
        ("RESET = SECURE_AND_PRIVILEGED", "RESET = 0u", USUAL, "the NPU did not become secure and privileged"),
        ("    QBASE = ", "    QREAD = ", USUAL, "no register at 0x018 to be written"),
        ("15u << 24", "31u << 24", USUAL, "has bits that are read-only, reserved or not modelled"),
        ("AXI_SRAM NPU(0x50u)", "AXI_SRAM NPU(0x50u)\n", USUAL, "right"),  # no mistake
    ],
)
def test_a_driver_with_a_mistake(
    old: str, new: str, variant: OddNpu, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert said in outcome(*mutated(monkeypatch, tmp_path, old, new), variant)


def test_what_the_driver_takes_for_granted() -> None:
    """It knows the architecture by the product, and no stream needs a minor version of it or a custom DMA."""
    for accelerator in ACCELERATORS:
        assert accelerator.arch >> 12 == (2 if accelerator.family is Family.U85 else 1)
        assert accelerator.arch >> 4 & 0xFF == 0 and not accelerator.config & npu.CUSTOM_DMA
        assert npu.ID_WORDS[accelerator.family] >> 28 == accelerator.arch >> 12
    faults = npu.BUS_ERROR | npu.PARSE_ERROR | npu.DECODER_FAULT | npu.ECC_FAULT | npu.BRANCH_FAULT
    assert f"STATUS_FAULTS {faults:#x}u" in DRIVER.read_text()
