"""The generated words of examples/words are reproducible and distinguishable."""

from __future__ import annotations

from pathlib import Path

import torch

from baretorch.frontends.user_code import import_file

MODEL = import_file(Path(__file__).parents[2] / "examples" / "words" / "model.py")


def test_words() -> None:
    x, y = MODEL.words(3, MODEL.HELD_OUT, 32)
    again, _ = MODEL.words(3, MODEL.HELD_OUT, 32)
    other, _ = MODEL.words(3, MODEL.TRAIN, 32)
    assert x.shape == (24, 1, 32, 16) and y.bincount().tolist() == [3] * 8
    assert torch.equal(x, again) and not torch.equal(x, other)
    assert len({tuple(track.flatten().tolist()) for track in MODEL.TRACKS}) == MODEL.WORDS


def test_what_evaluate_counts() -> None:
    """One kind of word is always recognized among eight words of each kind."""
    found = MODEL.evaluate(lambda word: torch.nn.functional.one_hot(torch.tensor([5]), 8), 64)
    assert found == {"accuracy": 1 / 8}


def test_the_network_takes_them_and_learns() -> None:
    net = MODEL.network(1, 32)
    assert net(MODEL.inputs()[0]).shape == (1, 8)
    before = [p.clone() for p in net.parameters()]
    MODEL.words, words = lambda each, seed, size: words(4, seed, size), MODEL.words
    try:
        MODEL.train(net, epochs=1, batch=8)
    finally:
        MODEL.words = words
    assert all(not torch.equal(a, b) for a, b in zip(before, net.parameters(), strict=True))
