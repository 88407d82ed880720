"""Features of CPUs, and what kernels need of them."""

from baretorch.targets.cpus import CPUS
from baretorch.targets.features import ANY_CPU, AVR, DSP, FPU, MVE, TRIPLES, XCV, Feature, needs


def test_one_of_the_alternatives_is_enough() -> None:
    either = needs(Feature.DSP, Feature.FPU) | MVE
    assert either.met_by({Feature.MVE}) and either.met_by({Feature.DSP, Feature.FPU, Feature.V7M})
    assert not either.met_by({Feature.DSP}) and not either.met_by(frozenset())


def test_any_cpu() -> None:
    assert ANY_CPU.met_by(frozenset()) and not ANY_CPU and ANY_CPU.names() == []


def test_spelling() -> None:
    assert str(ANY_CPU) == "any CPU"
    assert str(FPU | DSP) == "fpu + v7m or dsp"
    assert (FPU | DSP).names() == [["fpu", "v7m"], ["dsp"]]


def test_who_runs_what() -> None:
    """Every core but the host has kernels of its own for int8; only the host and the computer have neither."""
    runs = {need: {c.name for c in CPUS if need.met_by(c.features)} for need in (DSP, FPU, MVE, TRIPLES)}
    assert runs[DSP] == runs[FPU] == {"cortex-m4f", "cortex-m7", "cortex-m33", "cortex-m55", "cortex-m85"}
    assert runs[MVE] == {"cortex-m55", "cortex-m85"}
    assert runs[TRIPLES] == {c.name for c in CPUS} - {"host", "computer", "avr5", "avr6"}
    assert {c.name for c in CPUS if XCV.met_by(c.features)} == {"cv32e40p"}
    assert {c.name for c in CPUS if AVR.met_by(c.features)} == {"avr5", "avr6"}
