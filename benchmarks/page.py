"""Measured rows -> docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from peers import M0PLUS, M4F, M33, M55, NOTHING, PEERS, STACK, TOOLCHAIN, Figures, Peers
from second import section as second_goals

Row = dict[str, Any]

UNO = "arduino-uno"
AVR_GOALS = {
    "sine": (12_000, 300),
    "small": (None, 2_048),
}  # cycles and bytes of RAM in all, the Uno's being all it has
CORES = {M4F: "Cortex-M4F", M33: "Cortex-M33", M55: "Cortex-M55", M0PLUS: "Cortex-M0+"}


def markdown(rows: Sequence[Row], versions: Sequence[str]) -> str:
    """The page. Rows are the objects of `run --json`; one with the key `misfit` is a model that does not fit."""
    measured = [row for row in rows if "misfit" not in row]
    fit = [row for row in measured if not row.get("cores")]
    text = [
        "# Benchmarks",
        "",
        "Written by `make bench`; do not edit. Instructions are exact counts of executed instructions per inference on",
        "the emulator (second call, from the run function's first instruction through its return); bytes come from the",
        "linker map. int8 models take and give int8 (`--io int8`). Measured with:",
        "",
        *(f"- {line}" for line in versions),
        "",
        "Peers are TensorFlow Lite Micro with CMSIS-NN (TFLM) and ExecuTorch, compiled by the same compiler and",
        "counted in the same way; their code and RAM are whole images without the model and without stack. Our goals",
        "are about the model and its kernels alone, so both are given. A dash is what nobody measured; bold is what",
        "misses its goal.",
        "",
        *_beside_peers(fit, "int8"),
        *_beside_peers(fit, "float32"),
        *_missed(fit),
        *second_goals(fit),
        *_avr(fit),
        *_two_cores([row for row in measured if row.get("cores")]),
        "## Every board",
        "",
        "Model code: functions and constants reachable from the run function, compiler support routines included. The",
        "lower bound is what no plan of the arena can go below; stack is the deepest use of the whole image. Cycles",
        "are an estimate with its range, see `baretorch profile`.",
        "",
        "| model | board | toolchain | emulator | instructions | per MAC | cycles | model code | code | weights "
        "| arena | lower bound | ratio | static | stack | max error |",
        "|---|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
        *(_measured(row) for row in fit),
    ]
    misfits = [row for row in rows if "misfit" in row]
    if misfits:
        text += ["", "## Too large", ""]
        text += [f"- {r['model']} {r['dtype']}, {r['toolchain']}: {r['misfit']}" for r in misfits]
    return "\n".join(text) + "\n"


def ours(row: Row) -> Figures:
    """What the goals are about."""
    return Figures(row["instructions"], row["flash"]["model_code"], row["ram"]["arena"] + row["ram"]["model_static"])


def verdict(have: Figures, goal: Figures) -> str:
    """`met`, or what is missed and how many times as much as the goal we take."""
    pairs = (
        ("instructions", have.instructions, goal.instructions),
        ("code", have.code, goal.code),
        ("RAM", have.ram, goal.ram),
    )
    missed = [f"{what} {got / want:.2f}x" for what, got, want in pairs if got and want and got > want]
    return f"missed: {', '.join(missed)}" if missed else "met"


def _beside(rows: Sequence[Row]) -> Iterator[tuple[Row, Peers]]:
    """Rows and their peers: of the models that have any on the M4F, on the cores where anybody measured the type."""
    for row in rows:
        model, dtype, board = row["model"], row["dtype"], row["board"]
        known = board == M4F or (dtype == "int8" and board in CORES)
        if known and row["toolchain"] == TOOLCHAIN and (model, dtype, M4F) in PEERS:
            yield row, PEERS.get((model, dtype, board), Peers(NOTHING))


def _beside_peers(rows: Sequence[Row], dtype: str) -> list[str]:
    found = list(_beside([row for row in rows if row["dtype"] == dtype]))
    if not found:
        return []
    default = dtype == "float32"  # nobody measured ExecuTorch's default export in int8
    extra = " ExecuTorch, default export | |" if default else ""
    return [
        f"## {dtype} beside the peers: instructions per inference ({TOOLCHAIN})",
        "",
        "Behind each peer stands how many times our instructions it takes.",
        "",
        f"| model | core | instructions | per MAC | goal | of it | TFLM | | ExecuTorch | |{extra}",
        f"|---|---|--:|--:|--:|--:|--:|--:|--:|--:|{'--:|--:|' if default else ''}",
        *(_speed(row, peers, default) for row, peers in found),
        "",
        f"## {dtype} beside the peers: bytes ({CORES[M4F]}, {M4F})",
        "",
        "| model | model code | goal | of it | code, whole image | TFLM | ExecuTorch | arena and static of the model "
        "| goal | of it | RAM, whole image | TFLM | ExecuTorch | stack | RAM with stack |",
        f"|---|{'--:|' * 14}",
        *(_bytes(row, peers) for row, peers in found if row["board"] == M4F),
        "",
        *(_weights(rows) if dtype == "int8" else []),
    ]


def _speed(row: Row, peers: Peers, default: bool) -> str:
    count = row["instructions"]
    cells = [row["model"], CORES[row["board"]], f"{count:,}", _per_mac(row), *_against(count, peers.goal.instructions)]
    for peer in (peers.tflm, peers.executorch, peers.plain)[: 3 if default else 2]:
        times = "" if peer.instructions is None else f"{peer.instructions / count:.1f}x"
        cells += [_figure(peer.instructions), times]
    return _line(cells)


def _bytes(row: Row, peers: Peers) -> str:
    have, ram = ours(row), row["ram"]
    stack = f"{ram['stack']:,}"
    return _line(
        [
            row["model"],
            _figure(have.code),
            *_against(have.code, peers.goal.code),
            f"{row['flash']['code']:,}",
            *(_figure(peer.code) for peer in (peers.tflm, peers.executorch)),
            _figure(have.ram),
            *_against(have.ram, peers.goal.ram),
            f"{ram['arena'] + ram['static']:,}",
            *(_figure(peer.ram) for peer in (peers.tflm, peers.executorch)),
            stack if ram["stack"] < STACK else f"**{stack}**",
            f"{ram['total']:,}",
        ]
    )


def _weights(rows: Sequence[Row]) -> list[str]:
    """What is stored of each int8 model, against a goal of its own."""
    found = [r for r in rows if r["board"] == M4F and r["toolchain"] == TOOLCHAIN and "raw_weights" in r]
    lines = [
        _line([r["model"], f"{r['raw_weights']:,}", f"{r['flash']['weights']:,}", *_against(*_stored(r))])
        for r in found
    ]
    return [
        "The goal for what is stored of a model: its weights (1 byte each) and biases (4 each), 4 bytes per output",
        "channel, and 2 % of that.",
        "",
        "| model | weights and biases | stored, with multipliers and tables | goal | of it |",
        "|---|--:|--:|--:|--:|",
        *lines,
        "",
    ]


def _stored(row: Row) -> tuple[int, int]:
    """Bytes stored of an int8 model, and their goal."""
    return row["flash"]["weights"], int((row["raw_weights"] + 4 * row["channels"]) * 1.02)


def _missed(rows: Sequence[Row]) -> list[str]:
    """Every goal that is not reached, with the gap."""
    fields: tuple[tuple[str, Callable[[Figures], int | None]], ...] = (
        ("instructions", lambda f: f.instructions),
        ("bytes of code", lambda f: f.code),
        ("bytes of RAM", lambda f: f.ram),
    )
    lines = []
    for row, peers in _beside(rows):
        name = f"{row['model']} {row['dtype']} on {CORES[row['board']]}"
        pairs = [(what, get(ours(row)), get(peers.goal)) for what, get in fields]
        if "raw_weights" in row and row["board"] == M4F:
            pairs.append(("bytes of weights", *_stored(row)))
        for what, have, want in pairs:
            if have and want and have > want:
                lines.append(f"- {name}: {have:,} {what}, goal {want:,}: {have - want:,} too many")
        if row["ram"]["stack"] >= STACK:
            lines.append(f"- {name}: {row['ram']['stack']:,} bytes of stack, goal below {STACK}")
    return ["## Goals that are missed", "", *(lines or ["None."]), ""]


def _avr(rows: Sequence[Row]) -> list[str]:
    """int8 models on an 8-bit chip, and their goals on the Uno."""
    text = [
        "## AVR, 8 bits",
        "",
        "int8 on Arduinos, with weights in flash. Cycles are exact: simavr's count and our table's are one number. RAM",
        "is all of it, with stack; `sine` has a goal of its own, `small` (MNIST's digits in 14×14 pixels,",
        "`examples/mnist/small.py`) must fit the Uno.",
        "",
        "| model | board | cycles | goal | of it | ms | flash | RAM | goal | of it | max error |",
        f"|---|---|{'--:|' * 9}",
    ]
    for r in rows:
        if not r["board"].startswith("arduino"):
            continue
        cycles, ram = AVR_GOALS.get(r["model"], (None, None)) if r["board"] == UNO else (None, None)
        figures = [
            f"{r['cycles']:,}",
            *_against(r["cycles"], cycles),
            f"{r['time_ms']:.3g}",
            f"{r['flash']['total']:,}",
        ]
        figures += [f"{r['ram']['total']:,}", *_against(r["ram"]["total"], ram), f"{r['max_error']:.1e}"]
        text.append(_line([r["model"], r["board"], *figures]))
    return [*text, ""]


def _two_cores(rows: Sequence[Row]) -> list[str]:
    """What both cores of a chip gain, and what they take more."""
    text = [
        "## Two cores",
        "",
        "`--cores 2`: instructions on the critical path, with the share of both cores' time spent waiting. The answers",
        "are those of one core to the last bit.",
        "",
        "| model | board | one core | two cores | speed-up | waiting | arena, one core | two cores "
        "| model code, one core | two cores |",
        "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for r in rows:
        cores, alone = r["cores"], r["cores"]["one_core"]
        numbers = (alone["arena"], r["ram"]["arena"], alone["model_code"], r["flash"]["model_code"])
        gain = [f"{cores['speedup']:.2f}", f"{100 * cores['waiting']:.1f} %"]
        both = [f"{alone['instructions']:,}", f"{cores['critical_path']:,}"]
        text.append(_line([f"{r['model']} {r['dtype']}", r["board"], *both, *gain, *(f"{n:,}" for n in numbers)]))
    return [*text, ""]


def _measured(r: Row) -> str:
    flash, ram = r["flash"], r["ram"]
    bound = r["arena_lower_bound"]
    least, most = r.get("cycles_range") or (None, None)
    return _line(
        [
            f"{r['model']} {r['dtype']}",
            r["board"],
            r["toolchain"],
            r["emulator"],
            f"{r['instructions']:,}",
            _per_mac(r),
            f"{r['cycles']:,} ({least:,} to {most:,})" if least else "–",
            *(f"{n:,}" for n in (flash["model_code"], flash["code"], flash["weights"], ram["arena"], bound)),
            f"{ram['arena'] / bound:.2f}" if bound else "–",
            f"{ram['static']:,}",
            f"{ram['stack']:,}",
            f"{r['max_error']:.1e}",
        ]
    )


def _per_mac(row: Row) -> str:
    return f"{row['instructions'] / row['macs']:.2f}" if row["macs"] else "–"


def _against(have: int | None, goal: int | None) -> tuple[str, str]:
    """The goal, and what part of it we take; bold if more than all."""
    if have is None or not goal:
        return "–", ""
    part = f"{have / goal:.2f}"
    return f"{goal:,}", part if have <= goal else f"**{part}**"


def _figure(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
