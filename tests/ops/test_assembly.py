"""Inline assembly declares the registers that it overwrites while it still reads others."""

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
    does so where both have the same value. A single instruction may have its result in a register that it reads. What
    macros say is not known, but for those that are one instruction."""
    alone = set(re.findall(r'#define (\w+)\([^"\n]*"[^\\\n]*(?:\\n\\t")?(?: +/\*.*)?\n', text))
    for line, (code, *operands) in statements(text):
        outputs, inputs = (*operands[:2], [], [])[:2]
        single = code[0] in alone and code.count("(") == 1 and code[-1] == ")"
        single |= len(code) == 1 and code[0].startswith('"') and "\\n" not in code[0]
        constraints = [word for word in outputs if word.startswith('"')]
        if inputs and not single and (any("&" not in c for c in constraints) or (outputs and not constraints)):
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
    assert list(careless('__asm__("smlad %0, %1, %1, %0" : "+r"(y) : "r"(x));')) == []
    macro = '#define BT_MAX(rd, a) "max " rd ", " a "\\n\\t" /* the larger */\n'
    one = macro + '__asm__(BT_MAX("%0", "%1") : "=r"(y) : "r"(x));'
    assert list(careless(one)) == []
    assert list(careless(one.replace('" /*', 'nop\\n\\t" /*'))) == [2]
    assert list(careless('\n__asm__(BT_TAPS : "=r"(y) : "r"(x));')) == [2]
    assert list(careless('__asm__(BT_TAPS : "=r"(y) : BT_INPUTS);')) == [1]
    assert list(careless('__asm__("nop\\n\\tnop" : BT_OUTPUTS : "r"(x));')) == [1]
