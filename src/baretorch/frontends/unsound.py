"""The error for a damaged file."""

from __future__ import annotations

from baretorch.errors import CompileError

TRY_AGAIN = "export the model again, or copy the file again"


def unsound(kind: str, what: str, have: str | None = None) -> CompileError:
    """Return the error for a file that is not valid for its kind, such as `.onnx`."""
    return CompileError(f"not a valid {kind} file: {what}", have=have, try_=TRY_AGAIN)
