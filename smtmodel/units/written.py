"""The calls of nodes in unit files. A row for each call has the form, the arguments and an example. The types of a
node's fields determine how the options of its call are read and written."""

from __future__ import annotations

import typing
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cache
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from mmaprobe.smtmodel import nodes
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import MODES, RESULT_MODES, RESULT_OVERFLOWS
from mmaprobe.smtmodel.exceptions import DOCUMENTS
from mmaprobe.smtmodel.nodes.fused import CARRY_ALONE, STICKY_ALONE
from mmaprobe.smtmodel.nodes.round import Rounding

TRUTH = "true, false"


@dataclass(frozen=True)
class Option:
    """An argument of a call besides its operands, with its meaning, values and default (all for users). Options with
    upper-case names are positional arguments (except F); the others are keyword arguments."""

    name: str
    meaning: str
    values: str
    default: str = "needed"

    @property
    def field(self) -> str:
        """The name of the node's field with the option's value."""
        return {"F": "fraction_bits", "carry": "carry_bits"}.get(self.name, self.name.lower())

    @property
    def by_name(self) -> bool:
        """Whether the option is a keyword argument. F is one, though its name is upper-case as in papers."""
        return self.name == "F" or not self.name.isupper()

    def line(self) -> str:
        """The description of the option as one line of text."""
        given = "" if self.default == "needed" else f" (if not given: {self.default})"
        return f"{self.name}: {self.meaning}: {self.values}{given}"


@dataclass(frozen=True)
class Written:
    """The call of one class of nodes. `written`: the form of the call. `example`: the step `d` of an example unit, with
    `formats`, `length` and further lines (`more`). `ranged`: a call whose operand is a range of terms stands for a node
    of each term."""

    node: type[nodes.Node]
    written: str
    meaning: str
    example: str
    options: tuple[Option, ...] = ()
    formats: str = "a: f16, b: f16, c: f32, d: f32"
    length: int = 4
    more: str = ""
    ranged: bool = False

    @property
    def name(self) -> str:
        """The word of the call."""
        return self.node.kind

    @property
    def file(self) -> str:
        """The text of the example's unit file."""
        roundings = "roundings: {r: 'round(f32, nearest_even)'}\n" if "r(" in self.example else ""
        return (f"unit: with-{self.name}\nformats: {{{self.formats}}}\nlength: {self.length}\n{self.more}{roundings}"
                f"steps:\n  d: {self.example}\n")  # fmt: skip

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the options that are keyword arguments."""
        return tuple(option.name for option in self.options if option.by_name)

    def text(self, node: nodes.Node, operands: Iterable[str]) -> str:
        """The text of a node's call. `operands`: the texts of the node's operands. Positional options follow, then the
        keyword options that differ from their defaults."""
        kind: Any = self.node
        field_names = {item.name for item in fields(kind)}  # other positional options are among the operands
        placed = [_value_text(getattr(node, option.field))
                  for option in self.options if not option.by_name and option.field in field_names]  # fmt: skip
        named = [(option.name, option.field) for option in self.options if option.by_name]
        return f"{self.name}({', '.join([*operands, *placed, *changed(node, named)])})"


@cache
def types_of(kind: type, name: str) -> tuple[Any, ...]:
    """The types that a field's annotation allows, without None."""
    hint = typing.get_type_hints(kind)[name]
    types = get_args(hint) if get_origin(hint) in (typing.Union, UnionType) else (hint,)
    return tuple(one for one in types if one is not NoneType)


def words_of(types: Iterable[Any]) -> tuple[Any, ...]:
    """The words that are values of the Literal types among some types."""
    return tuple(word for one in types if get_origin(one) is typing.Literal for word in get_args(one))


def changed(value: Any, options: Iterable[tuple[str, str]]) -> list[str]:
    """The texts NAME=VALUE of the options of a value that differ from their defaults. `options`: pairs of an option's
    name and its field."""
    defaults = {item.name: item.default for item in fields(value)}
    given = ((name, field, getattr(value, field)) for name, field in options)
    return [f"{name}={_value_text(own)}" for name, field, own in given if own != defaults[field]]


