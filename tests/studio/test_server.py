"""The studio over HTTP: golden strokes are read, odd requests are refused, and nothing ends it."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import pytest

from baretorch.errors import CompileError
from baretorch.ir.graph import interpret
from baretorch.machines.native import NativeMachine
from baretorch.machines.types import DeviceFault, Machine
from baretorch.options import DEFAULT
from baretorch.studio.live import BuiltModel, LiveModel
from baretorch.studio.server import MOST_CONNECTIONS, StudioServer, Tab
from tests.cli.program import baretorch, check_golden
from tests.studio.client import ask, live, served
from tests.studio.strokes import DIGITS

PTE = Path(__file__).parents[1] / "frontends" / "data"
HALF = np.array([0.5]).tobytes()


def test_golden_strokes_are_read_on_the_chip(studio: StudioServer) -> None:
    right = 0
    for digit, strokes in DIGITS.items():
        told = ask(studio, "api/digits/draw", json.dumps({"strokes": strokes}).encode()).data
        right += int(np.argmax(told["outputs"][0])) == digit
        assert len(told["seen"]) == 784 and max(told["seen"]) == 1
        assert 1_000_000 < told["instructions"] < 20_000_000
        assert told["time"]["unit"] == "ms" and 5 < float(told["time"]["value"]) < 1000
        assert told["time"]["note"].startswith("at 125 MHz, estimated") and "flash" in told["time"]["note"]
    assert right >= 9
    assert told["answers"] == 10


def test_what_the_page_shows_of_chip_and_model(studio: StudioServer) -> None:
    told = ask(studio, "api/digits").data
    assert (told["model"], told["dtype"], told["machine"], told["real"]) == ("digits", "int8", "unicorn", False)
    assert told["board"] == "Raspberry Pi Pico" and "MHz" in told["chip"]
    assert [bank["title"] for bank in told["memory"]][:2] in (["flash", "RAM"], ["flash", "SRAM"])
    for bank in told["memory"]:
        assert sum(part["size"] for part in bank["parts"]) == bank["used"] < bank["size"]
    assert told["map"].startswith("<svg ") and "weights" in told["map"]
    (x,) = told["inputs"]
    assert (x["kind"], x["low"], x["high"], x["shape"]) == ("picture", 0, 1, [1, 1, 28, 28])
    assert len(x["example"]) == 784 and not told["remembers"]


def test_any_model(studio: StudioServer) -> None:
    told = ask(studio, "api/model").data
    assert (told["model"], told["machine"], told["memory"], told["map"]) == ("sine", "native", [], "")
    assert [x["kind"] for x in told["inputs"]] == ["numbers"]
    answer = ask(studio, "api/model/run", HALF).data
    graph = studio.tabs["model"].live.made.compiled.graph
    (right,) = interpret(graph, [np.array([[0.5]], np.float32)]).values()
    assert np.allclose(answer["outputs"], right)
    assert answer["instructions"] is None and answer["time"] is None


def test_two_pages_at_once(studio: StudioServer) -> None:
    """Each gets the answer to what it asked."""
    found: dict[float, set[float]] = {}

    def page(x: float) -> None:
        body = np.array([x]).tobytes()
        found[x] = {ask(studio, "api/model/run", body).data["outputs"][0][0] for _ in range(15)}

    threads = [threading.Thread(target=page, args=(x,)) for x in (0.1, 1.0, 2.0, 3.0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(answers) for answers in found.values()] == [1, 1, 1, 1]
    assert len(set.union(*found.values())) == 4


def test_the_page_and_its_files(studio: StudioServer) -> None:
    page = ask(studio, "")
    assert page.status == 200 and page.headers["Content-Type"].startswith("text/html")
    for name in re.findall(rb'(?:src|href)="([\w.]+)"', page.body):
        assert ask(studio, name.decode()).status == 200
    assert "script-src 'self'" in page.headers["Content-Security-Policy"]
    assert ask(studio, "studio.js").body.count(b"innerHTML") == 1  # the memory map, escaped by report/page/html.py
    assert b"http:" not in page.body and b"https:" not in page.body


@pytest.mark.parametrize(
    ("name", "headers"),
    [
        ("host", {"Host": "evil.example"}),
        ("host", {"Host": "127.0.0.1.evil.example:80"}),
        ("page", {"Origin": "http://evil.example"}),
        ("page", {"Origin": "null"}),
        ("page", {"Sec_Fetch_Site": "cross-site"}),
    ],
)
def test_other_pages_cannot_drive_it(studio: StudioServer, name: str, headers: dict[str, str]) -> None:
    for path, body in (("", None), ("api/model", None), ("api/model/run", HALF)):
        refused = ask(studio, path, body, **headers)
        assert refused.status == 403
        check_golden(f"studio_{name}", refused.error)


def test_its_own_page_can(studio: StudioServer) -> None:
    port = studio.server_address[1]
    for host in (f"127.0.0.1:{port}", "localhost:9000"):  # as by an SSH tunnel
        headers = {"Host": host, "Origin": f"http://{host}", "Sec_Fetch_Site": "same-origin"}
        assert ask(studio, "api/model/run", HALF, **headers).status == 200


def test_access_needs_the_token(studio: StudioServer) -> None:
    assert len(studio.token) > 20
    for word in ("", "x", studio.token[:-1], studio.token + "x", "é"):
        refused = ask(studio, "api/tabs", word=re.sub(r"[^ -~]", "%C3%A9", word))
        assert refused.status == 403
    check_golden("studio_word", refused.error)
    cut = f"GET /{studio.token} HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert raw(studio, cut.encode()).startswith(b"HTTP/1.1 403 ")  # its files would be looked for elsewhere


@pytest.mark.parametrize(
    ("name", "path", "status", "body"),
    [
        ("nothing_there", "api/nothing", 404, None),
        ("nothing_there", "../../etc/passwd", 404, None),
        ("nothing_there", "studio.js/..", 404, None),
        ("nothing_there", "api/digits", 404, b""),
        ("no_digits", "api/model/draw", 409, b"{}"),
        ("nothing_there", "api/digits/fly", 404, b""),
        ("short", "api/model/run", 400, b"1234"),
        ("long", "api/model/run", 413, bytes(64)),
        ("drawing", "api/digits/draw", 422, b"{}"),
        ("large", "api/digits/draw", 413, bytes(300_000)),
    ],
)
def test_odd_requests(studio: StudioServer, name: str, path: str, status: int, body: bytes | None) -> None:
    refused = ask(studio, path, body)
    assert refused.status == status
    check_golden(f"studio_{name}", refused.error)


def test_a_huge_body_is_refused_unread(studio: StudioServer) -> None:
    for length in ("1" + "0" * 12, "-1", "x", "9" * 400, "\u0663"):
        head = f"POST /{studio.token}/api/digits/draw HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n"
        answer = raw(studio, head.encode())
        assert answer.split(b" ")[1] in (b"413", b"411")
    chunked = f"POST /{studio.token}/api/digits/draw HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert raw(studio, chunked.encode()).split(b" ")[1] == b"411"


def test_what_is_no_http(studio: StudioServer) -> None:
    for data in (
        b"\r\n\r\n",
        b"\0" * 999,
        b"GET\r\n\r\n",
        b"BREW / HTTP/1.1\r\n\r\n",
        b"GET " + b"/" * 70_000 + b" HTTP/1.1\r\n",
    ):
        raw(studio, data)
    many = b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 200 + b"\r\n"
    assert b" 431 " in raw(studio, many)
    cut = f"POST /{studio.token}/api/digits/draw HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{{".encode()
    raw(studio, cut)
    assert ask(studio, "api/model/run", HALF).status == 200


def raw(server: StudioServer, data: bytes) -> bytes:
    """Return the response to these bytes, and nothing more."""
    with socket.create_connection(server.server_address[:2], timeout=10) as line:
        try:
            line.sendall(data)
            line.shutdown(socket.SHUT_WR)
            return line.recv(4096)
        except ConnectionError:  # it has heard enough
            return b""


def test_many_silent_lines_take_only_so_many_threads(studio: StudioServer) -> None:
    """Lines that say nothing fill the server's places; one more is hung up on, and a place that is left is free."""
    with ExitStack() as lines:
        silent = [
            lines.enter_context(socket.create_connection(studio.server_address[:2], timeout=10))
            for _ in range(2 * MOST_CONNECTIONS)
        ]
        assert silent[-1].recv(1) == b""
        assert threading.active_count() < MOST_CONNECTIONS + 20
    for _ in range(100):
        with suppress(ConnectionError):
            if ask(studio, "api/model/run", HALF).status == 200:
                break
        time.sleep(0.05)
    else:
        pytest.fail("no place became free")


