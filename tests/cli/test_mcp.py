"""`baretorch mcp`, spoken to with the client of the package `mcp`."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from baretorch.cli import run_command
from baretorch.cli.mcp import Tools, make_server
from baretorch.errors import CompileError

LSTM = Path(__file__).parents[1] / "frontends" / "data" / "lstm_int8.tflite"


def exchange(server: Any, *calls: tuple[str, dict[str, Any]]) -> tuple[list[Any], list[dict[str, Any]]]:
    """Return the tools of a server, and the results of calls."""

    async def talk() -> tuple[list[Any], list[dict[str, Any]]]:
        async with Client(server) as client:
            tools = (await client.list_tools()).tools
            results = [await client.call_tool(name, arguments) for name, arguments in calls]
            assert not any(result.is_error for result in results), results
            return tools, [result.structured_content for result in results]

    return anyio.run(talk)


def copied(folder: Path) -> Path:
    (folder / "lstm.tflite").write_bytes(LSTM.read_bytes())
    return folder


def test_an_exchange_over_standard_input_and_output(tmp_path: Path) -> None:
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "baretorch", "mcp", "--folder", str(copied(tmp_path))], env={**os.environ}
    )
    before = sorted(tmp_path.iterdir())
    calls = [
        ("list_boards", {}),
        ("fit", {"model": "lstm.tflite", "boards": ["pico", "arduino-uno"]}),
        ("run", {"model": "lstm.tflite", "board": "mps2-an386", "options": {"optimize": "size"}}),
        ("run", {"model": "lstm.tflite", "board": "mps2-an387"}),
    ]
    tools, (boards, fit, run, wrong) = exchange(stdio_client(command), *calls)
    assert {tool.name for tool in tools} == {"list_boards", "fit", "run", "explain_error"}
    assert all(tool.annotations.read_only_hint for tool in tools)
    assert any(board["name"] == "pico2w" for board in boards["boards"])
    assert [board["board"] for board in fit["boards"]] == ["pico", "arduino-uno"]
    assert run["exit_code"] == 0 and run["instructions"] > 0 and run["optimize"] == "size"
    assert wrong["exit_code"] == 1 and "mps2-an387" in wrong["error"] and wrong["try"]
    assert sorted(tmp_path.iterdir()) == before


def test_only_data_of_the_folder_is_read(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "other.tflite").write_bytes(LSTM.read_bytes())
    (inside / "link.tflite").symlink_to(tmp_path / "other.tflite")
    (inside / "code.py").write_text("raise SystemExit('it ran')")
    tools = Tools(inside.resolve())
    calls: list[tuple[str, dict[str, Any]]] = [
        ("run", {"model": "../other.tflite", "board": "host"}),
        ("run", {"model": str(tmp_path / "other.tflite"), "board": "host"}),
        ("run", {"model": "link.tflite", "board": "host"}),
        ("run", {"model": "code.py", "board": "host"}),
        ("run", {"model": "--help", "board": "host"}),
        ("run", {"model": "a.tflite", "board": "../board.toml"}),
        ("run", {"model": "a.tflite", "board": "host", "options": {"trust": True}}),
        ("run", {"model": "a.tflite", "board": "host", "options": {"app": "."}}),
        ("run", {"model": "a.tflite", "board": "host", "options": {"int8": True, "calibration": "/data.npz"}}),
        ("run", {"model": "a.tflite", "board": "host", "options": {"optimise": "size"}}),
    ]
    _, results = exchange(make_server(tools), *calls)
    texts = [result["error"] for result in results]
    assert all("is not in the folder of the server" in text for text in (*texts[:3], texts[4], texts[5], texts[8]))
    assert "is a Python file, which is code" in texts[3]
    assert texts[6:8] == ["trust cannot be set here", "app cannot be set here"]
    assert "no option 'optimise'" in texts[9]


@pytest.mark.parametrize("text", ["a\0b", "a\ud800b", "a" * 3_000_000], ids=["zero byte", "half a letter", "long"])
def test_texts_that_no_process_takes_are_refused(tmp_path: Path, text: str) -> None:
    tools = Tools(tmp_path.resolve())
    for model, board, options in ((text, "host", {}), ("a.onnx", text, {}), ("a.onnx", "host", {"fix": {"x": text}})):
        with pytest.raises(CompileError) as caught:
            tools.run(model, board, options)
        assert "cannot be passed to baretorch\n  need  at most 20,000 letters, without zero" in caught.value.render()
        json.dumps(caught.value.to_json(), ensure_ascii=False).encode()


def test_explanations_of_long_texts_take_no_longer(tmp_path: Path) -> None:
    """Regular expressions took minutes for this one."""
    start = time.monotonic()
    assert Tools(tmp_path).explain_error("the model changes its input " * 20_000) == {"sections": []}
    assert time.monotonic() - start < 5


def test_modules_in_the_folder_are_not_imported(tmp_path: Path) -> None:
    for name in ("click.py", "numpy.py", "baretorch.py"):
        (copied(tmp_path) / name).write_text("raise SystemExit('it ran')")
    found = Tools(tmp_path.resolve()).fit("lstm.tflite", ["pico"])
    assert found["exit_code"] == 0, found
    assert found["boards"][0]["board"] == "pico"


def test_python_files_run_if_they_are_allowed(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("raise ValueError('it ran')")
    _, (result,) = exchange(
        make_server(Tools(tmp_path.resolve(), allow_python=True)), ("run", {"model": "code.py", "board": "host"})
    )
    assert "it ran" in str(result)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("error: the model does not fit microbit: SRAM is 1,165,312 bytes too small", "`the model does not fit …`"),
        ("error: there is no file net.py", "`there is no file …`"),
        ("error: no emulator runs board x", "`no emulator runs board …`"),
    ],
)
def test_explanations(tmp_path: Path, text: str, title: str) -> None:
    _, (found,) = exchange(make_server(Tools(tmp_path)), ("explain_error", {"text": text}))
    assert title in [section["title"] for section in found["sections"]]
    assert all(len(section["text"]) > 20 for section in found["sections"])


def test_unknown_errors_have_no_explanation(tmp_path: Path) -> None:
    assert Tools(tmp_path).explain_error("error: something else") == {"sections": []}


def test_json_is_a_usage_error() -> None:
    assert run_command(["mcp", "--json"]) == 2


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    from baretorch.errors import CompileError

    with pytest.raises(CompileError, match="the package mcp is needed") as caught:
        make_server(Tools(tmp_path))
    assert "baretorch[mcp]" in str(caught.value.try_)