def rounding_text(how: Rounding) -> str:
    """The text of a rounding in a unit file."""
    parts = [how.format.name, how.mode, *changed(how, [(word, word) for word in ("overflow", "subnormals", "zero")])]
    return f"round({', '.join([*parts, *([] if how.nan is None else [f'nan=0x{how.nan:x}'])])})"


def _value_text(value: Any) -> str:
    """The text of an option's value."""
    if isinstance(value, Rounding):
        return rounding_text(value)
    if isinstance(value, tuple):
        return f"[{', '.join('none' if own is None else str(own) for own in value)}]"
    return value.name if isinstance(value, Format) else str(value).lower()


_MODE = ", ".join(MODES)
_ROUNDING = Option("rounding", "how a term's bits below its last place are rounded off", _MODE, "toward_zero")
_FLOORS = Option("floors", "the least exponent with which terms of each operand count, its zeros included",
                 "a list with a whole number or none for each operand", "no floor")  # fmt: skip
_FACTOR = "or a number that has no sign: 2**3, number(0x3f800000, f32), shared(...) or largest(...)"

#: the calls of nodes by name. The reader and the writer of files, error messages, `mmaprobe list nodes` and
#: docs/nodes.md use these rows
NODES = {row.name: row for row in (
    Written(nodes.Product, "product(X, Y)",
            "the exact product X * Y; its exponent is the sum of both, also where the significand is 2 or more",
            "r(exact(product(a[0:4], b[0:4], normalised=true, limit=128), c))",
            (Option("normalised", "it counts with the exponent of its leading one, also if a factor is subnormal",
                    TRUTH, "false"),
             Option("limit", "a magnitude of 2^limit or more is infinite", "a whole number from -4096 to 4096",
                    "no limit"))),
    Written(nodes.Gate, "gate(PRODUCT, -0)",
            "a product that is this zero where a factor is zero, so that zero times infinity or a NaN is no NaN",
            "r(exact(gate(a[0:4] * b[0:4], -0), c))",
            (Option("ZERO", "-0 adds nothing to any sum; +0 changes one that is -0", "+0, -0"),)),
    Written(nodes.ExactSum, "exact(TERM, ...)", "the sum without loss", "r(exact(a[0:4] * b[0:4], c))"),
    Written(nodes.FusedSum, "fused(TERM, ..., F=BITS)",
            "the sum of terms aligned at the largest exponent among them, and truncated F bits below it",
            "r(fused(a[0:4] * b[0:4], c, F=24, carry=3, zeros=-132))",
            (Option("F", "the bits kept below the largest exponent",
                    "a whole number from 0 to 256, or a list with one for each operand"),
             Option("carry", f"the sum wraps in F + 1 + carry bits and a sign; {CARRY_ALONE}",
                    "a whole number from 0 to 16", "it never wraps"),
             _ROUNDING,
             Option("sticky", "where a term lost a bit, the sum's magnitude has one more bit below its last place, "
                    "set: a negative sum becomes more negative, and a sum of zero positive; "
                    f"{STICKY_ALONE}", TRUTH, "false"),
             Option("zeros", "the exponent with which a zero term counts", "a whole number from -4096 to 4096",
                    "zeros do not count"),
             Option("least", "the least exponent at which terms are aligned", "a whole number from -4096 to 4096",
                    "none"),
             _FLOORS,
             Option("reach", "a term whose exponent, without its floor, is more than this many below the largest one "
                    "vanishes; it lost no bit",
                    "a list with a whole number or none for each operand", "none vanishes"))),
    Written(nodes.GridSum, "grid(TERM, ..., F=[BITS, ...])",
            "the sum of terms as multiples of one power of two, the largest of exponent minus F over the terms",
            "r(grid(a[0:4] * b[0:4], c, F=[24, 26], frame=1))",
            (Option("F", "the bits kept below an exponent",
                    "a list with a whole number from 0 to 256 for each operand"),
             _ROUNDING,
             Option("frame", "the operand whose sign is the adder's: terms of the other sign are flipped bit by bit, "
                    "so that m units count as -m - 1, those of a zero too, unless all terms are zeros",
                    "the number of an operand with one term, from 0", "terms are negated"),
             _FLOORS,
             Option("reach", "a term whose exponent, without its floor, is more than this many below that of the power "
                    "of two vanishes",
                    "a list with a whole number or none for each operand", "none vanishes"))),
    Written(nodes.Cancelling, "cancelling(SUM)",
            "a sum, perhaps cut, that counts as a zero in the next alignment where its value is zero: where its terms "
            "cancel or are cut off",
            "r(fused(cancelling(fused(a[0:4] * b[0:4], F=24)), c, F=24))"),
    Written(nodes.Signed, "signed(SUM)", "an aligned sum that has the sign of the exact sum where it is cut to zero",
            "r(signed(fused(a[0:4] * b[0:4], c, F=24, zeros=-126)))"),
    Written(nodes.SortedSum, "sorted(TERM, TERM, TERM, F=[BITS, BITS])",
            "three inputs or products added in the order of their exponents (equal ones as written), two and then the "
            "third: what is added is cut off toward zero, or away from it where it is subtracted; where this cuts off "
            "set bits, the sum's magnitude has one more bit below its last place, set; if the first two cancel, the "
            "sum is the third",
            "r(sorted(a[0] * b[0], a[1] * b[1], counting(c), F=[50, 78]))",
            (Option("F", "the bits kept below the first place that the first term may have, by the first addition, "
                    "which drops further bits of that term, and by the second",
                    "a list with two whole numbers from 0 to 256, the second at least as large"),), length=2),
    Written(nodes.Counting, "counting(TERM)",
            "an input or a product that counts in an alignment where it is zero, too, with its own exponent",
            "r(fused(counting(a[0:4] * b[0:4]), counting(c), F=24))", ranged=True),
    Written(nodes.Cut, "cut(TERM, BITS, MODE)", "rounded to this many bits, with unbounded exponent",
            "r(cut(exact(a[0:4] * b[0:4], c), 31, down))",
            (Option("BITS", "the significant bits kept", "a whole number from 2 to 256"),
             Option("MODE", "how it is rounded", _MODE, "toward_zero"),
             Option("least", "the least exponent at which sums are rounded and count: smaller ones are rounded at one "
                    "fixed place",
                    "a whole number from -4096 to 4096", "none"))),
    Written(nodes.Round, "round(TERM, FORMAT, MODE)", "rounded to a number of a format",
            "round(exact(a[0:4] * b[0:4], c), f32, toward_zero, overflow=infinity, zero=positive, nan=0x7fffffff)",
            (Option("FORMAT", "the format", "one of `mmaprobe list formats`, or of own_formats"),
             Option("MODE", "how it is rounded", ", ".join(RESULT_MODES), "nearest_even"),
             Option("overflow", "what is beyond the largest number: infinite; that number; either, as IEEE 754 has it "
                    "for the mode; that number, which sat_finite makes of infinities too, and sat_propagate in formats "
                    "that have none",
                    ", ".join(RESULT_OVERFLOWS), "ieee"),
             Option("subnormals", "kept; or zero if the rounded result is subnormal (flush_after), or if the exact "
                    "one is below the smallest normal number (flush_before)", "keep, flush_after, flush_before",
                    "keep"),
             Option("zero", "the sign of a zero: IEEE's; +0 of a sum that is zero before it is rounded; +0 always",
                    "ieee, exact_positive, positive", "ieee"),
             Option("nan", "the pattern of a NaN", "a pattern (0x7fffffff)", "any quiet NaN"))),
    Written(nodes.Flags, "flags(RESULT, DOCUMENT)",
            "the exceptions that all roundings of a result signal: 1 inexact, 2 underflow, 4 overflow, 16 invalid; "
            "terms are written one by one",
            "flags(round(exact(a[0] * b[0], c), f32), riscv)",
            (Option("DOCUMENT", "the architecture: arm and power find a result tiny before it is rounded; for x86 "
                    "infinity times zero, plus a quiet NaN, is not invalid", ", ".join(DOCUMENTS)),),
            "a: f32, b: f32, c: f32, d: int5", 1),
    Written(nodes.Relu, "relu(TERM)", "max(x, 0): an activation",
            "r(relu(r(exact(a[0:4] * b[0:4], c)), nan=zero, zero=keep))",
            (Option("nan", "what becomes of a NaN", "keep, zero", "keep"),
             Option("zero", "+0 always; -0 stays; the sign of x", "positive, keep, signed", "positive"))),
    Written(nodes.Literal, "number(PATTERN, FORMAT)", "a number by its pattern; 2**11 is a power of two of f32",
            "r(exact(a[0:4] * b[0:4], number(0x40000000, f32), c))",
            (Option("PATTERN", "its bits", "a pattern (0x40000000)"),
             Option("FORMAT", "the format", "one of `mmaprobe list formats`"))),
    Written(nodes.Segment, "segment(INPUT, FIRST, END)",
            "some bits of a significand, with the exponent of the whole number: for multipliers that take their "
            "factors in parts; of an infinity or a NaN the segment from bit 0 is this, others are +0",
            "r(exact(segment(a[0:4], 0, 5) * b[0:4], segment(a[0:4], 5, 11) * b[0:4], c))",
            (Option("FIRST", "the first bit; 0 is the one before the binary point", "a whole number from 0 on"),
             Option("END", "the first bit that is not read any more", "a whole number above FIRST, up to 256"),
             Option("positive", "a segment without a set bit is +0, and not a zero of the number's sign", TRUTH,
                    "false"),
             Option("leading", "bits are counted from the leading one, in subnormal numbers too", TRUTH, "false")),
            ranged=True),
    Written(nodes.Shared, "shared(a[0:16])",
            "the largest power of two up to the largest magnitude of some elements, 1 where all are zero, and a NaN "
            "where one is infinite or a NaN; 1 / shared(...) divides by it",
            "r(shared(a[0:4]) * r(exact(a[0:4] * b[0:4], c)))",
            (Option("up", "the smallest power of two from the largest magnitude on", TRUTH, "false"),)),
    Written(nodes.Largest, "largest(a[0:16])",
            "the largest magnitude of some elements of a or of b; a NaN where one is a NaN",
            "r(quotient(r(exact(a[0:4] * b[0:4])), largest(a[0:4])))"),
    Written(nodes.Quotient, "quotient(TERM, TERM)",
            "one input or rounded result divided by another one: infinite where a number other than zero is divided by "
            "zero; a rounding reads it", "r(quotient(r(exact(a[0:4] * b[0:4])), c))"),
    Written(nodes.Residue, "residue(TERM, MODULUS)",
            "the integer part (toward zero) modulo a number m, nearest to zero, -m/2 rather than m/2; a NaN of what is "
            "not finite",
            "r(residue(r(exact(a[0:4] * b[0:4], c)), 251))",
            (Option("MODULUS", "the number m", "a whole number from 2 to 65536"),)),
    Written(nodes.Recombined, "recombined(TERM, ..., moduli=[MODULUS, ...])",
            "the integer nearest to zero with the residues of some integer parts (P/2 rather than -P/2 with the "
            "product P of the moduli); a NaN where one is not finite",
            "r(recombined(r(exact(a[0:4] * b[0:4])), c, moduli=[256, 255]))",
            (Option("moduli", "the numbers modulo which they are residues, pairwise without a common factor",
                    "a list with a whole number from 2 to 65536 for each operand"),)),
    Written(nodes.Scale, "scale(TERM, SCALE_A, SCALE_B)", "a term times its two scale factors",
            "r(exact(each(k in range(4), scale(a[k] * b[k], scale_a[0], scale_b[0])), c))",
            (Option("SCALE_A", "its factor", f"scale_a[PLACE], {_FACTOR}"),
             Option("SCALE_B", "its factor", f"scale_b[PLACE], {_FACTOR}")),
            "a: e2m1, b: e2m1, c: f32, d: f32, scale: ue8m0", more="scale_block: 4\n"),
    Written(nodes.Repeat, "repeat(k in range(...), START, BODY)", "a loop; `acc` is the result so far",
            "repeat(k in range(4), c, r(exact(acc, a[k] * b[k])))",
            (Option("START", "the first result so far", "c, +0, -0 or a step"),
             Option("BODY", "the next one, with acc", "an expression"))),
    Written(nodes.Each, "each(k in range(...), TERM)", "one term of a sum for each place",
            "r(exact(each(k in range(4), a[k] * b[k]), c))",
            (Option("TERM", "the term for a place", "an expression with the place"),)),
)}  # fmt: skip

#: word of a call -> form of the call
WRITTEN = {name: row.written for name, row in NODES.items()}