HEAD = "Host: localhost\r\n"


@pytest.mark.parametrize(
    ("begin", "more"),
    [
        ("", 1000),
        (f"GET / HTTP/1.1\r\n{HEAD}A: ", 1000),
        (f"POST /TOKEN/api/model/run HTTP/1.1\r\n{HEAD}Content-Length: 8\r\n\r\n", 7),
    ],
    ids=["line", "header", "body"],
)
def test_a_request_of_one_byte_now_and_then_ends(begin: str, more: int, tmp_path: Path) -> None:
    """The limit is for the request, not for one read of it."""
    with served(("model", live(PTE / "sine.pte", tmp_path)), request_seconds=0.3) as server:
        server.tabs["model"].live.describe()  # compiled before
        with socket.create_connection(server.server_address[:2], timeout=0.05) as line:
            line.sendall(begin.replace("TOKEN", server.token).encode())
            for i in range(400):
                try:
                    line.sendall(b"a" if i < more else b"")
                    if line.recv(1) == b"":
                        break
                except TimeoutError:
                    continue
                except ConnectionError:
                    break
            else:
                pytest.fail("the connection was kept")


def test_values_that_are_no_numbers(studio: StudioServer) -> None:
    for odd, told in ((np.nan, "nan"), (np.inf, None), (1e300, None)):
        answer = ask(studio, "api/model/run", np.array([odd]).tobytes())
        assert answer.status == 200
        assert told is None or answer.data["outputs"] == [[told]]


