"""Emulate the boot ROM on core 1 of the RP2040 and the RP2350, until core 0 has sent the start address.

It returns each word that core 0 sends. At anything unexpected it starts again with a 0: at a 0 instead of an address,
or at another command than 1. So the words 0, 0, 1, vector table, stack pointer, entry start core 1 from any state.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

WANTED = "0, 0, 1, vector table, stack pointer, entry"


@dataclass(frozen=True)
class Launch:
    """The words that core 1 received."""

    vectors: int
    stack: int
    entry: int


class Mailbox(Protocol):
    """Core 1's end of the FIFOs between the cores."""

    def has_mail(self) -> bool: ...

    def take(self) -> int: ...

    def has_room(self) -> bool: ...

    def send(self, word: int) -> None:
        """Send a word and wake core 0."""


Waiting: TypeAlias = Generator[None, None, int]


def boot_rom(mailbox: Mailbox) -> Generator[None, None, Launch]:
    """Run the ROM. It yields whenever it waits for an event."""
    while True:
        while mailbox.has_mail():
            mailbox.take()
        if (yield from _answer(mailbox, 0)) != 1:
            continue
        if not (vectors := (yield from _answer(mailbox, 1))):
            continue
        if not (stack := (yield from _answer(mailbox, vectors))):
            continue
        if not (entry := (yield from _answer(mailbox, stack))):
            continue
        yield from _send(mailbox, entry)
        return Launch(vectors, stack, entry)


def _send(mailbox: Mailbox, word: int) -> Generator[None, None, None]:
    while not mailbox.has_room():
        yield
    mailbox.send(word)


def _answer(mailbox: Mailbox, word: int) -> Waiting:
    """Send `word`, and return the next word. It sleeps before it reads, so that core 0 must signal that it has sent a
    word."""
    yield from _send(mailbox, word)
    while True:
        yield
        if mailbox.has_mail():
            return mailbox.take()
