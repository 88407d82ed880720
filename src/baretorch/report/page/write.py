"""Write a Report as one HTML page that needs no network and no framework. Texts around the figures, style and script
are files in template/."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from baretorch.files.write import put
from baretorch.measure.cycles import core_source, flash_source
from baretorch.measure.layers import LayerRow, Peak, layer_of_buffer
from baretorch.measure.numbers import figure, frequency, share, shorten_name
from baretorch.report.findings import Figure, Report
from baretorch.report.page.cluster import cluster_sections
from baretorch.report.page.graph import graph_picture, hidden_nodes
from baretorch.report.page.html import Html, count_cell, el, fill_template, joined, number_cell, table
from baretorch.report.page.pictures import DRAWN, lifetimes_picture, map_picture

LISTED = 500  # layers at most in the table, so that pages stay small


def make_page(report: Report) -> str:
    """Return the whole page."""
    facts = report.facts
    compiled, board = facts.compiled, facts.image.board
    parts: dict[str, str] = {
        "title": joined([f"{compiled.graph.name} on {board.name}"]),
        "model": joined([compiled.graph.name]),
        "about": _about(report),
        "warnings": joined(el("p", w, class_="warning") for w in facts.other_warnings),
        "ram": _tiles(report.ram()),
        "flash": _tiles(report.flash()),
        "speed": _tiles(report.speed()),
        "cluster": cluster_sections(report.profile.traced, board.chip),
        "npu": _npu(report),
        "map": map_picture(report.banks),
        "lifetimes": _lifetimes(report),
        "peak": _peak(report),
        "layers": _layers(report),
        "method": joined([_method(report)]),
        "accuracy": _tiles(report.accuracy()),
        "evaluation": _evaluation(report),
        "floats": _floats(report),
        "advice": _advice(report),
        "graph": _graph(report),
        "js": (files("baretorch.report.page") / "template" / "page.js").read_text("utf-8"),
    }
    return fill_template("page.html", parts)


def write_page(report: Report, path: Path) -> None:
    """Write the page. An older page is replaced when the new one is complete."""
    put(path, make_page(report))


def _about(report: Report) -> Html:
    facts = report.facts
    compiled, image = facts.compiled, facts.image
    chip, graph = image.board.chip, report.graph
    rows = (
        ("board", f"{image.board.title} ({image.board.name})"),
        ("CPU", f"{chip.cpu.name} at {frequency(chip.clock_hz)}"),
        ("arithmetic", "int8" if report.int8 else "float32"),
        ("input", ", ".join(map(repr, graph.of(graph.inputs)))),
        ("output", ", ".join(map(repr, graph.of(graph.outputs)))),
        ("built with", f"{image.toolchain}, optimized for {compiled.options.optimize}"),
        ("emulator", facts.run.emulator),
        ("options", shlex.join(compiled.options.short.words()) or "none"),
    )
    return el("dl", *(el("div", el("dt", name), el("dd", value)) for name, value in rows), class_="about")


def _tiles(figures: Sequence[Figure]) -> Html:
    return joined(
        el(
            "div",
            el("h3", f.title),
            el("p", el("b", f.value), f" {f.unit}" if f.unit else "", class_="value"),
            el("p", f.note, class_="note"),
            class_="tile",
        )
        for f in figures
    )


def _npu(report: Report) -> Html:
    """List the regions on the NPU and the layers on the CPU; empty if no NPU is used."""
    found, npu = report.facts.compiled.partition, report.facts.image.board.chip.npu
    if found is None or npu is None:
        return Html("")
    titles = ("#region", "ends with", "#operators", "#bytes in", "#out", "#commands", "#weights", "#scratch", "#cycles")
    regions = [
        el(
            "tr",
            number_cell(str(number), number),
            el("td", el("code", shorten_name(r.layers[-1]))),
            *(count_cell(n) for n in (None if r.cycles is None else len(r.layers), r.bytes_in, r.bytes_out)),
            *(count_cell(n) for n in (r.commands, r.weights, r.scratch, r.cycles)),
        )
        for number, r in enumerate(found.regions, 1)
    ]
    left = [
        el("tr", el("td", el("code", shorten_name(each.layer))), el("td", each.op), el("td", each.why))
        for each in found.left
    ]
    lead = f"What {npu.accelerator} computes. Bytes go in and out between it and the CPU; cycles are Vela’s estimate."
    parts = [el("h2", "NPU"), el("p", lead, class_="lead")]
    parts.append(el("div", table(titles, regions), class_="scroll") if regions else el("p", "Nothing runs there."))
    if left:
        parts += [el("h3", "Left on the CPU"), el("div", table(("layer", "operator", "why"), left), class_="scroll")]
    return el("section", *parts, id="npu")


def _lifetimes(report: Report) -> Html:
    plan = report.plan
    parts: list[Html] = []
    for bank in (b for b in plan.layout.banks if b.size):
        if len(plan.layout.banks) > 1:
            parts.append(el("h3", f"{bank.name}, {bank.size:,} bytes"))
        inside = report.peak if report.peak and any(b.bank == bank.name for b in report.peak.buffers) else None
        parts.append(el("div", lifetimes_picture(plan, bank, inside), class_="scroll"))
    if sum(b.size > 0 for b in plan.layout.buffers) > DRAWN:
        parts.append(el("p", f"Only the {DRAWN} largest buffers are drawn.", class_="note"))
    return joined(parts) if parts else el("p", "The model needs no buffers.")


def _peak(report: Report) -> Html:
    peak = report.peak
    if peak is None:
        return Html("")
    bands = f" {report.plan.bands}." if report.plan.bands else ""
    live = f", {peak.live:,} bytes are live.{bands} Buffers that overlap share bytes."
    sentence = el("p", f"At step {peak.step}, ", el("code", shorten_name(peak.layer)), live)
    return joined([sentence, _peak_table(report, peak)])


def _peak_table(report: Report, peak: Peak) -> Html:
    rows = [
        el(
            "tr",
            el("td", el("code", b.name)),
            el("td", shorten_name(layer_of_buffer(report.plan, b))),
            number_cell(f"{b.size:,}", b.size),
            _bar(b.size, peak.buffers[0].size, share(b.size, peak.live)),
        )
        for b in peak.buffers[:12]
    ]
    return table(("live at the peak", "layer", "#bytes", "#share of the peak"), rows)


def _layers(report: Report) -> Html:
    flash = report.profile.time.flash is not None
    titles = ["#", "layer", "operator", "output", "kernel", *(["#SQNR, dB"] if report.int8 else [])]
    titles += ["#MACs", "#weights", "#instructions"]
    titles += ["#core cycles", "#flash cycles", "#misses", "#share of time"] if flash else ["#share"]
    titles += ["#per MAC"]
    rows = report.rows
    shown = sorted(sorted(range(len(rows)), key=lambda i: -rows[i].weight)[:LISTED])
    most = max((row.weight for row in rows), default=0)
    body = [_layer(report, i, rows[i], most) for i in shown]
    rest = f"The run function itself executes {report.profile.rest:,} instructions between layers."
    most_of = "that take longest" if flash else "with most instructions"
    hidden = f" Only the {LISTED} layers {most_of} are listed." if len(rows) > LISTED else ""
    return joined([el("div", table(titles, body), class_="scroll"), el("p", rest + hidden, class_="note")])


def _layer(report: Report, number: int, row: LayerRow, most: float) -> Html:
    per_mac = row.per_mac
    variant = f"{row.kernel}\nkernels of the family “{row.variant}”"
    steps = f", {row.steps} steps" if row.steps > 1 else ""
    cells = [
        number_cell(str(number), number),
        el("td", el("code", row.name), title=row.name),
        el("td", row.op + steps),
        el("td", f"{row.dtype}  {'×'.join(map(str, row.shape))}"),
        el("td", row.variant, data_tip=variant),
        *_noise(report, row),
        count_cell(row.macs),
        count_cell(row.weights),
        number_cell(f"{row.instructions:,}", row.instructions),
        *_waits(row),
        _bar(row.weight, most, share(row.weight, report.profile.weight or 1)),
        number_cell("" if per_mac is None else f"{per_mac:.2f}", per_mac or 0),
    ]
    return el("tr", *cells)


def _noise(report: Report, row: LayerRow) -> list[Html]:
    if not report.int8:
        return []
    db = row.accuracy.sqnr_db if row.accuracy else None
    exact = "exact" if row.accuracy and db is None else ""
    return [number_cell(exact if db is None else f"{db:.1f}", 999 if db is None else db)]


def _waits(row: LayerRow) -> list[Html]:
    flash = row.time.flash
    if flash is None:
        return []
    tip = f"{flash.bytes:,} bytes; {flash.code_misses:,} misses of code, {flash.data_misses:,} of data"
    core, waits = row.time.core.expected, flash.waits.expected
    misses = number_cell(f"{flash.misses:,}", flash.misses, data_tip=tip)
    return [number_cell(f"{core:,.0f}", core), number_cell(f"{waits:,.0f}", waits), misses]


def _method(report: Report) -> str:
    chip = report.profile.chip
    core = core_source(chip)
    if report.profile.time.flash is None:
        return f"Instructions are exact. Time: {core}."
    return f"Instructions and misses are exact. Time of the core: {core}. Of flash: {flash_source(chip)}."


def _evaluation(report: Report) -> Html:
    found = report.evaluation
    if found is None:
        return Html("")
    rows = [
        el("tr", el("td", name), *(number_cell(figure(c.metrics[name]), c.metrics[name]) for c in found.columns))
        for name in found.columns[0].metrics
    ]
    samples = f"{found.samples:,} inputs, {found.target_samples:,} of them on the target."
    return joined([table(("metric", *(f"#{c.title}" for c in found.columns)), rows), el("p", samples, class_="note")])


def _floats(report: Report) -> Html:
    if not report.int8:
        return el("p", "All of the model: it was not quantized.")
    if not report.floats:
        return el("p", "Nothing: every layer computes in int8.")
    return el("ul", *(el("li", el("code", layer), f": {why}") for layer, why in report.floats))


def _advice(report: Report) -> Html:
    if not report.advice:
        return el("p", "None of the rules applies.")
    return el(
        "ul",
        *(
            el("li", el("code", a.option) if a.option else "", f" {a.text}" if a.option else a.text)
            for a in report.advice
        ),
        class_="advice",
    )


def _graph(report: Report) -> Html:
    parts = [el("div", graph_picture(report), class_="scroll graph")]
    if hidden_nodes(report):
        parts.append(el("p", f"{hidden_nodes(report):,} more operators are not drawn.", class_="note"))
    return joined(parts)


def _bar(part: float, whole: float, shown: str) -> Html:
    percent = 100 * part / whole if whole else 0
    bar = el("span", el("span", style=f"width:{percent:.1f}%"), class_="bar")
    return el("td", bar, el("span", shown, class_="share"), class_="num barred", data_value=part)
