"""The simulator by itself: as the RTL did it when that was last asked, and what it reports."""

from __future__ import annotations

import ctypes
import json
import struct
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from baretorch.machines.cluster.simulator import ClusterFault, ClusterStop, Simulator
from tests.cluster.requests import events, peek, trace
from tests.cluster.running import DMA, GEMM, chip, run_program
from tests.cluster.sequences import (
    CODE,
    CUSTOM0,
    CUSTOM1,
    CUSTOM3,
    DATA,
    EVENTS,
    FAR,
    LOAD,
    OP,
    OP_IMM,
    STORE,
    UART,
    addi,
    b_type,
    constant,
    i_type,
    jal,
    r_type,
    random_program,
    s_type,
)

GOLDEN = json.loads((Path(__file__).with_name("golden") / "rtl.json").read_text())
LENGTH = 300  # as in test_judge.py
STAY = jal(0, 0)


@pytest.mark.parametrize("key", GOLDEN)
def test_as_the_rtl_did(key: str) -> None:
    cores, seed = map(int, key.split(":"))
    ran = run_program(random_program(seed, LENGTH, cores), chip(cores))
    assert [ran.end, ran.digest()] == GOLDEN[key]


def test_a_core_alone_is_faster_to_simulate_and_the_same() -> None:
    for seed in range(20):
        code = random_program(seed, LENGTH)
        assert run_program(code, chip(), traced=False).memory == run_program(code, chip()).memory


def words(*instructions: int) -> bytes:
    return struct.pack(f"<{len(instructions)}I", *instructions)


def stopped(code: bytes, config: ctypes.Structure) -> Simulator:
    simulator = Simulator(config)
    assert simulator.load(CODE, code)
    assert simulator.run(100_000) is ClusterStop.FAULT
    return simulator


# Core 1 writes a byte beside core 0, and core 0 reads: the same one, or the one behind it.
def shared_byte(offset: int, barrier: bool) -> bytes:
    meet = [*constant(6, EVENTS), i_type(0, 6, 3, 7, CUSTOM0)]
    write = [s_type(offset, 5, 8, 0, STORE)]
    read = [i_type(1, 8, 0, 9, LOAD)]
    ours = [*(meet if barrier else [addi(0, 0, 0)] * 3), *read, STAY]
    theirs = [*write, *(meet if barrier else [addi(0, 0, 0)] * 3), STAY]
    start = [*constant(8, DATA), i_type(0xF14, 0, 2, 5, 0x73), b_type(4 + 4 * len(ours), 0, 5, 1)]
    return words(*start, *ours, *theirs)


def test_two_cores_at_a_byte() -> None:
    report = stopped(shared_byte(1, barrier=False), chip(2)).report()
    assert (report.fault, report.address) == (ClusterFault.RACE, DATA + 1)
    assert {report.core, report.other} == {0, 1} and report.writes != report.other_writes


@pytest.mark.parametrize(("offset", "barrier"), [(1, True), (0, False)])
def test_no_race(offset: int, barrier: bool) -> None:
    assert run_program(shared_byte(offset, barrier), chip(2), cycles=1000).report.fault is ClusterFault.NONE


def registers(base: int, *values: int) -> list[int]:
    stores = [[*constant(7, value), s_type(4 * i, 7, 6, 2, STORE)] for i, value in enumerate(values)]
    return [*constant(6, base), *(word for store in stores for word in store)]


def dma(rows: int, row: int) -> list[int]:
    """Copy rows that are 100 bytes apart from FAR to DATA, without gaps, on channel 3."""
    return [*registers(DMA, FAR, DATA, row, rows, 100, row), addi(7, 0, 3), s_type(24, 7, 6, 2, STORE)]


WAIT = i_type(0x40 + 4 * 3, 6, 3, 7, CUSTOM0)
TELL = [*constant(1, UART), s_type(0, 1, 1, 0, STORE), STAY]


def test_dma_moves_rows_in_time() -> None:
    simulator = Simulator(chip())
    data = np.random.default_rng(1).integers(0, 256, 400, np.uint8)
    simulator.load(FAR, data.tobytes())
    simulator.load(CODE, words(*dma(3, 50), WAIT, *TELL))
    trace(simulator, 1000)
    simulator.run(1000)
    assert peek(simulator, DATA, 150) == b"".join(data[at : at + 50].tobytes() for at in (0, 100, 200))
    started = next(e for e in events(simulator) if e.address == DMA + 24)
    waited = next(e for e in events(simulator) if e.address == DMA + 0x4C)
    # one register cycle, 20 cycles until the first byte, 7 beats of 8 bytes for each row
    assert waited.cycle + waited.answer == started.cycle + 1 + 20 + 3 * 7


