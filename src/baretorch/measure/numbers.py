"""Numbers and names as people read them."""

from __future__ import annotations

from collections.abc import Sequence

_EIGHTHS = " ▏▎▍▌▋▊▉█"


def capacity(count: int) -> str:
    """`512 KiB`: a memory's size; plain bytes where it is no round number of KiB."""
    for unit, scale in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale and count % scale == 0:
            return f"{count // scale} {unit}"
    return f"{count:,} bytes"


def share(part: float, whole: float) -> str:
    """`12.5 %`, with `<0.1 %` for what would round to nothing."""
    percent = 100 * part / whole
    return "<0.1 %" if 0 < percent < 0.05 else f"{percent:.1f} %"


def cut(name: str, letters: int = 40) -> str:
    """Shorten a name from its beginning, because the end of a path matters more. Converters join the names of all
    layers that they fuse."""
    return name if len(name) <= letters else "…" + name[len(name) - letters + 1 :]


def apart(names: Sequence[str], letters: int = 40) -> list[str]:
    """Shorten names, but keep them different from each other."""
    while len({cut(name, letters) for name in names}) < len(set(names)):
        letters += 8
    return [cut(name, letters) for name in names]


def frequency(hz: int) -> str:
    """`64 MHz`"""
    return f"{hz / 1e6:g} MHz"


def figure(value: float) -> str:
    """Three significant digits, without an exponent where one reads better without."""
    if value and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.2g}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def bar(part: float, whole: float, width: int) -> str:
    """A bar of block characters, `width` columns when full; something that is not nothing shows at least a sliver."""
    eighths = 0 if whole <= 0 else round(8 * width * min(1.0, part / whole))
    eighths = max(eighths, 1 if part > 0 else 0)
    full, rest = divmod(eighths, 8)
    return ("█" * full + (_EIGHTHS[rest] if rest else "")).ljust(width)
