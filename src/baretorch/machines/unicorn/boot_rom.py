"""Emulate the boot ROM on core 1 of the RP2040 and the RP2350, until core 0 has sent the start address.

It answers each word that core 0 sends, and starts over, with a 0, at anything unexpected: at a 0 where it expects more
than that, or at another command than 1. So 0, 0, 1, vector table, stack pointer, entry brings it to `entry` from
wherever it is.
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
        """And wake core 0."""


Waiting: TypeAlias = Generator[None, None, int]


def boot_rom(mailbox: Mailbox) -> Generator[None, None, Launch]:
    """Goes on until it waits for an event, and yields then."""
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
    """Send `word`; the word that comes next. It sleeps before it looks, so that core 0 must signal what it sent."""
    yield from _send(mailbox, word)
    while True:
        yield
        if mailbox.has_mail():
            return mailbox.take()
