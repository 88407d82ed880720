"""Measured rows -> docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from peers import BOARD, NOTHING, PEERS, TOOLCHAIN, Figures, Peers

Row = dict[str, Any]


def markdown(rows: Sequence[Row], versions: Sequence[str]) -> str:
    """The page. Rows are the objects of `run --json`; one with the key `misfit` is a model that does not fit."""
    text = [
        "# Benchmarks",
        "",
        "Written by `make bench`; do not edit. Instructions are exact counts of executed instructions per inference",
        "on the emulator (second call, from the run function's first instruction through its return); bytes come from",
        "the linker map. Measured with:",
        "",
        *(f"- {line}" for line in versions),
        "",
        f"## Beside the peers, Cortex-M4F ({BOARD}, {TOOLCHAIN})",
        "",
        "Peers' code and RAM are whole images without the model and without stack; ours are given both ways: the model",
        "and its kernels alone (what the goal is about), and the whole image. A dash is what nobody measured.",
        "",
        "| model | | instructions | code | RAM | goal |",
        "|---|---|--:|--:|--:|---|",
    ]
    for row in rows:
        peers = PEERS.get((row["model"], row["dtype"]))
        if peers and (row["board"], row["toolchain"]) == (BOARD, TOOLCHAIN):
            text += _beside(row, peers)
    text += [
        "",
        "## Every board",
        "",
        "Model code: functions and constants reachable from the run function, compiler support routines included. The",
        "lower bound is what no plan of the arena can go below; stack is the deepest use of the whole image.",
        "",
        "| model | board | toolchain | emulator | instructions | per MAC | model code | code | weights | arena "
        "| lower bound | ratio | static | stack | max error |",
        "|---|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
        *(_measured(row) for row in rows if "misfit" not in row),
    ]
    misfits = [row for row in rows if "misfit" in row]
    if misfits:
        text += ["", "## Too large", ""]
        text += [f"- {r['model']} {r['dtype']}, {r['toolchain']}: {r['misfit']}" for r in misfits]
    return "\n".join(text) + "\n"


def _beside(row: Row, peers: Peers) -> list[str]:
    """A model's peers, its goal and ours."""
    ram, flash = row["ram"], row["flash"]
    ours = Figures(row["instructions"], flash["model_code"], ram["arena"] + ram["model_static"])
    whole = Figures(None, flash["code"], ram["arena"] + ram["static"])
    lines = (
        ("TFLM", peers.tflm, ""),
        ("ExecuTorch, default export", peers.plain, ""),
        ("ExecuTorch, constants propagated", peers.folded, ""),
        ("**goal**", peers.goal, ""),
        ("**Baretorch**", ours, verdict(ours, peers.goal)),
        ("Baretorch, whole image", whole, ""),
    )
    text = []
    name = f"{row['model']} {row['dtype']}"
    for who, figures, met in lines:
        if figures != NOTHING:
            cells = ("–" if v is None else f"{v:,}" for v in (figures.instructions, figures.code, figures.ram))
            text.append(f"| {name} | {who} | {' | '.join(cells)} | {met} |")
            name = ""
    return text


def verdict(ours: Figures, goal: Figures) -> str:
    """`met`, or what is missed and how many times as much as the goal we take."""
    pairs = (
        ("instructions", ours.instructions, goal.instructions),
        ("code", ours.code, goal.code),
        ("RAM", ours.ram, goal.ram),
    )
    missed = [f"{what} {have / want:.2f}x" for what, have, want in pairs if have and want and have > want]
    return f"missed: {', '.join(missed)}" if missed else "met"


def _measured(r: Row) -> str:
    flash, ram, count = r["flash"], r["ram"], r["instructions"]
    bound = r["arena_lower_bound"]
    cells = (
        f"{r['model']} {r['dtype']}",
        r["board"],
        r["toolchain"],
        r["emulator"],
        f"{count:,}",
        f"{count / r['macs']:.2f}" if r["macs"] else "–",
        *(f"{n:,}" for n in (flash["model_code"], flash["code"], flash["weights"], ram["arena"], bound)),
        f"{ram['arena'] / bound:.2f}" if bound else "–",
        f"{ram['static']:,}",
        f"{ram['stack']:,}",
        f"{r['max_error']:.1e}",
    )
    return f"| {' | '.join(cells)} |"
