"""A `.pte` file as text: its methods and what the reader has to say about them."""

from __future__ import annotations

from baretorch.frontends.pte.reader import read_pte_methods


def text_of(data: bytes, name: str) -> str:
    programs = read_pte_methods(data, name)
    lines = []
    for method, program in programs.items():
        lines += [f"method {method}"] if len(programs) > 1 else []
        lines += [program.text(), *(f"note   {note}" for note in program.notes)]
    return "\n".join(lines) + "\n"
