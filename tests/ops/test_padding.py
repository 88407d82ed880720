"""Windows that lie entirely in padding, and memory that no kernel writes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import baretorch
from baretorch import pipeline
from baretorch.emit import emit
from baretorch.frontends import Source
from baretorch.machines import open_machine
from baretorch.machines.link import Link
from baretorch.machines.run import call_image
from baretorch.ops import OPS, PLAN_OPS
from baretorch.ops.helpers.kernel import Call
from baretorch.ops.layout import Pad
from baretorch.ops.upsample import GridSample2d
from baretorch.options import Options
from baretorch.plan import make_plan
from baretorch.plan.schedule import one_by_one
from baretorch.plan.select import select_kernel
from baretorch.targets.boards import load_board
from baretorch.targets.cpus import CPUS
from tests.ops.cases import padding
from tests.ops.merge import need_written
from tests.patterns import filled_images

NO_WINDOWS = (Pad, GridSample2d)  # their padding is something else
# Kernels for layers without padding, or with so little that each window meets the image.
UNPADDED = {
    "bt_avg_pool2d_f32_fpu",
    "bt_litert_avg_pool16_ref",
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
        call_image = Call(node.op, graph.of(node.inputs), graph.of(node.outputs))
        tried |= {select_kernel(call_image, cpu).symbol for cpu in CPUS}
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


def test_an_output_that_no_step_writes_is_the_pattern(tmp_path: Path) -> None:
    """Drop the only step of a model: what its image returns is what memory held before."""
    case = replace(padding.CASES[0], name="cases")
    graph, board = case.graph(), load_board("mps2-an386")
    plan = make_plan(graph, board)
    with filled_images():
        c = emit("cases", {"forward": replace(plan, schedule=one_by_one([]))})
    source = Source("cases", {"forward": graph}, case.arrays()[:1])
    compiled = pipeline.Compiled(
        pipeline.LoweredModel(source, {"forward": graph}), board, {"forward": plan}, c, Options()
    )
    with closing(open_machine(pipeline.build_image(compiled, tmp_path), c.run)) as machine:
        link = Link(machine)
        first, second = (call_image(link, graph, case.arrays()[:1])[0] for _ in range(2))
    overlapped = plan.layout.buffer(graph.inputs[0]).size  # there the image has its input
    assert np.count_nonzero(first != second) * 4 >= first.nbytes - overlapped
    assert np.isnan(first).sum() * 4 >= first.nbytes - overlapped


def padded() -> nn.Module:
    """Return convolutions whose first and last rows are made of padding alone."""
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(1, 8, 1, padding=(2, 1)),
        nn.ReLU(),
        nn.Conv2d(8, 8, 3, padding=(3, 1), groups=8),
        nn.Conv2d(8, 4, (2, 1), padding=(5, 0), dilation=(4, 1), stride=(2, 1)),
    ).eval()


@pytest.mark.parametrize("board", ["mps2-an386", "mps3-an547", "pico2w"])
def test_rows_in_padding_do_not_keep_what_the_run_before_left(board: str) -> None:
    net, samples = padded(), torch.randn(3, 1, 1, 6, 14)
    with closing(baretorch.compile(net, (samples[0],), board=board)) as model, torch.no_grad():
        for x in samples:
            np.testing.assert_allclose(model.run(x), net(x).numpy(), rtol=1e-5, atol=1e-5)


def test_the_float_model_that_int8_is_compared_with_has_no_stale_rows() -> None:
    samples = torch.randn(8, 1, 1, 6, 14)
    model = baretorch.compile(padded(), (samples[0],), board="mps2-an386", calibration=[(x,) for x in samples])
    assert model.warnings == ()
