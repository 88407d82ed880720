"""Which tests go to one worker: those of a file, as they share fixtures; of the case table those of one image, and of
the long sweeps of tests/fuzz each by itself. And which tests run images that fill their memory before each run."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from tests import compiled, sanitized

os.environ.setdefault("DEV", "PYTHON")  # tinygrad's: its kernels of a few numbers run before they were compiled

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts commands in the background
    signal.signal(signal.SIGINT, signal.default_int_handler)  # processes that tests interrupt would ignore it, too

os.environ.pop("MAKEFLAGS", None)  # of `make test`: a make that a test starts would ignore errors with its -i, too

IMAGE = re.compile(r"\[([\w-]+-(?:speed|size))-")  # as tests/ops/test_emulated.py calls them
SWEEPS = (
    "test_twenty_thousand[",
    "test_random_modules[",
    "test_random_aliases[",
)  # minutes each, with nothing in common
LONGEST = ("tests/ops/test_cases.py", "tests/ops/", "tests/fuzz/", "tests/quantize/", "tests/machines/")
# Images of these tests fill their memory before each run. Others count bytes, or run commands in other processes.
FILLED = (
    "tests/cluster/",
    "tests/fuzz/",
    "tests/npu/",
    "tests/plan/",
    "tests/quantize/",
    "tests/units/",
    "tests/zoo/",
    "tests/test_two_cores.py",
)


class Together(LoadScopeScheduling):  # type: ignore[misc]
    """xdist's own groups rest on changing names of tests, which pytest 9.2 does not let it do."""

    def _split_scope(self, nodeid: str) -> str:
        file, _, test = nodeid.partition("::")
        if test.startswith(SWEEPS):
            return nodeid
        image = IMAGE.search(test) if file.endswith("test_emulated.py") else None
        return f"{file}::{image[1]}" if image else file


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the slowest tests first, so that no worker is left alone with one of them at the end."""
    items.sort(
        key=lambda item: next((i for i, name in enumerate(LONGEST) if item.nodeid.startswith(name)), len(LONGEST))
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Together:
    return Together(config, log)


@pytest.fixture(scope="module", autouse=True)
def fill_memory(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let models fail that read or return memory which they never wrote."""
    if not request.node.nodeid.startswith(FILLED):
        yield
        return
    from tests.patterns import filled_images

    with filled_images():
        yield


@pytest.fixture(autouse=True, scope="module")
def sanitized_programs(request: pytest.FixtureRequest) -> Iterator[None]:
    """C that tests compile for this computer, as images of board `host` and to calibrate, runs under sanitizers."""
    with sanitized.host_programs(not request.node.nodeid.startswith(sanitized.PLAIN)):
        yield


@pytest.fixture(autouse=True, scope="module")
def compiled_once(request: pytest.FixtureRequest) -> Iterator[None]:
    """Compilers make the same of the same files once."""
    with compiled.compile_once(not request.node.nodeid.startswith(sanitized.PLAIN)):
        yield


def pytest_sessionfinish(session: pytest.Session) -> None:
    if not hasattr(session.config, "workerinput"):
        compiled.forget_oldest()
