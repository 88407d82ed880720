"""Show the progress of slow stages as a bar."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from baretorch.escape import line

if TYPE_CHECKING:
    from rich.console import Console

    from baretorch.measure.run import Show


@contextmanager
def progress_bar(console: Console) -> Iterator[Show]:
    """Yield a function that shows the current stage, and remove the bar at the end."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description:<24}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda what, done, total: bar.update(
            task, description=line(what)[:24], completed=done, total=total or None
        )


@contextmanager
def notebook_progress() -> Iterator[Show]:
    """Yield a function that shows the current stage in a notebook that can show bars, and does nothing elsewhere."""
    from rich.console import Console

    console = Console()
    if not console.is_jupyter or find_spec("ipywidgets") is None:
        yield lambda what, done, total: None
        return
    with progress_bar(console) as show:
        yield show
