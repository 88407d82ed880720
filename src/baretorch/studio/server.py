"""The page's HTTP server. It listens on this computer's loopback address only and requires a token in the address.

Any program and any web page on this computer can reach its ports. So all paths begin with a random word, which is part
of the address that `baretorch studio` prints. A request must name this computer as its host, which prevents DNS
rebinding, and a browser's request must come from this page itself.
"""

from __future__ import annotations

import json
import re
import secrets
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from io import BufferedReader, RawIOBase
from threading import BoundedSemaphore
from time import monotonic
from typing import Any

from baretorch.errors import CompileError
from baretorch.studio import digits
from baretorch.studio.live import LiveModel, input_bytes, read_inputs

ADDRESS = "127.0.0.1"
OUR_HOSTS = re.compile(r"(127\.0\.0\.1|localhost)(:\d{1,5})?")
REQUEST_SECONDS = 30.0  # for receiving a request, and for sending the response
MOST_CONNECTIONS = 64  # at a time, each with a thread of its own; a browser opens six
LINGER_SECONDS, LINGER_BYTES, LINGER_CHUNKS = 0.5, 1 << 16, 64  # for all that is still received of a refused request
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' blob: data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
WHOLE = "the whole address that `baretorch studio` has printed; it is another one after each start"
READS_DIGITS = "one that takes a 28×28 grey picture and returns ten numbers"
JSON = "application/json"
HTML, CSS, JS, TEXT = (f"text/{kind}; charset=utf-8" for kind in ("html", "css", "javascript", "plain"))
SCRIPTS = tuple(f"page/{name}.js" for name in ("studio", "digits", "inputs", "outputs", "model"))
# Path, type, and the files of its content; the page shares style and helpers with the report.
FILES: Mapping[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "": (HTML, (("baretorch.studio", "page/studio.html"),)),
    "studio.css": (CSS, (("baretorch.report.page", "template/page.css"), ("baretorch.studio", "page/studio.css"))),
    "studio.js": (
        JS,
        (("baretorch.report.page", "template/page.js"), *(("baretorch.studio", name) for name in SCRIPTS)),
    ),
}


@dataclass(frozen=True)
class Tab:
    """A tab of the page. Two tabs may show the same model."""

    title: str
    live: LiveModel


class RequestRefused(Exception):
    """Raised for a request that is not served."""

    def __init__(self, status: HTTPStatus, what: str, **details: str | None) -> None:
        super().__init__(what)
        self.status = status
        self.error = CompileError(what, **details)


class StudioServer(ThreadingHTTPServer):
    """Serves tabs by the name in their address, "digits" and "model", the default first."""

    daemon_threads = True
    request_queue_size = MOST_CONNECTIONS  # with the default of five, a sixth connection retries after a second

    def __init__(self, tabs: Mapping[str, Tab], port: int = 0, request_seconds: float = REQUEST_SECONDS) -> None:
        self.tabs = tabs
        self.request_seconds = request_seconds
        self.token = secrets.token_urlsafe(16)
        self._free = BoundedSemaphore(MOST_CONNECTIONS)
        try:
            super().__init__((ADDRESS, port), _Handler)
        except (OSError, OverflowError) as error:
            raise CompileError(
                f"cannot serve a page on port {port} of {ADDRESS}",
                have=str(getattr(error, "strerror", None) or error),
                try_="another --http-port, or none: any free one is taken then",
            ) from None

    @cached_property
    def url(self) -> str:
        return f"http://{ADDRESS}:{self.server_address[1]}/{self.token}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Accept a connection, or close it if there are too many."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore browsers that close a connection."""


class _Timed(RawIOBase):
    """Reads a connection until a deadline, however many reads that takes: single bytes now and then do not extend
    it."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.deadline = 0.0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self.deadline - monotonic()
        if left <= 0:
            raise TimeoutError("the request takes too long")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


