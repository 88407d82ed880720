"""The SQLite database of a search: its address, and errors that name what is wrong with it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from baretorch.errors import CompileError
from baretorch.files.ownership import anything, check_file, sqlite
from baretorch.files.write import open_folder


def own_database(folder: Path) -> str:
    """Return the address of the database in an output folder; CompileError if one of its files is not ours."""
    path = folder / "study.db"
    with open_folder(folder):  # it is there before SQLite looks for it
        check_file(path, sqlite)
        for suffix in ("-journal", "-wal", "-shm"):
            check_file(path.with_name(path.name + suffix), anything)
    return f"sqlite:///{path}"


def need_sqlite(url: str) -> None:
    """Raise CompileError unless the address is that of an SQLite file; others are not shown, for their passwords."""
    kind, _, rest = url.partition("://")
    if kind != "sqlite" or not rest.startswith("/"):
        raise CompileError(
            "--storage: this is not the address of an SQLite database",
            have=url if kind == "sqlite" else None,
            need="sqlite:///FILE, with three slashes",
        )


@contextmanager
def problems(url: str) -> Iterator[None]:
    """Raise what SQLAlchemy raises, or its absence, as CompileError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except CompileError:
        raise
    except ImportError as error:
        raise CompileError(f"--storage {url}: its driver is not installed", try_='pip install "sqlalchemy"') from error
    except Exception as error:  # whatever SQLAlchemy raises
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        have = lines[0][:200] if lines else type(error).__name__
        raise CompileError(f"--storage {url}: cannot use the database", have=have) from error
