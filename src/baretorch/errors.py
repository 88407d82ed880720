"""Define the two kinds of errors: users can fix a CompileError; an InternalError is a bug of Baretorch."""

from __future__ import annotations

from collections.abc import Sequence

from baretorch.escape import line

USER_ERROR = 1
USAGE_ERROR = 2
INTERNAL_ERROR = 70


class CompileError(Exception):
    """An error that the user can fix: what is wrong, where, what was found, what is needed, what to try.

    Printed as

        error: conv2d: dilation (2, 2) with groups 32 is not supported
          at    features.3.conv  (model.py:41)
          have  x float32[1, 32, 16, 16]
          need  dilation (1, 1) when groups > 1
          try   `baretorch ops conv2d` lists what is supported

    Each of the lines below the first may be left out, and may be several.
    """

    def __init__(
        self,
        what: str,
        *,
        at: str | Sequence[str] | None = None,
        have: str | Sequence[str] | None = None,
        need: str | Sequence[str] | None = None,
        try_: str | Sequence[str] | None = None,
    ) -> None:
        super().__init__(what)
        self.what = what
        self.at = _lines(at)
        self.have = _lines(have)
        self.need = _lines(need)
        self.try_ = _lines(try_)

    def __str__(self) -> str:
        """Return the whole text, which Python prints after the name of the class."""
        return self.render().removeprefix("error: ")

    def render(self) -> str:
        rows = [f"error: {line(self.what)}"]
        for label, texts in (("at", self.at), ("have", self.have), ("need", self.need), ("try", self.try_)):
            for i, text in enumerate(texts):
                rows.append(f"  {label if i == 0 else '':<4}  {line(text)}")
        return "\n".join(rows)

    def to_json(self) -> dict[str, object]:
        return {
            "error": self.what,
            "at": list(self.at),
            "have": list(self.have),
            "need": list(self.need),
            "try": list(self.try_),
        }


class InternalError(Exception):
    """A broken invariant of Baretorch; never the user's fault."""


def see_fit(board: str) -> str:
    """Return a remedy for a board that is too small."""
    return (
        f"`baretorch fit MODEL --board {board}` finds options that make it fit; without --board, it checks all boards"
    )


def _lines(value: str | Sequence[str] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    return tuple(value)
