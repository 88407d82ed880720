"""Rock, paper, scissors against the computer, with an emulated chip as the referee. Run by `make play`."""

from __future__ import annotations

import argparse
import math
import os
import random
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from hands import HANDS, draw
from rich.columns import Columns
from rich.console import Console
from rich.panel import Panel

import baretorch

SHADES = " ░▒▓█"


def picture(pixels: torch.Tensor) -> str:
    """The image in characters; each stands for two pixels, one above the other, as characters are tall."""
    rows = pixels.reshape(-1, 2, pixels.shape[-1]).mean(1)
    return "\n".join("".join(SHADES[min(int(v * len(SHADES)), len(SHADES) - 1)] for v in row) for row in rows.tolist())


def winner(yours: int, mine: int) -> int:
    """+1 if you win, -1 if I do, 0 if neither: each hand beats the one before it in HANDS, scissors before rock."""
    return (0, 1, -1)[(yours - mine) % 3]


class Referee:
    """The chip: it sees only pictures, over its UART, and says which hands they show."""

    def __init__(self, board: str) -> None:
        self.model = baretorch.compile(Path(__file__).with_name("model.py"), board=board, int8=True)
        self.model.build()
        self.look(torch.zeros(1, 1, 28, 28))  # the first time, an NPU's commands and weights are checked, too

    def look(self, pixels: torch.Tensor) -> tuple[int, float, int]:
        """The hand, how sure the chip is of it, and the instructions it took."""
        scores: list[float] = self.model.run(pixels).reshape(-1).tolist()
        shares = [math.exp(s - max(scores)) for s in scores]
        hand = max(range(len(scores)), key=scores.__getitem__)
        return hand, shares[hand] / sum(shares), self.model.instructions or 0


@contextmanager
def keys() -> Iterator[Callable[[], str]]:
    """Reads single keys from the terminal, without waiting for the end of a line."""
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield lambda: os.read(sys.stdin.fileno(), 1).decode(errors="replace").lower()
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def choose(console: Console, key: Callable[[], str]) -> int | None:
    """The player's hand; None for quitting."""
    console.print("\n[bold]r[/]ock, [bold]p[/]aper, [bold]s[/]cissors, or [bold]q[/]uit? ", end="")
    while True:
        pressed = key()
        if pressed in ("q", "\x04", ""):  # q, Ctrl-D, or the terminal is gone
            console.print("quit")
            return None
        if pressed in "rps":
            hand = "rps".index(pressed)
            console.print(HANDS[hand])
            return hand


def shown(title: str, pixels: torch.Tensor, seen: tuple[int, float, int]) -> Panel:
    hand, sure, _ = seen
    return Panel(
        picture(pixels),
        title=title,
        subtitle=f"{HANDS[hand]}, {sure:.1%} sure",
        width=34,
        padding=(0, 2),
        border_style="green" if sure > 0.9 else "yellow",
    )


def play(console: Console, key: Callable[[], str], referee: Referee, best_of: int, seed: int | None) -> tuple[int, int]:
    """Rounds until somebody cannot be caught up with. (your points, mine)"""
    luck = random.Random(seed)
    pen = torch.Generator().manual_seed(luck.getrandbits(32))
    you = me = rounds = 0
    while max(you, me) <= best_of // 2:
        yours = choose(console, key)
        if yours is None:
            break
        pictures = [draw(hand, 1, pen)[:1] for hand in (yours, luck.randrange(3))]
        seen = [referee.look(pixels) for pixels in pictures]
        titles = ("you", "computer")
        console.print(Columns([shown(*each) for each in zip(titles, pictures, seen, strict=True)]))
        result = winner(seen[0][0], seen[1][0])
        rounds += 1
        you, me = you + (result > 0), me + (result < 0)
        if seen[0][0] != yours:
            console.print(f"You drew {HANDS[yours]}, but the chip saw {HANDS[seen[0][0]]}: the referee is right.")
        said = {1: "[green]You win[/]", -1: "[red]The computer wins[/]", 0: "A draw"}[result]
        console.print(
            f"{said}: {HANDS[seen[0][0]]} against {HANDS[seen[1][0]]}.  "
            f"Round {rounds}, [bold]you {you} : {me} computer[/], best of {best_of}.  "
            f"The chip took {sum(s[2] for s in seen):,} instructions."
        )
    return you, me


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--board", default="mps3-an547", help="the chip to emulate (default: %(default)s)")
    arguments.add_argument("--best-of", type=int, default=5, metavar="N", help="rounds (default: %(default)s)")
    arguments.add_argument("--seed", type=int, help="make the computer's choices the same every time")
    given = arguments.parse_args()
    if given.best_of < 1:
        arguments.error("--best-of must be at least 1")
    if not sys.stdin.isatty():
        print("error: the game needs a terminal to read keys from", file=sys.stderr)
        return 1
    console = Console(highlight=False, emoji=False)
    try:
        with console.status(f"Quantizing, building and booting the referee on {given.board} …"):
            referee = Referee(given.board)
    except baretorch.CompileError as error:
        print(error.render(), file=sys.stderr)
        return 1
    image = referee.model.build()
    flash, ram = image.flash, image.ram
    for warning in referee.model.warnings:
        console.print(f"[yellow]warning:[/] {warning}")
    partition = referee.model.compiled.partition
    delegated = sum(len(region.layers) for region in partition.regions) if partition else 0
    npu = f" {delegated} of the network's operators run on its NPU." if delegated else ""
    console.print(
        f"Rock, paper, scissors. The referee is a [bold]{given.board}[/] with {flash.total:,} bytes of flash and "
        f"{ram.total:,} bytes of RAM in use, emulated instruction by instruction.{npu}\n"
        "Your hand is drawn as a noisy letter and sent over its UART; it must tell what it sees."
    )
    try:
        with keys() as key:
            you, me = play(console, key, referee, given.best_of, given.seed)
    except KeyboardInterrupt:
        return 130
    finally:
        referee.model.close()
    if you != me:
        console.print(
            "\n[bold green]You win the game.[/]" if you > me else "\n[bold red]The computer wins the game.[/]"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