@pytest.mark.parametrize(
    ("meanwhile", "address"),
    [
        (i_type(40, 8, 2, 9, LOAD), DATA + 40),
        (s_type(40, 9, 8, 0, STORE), DATA + 40),
        (s_type(210, 9, 10, 0, STORE), FAR + 210),
    ],
)
def test_access_during_a_copy_is_an_error(meanwhile: int, address: int) -> None:
    bases = [*constant(8, DATA), *constant(10, FAR)]
    report = stopped(words(*bases, *dma(3, 50), meanwhile, WAIT, *TELL), chip()).report()
    assert (report.fault, report.address, report.other) == (ClusterFault.IN_TRANSFER, address, 3)
    fine = run_program(words(*bases, *dma(3, 50), WAIT, meanwhile, *TELL), chip())
    assert fine.report.fault is ClusterFault.NONE and fine.end is not None
    # what is read may be read
    other = run_program(words(*bases, *dma(3, 50), i_type(0, 10, 2, 9, LOAD), WAIT, *TELL), chip())
    assert other.report.fault is ClusterFault.NONE


@pytest.mark.parametrize(("rows", "late"), [(3, False), (300, True)])
def test_what_is_copied_may_be_written_when_the_others_know_that_it_was(rows: int, late: bool) -> None:
    """Core 1 writes while core 0 still waits for the copy, or a little later: without a barrier, it cannot know."""
    meet = [*constant(6, EVENTS), i_type(0, 6, 3, 7, CUSTOM0)]
    start = [*constant(10, FAR), i_type(0xF14, 0, 2, 5, 0x73)]
    theirs = [*meet, *[addi(0, 0, 0)] * (20 if late else 200)]
    ours = [*dma(rows, 50), *meet, *constant(6, DMA), WAIT]

    def program(*between: int) -> bytes:
        first = [*ours, *between, *TELL]
        return words(
            *start, b_type(4 + 4 * len(first), 0, 5, 1), *first, *theirs, *between, s_type(0, 5, 10, 2, STORE), STAY
        )

    report = stopped(program(), chip(2)).report()
    assert (report.fault, report.address, report.core, report.other) == (ClusterFault.RACE, FAR, 1, 0)
    assert report.writes and not report.other_writes
    fine = run_program(program(*meet), chip(2), cycles=10_000)
    assert fine.report.fault is ClusterFault.NONE and fine.end is not None


def test_a_channel_is_waited_for_before_it_starts_again() -> None:
    again = [*dma(1, 8), s_type(24, 7, 6, 2, STORE), STAY]
    assert stopped(words(*again), chip()).report().fault is ClusterFault.UNIT_RULE
    outside = [*registers(DMA, FAR, 0x40, 8, 1, 8, 8), addi(7, 0, 3), s_type(24, 7, 6, 2, STORE), STAY]
    assert stopped(words(*outside), chip()).report().fault is ClusterFault.UNIT_RULE


def test_gemm_is_a_product_with_requantization() -> None:
    rng = np.random.default_rng(3)
    rows, columns, depth = 9, 5, 12
    a, b = rng.integers(-128, 128, (rows, depth), np.int8), rng.integers(-128, 128, (columns, depth), np.int8)
    bias, multiplier = rng.integers(-9999, 9999, columns, np.int32), rng.integers(1, 1 << 22, columns, np.int32)
    where = [DATA + 0x400 * i for i in range(5)]
    image = (1, rows, depth, 1, rows, columns, *(1,) * 4, 0, 0, 1, 1)
    values = (*where[:2], where[4], *where[2:4], *image, columns, 0, 3, -100, 90, 2)
    simulator = Simulator(chip())
    for address, array in zip(where, (a, b, bias, multiplier), strict=False):
        simulator.load(address, array.tobytes())
    wait = i_type(4 * 26, 6, 3, 7, CUSTOM0)
    code = [*registers(GEMM, *(value & 0xFFFFFFFF for value in values)), s_type(4 * 25, 0, 6, 2, STORE), wait, *TELL]
    simulator.load(CODE, words(*code))
    trace(simulator, 1000)
    assert simulator.run(10_000) is ClusterStop.HAS_OUTPUT
    sums = (a.astype(np.int64) @ b.T.astype(np.int64) + bias) << 2
    wanted = np.clip(3 + ((sums * multiplier + (1 << 31)) >> 32), -100, 90).astype(np.int8)
    assert peek(simulator, where[4], rows * columns) == wanted.tobytes()
    started = next(e for e in events(simulator) if e.address == GEMM + 4 * 25)
    waited = next(e for e in events(simulator) if e.address == GEMM + 4 * 26)
    assert waited.cycle + waited.answer == started.cycle + 1 + 16 + 2 * 1 * 8, "outputs leave 8 in a cycle"


LOOP_OF_THREE = i_type(5, 4, 4, 6 << 1, CUSTOM1)


