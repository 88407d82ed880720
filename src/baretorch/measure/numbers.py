"""Format numbers and names for people."""

from __future__ import annotations

import math
from collections.abc import Sequence

_EIGHTHS = " ▏▎▍▌▋▊▉█"


def capacity(count: int) -> str:
    """Format a memory's size as `512 KiB`, or in bytes if it is not a multiple of 1 KiB."""
    for unit, scale in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale and count % scale == 0:
            return f"{count // scale} {unit}"
    return f"{count:,} bytes"


def share(part: float, whole: float) -> str:
    """Format a share as `12.5 %`; one that would round to zero is `<0.1 %`."""
    percent = 100 * part / whole
    return "<0.1 %" if 0 < percent < 0.05 else f"{percent:.1f} %"


def portion(used: int, size: int, name: str = "") -> str:
    """Format the use of a memory as `12.5 % of 512 KiB SRAM`."""
    return f"{share(used, size)} of {capacity(size)} {name}".rstrip()


def shorten_name(name: str, letters: int = 40) -> str:
    """Shorten a name from its beginning, because the end of a path matters more. Converters join the names of all
    layers that they fuse."""
    return name if len(name) <= letters else "…" + name[len(name) - letters + 1 :]


def distinct_names(names: Sequence[str], letters: int = 40) -> list[str]:
    """Shorten names, but keep them different from each other."""
    while len({shorten_name(name, letters) for name in names}) < len(set(names)):
        letters += 8
    return [shorten_name(name, letters) for name in names]


def frequency(hz: int) -> str:
    """Format a frequency as `64 MHz`."""
    return f"{hz / 1e6:g} MHz"


def figure(value: float) -> str:
    """Format a number with three significant digits, without an exponent where that reads better."""
    if value and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.2g}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def ticks(low: float, high: float, count: int, least: float = 0.0) -> list[float]:
    """Return about `count` round numbers from `low` to `high`, at a distance of at least `least`."""
    size = max((high - low) / count, least)
    unit = 10.0 ** math.floor(math.log10(size))
    step = next(unit * m for m in (1, 2, 5, 10) if unit * m >= size * 0.999999)
    return [round(i * step, 12) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def bar(part: float, whole: float, width: int) -> str:
    """Draw a bar of block characters, `width` columns when full. A part that is not zero is always visible."""
    eighths = 0 if whole <= 0 else round(8 * width * min(1.0, part / whole))
    eighths = max(eighths, 1 if part > 0 else 0)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)
