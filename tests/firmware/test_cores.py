"""Images that use two cores have a bound for each core's stack, and an image that does not fit is an error."""

from __future__ import annotations

import pytest

from baretorch.errors import CompileError
from baretorch.firmware.elf import read_elf
from baretorch.firmware.stack import stack_bound
from tests.machines.images import TWO_CORES, image

DEEP = TWO_CORES.replace(
    "void bt_core1_main(void)\n{",
    "void bt_core1_main(void)\n{\n    volatile uint8_t deep[1000] = {0};\n    (void)deep[1];",
)


@pytest.mark.parametrize("toolchain", ["gcc", "zig"])
@pytest.mark.parametrize("board", ["pico", "pico2w"])
def test_the_stack_is_that_of_both_cores(board: str, toolchain: str) -> None:
    one, two = image(board, TWO_CORES, toolchain=toolchain, cores=2), image(board, DEEP, toolchain=toolchain, cores=2)
    assert (one.cores, image(board).cores) == (2, 1)
    assert one.ram.stack + 1000 <= two.ram.stack < one.ram.stack + 1100
    if toolchain == "zig":  # whose frames are in the image
        elf = read_elf(two.elf.read_bytes())
        zero, first = (
            stack_bound(elf, root, apart=["bt_core1_entry"]).bytes for root in ("bt_reset", "bt_core1_entry")
        )
        assert zero is not None and first is not None
        assert zero < 500 and 1000 <= first < 1100 and two.ram.stack == zero + first
        together = stack_bound(elf, "bt_reset").bytes
        assert together is not None and together > 1000  # as if core 0 called what it starts


def test_one_core_more_than_there_are() -> None:
    with pytest.raises(CompileError) as caught:
        image("mps2-an386", TWO_CORES, cores=2)
    assert caught.value.render() == (
        "error: an image of 2 cores cannot be built for mps2-an386\n  have  mps2-an386 with 1 core\n  need  1"
    )
    with pytest.raises(CompileError) as caught:
        image("pico", TWO_CORES, cores=3)
    assert caught.value.render() == (
        "error: an image of 3 cores cannot be built for pico\n  have  rp2040 with 2 cores\n  need  1 to 2"
    )


def test_an_image_that_does_not_fit_counts_both_stacks() -> None:
    large = TWO_CORES.replace("triples[INPUT_BYTES];", "triples[262144];")
    with pytest.raises(CompileError) as caught:
        image("pico", large, cores=2)
    (need,) = caught.value.need
    assert need.endswith(", 8192 of stack")
