"""Write the first part of docs/benchmarks.md from the rows that bench.py measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from peers import M0PLUS, M4F, M33, M55, NOTHING, PEERS, STACK, TOOLCHAIN, Figures, Peers
from second_goals import section as second_goals
from tables import Row, compare, line

UNO = "arduino-uno"
AVR_GOALS = {
    "sine": (12_000, 300),
    "small": (None, 2_048),
}  # cycles and bytes of RAM in all, the Uno's being all it has
CORES = {M4F: "Cortex-M4F", M33: "Cortex-M33", M55: "Cortex-M55", M0PLUS: "Cortex-M0+"}


def markdown(rows: Sequence[Row], versions: Sequence[str]) -> str:
    """Return the page. Rows are objects of `run --json`; a model that does not fit has the key `misfit`."""
    measured = [row for row in rows if "misfit" not in row]
    fit = [row for row in measured if not row.get("cores")]
    text = [
        "# Benchmarks",
        "",
        "Written by `make bench`; do not edit. Instructions are exact counts of executed instructions per inference on",
        "the emulator (second call, from the run function's first instruction through its return). Bytes come from the",
        "linker map. int8 models have int8 inputs and outputs (`--io int8`). The figures were measured with:",
        "",
        *(f"- {line}" for line in versions),
        "",
        "Peers are TensorFlow Lite Micro with CMSIS-NN (TFLM) and ExecuTorch, compiled by the same compiler and",
        "counted in the same way. Their code and RAM are those of whole images without the model and without stack.",
        "Our goals are for the model and its kernels alone, so the tables list both. A dash marks a figure that was",
        "not measured, and bold a figure that misses its goal.",
        "",
        *_compare_with_peers(fit, "int8"),
        *_compare_with_peers(fit, "float32"),
        *_missed(fit),
        *second_goals(fit),
        *_avr(fit),
        *_two_cores([row for row in measured if row.get("cores")]),
        "## Every board",
        "",
        "Model code is all functions and constants reachable from the run function, compiler support routines",
        "included. No arena can be smaller than its lower bound. Stack is the deepest use of the whole image. Cycles",
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


def our_figures(row: Row) -> Figures:
    """Return the figures that have goals."""
    return Figures(row["instructions"], row["flash"]["model_code"], row["ram"]["arena"] + row["ram"]["model_static"])


def _with_peers(rows: Sequence[Row]) -> Iterator[tuple[Row, Peers]]:
    """Yield rows and their peers, for models with peers on the M4F, on the cores where their type was measured."""
    for row in rows:
        model, dtype, board = row["model"], row["dtype"], row["board"]
        known = board == M4F or (dtype == "int8" and board in CORES)
        if known and row["toolchain"] == TOOLCHAIN and (model, dtype, M4F) in PEERS:
            yield row, PEERS.get((model, dtype, board), Peers(NOTHING))


def _compare_with_peers(rows: Sequence[Row], dtype: str) -> list[str]:
    found = list(_with_peers([row for row in rows if row["dtype"] == dtype]))
    if not found:
        return []
    default = dtype == "float32"  # ExecuTorch's default export was not measured in int8
    extra = " ExecuTorch, default export | |" if default else ""
    return [
        f"## {dtype} compared with peers: instructions per inference ({TOOLCHAIN})",
        "",
        "The column after each peer is its instructions divided by ours.",
        "",
        f"| model | core | instructions | per MAC | goal | ratio | TFLM | | ExecuTorch | |{extra}",
        f"|---|---|--:|--:|--:|--:|--:|--:|--:|--:|{'--:|--:|' if default else ''}",
        *(_speed(row, peers, default) for row, peers in found),
        "",
        f"## {dtype} compared with peers: bytes ({CORES[M4F]}, {M4F})",
        "",
        "| model | model code | goal | ratio | code, whole image | TFLM | ExecuTorch | arena and static of the model "
        "| goal | ratio | RAM, whole image | TFLM | ExecuTorch | stack | RAM with stack |",
        f"|---|{'--:|' * 14}",
        *(_bytes(row, peers) for row, peers in found if row["board"] == M4F),
        "",
        *(_weights(rows) if dtype == "int8" else []),
    ]


def _speed(row: Row, peers: Peers, default: bool) -> str:
    count = row["instructions"]
    cells = [row["model"], CORES[row["board"]], f"{count:,}", _per_mac(row), *compare(count, peers.goal.instructions)]
    for peer in (peers.tflm, peers.executorch, peers.plain)[: 3 if default else 2]:
        times = "" if peer.instructions is None else f"{peer.instructions / count:.1f}x"
        cells += [_figure(peer.instructions), times]
    return line(cells)


def _bytes(row: Row, peers: Peers) -> str:
    have, ram = our_figures(row), row["ram"]
    stack = f"{ram['stack']:,}"
    return line(
        [
            row["model"],
            _figure(have.code),
            *compare(have.code, peers.goal.code),
            f"{row['flash']['code']:,}",
            *(_figure(peer.code) for peer in (peers.tflm, peers.executorch)),
            _figure(have.ram),
            *compare(have.ram, peers.goal.ram),
            f"{ram['arena'] + ram['static']:,}",
            *(_figure(peer.ram) for peer in (peers.tflm, peers.executorch)),
            stack if ram["stack"] < STACK else f"**{stack}**",
            f"{ram['total']:,}",
        ]
    )


def _weights(rows: Sequence[Row]) -> list[str]:
    """Compare the stored bytes of each int8 model with their goal."""
    found = [r for r in rows if r["board"] == M4F and r["toolchain"] == TOOLCHAIN and "raw_weights" in r]
    lines = [
        line([r["model"], f"{r['raw_weights']:,}", f"{r['flash']['weights']:,}", *compare(*_stored(r))]) for r in found
    ]
    return [
        "The goal for the stored bytes of a model is its weights (1 byte each), its biases (4 bytes each) and 4 bytes",
        "per output channel, plus 2 %.",
        "",
        "| model | weights and biases | stored, with multipliers and tables | goal | ratio |",
        "|---|--:|--:|--:|--:|",
        *lines,
        "",
    ]


def _stored(row: Row) -> tuple[int, int]:
    """Return the stored bytes of an int8 model, and their goal."""
    return row["flash"]["weights"], int((row["raw_weights"] + 4 * row["channels"]) * 1.02)


def _missed(rows: Sequence[Row]) -> list[str]:
    """List every goal that is not reached, with the gap."""
    fields: tuple[tuple[str, Callable[[Figures], int | None]], ...] = (
        ("instructions", lambda f: f.instructions),
        ("bytes of code", lambda f: f.code),
        ("bytes of RAM", lambda f: f.ram),
    )
    lines = []
    for row, peers in _with_peers(rows):
        name = f"{row['model']} {row['dtype']} on {CORES[row['board']]}"
        pairs = [(what, get(our_figures(row)), get(peers.goal)) for what, get in fields]
        if "raw_weights" in row and row["board"] == M4F:
            pairs.append(("bytes of weights", *_stored(row)))
        for what, have, want in pairs:
            if have and want and have > want:
                lines.append(f"- {name}: {have:,} {what}, goal {want:,}: {have - want:,} too many")
        if row["ram"]["stack"] >= STACK:
            lines.append(f"- {name}: {row['ram']['stack']:,} bytes of stack, goal below {STACK}")
    return ["## Goals that are missed", "", *(lines or ["None."]), ""]


def _avr(rows: Sequence[Row]) -> list[str]:
    """Return the section of int8 models on an 8-bit chip, with their goals on the Uno."""
    text = [
        "## AVR, 8 bits",
        "",
        "Models are int8, with weights in flash. Cycles are exact: simavr and our table count the same number. RAM is",
        "the total of the image, with stack. `sine` has its own goal; `small` (MNIST's digits in 14×14 pixels,",
        "`examples/mnist/small.py`) must fit the Uno.",
        "",
        "| model | board | cycles | goal | ratio | ms | flash | RAM | goal | ratio | max error |",
        f"|---|---|{'--:|' * 9}",
    ]
    for r in rows:
        if not r["board"].startswith("arduino"):
            continue
        cycles, ram = AVR_GOALS.get(r["model"], (None, None)) if r["board"] == UNO else (None, None)
        figures = [
            f"{r['cycles']:,}",
            *compare(r["cycles"], cycles),
            f"{r['time_ms']:.3g}",
            f"{r['flash']['total']:,}",
        ]
        figures += [f"{r['ram']['total']:,}", *compare(r["ram"]["total"], ram), f"{r['max_error']:.1e}"]
        text.append(line([r["model"], r["board"], *figures]))
    return [*text, ""]


def _two_cores(rows: Sequence[Row]) -> list[str]:
    """Return the section that compares both cores of a chip with one."""
    text = [
        "## Two cores",
        "",
        "With `--cores 2`: instructions on the critical path, and the share of both cores' time spent waiting. The",
        "results equal those of one core to the last bit.",
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
        text.append(line([f"{r['model']} {r['dtype']}", r["board"], *both, *gain, *(f"{n:,}" for n in numbers)]))
    return [*text, ""]


def _measured(r: Row) -> str:
    flash, ram = r["flash"], r["ram"]
    bound = r["arena_lower_bound"]
    least, most = r.get("cycles_range") or (None, None)
    return line(
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


def _figure(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"
