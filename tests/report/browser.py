"""A headless Chromium, driven over a pair of pipes with its own debugging protocol: no driver, no package."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


@dataclass
class Page:
    """An open page. `complaints` are errors of the console, uncaught exceptions and failed loads; `requests` are all
    addresses it asked for."""

    write: BinaryIO
    read: BinaryIO
    session: str = ""
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    _count: int = 0
    _events: list[dict[str, Any]] = field(default_factory=list)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.write.write(json.dumps(message).encode() + b"\0")
        self.write.flush()
        while True:
            answer = self._next()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def wait(self, event: str) -> None:
        while not any(e["method"] == event for e in self._events):
            self._note(self._next())

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def hover(self, selector: str) -> None:
        """The pointer over the middle of the first element that fits."""
        middle = (
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
            " return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        x, y = self.evaluate(middle)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def drag(self, points: Sequence[tuple[float, float]]) -> None:
        """The pointer along these places, pressed down."""
        for kind, places in (("mousePressed", points[:1]), ("mouseMoved", points[1:]), ("mouseReleased", points[-1:])):
            for x, y in places:
                self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def touch(self, points: Sequence[tuple[float, float]]) -> None:
        """A finger along these places."""
        for i, (x, y) in enumerate(points):
            kind = "touchMove" if i else "touchStart"
            self.call("Input.dispatchTouchEvent", type=kind, touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])

    def until(self, expression: str, seconds: float = 20.0) -> Any:
        """The expression's value, once it is true."""
        deadline = time.monotonic() + seconds
        while not (value := self.evaluate(expression)):
            assert time.monotonic() < deadline, f"never true: {expression}"
            time.sleep(0.02)
        return value

    def screenshot(self, path: Path) -> None:
        """The whole page."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _next(self) -> dict[str, Any]:
        data = bytearray()
        while (byte := self.read.read(1)) != b"\0":
            assert byte, "the browser has ended"
            data += byte
        message: dict[str, Any] = json.loads(data)
        return message

    def _note(self, event: dict[str, Any]) -> None:
        self._events.append(event)
        method, params = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        if (
            method in ("Runtime.exceptionThrown", "Network.loadingFailed")
            or (method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"))
            or (method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"))
        ):
            self.complaints.append(json.dumps(params))


@contextmanager
def opened(at: Path | str, folder: Path, dark: bool = False, width: int = 1280) -> Iterator[Page]:
    """The page, a file or an address, in a browser with its profile in `folder`."""
    address = at if isinstance(at, str) else at.as_uri()
    program = next((p for p in map(shutil.which, PROGRAMS) if p), None)
    if program is None:
        pytest.fail(f"this test needs one of {', '.join(PROGRAMS)}: apt-get install chromium")
    to_browser, from_browser = os.pipe(), os.pipe()
    command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
    command += [
        "--disable-background-networking",
        "--remote-debugging-pipe",
        f"--user-data-dir={folder}",
        "about:blank",
    ]
    # The browser reads commands from descriptor 3 and answers on 4.
    shell = f'exec 3<&{to_browser[0]} 4>&{from_browser[1]}; exec "$@"'
    browser = subprocess.Popen(
        ["bash", "-c", shell, "bash", *command],
        pass_fds=(to_browser[0], from_browser[1]),
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    os.close(to_browser[0])
    os.close(from_browser[1])
    with open(to_browser[1], "wb") as write, open(from_browser[0], "rb") as read:
        page = Page(write, read)
        try:
            target = page.call("Target.createTarget", url="about:blank")["targetId"]
            page.session = page.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                page.call(f"{domain}.enable")
            scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
            page.call("Emulation.setEmulatedMedia", features=[scheme])
            page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
            page.call("Page.navigate", url=address)
            page.wait("Page.loadEventFired")
            yield page
            page.session = ""
            page.call("Browser.close")
        finally:
            browser.terminate()
            browser.wait(20)