@pytest.mark.parametrize(
    "body",
    [
        [addi(5, 5, 1), addi(5, 5, 1), b_type(4, 0, 0, 1)],
        [addi(5, 5, 1), jal(4, 0), addi(5, 5, 1)],
        [0x00010001, addi(5, 5, 1), addi(5, 5, 1)],
        [addi(5, 5, 1), 0x0000100F, addi(5, 5, 1)],
    ],
)
def test_loops_that_the_manual_forbids(body: list[int]) -> None:
    assert stopped(words(LOOP_OF_THREE, *body, STAY), chip()).report().fault is ClusterFault.LOOP_RULE


def test_a_loop_of_two_is_too_short() -> None:
    short = i_type(5, 3, 4, 6 << 1, CUSTOM1)
    assert stopped(words(short, addi(5, 5, 1), addi(5, 5, 1), STAY), chip()).report().fault is ClusterFault.LOOP_RULE


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ([0xFFFFFFFF], ClusterFault.ILLEGAL),
        ([i_type(0x7C0, 0, 2, 5, 0x73)], ClusterFault.ILLEGAL),  # a CSR that it does not have
        ([i_type(0, 0, 2, 5, LOAD)], ClusterFault.NO_MEMORY),
        ([i_type(0, 0, 0, 0, 0x67)], ClusterFault.NO_CODE),
        ([0x00100073], ClusterFault.STOPPED),
    ],
)
def test_what_ends_a_program(code: list[int], fault: ClusterFault) -> None:
    for cores in (1, 2):
        report = stopped(words(addi(1, 1, 1), *code, STAY), chip(cores)).report()
        assert (report.fault, report.pc) == (fault, CODE + 4)


def test_all_wait_for_ever() -> None:
    only_one = [i_type(0xF14, 0, 2, 5, 0x73), b_type(0, 0, 5, 1), *constant(6, EVENTS), i_type(0, 6, 3, 7, CUSTOM0)]
    alone = chip()
    simulator = Simulator(alone)
    simulator.load(CODE, words(*constant(6, EVENTS), addi(7, 0, 3), s_type(4, 7, 6, 2, STORE), *only_one))
    assert simulator.run(1000) is ClusterStop.FAULT and simulator.report().fault is ClusterFault.DEADLOCK


def test_steps_are_distinguished() -> None:
    """A run function that calls two steps, the second of which waits for slow memory and for what it loads."""
    first = [addi(5, 5, 1), addi(5, 5, 1), i_type(0, 1, 0, 0, 0x67)]
    second = [i_type(0, 9, 2, 5, LOAD), addi(5, 5, 1), i_type(0, 1, 0, 0, 0x67)]
    call = CODE + 4 * 12
    run = CODE + 4 * 4
    main = [*constant(9, FAR), jal(8, 3), STAY]  # to `run`, and stay behind it
    code = [*main, addi(0, 0, 0)][:4]
    code += [jal(call - run, 1), jal(call + 12 - run - 4, 1), i_type(0, 3, 0, 0, 0x67)]
    code += [STAY] * (12 - len(code)) + first + second
    config = chip()
    config.run, config.returned = run, CODE + 12
    config.home[0][:] = run, run + 12
    simulator = Simulator(config)
    simulator.load(CODE, words(*code))
    simulator.run(1000)
    spans = simulator.spans()
    assert [span.site for span in spans] == [0, run + 4, 0, run + 8, 0]
    assert [span.instructions for span in spans] == [1, 3, 1, 3, 1]
    assert all(a.end == b.begin for a, b in pairwise(spans))
    # each call and return takes 2 cycles, of which the call's belong to the caller
    assert [span.end - span.begin for span in spans] == [2, 4, 2, 4 + 10 + 1, 2]
    assert (spans[3].slow, spans[3].load_use, spans[3].busy) == (10, 1, 4)
    assert simulator.calls(cycles=True) == (25,) and simulator.calls(cycles=False) == (9,)


def test_fast_enough() -> None:
    """A tenth of what is promised, as test machines are busy; it does about 230 million instructions a second."""
    loop = [i_type(0, 8, 2, 11, LOAD), r_type(0, 10, 11, 0, 12, OP), s_type(4, 12, 8, 2, STORE), addi(13, 12, 5)]
    loop += [r_type(0x54, 11, 12, 1, 14, CUSTOM3), i_type(-1, 10, 0, 10, OP_IMM)]
    code = [*constant(8, DATA), *constant(10, 1 << 30), *loop, b_type(-24, 0, 10, 1)]
    simulator = Simulator(chip())
    simulator.load(CODE, words(*code))
    begin = time.process_time()
    assert simulator.run(10_000_000) is ClusterStop.TIME
    assert 7_000_000 / (time.process_time() - begin) > 10e6
