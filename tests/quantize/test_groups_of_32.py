"""Weights of 4 bits with a factor for each 32 inputs."""

from __future__ import annotations

import numpy as np

from baretorch.ops.int8.groups_of_inputs import GROUP, round_in_groups, split_groups
from baretorch.quantize.observers import per_channel


def test_groups_lose_less_than_channels_where_inputs_differ_in_size() -> None:
    """The inputs differ in size as in trained layers, in which columns of weights are not alike."""
    rng = np.random.default_rng(0)
    weight = (rng.standard_normal((16, 100)) * np.exp(rng.standard_normal(100))).astype(np.float32)
    coarse = np.array(per_channel(weight, 4).scale)[:, None]
    channels = np.rint(weight / coarse) * coarse
    fine = np.array(per_channel(weight, 4, GROUP).scale)
    whole = round_in_groups(weight, fine)
    assert np.square(weight - whole * fine[:, None]).sum() < 0.6 * np.square(weight - channels).sum()
    assert np.abs(whole).max() == 126
    made = split_groups(whole)
    assert made is not None and np.abs(made[0]).max() == 7
    assert (made[0] * np.repeat(made[1], GROUP, axis=1)[:, :100] == whole).all()


def test_a_row_of_zeros_and_what_has_no_groups() -> None:
    assert not round_in_groups(np.zeros((2, 3)), np.ones(2)).any()
    assert split_groups(np.array([[1, 127]])) is None
