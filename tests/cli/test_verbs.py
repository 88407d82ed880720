"""Each verb answers programs in JSON, and people in text."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.cli.program import baretorch, copy_model

PTE = Path(__file__).parent.parent / "frontends" / "data" / "cnn.pte"


def test_run_json(folder: Path) -> None:
    result = baretorch("run", copy_model("tiny", folder), "--board", "pico2w", "--json")
    assert result.code == 0, result.err
    data = result.json()
    assert data["board"] == "pico2w" and data["emulator"] == "unicorn" and data["dtype"] == "float32"
    assert data["macs"] == 4 * 8 + 8 * 2
    assert data["instructions"] > data["macs"]
    assert data["clock_hz"] == 150_000_000 and data["time_ms"] == pytest.approx(data["cycles"] / 150e3, rel=1e-3)
    assert data["cycles_range"][0] <= data["cycles"] <= data["cycles_range"][1]
    assert "Cortex-M4" in data["cycles_source"]
    assert set(data["flash"]) == {"model_code", "code", "weights", "total"}
    assert data["flash"]["total"] == data["flash"]["code"] + data["flash"]["weights"]
    assert set(data["ram"]) >= {"arena", "static", "stack", "total"}
    assert data["ram"]["arena"] >= data["arena_lower_bound"] > 0
    assert data["max_error"] < 1e-6 and data["warnings"] == [] and data["float_layers"] == []
    assert len(data["outputs"][0][0]) == 2
    assert next(iter(data["files"])) == "uf2"
    assert all(Path(path).is_file() for path in data["files"].values())
    assert data["files"]["elf"] == "build/tiny-pico2w/tiny.elf"
    *stages, other, total = data["tool_seconds"].items()
    read, made = ["import", "model", "export"], ["passes", "plan", "emit", "build", "emulate", "compare"]
    assert [name for name, _ in stages] == [*read, *made] and total[0] == "total"
    assert other[0] == "other" and other[1] > -0.01, "none is counted twice"
    assert other[1] + sum(seconds for _, seconds in stages) == pytest.approx(total[1])


def test_kinds_of_files_and_int8_have_folders_of_their_own(folder: Path) -> None:
    built = [("tiny.py", ()), ("tiny.py", ("--int8",)), (str(PTE), ())]
    copy_model("tiny", folder)
    made = [baretorch("build", model, "--board", "mps2-an386", *more, "--json").json() for model, more in built]
    folders = ["build/tiny-mps2-an386", "build/tiny-mps2-an386-int8", "build/cnn-mps2-an386-pte"]
    assert [str(Path(data["files"]["elf"]).parent) for data in made] == folders


@pytest.mark.parametrize("options", [["--toolchain", "zig"], ["--emulator", "qemu"], ["--optimize", "size"]])
def test_run_options(folder: Path, options: list[str]) -> None:
    result = baretorch("run", copy_model("tiny", folder), "--board", "mps2-an386", *options, "--json")
    assert result.code == 0, result.err
    assert result.json()[options[0].removeprefix("--")] == options[1]


def test_run_table(folder: Path) -> None:
    result = baretorch("run", copy_model("tiny", folder), "--board", "pico2w", "--trace", "trace", "--out", "made")
    assert result.code == 0, result.err
    for words in ("Raspberry Pi Pico 2 W (pico2w)", "cortex-m33 at 150 MHz", "of 4 MiB FLASH", "of 512 KiB SRAM"):
        assert words in result.out
    assert re.search(r"time +[\d.]+ +ms at 150 MHz, estimated between [\d.]+ and [\d.]+", result.out)
    assert "against PyTorch" in result.out and "made/tiny.uf2" in result.out and "warning" not in result.out
    assert (folder / "trace" / "00_frontend.txt").is_file()


def test_profile(folder: Path) -> None:
    command = ("profile", copy_model("tiny", folder), "--board", "mps2-an386")
    data = baretorch(*command, "--json").json()
    layers = data["layers"]
    assert [layer["macs"] for layer in layers] == [4 * 8, 8 * 2]
    assert sum(layer["instructions"] for layer in layers) + data["rest"] == data["instructions"]
    assert {layer["op"] for layer in layers} == {"linear"} and data["board"] == "mps2-an386"
    screen = baretorch(*command, "--loops").out
    assert f"{data['instructions']:,}" in screen and "between layers" in screen and "█" in screen
    assert "Cortex-M4 manual" in screen and "vfma.f32" in screen


def test_report(folder: Path) -> None:
    command = ("report", copy_model("tiny", folder), "--board", "mps2-an386", "--out", "pages/tiny.html")
    data = baretorch(*command, "--json").json()
    assert data["report"] == "pages/tiny.html"
    page = (folder / data["report"]).read_text()
    screen = baretorch(*command).out
    for fact in (data["instructions"], data["ram"]["arena"], data["flash"]["weights"], data["peak"]["live"]):
        assert f"{fact:,}" in page and f"{fact:,}" in screen
    assert [layer["macs"] for layer in data["per_layer"]] == [4 * 8, 8 * 2]
    assert [layer["weights"] for layer in data["per_layer"]] == [4 * (4 * 8 + 8), 4 * (8 * 2 + 2)]
    for advice in data["advice"]:
        assert advice["option"] in screen and advice["text"][:30] in screen
    assert data["advice"][0]["option"] == "--int8"
    assert [p.name for p in (folder / "pages").iterdir()] == ["tiny.html"]


def test_report_with_the_task(folder: Path) -> None:
    command = ("report", copy_model("judged", folder), "--board", "mps2-an386", "--evaluate")
    data = baretorch(*command, "--json").json()
    assert data["report"] == "build/judged-mps2-an386/report.html"
    assert set(data["metrics"]) == {"pytorch", "host", "target"}
    page = (folder / data["report"]).read_text()
    for name in data["metrics"]["target"]:
        assert f"<td>{name}</td>" in page


@pytest.mark.parametrize(("verb", "board"), [("run", "host"), ("report", "mps2-an386"), ("profile", "mps2-an386")])
def test_inaccuracy_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch, verb: str, board: str) -> None:
    from baretorch.frontends.consecutive_calls import Calls
    from baretorch.measure import facts

    monkeypatch.setattr(facts, "largest_error", lambda have, want: 0.5)
    monkeypatch.setattr(Calls, "explains", lambda calls, answers: False)
    result = baretorch(verb, copy_model("tiny", folder), "--board", board)
    assert result.code == 1
    assert "warning: inaccurate: the largest error 0.5 is more than 0.001 of" in " ".join(result.out.split())


def test_model_that_prints(folder: Path) -> None:
    result = baretorch("run", copy_model("chatty", folder), "--board", "host", "--json")
    assert result.json()["max_error"] == 0.0
    assert "making the model" in result.err


def test_compile(folder: Path) -> None:
    result = baretorch("compile", copy_model("tiny", folder), "--board", "pico", "--out", "c", "--json")
    data = result.json()
    assert {"c/model.c", "c/model.h", "c/weights.c"} <= set(data["files"])
    assert all((folder / path).is_file() for path in data["files"])
    assert data["weights"] >= 4 * (4 * 8 + 8 + 8 * 2 + 2)
    assert data["run"] in (folder / "c" / "model.h").read_text()


def test_pte_without_torch(folder: Path) -> None:
    """A .pte is compiled and run where neither torch nor executorch is installed."""
    shutil.copy(PTE, "net.pte")
    code = "import sys\nsys.modules.update(torch=None, executorch=None)\nfrom baretorch.cli import main\nmain()\n"
    for arguments in (["compile", "net.pte", "--out", "c"], ["run", "net.pte"]):
        command = [sys.executable, "-c", code, *arguments, "--board", "pico2w", "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr + done.stdout
        data = json.loads(done.stdout)
    assert data["reference"] == "the graph" and data["max_error"] < 1e-5


@pytest.mark.parametrize(
    ("expression", "what"),
    [
        ("x * float('nan')", "output 0 is NaN for the example inputs (4 of 4 numbers)"),
        ("torch.log(x * 0)", "output 0 is infinite for the example inputs (4 of 4 numbers)"),
        ("x, x / x", "output 1 is NaN for the example inputs (1 of 4 numbers)"),
        ("x, x / x, 1 / x", "output 1 is NaN for the example inputs (1 of 4 numbers); so are numbers of 1 more"),
    ],
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_answers_that_are_not_finite_are_reported_once(expression: str, what: str, folder: Path) -> None:
    (folder / "odd.py").write_text(
        "import torch\n\n\nclass Odd(torch.nn.Module):\n    def forward(self, x):\n"
        f"        return {expression}\n\n\ndef model():\n    return Odd()\n\n\n"
        "def inputs():\n    return (torch.arange(4.0),)\n"
    )
    result = baretorch("run", "odd.py", "--board", "host", "--json")
    assert result.code == 0, result.err
    assert [w for w in result.json()["warnings"] if "outputs:" in w] == [f"outputs: {what}"]


def test_build(folder: Path) -> None:
    model = copy_model("tiny", folder)
    data = baretorch("build", model, "--board", "pico", "--out", "made", "--json").json()
    assert Path(data["files"]["uf2"]).stat().st_size % 512 == 0
    assert "instructions" not in data
    assert sorted(p.name for p in folder.iterdir() if p.name.startswith(".")) == []
    assert "made/tiny.uf2" in baretorch("build", model, "--board", "pico", "--out", "made").out


@pytest.mark.parametrize("verb", ["profile", "evaluate", "monitor", "flash"])
def test_verbs_that_build_take_what_compile_takes(folder: Path, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    """The image is made of the same C, in bands, with rows from a callback and one instance per kernel."""
    from baretorch.machines.hardware import flash

    monkeypatch.setattr(flash, "flash", lambda image, method, drives, port: "a board")
    model = folder / copy_model("wide_image", folder)
    task = "def evaluate(run, samples=1):\n    return {'largest': run(*inputs()).max()}\n"
    model.write_text(f"{model.read_text()}\n\n{task}")
    options = (model.name, "--board", "pico2w", "--input", "rows", "--ram", "60000", "--optimize", "size", "--json")
    compiled = baretorch("compile", *options, "--out", "c").json()
    assert compiled["arena"] <= 60000 and compiled["bands"]["bands"] > 1
    result = baretorch(verb, *options, *(["--float"] if verb == "evaluate" else []))
    assert result.code == 0, result.err + result.out
    for name in ("model.c", "model.h"):
        assert (folder / "build" / "wide_image-pico2w" / name).read_text() == (folder / "c" / name).read_text()
    if verb == "profile":
        assert result.json()["bands"] == compiled["bands"]


@pytest.mark.parametrize(
    ("options", "in_dtcm"), [(("--place", "arena=DTCM"), "arena"), (("--weights", "ram"), "weights"), ((), None)]
)
def test_each_bank_has_its_share(folder: Path, options: tuple[str, ...], in_dtcm: str | None) -> None:
    command = ("build", copy_model("tiny", folder), "--board", "nucleo-h743zi", *options)
    ram = baretorch(*command, "--json").json()["ram"]
    screen = baretorch(*command).out
    elsewhere = ram[in_dtcm] if in_dtcm else 0
    main = {"memory": "AXISRAM", "size": 512 << 10, "used": ram["total"] - elsewhere}
    if in_dtcm is None:
        assert ram["banks"] == [main]
        assert re.search(rf"^RAM +{ram['total']:,} +bytes, <?[\d.]+ % of 512 KiB AXISRAM$", screen, re.M)
        return
    assert elsewhere > 0
    assert ram["banks"] == [main, {"memory": "DTCM", "size": 128 << 10, "used": elsewhere}]
    assert re.search(rf"^RAM +{ram['total']:,} +bytes$", screen, re.M)
    assert re.search(rf"^  in AXISRAM +{main['used']:,} +bytes, <?[\d.]+ % of 512 KiB$", screen, re.M)
    assert re.search(rf"^  in DTCM +{elsewhere:,} +bytes, <?[\d.]+ % of 128 KiB$", screen, re.M)
    page = baretorch("report", *command[1:]).out
    assert re.search(r"^Total RAM .*<?[\d.]+ % of 512 KiB AXISRAM, <?[\d.]+ % of 128 KiB DTCM$", page, re.M)


def test_the_host_has_one_bank(folder: Path) -> None:
    ram = baretorch("build", copy_model("tiny", folder), "--board", "host", "--json").json()["ram"]
    assert ram["banks"] == [{"memory": "RAM", "size": 256 << 20, "used": ram["total"]}]


def test_inspect(folder: Path) -> None:
    model = copy_model("tiny", folder)
    built = baretorch("build", model, "--board", "pico2w", "--json").json()
    data = baretorch("inspect", model, "--board", "pico2w", "--json").json()
    assert data["parameters"] == 4 * 8 + 8 + 8 * 2 + 2 and data["macs"] == 48
    assert data["operators"] == [{"op": "linear", "kernel": "bt_linear_f32_fpu", "count": 2}]
    assert data["plan"]["arena"] == built["ram"]["arena"]
    (sheet,) = data["boards"]
    assert sheet["fits"] and sheet["flash"]["used"] == built["flash"]["total"]
    assert sheet["ram"]["items"]["arena"] == built["ram"]["arena"]
    text = baretorch("inspect", model, "--board", "pico2w").out
    assert "memory of pico2w  fits" in text and "input to step 0" in text


def test_inspect_stages(folder: Path) -> None:
    model = copy_model("tiny", folder)
    words = {"aten": "aten::linear(", "core": "torch.ops.aten", "graph": "= linear(", "plan": "bt_linear_f32"}
    for stage, word in words.items():
        data = baretorch("inspect", model, "--stage", stage, "--json").json()
        assert data["stage"] == stage and word in data["text"]
        assert data["text"].splitlines()[0] in baretorch("inspect", model, "--stage", stage).out


def test_inspect_all_boards(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every board has a row: the model fits, or it does not and by how many bytes, or this is unknown."""
    model = copy_model("large_arena", folder)
    data = baretorch("inspect", model, "--board", "all", "--json").json()
    rows = {row["board"]: row for row in data["boards"]}
    assert rows["microbit"]["fits"] is False
    assert rows["microbit"]["ram"]["room"] <= -117_264 and rows["microbit"]["flash"]["room"] > 0
    assert rows["pico2w"]["fits"] is True
    monkeypatch.setenv("PATH", "")
    result = baretorch("inspect", model, "--board", "all", "--toolchain", "gcc")
    assert result.code == 0
    assert "no compiler for microbit" in result.out