# --- what goes wrong on the way to the board --------------------------------------------------------------------------


def test_a_fault_is_reported_and_the_next_request_starts_again(tmp_path: Path) -> None:
    model = live(PTE / "sine.pte", tmp_path)
    with served(("model", model)) as server:
        before = ask(server, "api/model/run", HALF).data["outputs"]
        assert model._session is not None and isinstance(model._session.machine, NativeMachine)
        os.kill(model._session.machine.pid, signal.SIGKILL)
        broken = ask(server, "api/model/run", HALF)
        assert broken.status == 422
        check_golden("studio_killed", broken.error)
        assert ask(server, "api/model/run", HALF).data["outputs"] == before


def test_a_board_that_goes_away_and_comes_back(tmp_path: Path) -> None:
    """A pseudo-terminal connects a program to `port` like a cable connects a board."""
    elf = live(PTE / "sine.pte", tmp_path / "built").made.image.elf
    cable = tmp_path / "cable"

    def plugged() -> tuple[subprocess.Popen[bytes], int, int]:
        ours, theirs = pty.openpty()
        cable.unlink(missing_ok=True)
        cable.symlink_to(os.ttyname(theirs))
        return subprocess.Popen([elf], stdin=ours, stdout=ours), ours, theirs

    def unplugged(board: subprocess.Popen[bytes], *ends: int) -> None:
        board.kill()
        board.wait()
        for end in ends:
            os.close(end)

    board = plugged()
    with served(("model", live(PTE / "sine.pte", tmp_path / "live", port=str(cable)))) as server:
        told = ask(server, "api/model").data
        assert told["real"] and told["machine"] == "serial"
        first = ask(server, "api/model/run", HALF).data
        assert first["instructions"] is None
        unplugged(*board)
        gone = ask(server, "api/model/run", HALF)
        assert gone.status == 422 and gone.data["error"] == f"port {cable} is gone"
        cable.unlink()
        absent = ask(server, "api/model/run", HALF)
        assert absent.status == 422 and absent.data["error"] == f"there is no port {cable}"
        board = plugged()
        assert ask(server, "api/model/run", HALF).data["outputs"] == first["outputs"]
        unplugged(*board)


def test_another_model_on_the_board_is_reported(tmp_path: Path) -> None:
    elf = live(PTE / "state.pte", tmp_path / "other").made.image.elf
    ours, theirs = pty.openpty()
    board = subprocess.Popen([elf], stdin=ours, stdout=ours)
    try:
        with served(("model", live(PTE / "sine.pte", tmp_path, port=os.ttyname(theirs)))) as server:
            check_golden("studio_other_model", ask(server, "api/model").error)
    finally:
        board.kill()
        board.wait()
        os.close(ours)
        os.close(theirs)


def test_a_model_that_remembers(tmp_path: Path) -> None:
    model = live(PTE / "state.pte", tmp_path)
    with served(("model", model)) as server:
        told = ask(server, "api/model").data
        assert told["remembers"]
        body = np.ones(sum(len(x["example"]) for x in told["inputs"])).tobytes()
        answers = [ask(server, "api/model/run", body).data["outputs"] for _ in range(2)]
        assert answers[0] != answers[1]
        assert ask(server, "api/model/reset", b"").status == 200
        assert [ask(server, "api/model/run", body).data["outputs"] for _ in range(2)] == answers


