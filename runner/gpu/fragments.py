"""The places of a matrix's elements in the registers of a warp or warpgroup, or in shared memory.

Source: PTX ISA, "Matrix Fragments" of `mma`, "Register Fragments and Shared Memory Matrix Layouts" of `wgmma`, "Data
Movement Shape" and "Data Path Layout Organization" of `tcgen05`. A place is a pair of expressions in `lane` (the
thread's number in its warp; in its warpgroup for `wgmma` and `tcgen05`) and `i` (the number of the element in the
thread, counted from the low bits of its first register). The expressions use operators that C and Python share:
generated kernels contain their texts, and `Fragment.place` evaluates them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from types import CodeType


@dataclass(frozen=True)
class Fragment:
    """A matrix in registers. `elements`: elements in each thread; `width`: bits of register for an element; `row`,
    `column`: the expressions of the row and the column of the `i`-th element in thread `lane` of `threads`; `holder`:
    where several threads hold an element, the condition for the thread whose copy is read."""

    elements: int
    width: int
    row: str
    column: str
    threads: int = 32
    holder: str = "1"

    @property
    def word(self) -> int:
        """The width of a register in bits."""
        return max(32, self.width)

    @property
    def per_register(self) -> int:
        """The number of elements in a register."""
        return self.word // self.width

    @property
    def registers(self) -> int:
        """The number of registers of each thread; an element may end in the next register."""
        return -(-self.elements * self.width // self.word)

    def place(self, lane: int, i: int) -> tuple[int, int]:
        """The row and column of element `i` in thread `lane`."""
        names = {"lane": lane, "i": i}
        return eval(_code(self.row), {}, names), eval(_code(self.column), {}, names)


@cache
def _code(expression: str) -> CodeType:
    return compile(expression, "place", "eval")


@dataclass(frozen=True)
class Tile:
    """A multiplicand of `wgmma` or `tcgen05.mma` in shared memory, K-major and without swizzle: `majors` rows of A (or
    columns of B) of `k` elements of `width` bits, `each` elements in a unit of 16 bytes from its lowest bit on. Core
    matrices of 8 majors times a unit are contiguous."""

    majors: int
    k: int
    width: int
    each: int

    leading = 128  # bytes from a core matrix to the next one along K

    @property
    def units(self) -> int:
        """The number of units of 16 bytes in a row of A or a column of B."""
        return self.k // self.each

    @property
    def stride(self) -> int:
        """The distance in bytes of a core matrix from the one of the next eight rows of A or columns of B."""
        return self.leading * self.units

    @property
    def size(self) -> int:
        """The size of the tile in bytes."""
        return 16 * self.majors * self.units

    @property
    def offset(self) -> str:
        """The C expression of the byte at which unit `unit` of row or column `major` begins."""
        return f"(major >> 3) * {self.stride} + unit * {self.leading} + (major & 7) * 16"


def tile(majors: int, k: int, width: int) -> Tile:
    """A tile whose units of 16 bytes are full."""
    return Tile(majors, k, width, 128 // width)


def multiplicand_a(m: int, k: int, width: int, threads: int = 32) -> Fragment:
    """The M x K elements of A, for `mma` (M is 8 or 16) and for `wgmma` (M is 64): quads of threads share a row."""
    if (m, k, width) == (8, 4, 16):  # four threads of the low, four of the high half of the warp: a quad pair
        return Fragment(4, 16, "(lane & 3) + 4 * (lane >> 4)", "i")
    each = _log_per_register(width)
    half = m * 4 // threads  # the number of registers for different rows of the same columns
    row = f"{_quad_row(threads)} + 8 * ((i >> {each}) & {half - 1})"
    column = f"((lane & 3) << {each}) + (i & {(1 << each) - 1}) + {4 << each} * (i >> {each + half - 1})"
    return Fragment(m * k // threads, width, row, column, threads)


def multiplicand_b(k: int, n: int, width: int) -> Fragment:
    """The K x 8 elements of B, for `mma`: quads of threads share a column."""
    if (k, n, width) == (4, 8, 16):
        return Fragment(4, 16, "i", "(lane & 3) + 4 * (lane >> 4)")
    each = _log_per_register(width)
    row = f"((lane & 3) << {each}) + (i & {(1 << each) - 1}) + {4 << each} * (i >> {each})"
    return Fragment(k * n // 32, width, row, "lane >> 2")


def accumulator(m: int, n: int, width: int, threads: int = 32) -> Fragment:
    """C and D, for `mma` (M x 8 elements) and for `wgmma` (64 x N elements)."""
    row = f"{_quad_row(threads)} + 8 * ((i >> 1) & 1)"
    return Fragment(m * n // threads, width, row, "2 * (lane & 3) + (i & 1) + 8 * (i >> 2)", threads)


def quad_pair_accumulator(width: int) -> Fragment:
    """C and D of Volta's m8n8k4: four quad pairs compute products of the same operands; the first product is read."""
    holder = "((lane >> 2) & 3) == 0"
    if width == 16:
        return Fragment(8, 16, "(lane & 3) + 4 * (lane >> 4)", "i", holder=holder)
    row = "(lane & 1) + (i & 2) + 4 * (lane >> 4)"
    return Fragment(8, 32, row, "(i & 4) + (lane & 2) + (i & 1)", holder=holder)


def scales_a(count: int) -> Fragment:
    """Scale factors of the rows of A, `count` for each row: every thread pair that a selector may name holds all."""
    return Fragment(count, 8, "(lane >> 2) + 8 * (lane & 1)", "i")


def scales_b(count: int) -> Fragment:
    """Scale factors of the columns of B, `count` for each column: every thread of a quad holds those of its column."""
    return Fragment(count, 8, "i", "lane >> 2")


def lanes(n: int) -> Fragment:
    """C and D of `tcgen05.mma` with 128 rows: each lane of tensor memory, and so each thread, has one row."""
    return Fragment(n, 32, "lane", "i", 128)


def lane_scales_a(count: int) -> Fragment:
    """Scale factors of 128 rows of A in tensor memory: 32 rows in each of four columns; every warp writes a copy. The
    `count` factors of a row are repeated in the four bytes of a column, so that an identifier may name any byte."""
    return Fragment(16, 8, "(lane & 31) + 32 * (i >> 2)", f"i & {count - 1}", 128)


def lane_scales_b(count: int) -> Fragment:
    """Scale factors of 8 columns of B in tensor memory: one lane for each column."""
    return Fragment(4, 8, f"i & {count - 1}", "lane & 7", 128)


def _quad_row(threads: int) -> str:
    """The C expression of the first row of a quad of threads. Each of the four warps of `wgmma` has 16 rows."""
    return "(lane >> 2)" if threads == 32 else "16 * (lane >> 5) + ((lane & 31) >> 2)"


def _log_per_register(width: int) -> int:
    """log2 of the number of elements in a register."""
    return (max(32, width) // width).bit_length() - 1
