"""Frames survive the wire: whole, cut into pieces, between text, after garbage."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baretorch.machines.frames import KINDS, Decoder, Frame, encode_frame

LIMIT = 4096
frames = st.builds(Frame, st.sampled_from(KINDS), st.integers(0, 255), st.binary(max_size=300))
texts = st.binary(max_size=40).filter(lambda data: b"B" not in data)


def decode(chunks: list[bytes], limit: int = LIMIT) -> tuple[list[Frame], bytes]:
    decoder = Decoder(limit)
    items = [item for chunk in chunks for item in decoder.feed(chunk)] + decoder.give_up()
    return [i for i in items if isinstance(i, Frame)], b"".join(i for i in items if isinstance(i, bytes))


def cut(data: bytes, rng: random.Random) -> list[bytes]:
    places = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(6)))
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


def test_the_layout_is_the_documented_one() -> None:
    assert encode_frame(Frame(ord("H"), 7)).hex() == "42544807" + "00000000" + "b2f5e9e0"
    assert encode_frame(Frame(ord("R"), 1, b"\x01\x02")).hex() == "42545201" + "02000000" + "0102" + "00d18b6e"


@given(st.lists(st.tuples(texts, frames)), texts, st.randoms(use_true_random=False))
def test_frames_and_text_come_out_as_they_went_in(
    parts: list[tuple[bytes, Frame]], tail: bytes, rng: random.Random
) -> None:
    stream = b"".join(text + encode_frame(frame) for text, frame in parts) + tail
    found, text = decode(cut(stream, rng))
    assert found == [frame for _, frame in parts]
    assert text == b"".join(text for text, _ in parts) + tail


@given(st.binary(max_size=400), frames, st.randoms(use_true_random=False))
def test_a_frame_after_garbage_is_found(garbage: bytes, frame: Frame, rng: random.Random) -> None:
    found, text = decode(cut(garbage + encode_frame(frame), rng))
    assert found[-1] == frame
    assert len(text) + sum(len(encode_frame(f)) for f in found) == len(garbage) + len(encode_frame(frame))


@given(frames, frames, st.data())
def test_a_damaged_frame_is_dropped_and_the_next_one_kept(damaged: Frame, whole: Frame, data: st.DataObject) -> None:
    wire = bytearray(encode_frame(damaged))
    wire[data.draw(st.integers(0, len(wire) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    found, _ = decode([bytes(wire) + encode_frame(whole)])
    assert found == [whole]


@pytest.mark.parametrize("seed", range(20))
def test_fuzz_no_byte_is_lost(seed: int) -> None:
    """Streams made of the protocol's own crumbs: every byte is in a frame or in the text, in any cutting."""
    rng = random.Random(seed)
    crumbs = [b"B", b"T", b"BT", b"BTr", b"BTh\0", b"BTe\1\5\0\0\0", b"\0", b"BTr\1\xff\xff\xff\xff", b"text\n"]
    crumbs.append(encode_frame(Frame(ord("r"), 3, b"BT" * 5)))
    stream = b"".join(rng.choice(crumbs) for _ in range(300))
    found, text = decode(cut(stream, rng))
    assert len(text) + sum(len(encode_frame(f)) for f in found) == len(stream)
    assert decode([stream[i : i + 1] for i in range(len(stream))]) == (found, text)


def test_a_frame_longer_than_the_limit_is_text() -> None:
    wire = encode_frame(Frame(ord("r"), 0, bytes(11)))
    assert decode([wire], limit=10) == ([], wire)


def test_an_unfinished_frame_waits_for_its_rest() -> None:
    decoder, wire = Decoder(LIMIT), encode_frame(Frame(ord("r"), 9, b"abc"))
    assert decoder.feed(b"hi" + wire[:-1]) == [b"hi"]
    assert decoder.feed(wire[-1:]) == [Frame(ord("r"), 9, b"abc")]


def test_text_is_not_held_back() -> None:
    assert Decoder(LIMIT).feed(b"baretorch: ready\n") == [b"baretorch: ready\n"]
