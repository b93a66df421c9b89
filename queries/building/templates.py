"""Templates of steps, as a table: the sum, its format and the mode of its rounding; and the order of the tiers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from mmaprobe.queries.building.draft import EXACT, Step, fused, round_to
from mmaprobe.queries.building.likely import ALIGNED, GUARDS, MODES, MOST_BITS, WIDE
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import Mode
from mmaprobe.smtmodel.nodes import FusedSum, Node

#: the formats of a template: those of the result and the steps above; that of the result; a longer one; all inner
#: formats; long formats; the longest; the shortest possible
Formats = Literal["own", "result", "roomier", "others", "roomy", "wide", "shorter"]
Convert = Literal["", "any", "same"]
OTHERWISE = tuple(way for way in ALIGNED if way != ("toward_zero", False))


def all_bits(fmt: Format, d: Format) -> Sequence[FusedSum]:
    """Fused sums with each number of fraction bits, from 1 on."""
    return [*map(fused, range(1, max(MOST_BITS, d.precision + 8) + 1))]


def about_precision(fmt: Format, d: Format | None = None) -> Sequence[FusedSum]:
    """Fused sums with about as many bits as the format, as in most units."""
    return [*map(fused, range(fmt.precision - 4, fmt.precision + 9))]


def guarded(fmt: Format, d: Format) -> Sequence[FusedSum]:
    """Fused sums that cut the smaller term a few bits below the last place of the larger one, without a sticky bit."""
    return [fused(fmt.precision + more) for more in (-1, 0, *GUARDS)]


def wrapped(fmt: Format, d: Format) -> Sequence[FusedSum]:
    """Fused sums with few carry bits, in which large sums wrap round."""
    return [fused(total.bits_of_terms[0], carry_bits=carry) for carry in range(5) for total in all_bits(fmt, d)]


Sums = Callable[[Format, Format], Sequence[Node]]
Bits = Callable[[Format], Sequence[tuple[int | None, Mode | None]]]


def exact(fmt: Format, d: Format) -> Sequence[Node]:
    return [EXACT]


def aligned(
    sums: Callable[[Format, Format], Sequence[FusedSum]], ways: Sequence[tuple[Mode, bool]] = OTHERWISE
) -> Sums:
    """The fused sums of `sums`, with terms rounded where they are cut, or with a sticky bit."""
    return lambda fmt, d: [fused(total.bits_of_terms[0], *way) for total, way in product(sums(fmt, d), ways)]


@dataclass(frozen=True)
class Template:
    """Steps with every combination of some sums, formats and modes. `convert`: the modes in which the last step's
    result is converted to the format of d: "any" mode; "same": the step's mode and to nearest; "": no conversion.
    `bits`: the number of bits to which a sum is first rounded, and the mode of this rounding (None: the step's
    mode)."""

    formats: Formats
    sums: Sums
    modes: Sequence[Mode] = MODES
    convert: Convert = ""
    bits: Bits = lambda d: [(None, None)]

    def steps(self, formats: Sequence[Format], d: Format) -> Iterator[tuple[Step, Sequence[Mode]]]:
        """The steps, each with the modes of its result's conversion."""
        for fmt, (bits, first), mode in product(formats, self.bits(d), self.modes):
            for total in self.sums(fmt, d):
                yield (
                    Step(round_to(fmt, mode, bits, first), total),
                    MODES if self.convert == "any" else (mode, MODES[0]),
                )


TEMPLATES: Mapping[str, Template] = {
    "rounded": Template("own", exact),
    "guarded": Template(  # a few more bits are kept, without a sticky bit
        "result", exact, MODES[:2], bits=lambda d: [(d.precision + more, "toward_zero") for more in GUARDS]
    ),
    "shortened": Template("result", exact, bits=lambda d: [(bits, None) for bits in range(2, d.precision)]),
    "lengthened": Template(
        "wide", exact, convert="same", bits=lambda d: [(bits, None) for bits in range(d.precision + 1, WIDE.precision)]
    ),
    "fused": Template("own", all_bits),
    "likely_fused": Template("result", about_precision, MODES[:3]),
    "cut_short": Template("own", guarded),
    "cut_otherwise": Template("own", aligned(guarded, ALIGNED)),
    "aligned": Template("result", aligned(all_bits)),
    "wrapped": Template("result", wrapped),
    "fused_shorter": Template("shorter", lambda fmt, d: [*map(fused, range(1, fmt.precision + 9))], convert="any"),
    "aligned_shorter": Template("shorter", aligned(about_precision), convert="any"),
    "roomier": Template("roomier", exact, convert="same"),
    "roomier_fused": Template("roomier", about_precision, MODES[:3], "same"),
    "fused_roomier": Template("roomier", all_bits, MODES[:3], "same"),
    "fused_other_format": Template("others", all_bits, convert="same"),
    "aligned_other_format": Template("roomy", aligned(about_precision), convert="same"),
}  # fmt: skip

EXACTLY = ("decided", "rounded", "whole", "leaving_nearest", "short_addend")
ROUNDED = ("leaving", "guarded", "shortened", "inserted", "stored", "fixed", "fixed_products")
#: the tiers of each kind of step: templates, and methods of steps.StepAxes
ORDER: Mapping[str, Sequence[str]] = {
    "exact": (*EXACTLY, "other_format", *ROUNDED),
    "binary": (
        *EXACTLY, "decided_otherwise", "other_format", "cut_short", "cut_otherwise", *ROUNDED, "lengthened", "fused",
        "aligned", "unrounded",
    ),
    "fused": (
        "decided", "decided_otherwise", "fused", "fused_shorter", "aligned_shorter", "unrounded", "fused_roomier",
        "aligned", "rounded_first", "wrapped", "inserted", "one_lane", "short_addend", "fused_other_format", "grouped",
        "aligned_other_format", "rounded_first_otherwise", "rounded_longer",
    ),
    "fused, alone": (  # without the terms that join the products
        "decided", "decided_otherwise", "fused", "fused_shorter", "aligned_shorter", "unrounded", "fused_roomier",
        "aligned", "rounded_first", "nested", "wrapped", "rounded_first_otherwise", "rounded_longer",
        "inserted", "one_lane", "fused_other_format", "grouped", "aligned_other_format",
    ),
    "any": ("likely", "likely_fused", "likely_roomier"),
    "any, few": ("likely", "likely_fused", "other_format", "fused", "aligned"),
}  # fmt: skip
LIKELY = {"exact": 8, "binary": 9, "fused": 10, "any": 6}  # by kind: the number of first tiers, which have most units
