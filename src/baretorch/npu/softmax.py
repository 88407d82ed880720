"""Lower qsoftmax to TOSA operators that every Ethos-U has, bit for bit as docs/arithmetic.md defines it.

An NPU cannot divide. The reciprocal of a row's sum comes from a table for its highest 9 bits, which is never too large;
the remainder of the dividend then shows how much is missing, which is added once by the table again, and then by at
most 1. All values fit int32: the dividend is 2^31 - 1, and the last bit of 2^32 - 1 is computed at the end.
"""

from __future__ import annotations

from math import prod

import numpy as np

from baretorch.ir.graph import Array
from baretorch.npu.region import EXACT, RegionValues
from baretorch.npu.tosa import PROPAGATE, Operator, TosaKind, TosaValue
from baretorch.ops.int8.qsoftmax import QSoftmax

LONGEST_ROW = 1 << 14  # numbers in a row: their sum stays below 2^30
DIVIDEND = (1 << 31) - 1
HEAD = 8  # bits of a sum's head below its highest one
HEADS = np.arange(1 << HEAD, 2 << HEAD)
RECIPROCALS = (1 << 24) // (HEADS + 1)  # of the next head, so that no sum's is larger
LEAST_ZEROS = 16  # leading zeros of the least sum, 65535


def softmax(region: RegionValues, op: QSoftmax, x: TosaValue) -> TosaValue:
    """Lower a softmax."""
    length = x.shape[-1]
    made = Rows(region, prod(x.shape[:-1]))
    rows = region.reshape(x, (1, 1, made.rows, length))
    top = region.block.add(Operator.REDUCE_MAX, (1, 1, made.rows, 1), TosaKind.INT8, rows, fields=(3, PROPAGATE))
    below = made.two(Operator.SUB, region.wide(rows, 0), region.wide(top, 0), length)
    share = made.look_up(below, 127, op.table()[::-1], length)
    total = region.block.add(Operator.REDUCE_SUM, (1, 1, made.rows, 1), TosaKind.INT32, share, fields=(3,))
    quotient, bit = made.divide(total)
    half = made.two(
        Operator.ADD,
        made.two(Operator.MUL, share, quotient, length),
        made.right(made.two(Operator.MUL, share, bit, length), 1, length),
        length,
    )
    steps = made.right(half, 23, length, rounded=True)
    return region.reshape(region.rescale(steps, TosaKind.INT8, [1 << EXACT], [EXACT], zero=-128), x.shape)


class Rows:
    """A number, or a row of numbers, for each row, in int32."""

    def __init__(self, region: RegionValues, rows: int) -> None:
        self.region, self.rows = region, rows

    def const(self, number: int) -> TosaValue:
        return self.region.block.const(np.full((1, 1, 1, 1), number), TosaKind.INT32)

    def two(self, operator: Operator, a: TosaValue, b: TosaValue | int, length: int = 1) -> TosaValue:
        other = self.const(b) if isinstance(b, int) else b
        more = (self.region.block.const(np.array([0]), TosaKind.INT8),) if operator is Operator.MUL else ()
        return self.region.block.add(operator, (1, 1, self.rows, length), TosaKind.INT32, a, other, *more)

    def left(self, a: TosaValue, by: TosaValue) -> TosaValue:
        return self.two(Operator.LOGICAL_LEFT_SHIFT, a, by)

    def right(self, a: TosaValue, by: TosaValue | int, length: int = 1, rounded: bool = False) -> TosaValue:
        other = self.const(by) if isinstance(by, int) else by
        shape = (1, 1, self.rows, length)
        return self.region.block.add(
            Operator.ARITHMETIC_RIGHT_SHIFT, shape, TosaKind.INT32, a, other, fields=(rounded,)
        )

    def look_up(self, index: TosaValue, zero: int, table: Array, length: int = 1) -> TosaValue:
        """Look up 16-bit numbers in a table of 256: two tables of their bytes."""
        region = self.region
        at = region.rescale(index, TosaKind.INT8, [1 << EXACT], [EXACT], zero=zero)
        bytes_ = [(table.astype(np.int64) >> shift & 255) - 128 for shift in (8, 0)]
        high, low = (
            region.wide(
                region.block.add(Operator.TABLE, at.shape, TosaKind.INT8, at, region.block.const(t, TosaKind.INT8)),
                -128,
            )
            for t in bytes_
        )
        return self.two(Operator.ADD, self.two(Operator.MUL, high, 256, length), low, length)

    def divide(self, total: TosaValue) -> tuple[TosaValue, TosaValue]:
        """Return (2^32 - 1) // total as two values: twice the first plus the second."""
        zeros = self.region.block.add(Operator.CLZ, total.shape, TosaKind.INT32, total)
        up = self.two(Operator.SUB, zeros, 1)
        head = self.two(Operator.SUB, self.right(self.left(total, up), 30 - HEAD), 1 << HEAD)
        least = self.look_up(head, -128, RECIPROCALS)
        first = self.right(least, self.two(Operator.SUB, self.const(LEAST_ZEROS), zeros))
        rest = self._left(first, total)
        scaled = self.right(self.left(self.right(rest, 8), up), 15)
        second = self.two(Operator.ADD, first, self.right(self.two(Operator.MUL, scaled, least), 23))
        rest = self._left(second, total)
        missing = self._at_least(rest, total)
        quotient = self.two(Operator.ADD, second, missing)
        rest = self.two(Operator.SUB, rest, self.two(Operator.MUL, missing, total))
        bit = self._at_least(self.two(Operator.ADD, self.two(Operator.ADD, rest, rest), 1), total)
        return quotient, bit

    def _left(self, quotient: TosaValue, total: TosaValue) -> TosaValue:
        return self.two(Operator.SUB, self.const(DIVIDEND), self.two(Operator.MUL, quotient, total))

    def _at_least(self, a: TosaValue, b: TosaValue) -> TosaValue:
        """Return 1 if a >= b, else 0: the sign of their difference."""
        return self.two(Operator.ADD, self.right(self.two(Operator.SUB, a, b), 31), 1)
