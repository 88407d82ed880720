"""Windows that lie entirely in padding, and memory that no kernel writes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace

import numpy as np
import pytest

from baretorch.ops import OPS, PLAN_OPS
from baretorch.ops.kernel import Call
from baretorch.ops.layout import Pad
from baretorch.ops.sample import GridSample2d
from baretorch.plan.select import select_kernel
from baretorch.targets.cpus import CPUS
from tests.ops.cases import padding
from tests.ops.merge import need_written

NO_WINDOWS = (Pad, GridSample2d)  # their padding is something else
# Kernels for layers without padding, or with so little that each window meets the image.
UNPADDED = {
    "bt_avg_pool2d_f32_fpu",
    "bt_qconv2d16_rows_dsp",
    "bt_qconv2d_depthwise3_dsp",
    "bt_qconv2d_depthwise3_rows_dsp",
    "bt_qconv2d_pixels_mve",
    "bt_qconv2d_pixels_narrow_xcv",
    "bt_qconv2d_pixels_xcv",
    "bt_qlinear4_groups_dsp",
    "bt_qlinear4_groups_mve",
    "bt_qlinear4_groups_pairs",
    "bt_qlinear4_groups_ref",
    "bt_qlinear4_groups_rows_dsp",
    "bt_qlinear4_groups_rows_mve",
    "bt_qlinear_sparse_dsp",
    "bt_qlinear_sparse_ref",
    "bt_qsums_pixels_first_xcv",
    "bt_qsums_pixels_xcv",
}


def of_windows() -> Iterator[str]:
    """List the kernels of all operators with padding."""
    for row in (*OPS, *PLAN_OPS):
        if row.op not in NO_WINDOWS and any(f.name == "padding" for f in fields(row.op)):
            yield from (kernel.symbol for kernel in row.kernels)


def test_every_kernel_that_takes_padding_has_windows_of_nothing_else() -> None:
    tried = set()
    for case in padding.CASES:
        (node,) = (graph := case.graph()).nodes
        call = Call(node.op, graph.of(node.inputs), graph.of(node.outputs))
        tried |= {select_kernel(call, cpu).symbol for cpu in CPUS}
    assert set(of_windows()) - tried == UNPADDED


def test_an_element_that_depends_on_memory_is_named() -> None:
    case = padding.CASES[0]
    (right,) = (np.zeros((1, 2, 3, 4), np.float32),)
    stale = right.copy()
    stale[0, 1, 2, 3] = 1.0
    assert need_written([case], [[(right,)], [(right,)]])[0][0] is right
    with pytest.raises(AssertionError, match=r"padding around, dense: 1 of 24 elements, the first at \[0, 1, 2, 3\]"):
        need_written([case], [[(right,)], [(stale,)]])


def test_a_number_that_is_nan_in_all_runs_is_written() -> None:
    case = replace(padding.CASES[0], name="nan")
    y = np.full((2, 2), np.nan, np.float32)
    assert need_written([case], [[(y,)], [(y.copy(),)]])[0][0] is y
