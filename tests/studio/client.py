"""A running studio, and what a browser would ask it."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baretorch.cli.studio import live_model
from baretorch.cli.verb import ProgressLine
from baretorch.errors import CompileError
from baretorch.options import DEFAULT, Options
from baretorch.studio.live import LiveModel
from baretorch.studio.server import REQUEST_SECONDS, StudioServer, Tab
from baretorch.targets.boards import load_board


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """Return the error as a terminal would show it."""
        if self.headers["Content-Type"].startswith("text/plain"):
            return self.body.decode()
        told = {"try_" if k == "try" else k: v for k, v in self.data.items() if k != "error"}
        return CompileError(self.data["error"], **told).render() + "\n"


def live(
    model: Path, folder: Path, board: str = "host", port: str | None = None, options: Options = DEFAULT
) -> LiveModel:
    quiet = ProgressLine(lambda what, done, total: None)
    return live_model(str(model), load_board(board), port, options, folder, quiet)


@contextmanager
def served(*tabs: tuple[str, LiveModel], request_seconds: float = REQUEST_SECONDS) -> Iterator[StudioServer]:
    server = StudioServer({name: Tab(name, model) for name, model in tabs}, request_seconds=request_seconds)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        for _, model in tabs:
            model.close()


def ask(
    server: StudioServer,
    path: str,
    body: bytes | None = None,
    method: str | None = None,
    word: str | None = None,
    **headers: str,
) -> Reply:
    """Header names have _ for -."""
    line = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=20)
    try:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        word = server.token if word is None else word
        line.request(method or ("GET" if body is None else "POST"), f"/{word}/{path}", body, names)
        answer = line.getresponse()
        return Reply(answer.status, dict(answer.headers), answer.read())
    finally:
        line.close()
