"""Measured kernels come before the first that fits, and nothing that a file says is taken on trust."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from baretorch.errors import CompileError
from baretorch.ir import DType, Tensor
from baretorch.ops.kernel import Call
from baretorch.ops.qconv2d import QConv2d
from baretorch.plan.choices import BESIDE, Choice, Choices, Cost, Way, layer_of, read_choices, to_json
from baretorch.plan.cores import cluster, cuts_of
from baretorch.plan.select import select_kernel
from baretorch.targets.boards import load_board
from baretorch.targets.cpus import Cpu

CPU = load_board("mps2-an386").chip.cpu


def pointwise(zero: int = 0) -> Call[QConv2d]:
    op = QConv2d(x_zero=zero, zero=0)
    inputs = (
        Tensor("x", (1, 4, 4, 8), DType.INT8),
        Tensor("weight", (8, 1, 1, 8), DType.INT8, data=np.ones((8, 1, 1, 8), np.int8)),
        Tensor("bias", (8,), DType.INT32, data=np.zeros(8, np.int32)),
        Tensor("multiplier", (8,), DType.INT32, data=np.full(8, 1 << 20, np.int32)),
    )
    return Call(op, inputs, (Tensor("y", (1, 4, 4, 8), DType.INT8),))


LAYER = layer_of(pointwise())


def taken(way: Way, cpu: Cpu = CPU, tried: Sequence[str] = ()) -> str:
    choice = Choice("cortex-m4f", 1, LAYER, way, {Way(kernel): Cost(1, 1) for kernel in tried})
    choices = Choices({choice.key: choice})
    return select_kernel(pointwise(5), cpu, measured=lambda call: choices.of(call, cpu.name, 1)).symbol


def test_a_layer_is_its_work_and_not_its_numbers() -> None:
    assert layer_of(pointwise(7)) == LAYER
    assert LAYER == (
        "qconv2d int8 1x4x4x8 int8 8x1x1x8 int32 8 int32 8 -> int8 1x4x4x8 "
        "stride=1x1 padding=0x0x0x0 dilation=1x1 groups=1 pool=1x1 bits=8"
    )


def test_what_was_measured_is_taken_where_it_fits() -> None:
    assert select_kernel(pointwise(), CPU).symbol == "bt_qconv2d_dsp"
    assert taken(Way("bt_qconv2d_pairs_dsp")) == "bt_qconv2d_pairs_dsp"
    assert taken(Way("bt_qconv2d_depthwise_dsp")) == "bt_qconv2d_dsp", "it does not fit"
    assert taken(Way("bt_qconv2d_pairs_dsp"), load_board("mps2-an505").chip.cpu) == "bt_qconv2d_dsp", "another CPU"


def test_a_choice_holds_where_the_planners_own_kernel_was_tried() -> None:
    pairs, ref = "bt_qconv2d_pairs_dsp", "bt_qconv2d_ref"
    assert taken(Way(pairs), tried=("bt_qconv2d_dsp", pairs, ref)) == pairs
    assert taken(Way(pairs), tried=(pairs, ref)) == "bt_qconv2d_dsp", "a layer of these words had other kernels"


def test_a_file_says_what_it_was_told(tmp_path: Path) -> None:
    tried = {Way("bt_qconv2d_dsp"): Cost(20, 10), Way("bt_qconv2d_ref", 3): Cost(15, 12)}
    choice = Choice("cortex-m4f", 8, LAYER, Way("bt_qconv2d_ref", 3), tried)
    (tmp_path / "a.json").write_text(to_json([choice]))
    assert read_choices(tmp_path / "a.json") == (choice,)


@pytest.mark.parametrize("text", ["", "[" * 100_000, "[]", '{"format": 2, "choices": []}', '{"format": 1}'])
def test_other_files(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(CompileError, match="no file of kernels"):
        read_choices(tmp_path / "a.json")


KERNEL = {"cpu": "x", "cores": 1, "layer": "", "take": "bt_qconv2d_ref", "tried": {}}
TILES = {"chip": "x", "cores": 8, "model": "", "layer": "", "take": "as planned", "tried": {}}
COST = {"cycles": 1, "instructions": 1}


@pytest.mark.parametrize(
    ("row", "told"),
    [
        (7, "7 is no table"),
        ({}, "cpu must be text"),
        (KERNEL | {"take": 3}, "take must be text"),
        (TILES | {"model": None}, "model must be text"),
        (KERNEL | {"cores": "1"}, "cores must be a whole number from 1 on, not '1'"),
        (KERNEL | {"cores": True}, "cores must be a whole number from 1 on, not True"),
        (TILES | {"cores": -8}, "cores must be a whole number from 1 on, not -8"),
        (KERNEL | {"take": "bt_qconv2d_ref cut x"}, "'x' is no count"),
        (KERNEL | {"take": "bt_qconv2d_ref cut -99"}, "'-99' is no count"),
        (KERNEL | {"tried": "x"}, "tried must have a table for each way"),
        (KERNEL | {"tried": {"bt_qconv2d_ref": 1}}, "tried must have a table for each way"),
        (
            KERNEL | {"tried": {"a": COST | {"cycles": float("inf")}}},
            "cycles must be a whole number from 0 on, not inf",
        ),
        (TILES | {"tried": {"rows 2": COST | {"instructions": -1}}}, "instructions must be a whole number from 0 on"),
        (TILES | {"take": "rows 0"}, "rows 1 to 64 is possible, not 0"),
        (TILES | {"take": "channels 65"}, "channels 1 to 64 is possible, not 65"),
        (TILES | {"take": "rows -2"}, "'-2' is no count"),
        (TILES | {"take": "rows \u0663"}, "is no count"),
        (TILES | {"take": "rows " + "9" * 5000}, "is no count"),
        (TILES | {"take": "rows 2 bank 64"}, "bank 1 to 63 is possible, not 64"),
        (TILES | {"take": "../rows"}, "'as planned', 'rows N' or 'channels N' is possible, not '../rows'"),
    ],
)
def test_damaged_choices(row: object, told: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps({"format": 1, "choices": [KERNEL, row]}))
    with pytest.raises(CompileError, match="no file of kernels") as error:
        read_choices(tmp_path / "a.json")
    (have,) = error.value.have
    assert have.startswith("choice 2: ") and told in have


def test_those_beside_the_kernels() -> None:
    """They were measured: each took no longer than what was tried beside it, and nobody names a kernel that is gone."""
    found = read_choices(BESIDE)
    assert {c.cpu for c in found if isinstance(c, Choice)} >= {"cortex-m4f", "cortex-m55"}
    assert {c.chip for c in found if not isinstance(c, Choice)} == {"cluster8"}
    for choice in found:
        assert choice.tried[choice.take].cycles <= next(iter(choice.tried.values())).cycles, choice.layer


def test_cuts_to_choose_from() -> None:
    kernel = select_kernel(pointwise(), load_board("cluster8").chip.cpu)
    assert cuts_of(pointwise(), kernel, cluster(8)) > 1
    assert cuts_of(pointwise(), kernel, cluster(1)) == 0
