"""The database of a search: its address, and in words what goes wrong with it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from baretorch.errors import CompileError
from baretorch.outputs import opened
from baretorch.ownership import anything, check_file, sqlite

DRIVERS = {"sqlite": "sqlite", "postgresql": "postgresql+psycopg", "mysql": "mysql+pymysql"}
SECONDS = 10  # for a server to answer


@dataclass(frozen=True)
class Problem:
    """What a server or its driver says, in any of these words, and what that means to the user."""

    said: tuple[str, ...]
    what: str
    try_: str


PROBLEMS = (
    Problem(
        ("password", "access denied", "authentication", "no pg_hba.conf entry", 'role "'),
        "the server does not let this user in",
        "the right user and password: USER:PASSWORD@HOST; `me@host` in them is written me%40host",
    ),
    Problem(
        ('database "', "unknown database"),
        "the server has no such database",
        "`createdb NAME` on the server, or for MySQL `CREATE DATABASE NAME`: an empty one will do",
    ),
    Problem(
        (
            "connection refused",
            "can't connect",
            "failed to resolve host",
            "timeout",
            "timed out",
            "no such file",
            "no route",
            "unreachable",
        ),
        "no server answers there",
        "HOST:PORT as other computers see it; the server must listen to more than its own",
    ),
)


def own_database(folder: Path) -> str:
    """Return the address of the database in an output folder; CompileError if one of its files is not ours."""
    path = folder / "study.db"
    with opened(folder):  # it is there before SQLite looks for it
        check_file(path, sqlite)
        for suffix in ("-journal", "-wal", "-shm"):
            check_file(path.with_name(path.name + suffix), anything)
    return f"sqlite:///{path}"


def driver_url(url: str) -> str:
    """The database as SQLAlchemy names it; CompileError if it is of no known kind."""
    kind, colon, rest = url.partition("://")
    if kind not in DRIVERS or not colon:
        raise CompileError(
            f"--storage {_without_password(url)}: no such kind of database",
            need="sqlite:///FILE, postgresql://USER@HOST/NAME or mysql://USER@HOST/NAME",
        )
    if kind == "sqlite" and not rest.startswith("/"):
        raise CompileError(
            f"--storage {_without_password(url)}: that is no file", need="sqlite:///FILE, with three slashes"
        )
    return f"{DRIVERS[kind]}://{rest}"


def _without_password(url: str) -> str:
    """The address as it may be told: without a password, and without options, which may have one too. Where a password
    may have a question mark in it, nothing behind the user is told."""
    kind, colon, rest = url.partition("://")
    user, at, host = rest.partition("?")[0].rpartition("@")
    if not at and "@" in rest:
        user, at, host = rest.partition("?")[0].partition("/")[0], "@", "…"
    return f"{kind}{colon}{user.partition(':')[0]}{at}{host}"


@contextmanager
def problems(url: str) -> Iterator[None]:
    """What a database, or the lack of its driver, raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except CompileError:
        raise
    except ImportError as error:
        package = {"postgresql": "psycopg[binary]", "mysql": "pymysql"}.get(url.partition("://")[0], "sqlalchemy")
        raise CompileError(
            f"--storage {_without_password(url)}: its driver is not installed", try_=f'pip install "{package}"'
        ) from error
    except Exception as error:  # whatever SQLAlchemy and drivers raise
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        have = lines[0][:200] if lines else type(error).__name__
        known = None if url.startswith("sqlite") else meant(str(error))
        secret = url.partition("://")[2].rpartition("@")[0].partition(":")[2]
        raise CompileError(
            f"--storage {_without_password(url)}: {known.what if known else 'cannot use the database'}",
            have=have.replace(secret, "…") if secret else have,
            try_=known.try_ if known else None,
        ) from error


def meant(text: str) -> Problem | None:
    """By what a server says."""
    lower = text.lower()
    return next((problem for problem in PROBLEMS if any(words in lower for words in problem.said)), None)


def patience(url: str) -> dict[str, Any]:
    """What SQLAlchemy is told, so that an address at which nobody answers is not waited for any longer."""
    given = url.startswith("sqlite") or "connect_timeout" in url
    return {} if given else {"connect_args": {"connect_timeout": SECONDS}}
