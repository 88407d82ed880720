"""Windows that slide over signals, images and volumes, shared by convolutions and pools of all formats."""

from __future__ import annotations

from dataclasses import dataclass

from baretorch.frontends.lowering import Ints, spatial
from baretorch.ops.helpers.window import Padding, Pair


@dataclass(frozen=True)
class Windows:
    """The sizes of a window; each field has one number per dimension."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]

    @property
    def dims(self) -> int:
        return len(self.kernel)

    @property
    def size(self) -> Pair:
        """Return the kernel as that of an image."""
        return spatial(self.kernel, self.dims, 1)

    @property
    def step(self) -> Pair:
        return spatial(self.strides, self.dims, 1)

    @property
    def reach(self) -> Pair:
        return spatial(self.dilations, self.dims, 1)

    @property
    def around(self) -> Padding:
        """Return the padding as that of an image."""
        top, left = spatial(self.before, self.dims, 0)
        bottom, right = spatial(self.after, self.dims, 0)
        return (top, bottom, left, right)

    @property
    def frame(self) -> Windows:
        """Return the windows over each frame of a volume."""
        return Windows(*(field[1:] for field in self._fields))

    @property
    def depth(self) -> Windows:
        """Return the windows over the frames of a volume, as those over an image with a frame per row."""
        nothing = (1, 1, 1, 0, 0)
        return Windows(*((field[0], n) for field, n in zip(self._fields, nothing, strict=True)))

    def taps(self, sizes: Ints, counts: Ints) -> list[list[list[int]]]:
        """Return the elements of each window along each dimension; a window of padding only has the nearest one."""
        each = zip(sizes, counts, self.kernel, self.strides, self.dilations, self.before, strict=True)
        return [
            [
                [t for t in range(i * s - b, i * s - b + d * k, d) if 0 <= t < n] or [min(max(i * s - b, 0), n - 1)]
                for i in range(count)
            ]
            for n, count, k, s, d, b in each
        ]

    @property
    def _fields(self) -> tuple[tuple[int, ...], ...]:
        return (self.kernel, self.strides, self.dilations, self.before, self.after)


def same_padding(sizes: Ints, kernel: Ints, strides: Ints, dilations: Ints) -> list[int]:
    """Return the padding along each dimension with which there is one window per stride of the input."""
    every = zip(sizes, kernel, strides, dilations, strict=True)
    return [max((-(-n // s) - 1) * s + d * (k - 1) + 1 - n, 0) for n, k, s, d in every]


def make_windows(kernel: Ints, stride: Ints, padding: Ints | str, dilation: Ints = (1,), dims: int = 0) -> Windows:
    """Return PyTorch's windows over `dims` dimensions, by default those of `kernel`. One number stands for all."""
    size, step, reach = (_each(v, dims or len(kernel)) for v in (kernel, stride, dilation))
    if not isinstance(padding, str):
        around = _each(padding, len(size))
        return Windows(size, step, reach, around, around)
    missing = [d * (k - 1) if padding == "same" else 0 for d, k in zip(reach, size, strict=True)]
    return Windows(size, step, reach, tuple(m // 2 for m in missing), tuple(m - m // 2 for m in missing))


def _each(value: Ints, dims: int) -> tuple[int, ...]:
    return tuple(value) * dims if len(value) == 1 else tuple(value)
