"""The game in a pseudo-terminal: keys in, pictures and score out, the emulated chip in between."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLAY = ROOT / "examples" / "rps" / "play.py"
PATIENCE = 200.0  # the first game trains the network


class Game:
    """The program in a terminal of 100 columns."""

    def __init__(self, *arguments: str) -> None:
        self.master, slave = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, str(PLAY), *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "100"},
            start_new_session=True,
        )
        os.close(slave)
        self.seen = ""

    def until(self, text: str) -> str:
        """Return the output up to `text`, without colours, and forget it."""
        end = time.monotonic() + PATIENCE
        while text not in self.seen:
            ready, _, _ = select.select([self.master], [], [], max(0.0, end - time.monotonic()))
            assert ready, f"no {text!r} in {self.seen!r}"
            try:
                raw = os.read(self.master, 4096).decode(errors="replace")
            except OSError:  # the other side is closed
                raw = ""
            assert raw, f"ended without {text!r}: {self.seen!r}"
            self.seen += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", raw).replace("\r", "")
        before, _, self.seen = self.seen.partition(text)
        return before

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def code(self) -> int:
        """The exit code, once the program has ended."""
        return self.process.wait(60)

    def __enter__(self) -> Game:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.kill()
        os.close(self.master)


def test_a_game_to_its_end() -> None:
    """Always the same hand: the score adds up, and the chip names every hand."""
    with Game("--best-of", "5", "--seed", "1") as game:
        score = (0, 0)
        while max(score) < 3:
            game.until("uit? ")
            game.press("xp")  # a key that means nothing, then paper
            shown = game.until("instructions.")
            assert "█" in shown, "no picture"
            (yours, _), (mine, _) = re.findall(r"(\w+), (\d+\.\d)% sure", shown)
            points = re.search(r"you (\d) : (\d) computer", shown)
            taken = re.search(r"The chip took\s+([\d,]+)", shown)
            assert yours == "paper" and points and taken
            assert int(taken[1].replace(",", "")) > 1_000_000
            won, lost = {"rock": (1, 0), "paper": (0, 0), "scissors": (0, 1)}[mine]
            score = score[0] + won, score[1] + lost
            assert (int(points[1]), int(points[2])) == score
        game.until("the game.")
        assert game.code() == 0


def test_quitting() -> None:
    with Game("--best-of", "3", "--board", "pico2w") as game:
        game.until("uit? ")
        game.press("q")
        game.until("quit")
        assert game.code() == 0


def test_without_a_terminal() -> None:
    done = subprocess.run([sys.executable, str(PLAY)], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.strip() == "error: the game needs a terminal to read keys from"


def test_a_board_that_is_not_there() -> None:
    with Game("--board", "mps4") as game:
        game.until("error: ")
        game.until("mps4")
        assert game.code() == 1


@pytest.mark.slow
def test_the_npu_as_the_referee() -> None:
    with Game("--board", "corstone-300", "--best-of", "3", "--seed", "1") as game:
        assert "6 of the network's operators run on its NPU" in re.sub(r"\s+", " ", game.until("uit? "))
        game.press("p")
        taken = re.search(r"The chip took\s+([\d,]+)", game.until("instructions."))
        assert taken and int(taken[1].replace(",", "")) < 60_000  # both pictures, with their way from and to float
        game.until("uit? ")
        game.press("q")
        assert game.code() == 0