def test_boards(folder: Path) -> None:
    rows = {b["name"]: b for b in baretorch("boards", "--json").json()["boards"]}
    assert rows["pico2w"]["cpu"] == "cortex-m33" and rows["pico2w"]["ram"] == 512 << 10
    assert baretorch("boards", "pico2w", "--json").json() == rows["pico2w"]
    assert (rows["pico"]["cores"], rows["microbit"]["cores"]) == (2, 1)
    assert "2 × cortex-m33 at 150 MHz" in baretorch("boards", "pico2w").out
    assert "0x20000000 .. 0x2007ffff" in baretorch("boards", "pico2w").out
    cluster = baretorch("boards", "cluster8").out
    assert "256 KiB ram    data that does not fit into L1" in cluster
    assert "DMA engine  8 bytes per cycle, 8 channels\nGEMM unit   8 x 8 x 4: 256 products per cycle" in cluster
    npu = baretorch("boards", "corstone-300").out
    assert "2 MiB ram    the arena where the NPU" in npu
    assert "NPU         ethos-u55-256" in npu
    assert all(name in baretorch("boards").out for name in rows)


def test_ops() -> None:
    rows = {op["name"]: op for op in baretorch("ops", "--json").json()["operators"]}
    assert {"linear", "addmm", "mm"} <= set(rows["linear"]["aten"])
    assert {"relu", "hardtanh"} <= set(rows["clamp"]["aten"]) and "relu" not in rows["add"]["aten"]
    assert "transpose" in rows["permute"]["aten"] and "conv2d" not in rows["permute"]["aten"]
    assert {"symbol", "source", "dtypes", "needs"} == set(rows["linear"]["kernels"][0])
    needs = {k["symbol"]: k["needs"] for k in rows["qlinear"]["kernels"]}
    assert needs["bt_qlinear_fours"] == [["v6m"], ["v7m"], ["rv32"]] and needs["bt_qlinear_ref"] == []
    assert rows["gru"]["aten"] == ["gru", "gru_cell"]  # and not what else shares its code
    assert "needs v6m or v7m or rv32" in baretorch("ops", "qlinear").out
    assert "clamp" in baretorch("ops", "relu").out.splitlines()[0]
    meaning = [line.strip() for line in baretorch("ops", "conv2d").out.split("kernel")[0].splitlines()]
    assert any("windows do not overlap" in line for line in meaning), "paragraphs are wrapped once"
    assert "leaves the values as they are" in baretorch("ops", "dropout").out
    apart = " ".join(baretorch("ops", "aten::stft").out.split())
    assert apart.startswith("stft is not an operator of Baretorch. torch.export replaces it by other operators: ")
    assert baretorch("ops", "linalg_norm").out.splitlines()[-1].startswith("supported operators with similar names: ")
    assert [baretorch("ops", n, "--json").json()["decomposed"] for n in ("stft", "conv2d")] == [True, False]


