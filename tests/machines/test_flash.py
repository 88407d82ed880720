"""Flash that costs time: tables whose misses one can count. tests/zoo/test_flash.py replays whole models."""

from __future__ import annotations

import pytest

from baretorch.machines.link import Link
from baretorch.machines.types import FlashReads
from baretorch.machines.unicorn.flash_chip import FlashKind
from baretorch.machines.unicorn.machine import UnicornMachine
from baretorch.targets.flash import Waits
from tests.machines.images import RUN, image

DATA = bytes(16)
QUAD_WORD = 20 * 2 + 8  # as our boot2 sets the RP2040 up: 20 clocks at half the rate, and what is assumed
SERIAL = FlashKind(reads={0x03: 50e6})


def table(words: int, first: str = "") -> str:
    """Return a model that adds `words` words of flash, one after the other."""
    return f"""
static const uint32_t table[{words}] __attribute__((aligned(8))) = {{ 1 }};

void __attribute__((noinline)) toy_run(const void *from, void *to)
{{
    volatile uint8_t *y = to;
    const volatile uint32_t *at = table;
    uint32_t sum = *(const uint8_t *)from;
    {first}
    for (uint32_t i = 0; i < {words}; i++) {{
        sum += at[i];
    }}
    y[0] = (uint8_t)sum;
}}
"""


def second_call(board: str, body: str, flash: FlashKind | None = None) -> FlashReads:
    """Return the flash reads of the run function itself, which calls nothing."""
    machine = UnicornMachine(image(board, body), RUN, timed=True, flash=flash)
    link = Link(machine)
    for _ in range(2):
        assert link.run([DATA]).outputs[0][0] == 1
    reads = machine.flash_reads()
    assert reads is not None and {read.site for read in reads} <= {0}
    return reads[0] if reads else FlashReads(0, 0, 0, 0, 0, Waits(0, 0, 0))


def test_a_table_larger_than_the_cache_is_read_again() -> None:
    """32 KiB through 16: a word has gone when it is asked for again."""
    found = second_call("pico", table(8192))
    assert 8192 <= found.data_misses < 8192 + 8  # and what the function keeps beside its code
    assert found.code_misses < 40
    assert found.bytes == 4 * (found.data_misses + found.code_misses)
    assert found.waits.expected == QUAD_WORD * (found.data_misses + found.code_misses)


def test_a_table_that_fits_is_read_once() -> None:
    assert second_call("pico", table(1024)).data_misses < 8


def test_slow_settings_are_seen_as_slow() -> None:
    """boot2 leaves 64 clocks at a quarter of the rate if flash does not support quad reads."""
    slow = second_call("pico", table(8192), SERIAL)
    assert slow.waits.expected == (64 * 4 + 8) * (slow.data_misses + slow.code_misses)


@pytest.mark.parametrize("board", ["pico", "pico2", "nucleo-wb55rg", "nucleo-h743zi"])
def test_plans_know_the_price(board: str) -> None:
    """The chip's TOML says what start-up code makes of it."""
    made = image(board, table(8192))
    machine = UnicornMachine(made, RUN, timed=True)
    Link(machine).run([DATA])
    path, simulated = made.board.chip.flash_path, machine.path
    assert path is not None and simulated is not None
    price = simulated.prices[0]
    assert (path.fill_cycles, path.next_cycles) == (price.first.expected, price.next_data.expected)


def test_a_cache_that_is_off() -> None:
    """Each load reads a word, and so does each word of code that is executed."""
    off, on = (second_call("pico", table(1024, f"*(volatile uint32_t *)0x14000000u = {v};")) for v in (2, 3))
    assert 1024 <= off.data_misses < 1024 + 8
    assert off.code_misses > 1024 * 2
    assert on.data_misses + on.code_misses < 100


def test_the_rp2350_goes_on_without_an_address() -> None:
    """4,096 lines of 8 bytes at half the clock, one after the other."""
    found = second_call("pico2", table(8192))
    assert 4096 <= found.data_misses < 4096 + 4
    least = 4096 * (16 * 2 + 2)
    assert least <= found.waits.expected < 1.01 * least


def test_the_data_of_ram_takes_lines_of_the_m7() -> None:
    """4 KiB of flash stay in its data cache, unless 16 KiB of RAM went through it."""
    sweep = "static volatile uint8_t ram[16384]; for (uint32_t i = 0; i < 16384; i += 32) { sum += ram[i]; }"
    assert second_call("nucleo-h743zi", table(1024)).data_misses < 8
    assert second_call("nucleo-h743zi", table(1024, sweep)).data_misses >= 128


def test_boards_without_a_path_have_no_reads() -> None:
    assert UnicornMachine(image("mps2-an386"), RUN, timed=True).flash_reads() is None
    assert UnicornMachine(image("pico"), RUN).flash_reads() is None