class _Handler(BaseHTTPRequestHandler):
    server: StudioServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "baretorch", ""
    disable_nagle_algorithm = True  # else small answers wait for an acknowledgement

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self._timed = _Timed(self.connection)
        self.rfile = BufferedReader(self._timed)

    def handle_one_request(self) -> None:
        self._timed.deadline = monotonic() + self.server.request_seconds
        super().handle_one_request()

    def do_GET(self) -> None:
        self._serve("GET")

    def do_POST(self) -> None:
        self._serve("POST")

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Report errors that http.server detects: invalid request lines, endless headers, other methods."""
        self.close_connection = True
        self._send(HTTPStatus(code), JSON, _json(CompileError(message or HTTPStatus(code).phrase).to_json()))

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: the terminal stays quiet."""

    def _serve(self, method: str) -> None:
        try:
            status, kind, body = HTTPStatus.OK, *self._answer(method, self._check_path())
        except RequestRefused as refused:
            status, (kind, body) = refused.status, self._format_error(refused.error)
            self.close_connection = True  # its body was not read
        except CompileError as error:
            status, kind, body = HTTPStatus.UNPROCESSABLE_ENTITY, JSON, _json(error.to_json())
        except TimeoutError:
            raise
        except Exception as error:  # a bug must not end the server
            bug = CompileError(
                f"internal error: {type(error).__name__}: {error}", try_="report it; the page continues to work"
            )
            status, kind, body = HTTPStatus.INTERNAL_SERVER_ERROR, JSON, _json(bug.to_json())
            self.close_connection = True
        self._send(status, kind, body)
        if self.close_connection:
            self._linger()

    def _format_error(self, error: CompileError) -> tuple[str, bytes]:
        """Format an error for the page, or for a request with a wrong address."""
        if "/api/" in self.path:
            return JSON, _json(error.to_json())
        return TEXT, f"{error.render()}\n".encode()

    def _linger(self) -> None:
        """Read a little more of a rejected request: if the connection closes while the client still writes, the client
        loses the response."""
        self.wfile.flush()
        deadline = monotonic() + LINGER_SECONDS
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            for _ in range(LINGER_CHUNKS):
                self.connection.settimeout(max(0.0, deadline - monotonic()))
                if not self.connection.recv(LINGER_BYTES):
                    break

    def _check_path(self) -> str:
        """Return the path after the token."""
        host, origin, site = (self.headers.get(name) for name in ("Host", "Origin", "Sec-Fetch-Site"))
        if host is None or not OUR_HOSTS.fullmatch(host):
            raise RequestRefused(HTTPStatus.FORBIDDEN, "a request to another host", need="the address that was printed")
        if origin not in (None, f"http://{host}") or site not in (None, "none", "same-origin"):
            raise RequestRefused(HTTPStatus.FORBIDDEN, "a request of another page", need="the page itself")
        parts = self.path.partition("?")[0].split("/", 2)  # without the last slash the page would not find its files
        if len(parts) < 3 or not secrets.compare_digest(parts[1].encode(), self.server.token.encode()):
            raise RequestRefused(HTTPStatus.FORBIDDEN, "an address without its random word", need=WHOLE)
        return parts[2]

    def _answer(self, method: str, path: str) -> tuple[str, bytes]:
        if method == "GET" and path in FILES:
            kind, parts = FILES[path]
            return kind, b"\n".join((files(package) / name).read_bytes() for package, name in parts)
        if method == "GET" and path == "api/tabs":
            return JSON, _json([{"name": name, "title": tab.title} for name, tab in self.server.tabs.items()])
        match path.split("/"):
            case ["api", name] if method == "GET" and name in self.server.tabs:
                return JSON, _json(self.server.tabs[name].live.describe())
            case ["api", name, what] if method == "POST" and name in self.server.tabs:
                return JSON, _json(self._call(self.server.tabs[name].live, what))
        raise RequestRefused(HTTPStatus.NOT_FOUND, "there is nothing at this address")

    def _call(self, live: LiveModel, what: str) -> dict[str, Any]:
        if what == "run":
            made = live.made
            return live.run(read_inputs(made, self._body(input_bytes(made), exactly=True)))
        if what == "draw":
            if not live.made.reads_digits:
                raise RequestRefused(HTTPStatus.CONFLICT, "the model reads no digits", need=READS_DIGITS)
            picture = digits.picture(digits.read_strokes(self._body(digits.MOST_BYTES)))
            (control,) = live.made.inputs
            seen = [round(float(v), 4) for v in picture.reshape(-1)]
            return live.run((control.spread(picture),)) | {"seen": seen}
        if what == "reset":
            self._body(0)
            live.reset()
            return {}
        if what == "again":
            self._body(0)
            live.again()
            return live.describe()
        raise RequestRefused(HTTPStatus.NOT_FOUND, "there is nothing at this address")

    def _body(self, most: int, exactly: bool = False) -> bytes:
        length = self.headers.get("Content-Length", "")
        if self.headers.get("Transfer-Encoding") or not re.fullmatch(r"\d{1,18}", length, re.ASCII):
            raise RequestRefused(HTTPStatus.LENGTH_REQUIRED, "a request without a length")
        size = int(length)
        if size > most or (exactly and size != most):
            need = f"{'' if exactly else 'at most '}{most:,} bytes"
            raise RequestRefused(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE if size > most else HTTPStatus.BAD_REQUEST,
                "a request of the wrong length",
                have=f"{size:,} bytes",
                need=need,
                try_="load the page again: the model may have been compiled again" if exactly else None,
            )
        body = self.rfile.read(size)
        if len(body) != size:
            raise ConnectionError("the request ended early")
        return body

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.connection.settimeout(self.server.request_seconds)  # for all of it: a browser may read slowly
        self.end_headers()
        self.wfile.write(body)


def _json(value: Any) -> bytes:
    return json.dumps(value, allow_nan=False).encode()