@pytest.mark.parametrize("arguments", [[], ["--board", "cluster8"]])
def test_ops_leave_room_for_names(arguments: list[str]) -> None:
    lines = baretorch("ops", *arguments).out.splitlines()
    assert lines[0].endswith("from PyTorch")
    assert any(line.endswith(" scaled_dot_product_attention") for line in lines)


def test_every_lowered_operator_is_listed() -> None:
    data = baretorch("ops", "--json").json()
    listed = {name for op in data["operators"] for name in op["aten"]}
    same = {"alias", "clone", "contiguous", "detach", "dropout", "lift_fresh"}
    same |= {
        "view_as_real",
        "view_as_complex",
        "_conj",
        "conj_physical",
        "_conj_physical",
        "resolve_conj",
        "resolve_neg",
    }
    constants = {
        "arange",
        "empty",
        "eye",
        "full",
        "full_like",
        "new_full",
        "new_ones",
        "new_zeros",
        "ones",
        "ones_like",
    }
    constants |= {"scalar_tensor", "zeros", "zeros_like", "quantized_decomposed::dequantize_per_channel"}
    refused = {"_native_batch_norm_legit", "_native_batch_norm_legit_functional", "as_strided"}
    assert set(data["aten"]) - listed <= same | constants | refused


def test_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    data = baretorch("doctor", "--json").json()
    tools = {t["name"]: t for t in data["tools"]}
    assert data["ready"] and tools["unicorn"]["version"] == "2.1.4"
    monkeypatch.setenv("PATH", "")
    result = baretorch("doctor")
    assert result.code == 0 and "apt-get install gcc-arm-none-eabi" in result.out
    known = importlib.metadata.version

    def without_unicorn(name: str) -> str:
        if name == "unicorn":
            raise importlib.metadata.PackageNotFoundError
        return known(name)

    monkeypatch.setattr(importlib.metadata, "version", without_unicorn)
    result = baretorch("doctor")
    assert result.code == 1 and "missing" in result.out and "pip install unicorn" in result.out