def test_compile_again(tmp_path: Path) -> None:
    """A file that has changed is read again. If it cannot be read, the page reports that, and the previous model goes
    on."""
    file = tmp_path / "net.pte"
    file.write_bytes((PTE / "sine.pte").read_bytes())
    with served(("model", live(file, tmp_path / "work"))) as server:
        before = ask(server, "api/model/run", HALF).data["outputs"]
        file.write_bytes(b"nothing of the kind")
        refused = ask(server, "api/model/again", b"")
        assert refused.status == 422 and refused.error.startswith("error: not an ExecuTorch program")
        assert ask(server, "api/model/run", HALF).data["outputs"] == before
        file.write_bytes((PTE / "state.pte").read_bytes())
        assert ask(server, "api/model/again", b"").data["remembers"]


def test_a_bug_is_reported_and_the_server_continues() -> None:
    def broken() -> BuiltModel:
        raise ZeroDivisionError("by our own fault")

    def never(made: BuiltModel) -> Machine:
        raise AssertionError

    with served(("model", LiveModel(broken, never))) as server:
        told = ask(server, "api/model")
        assert told.status == 500
        check_golden("studio_internal", told.error)
        assert ask(server, "api/tabs").status == 200


def test_a_tab_that_cannot_be_compiled_is_reported(tmp_path: Path) -> None:
    def small() -> BuiltModel:
        raise CompileError("the digits do not fit", need="a larger board")

    def never(made: BuiltModel) -> Machine:
        raise DeviceFault("nothing to boot")

    with served(("digits", LiveModel(small, never))) as server:
        told = ask(server, "api/digits")
        assert (told.status, told.error) == (422, "error: the digits do not fit\n  need  a larger board\n")


# --- the verb ---------------------------------------------------------------------------------------------------------


def test_a_port_in_use(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        with pytest.raises(CompileError) as error:
            StudioServer({}, int(port))
    check_golden("studio_http_port", error.value.render().replace(port, "8000") + "\n")


def test_usage(tmp_path: Path) -> None:
    for arguments in (["--port", "x"], ["m.py", "--port", "x", "--emulator", "native"], ["--http-port", "70000"]):
        assert baretorch("studio", "--board", "host", *arguments).code == 2


def test_a_model_that_is_not_there_ends_it_at_once() -> None:
    told = baretorch("studio", "nowhere.py", "--board", "microbit")
    assert (told.code, told.out) == (1, "")
    check_golden("error_missing_file", told.err)


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_ctrl_c_ends_it_and_leaves_no_files(number: int, tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "baretorch", "studio", str(PTE / "sine.pte"), "--board", "host"]
    program = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # which a shell's background job ignores
    )
    assert program.stdout is not None
    url, how = program.stdout.readline().strip(), program.stdout.readline()
    found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/([\w-]{20,})/", url)
    assert found, url
    with socket.create_connection(("127.0.0.1", int(found[1])), timeout=10) as idle:  # a browser keeps lines open
        idle.sendall(f"GET /{found[2]}/api/tabs HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        assert idle.recv(4096).startswith(b"HTTP/1.1 200 ")
        program.send_signal(number)
        out, err = program.communicate(timeout=15)
    assert (how, err.strip()) == ("Ctrl-C ends it.\n", "")
    assert (program.returncode, out) == ((0, "0 answers\n") if number == signal.SIGINT else (143, ""))
    assert list(tmp_path.iterdir()) == []


def test_tabs_by_model(tmp_path: Path) -> None:
    """A MODEL that reads digits serves both tabs; any other has a tab next to that of the digits."""
    from baretorch.cli.studio import make_tabs
    from baretorch.cli.verb import ProgressLine
    from baretorch.targets.boards import load_board

    def tabs(model: str | None) -> dict[str, Tab]:
        quiet = ProgressLine(lambda what, done, total: None)
        made = make_tabs(model, load_board("host"), None, DEFAULT, tmp_path / str(model is None), quiet)
        for tab in made.values():
            tab.live.close()
        return made

    own = tabs(None)
    assert list(own) == ["digits", "model"] and own["digits"].live is own["model"].live
    other = tabs(str(PTE / "sine.pte"))
    assert list(other) == ["model", "digits"] and other["digits"].live is not other["model"].live
