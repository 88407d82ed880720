"""Escape text that others wrote, such as names of layers, with one function per destination.

Names of models, layers, inputs, states and methods, titles of boards and paths come from files that may say anything.
They are data: wherever one of them meets text that a compiler, a linker, a browser, a terminal or our own parser reads,
it goes through here.
"""

from __future__ import annotations

import html
import re

LONGEST = 100  # of C names and of model names, so that files called by them have room for more
_SHOWN = 300  # characters of a line in a comment

_C_WORDS = """
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while

    alignas alignof bool constexpr false nullptr static_assert thread_local true typeof typeof_unqual asm

    and and_eq bitand bitor catch char8_t char16_t char32_t class co_await co_return co_yield compl concept const_cast
    consteval constinit decltype delete dynamic_cast explicit export friend mutable namespace new noexcept not not_eq
    operator or or_eq private protected public reinterpret_cast requires static_cast template this throw try typeid
    typename using virtual wchar_t xor xor_eq

    linux unix i386 arm I errno stdin stdout stderr assert offsetof complex imaginary noreturn setjmp va_start va_arg
    va_end va_copy signbit isnan isinf isfinite isnormal fpclassify

    aligned_alloc posix_memalign fputc_unlocked fputs_unlocked fwrite_unlocked fprintf_unlocked printf_unlocked
    putchar_unlocked puts_unlocked
"""
# Words that are none in C or C++ or with a header that is often included: keywords, macros in small letters, and
# functions that compilers know without a declaration.
_TAKEN = frozenset(_C_WORDS.split())
_TYPES = re.compile(r"u?int(_fast|_least)?(8|16|32|64|ptr|max)_t|s?size_t|ptrdiff_t|wint_t|max_align_t|sig_atomic_t")
_LIMITS = re.compile(r"(U?INT\w*|S?SIZE|PTRDIFF|WCHAR|WINT|SIG_ATOMIC|CHAR|SHRT|LONG)_(MAX|MIN|C|WIDTH|BIT)")
_PLAIN = re.compile(r"[\w.]+")
_BRACKET = re.compile(r"(\\*)\[([a-z#/@][^[]*?\])?")  # with the rest of a tag, if it is one to rich
_NO_STYLE = "[none][/none]"  # no text, and an end to what could become a tag
_GRAMMAR = frozenset(""",;=#()"\\ """)  # what the text form of a Graph has between names


def line(text: str) -> str:
    """Escape text for people, on one line: control and invisible characters are written as in a Python string."""
    return text if text.isprintable() else "".join(map(_show_invisible, text))


def short(text: str) -> str:
    """Return at most the first 120 characters, for messages."""
    return text if len(text) <= 120 else f"{text[:120]}…"


def quote(value: object) -> str:
    """Return a value that a user gave as Python writes it, shortened."""
    try:
        return short(repr(value))
    except ValueError:
        return "a number of thousands of digits"


def lines(text: str) -> str:
    """Escape text for people, and keep its newlines."""
    return "\n".join(map(line, text.split("\n")))


def markup(text: str) -> str:
    """Escape text that is part of rich's markup, whatever is around it. rich.markup.escape loses backslashes before
    brackets and at the end, and leaves an open bracket that text after it can close."""
    shown = _BRACKET.sub(_escape_bracket, line(text))
    body = shown.rstrip("\\")
    backslashes = len(shown) - len(body)
    return f"{body}{2 * backslashes * chr(92)}{_NO_STYLE}" if backslashes else shown  # a tag must follow them


def html_text(text: str) -> str:
    """Escape text inside an HTML element or the quotes of an attribute. Newlines stay: tips have several lines."""
    return html.escape("".join(c if c == "\n" else _show_invisible(c) for c in text))


def comment(*texts: str, indent: str = "") -> str:
    """Return a comment of C or of a linker script, which the texts cannot end."""
    inside = (_defuse_comment(line(text)) for text in texts)
    return f"{indent}/* " + f"\n{indent} * ".join(inside) + " */"


def python_text(text: str) -> str:
    """Escape text inside the quotes of a Python string, of any kind."""
    return line(text).replace("\\", r"\\").replace('"', r"\"").replace("'", r"\'")


def c_string(text: str) -> str:
    """Return a string literal of C, in UTF-8."""
    return '"' + "".join(_c_char(byte) for byte in text.encode("utf-8", "surrogatepass")) + '"'


def gdb_path(text: str) -> str:
    """Return the last argument of a line of a gdb script, such as a path; ValueError if gdb has no way to write it: a
    line break would begin another command, and a backslash at the end would continue with the next line."""
    if any(c in text for c in "\n\r\0") or text.endswith("\\") or text != text.strip() or text.startswith(("-", "|")):
        raise ValueError(f"{text!r} cannot be written in a gdb script")
    return text


def gdb_quoted(text: str) -> str:
    """Return an argument of a gdb command that takes several, in quotes; ValueError if gdb has no way to write it."""
    return '"' + gdb_path(f"{text}.")[:-1].replace("\\", r"\\").replace('"', r"\"") + '"'


def plain_text(text: str | bytes, most: int = 200) -> str:
    """Return what a device, a drive or a tool reported, as plain text on one line: no control characters, no changes of
    writing direction, and not more than `most` characters."""
    shown = line(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)
    return shown if len(shown) <= most else f"{shown[:most]}…"


def c_name(text: str) -> str:
    """Return a C identifier that is neither a keyword nor a macro. Macros of Baretorch and of most headers are in
    capitals, so capitals become small letters; all other names of Baretorch begin with bt_."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII)[:LONGEST]
    if len(name) > 1 and name.isupper():
        name = name.lower()
    if re.match(r"_[A-Z_]", name):  # the compiler's
        name = name.lstrip("_")
    if not name.strip("_"):
        name = "t"
    if name[0].isdigit():
        name = f"_{name}"
    return f"{name}_" if name in _TAKEN or _TYPES.fullmatch(name) or name.startswith("bt_") else name


def c_prefix(text: str) -> str:
    """Return the prefix of C names; an underscore follows."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII)[:LONGEST].lstrip("_")
    if not name or name[0].isdigit():
        name = f"model_{name}".rstrip("_")
    return f"{name}_" if name == "bt" or name.startswith("bt_") else name


def is_limit(macro: str) -> bool:
    """Report whether a header such as <stdint.h> has a macro of this name."""
    return _LIMITS.fullmatch(macro) is not None


def graph_name(text: str) -> str:
    """Return a name in the text form of a Graph: unchanged, or in quotes without characters of the grammar."""
    if _PLAIN.fullmatch(text):
        return text
    return '"' + "".join(f"\\u{ord(c):04x}" if c in _GRAMMAR else _to_ascii(c) for c in text) + '"'


def _escape_bracket(found: re.Match[str]) -> str:
    """Escape one bracket: rich halves backslashes before a tag, and drops one before any other bracket."""
    backslashes, tag = len(found[1]), found[2]
    if tag:
        return (2 * backslashes + 1) * "\\" + "[" + tag
    return (backslashes + 1) * "\\" + "[" + _NO_STYLE


def _show_invisible(c: str) -> str:
    return c if c.isprintable() else repr(c)[1:-1]


def _to_ascii(c: str) -> str:
    return c if c.isprintable() and ord(c) < 128 else f"\\U{ord(c):08x}"


def _defuse_comment(text: str) -> str:
    text = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return text.replace("*/", "* /").replace("/*", "/ *")


def _c_char(byte: int) -> str:
    plain = 0x20 <= byte < 0x7F and chr(byte) not in '"\\?'
    return chr(byte) if plain else f"\\{byte:03o}"
