"""Inline assembly tells the compiler which registers it overwrites while it still reads others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import baretorch

ROOT = Path(baretorch.__file__).parent
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|/\*.*?\*/|//[^\n]*|[():]|[^\s"():]+', re.S)


def statements(text: str) -> Iterator[tuple[int, list[list[str]]]]:
    """The line of each, and its words: of the code, of what it writes, of what it reads, and of what it clobbers."""
    for begin in re.finditer(r"__asm__(?:\s+volatile)?\s*\(", text):
        parts: list[list[str]] = [[]]
        depth = 1
        for token in TOKEN.finditer(text, begin.end()):
            word = token.group()
            depth += {"(": 1, ")": -1}.get(word, 0)
            if depth == 0:
                break
            if word == ":" and depth == 1:
                parts.append([])
            elif not word.startswith(("/*", "//")):
                parts[-1].append(word)
        yield text[: begin.start()].count("\n") + 1, parts


def careless(text: str) -> Iterator[int]:
    """Lines of statements that read something and write to a register that the compiler may have given to that, too: it
    does so where both have the same value. A single instruction may have its result in a register that it reads."""
    for line, (code, *operands) in statements(text):
        outputs, inputs = ([w for w in words if w.startswith('"')] for words in (*operands[:2], [], [])[:2])
        several = any("\\n" in word for word in code)
        if inputs and any("&" not in o and (o.startswith('"+') or several) for o in outputs):
            yield line


def test_no_input_shares_a_register_that_is_overwritten() -> None:
    files = [*ROOT.rglob("*.c"), *ROOT.rglob("*.h")]
    found = [f"{path.relative_to(ROOT)}:{line}" for path in files for line in careless(path.read_text("utf-8"))]
    assert found == []
    assert sum(len(list(statements(path.read_text("utf-8")))) for path in files) > 100


def test_what_is_careless() -> None:
    loop = '__asm__ volatile("1: subs %[n], #1\\n\\tadd %[y], %[zero]\\n\\tbne 1b" : WRITES : [zero] "r"(zero) : "cc");'
    assert list(careless(loop.replace("WRITES", '[n] "+r"(n), [y] "+&r"(y)'))) == [1]
    assert list(careless(loop.replace("WRITES", '[n] "+&r"(n), [y] "=r"(y)'))) == [1]
    assert list(careless(loop.replace("WRITES", '[n] "+&r"(n), [y] "=&r"(y)'))) == []
    assert list(careless('\n__asm__("ssat %0, #8, %1" : "=r"(y) : "r"(x));')) == []