def test_export(folder: Path) -> None:
    data = baretorch("export", copy_model("tiny", folder), "--out", "net.pte", "--json").json()
    assert data["operators"] == {"aten::linear": 2, "aten::relu": 1}
    assert data["bytes"] == (folder / "net.pte").stat().st_size
    assert baretorch("compile", "net.pte", "--board", "pico", "--out", "c").code == 0


@pytest.mark.parametrize("kind", ["mlp", "cnn"])
def test_new_runs_as_written(folder: Path, kind: str) -> None:
    data = baretorch("new", "my_model.py", "--kind", kind, "--json").json()
    assert data["next"] == "baretorch run my_model.py --board pico2w"
    assert data["next"] in (folder / "my_model.py").read_text()
    result = baretorch(*data["next"].split()[1:], "--json")
    assert result.code == 0, result.err + result.out
    assert result.json()["max_error"] < 1e-5


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    script = baretorch("completion", shell).out
    assert "_BARETORCH_COMPLETE" in script
    assert baretorch("completion", shell, "--json").json()["script"].split() == script.split()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--board pico2", ["plain,pico2", "plain,pico2-riscv", "plain,pico2w"]),
        ("--board pico --emulator r", ["plain,rp2040js"]),
        ("--board mine.toml --emulator s", ["plain,simavr"]),
    ],
)
def test_names_complete(line: str, words: list[str]) -> None:
    given = f"baretorch run m.py {line}"
    shell = {"COMP_WORDS": given, "COMP_CWORD": str(given.count(" ")), "_BARETORCH_COMPLETE": "bash_complete"}
    command = [sys.executable, "-c", "from baretorch.cli import main; main()"]
    done = subprocess.run(command, env=os.environ | shell, capture_output=True, text=True)
    assert done.stdout.split() == words


def test_flash_to_a_drive(folder: Path) -> None:
    """A folder that behaves as the boot ROM's drive: it goes away when it has the file."""
    drive = folder / "drive"
    drive.mkdir()
    (drive / "INFO_UF2.TXT").write_text("Model: Raspberry Pi RP2350\nBoard-ID: RP2350\n")

    def boot_rom() -> None:
        while not list(drive.glob("*.uf2")):
            time.sleep(0.01)
        (drive / "INFO_UF2.TXT").unlink()

    rom = threading.Thread(target=boot_rom, daemon=True)
    rom.start()
    data = baretorch("flash", copy_model("tiny", folder), "--board", "pico2w", "--drive", "drive", "--json").json()
    rom.join()
    assert data["file"] == "build/tiny-pico2w/tiny.uf2"
    assert (drive / "tiny.uf2").read_bytes() == Path(data["file"]).read_bytes()
