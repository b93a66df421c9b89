"""Forms: the steps of a matrix product around the sum of its products: the conversion of inputs, the start of the sum,
and the steps from the sum to the result. The forms near to given results are found numerically, before any plan is
tried."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, islice, product

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.order.probe import SUMS
from mmaprobe.queries.plans.recorded import Sample, within_ends
from mmaprobe.queries.plans.zero_points import with_zero_point
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format, format_named
from mmaprobe.smtmodel.arithmetic.rounding import Mode
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.evaluate.numbers import format_of, in_f64, type_of
from mmaprobe.smtmodel.evaluate.tiles import Elementwise, Matrix
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.nodes import Constant, Element, ExactSum, Literal, Node, Product, Relu, Round
from mmaprobe.smtmodel.nodes.given import Given
from mmaprobe.smtmodel.nodes.rewriting import replaced
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Plan, Products, Stage
from mmaprobe.smtmodel.plans.plantext import step_text
from mmaprobe.smtmodel.units.written import rounding_text

Numbers = NDArray[np.float64]
#: the conversions of elements of a and of b; None: unchanged
Conversion = tuple[Rounding | None, Rounding | None]

#: the conversions of f32 inputs by libraries, for units of a narrower format
CONVERSIONS: dict[str, tuple[Mode, ...]] = {
    "tf32": ("nearest_away", "nearest_even", "toward_zero"),
    "bf16": ("nearest_even", "toward_zero", "nearest_away"),
    "f16": ("nearest_even", "toward_zero"),
}
#: how numbers are rounded to integers by libraries, besides to nearest even
TO_INTEGERS: tuple[Mode, ...] = ("nearest_away", "toward_zero", "down")
HALF = Literal(0x3F000000, FORMATS["f32"])
NARROW = ("f16", "bf16")  # formats in which a sum is stored before further steps
USUAL = {f"round({name}, nearest_even)" for name in ("f16", "bf16", "f32", "f64")}  # roundings left out of names
STORED = ("f16", "bf16", "f32")  # formats in which separate sums are kept before they are added in a wider one
NEAR = 4.0  # a form may be this many times as far from the results as the nearest form, as root mean square
ALIKE = 1.5  # forms whose distances are within this factor are tried in the order of likelihood
DECIDED = 2.0  # so are forms this many standard errors from the nearest, as narrow results differ in few elements
MOST_FORMS = 24  # the most forms that are tried for one format of sums
MOST_OF_INTEGERS = 96  # of integers, for which each step after the sum may be in f32 or f64
DIGITS, LONG = 4, 6  # decimal digits of common factors, and of factors that only all results together determine
CUT = 2.0**-21  # share of a factor by which truncated f32 sums change its estimate from all results
SIDES = range(1, 4097)  # sizes of matrices and heads, whose roots and inverses are factors
SAMPLED = 5.0  # a factor may be this many standard errors from its estimate
BIASED = 2.0**-16  # share of a factor by which a common factor may differ from its estimate, as sums are truncated
ROUNDED = 2.0**-24  # share of a product with a factor that steps before the last rounding change
FACTORS = 3  # the most factors near to a number that are tried
ENOUGH = 8  # finite results, at least, for a search of forms
CUTS: dict[str, tuple[Mode, ...]] = {  # formats of inputs that may be rounded to fewer bits, and how
    "f64": ("toward_zero", "nearest_even"),
    "f32": ("toward_zero", "nearest_even", "nearest_away"),
    "bf16": ("toward_zero", "nearest_even", "nearest_away"),
    "f16": ("toward_zero", "nearest_even", "nearest_away"),
}
SLIGHT = 2.0**6  # a loss of up to this many units in the last place of sums may be due to the sums
LOST = 0.2  # relative loss by rounding one side, as root mean square, in units of the last place kept
PLACES = 2  # by how many places the estimate of the last place kept may be wrong
CLEARER = 0.75  # the error with a cut of bits is at most this share of the error without it
KEPT = 16.0  # an unexplained error within this factor of the loss of storing sums may be due to storing
HOPELESS = 4 * NEAR  # a conversion with this many times the error of the best conversion is not tried


@dataclass(frozen=True)
class Form:
    """The steps around a sum in a format. `convert`: the roundings of the inputs; `start`: c or zero; `end`: the
    expression of the result, in which `Given(0, format)` is the sum, and c may occur."""

    asked: Signature
    format: Format
    convert: Conversion
    start: Element | Constant
    end: Node

    @property
    def taken(self) -> tuple[Format, Format]:
        """The formats of a and b for the units: if one side alone is rounded, or the sides are rounded to a format of
        no unit, the numbers stay in the wider format."""
        how, other = self.convert
        if how is None or how != other or how.format.name not in CONVERSIONS:
            return self.asked.a, self.asked.b
        return how.format, how.format

    def plan(self, stage: Stage) -> Plan | None:
        """The plan with a stage as its sum; None if the formats do not fit."""
        asked = self.asked
        if stage.d != self.format:
            return None
        with suppress(ParameterError):
            total = Products(stage, self.start)
            result = replaced(self.end, lambda node: total if isinstance(node, Given) else None)
            return named(Plan(asked.a, asked.b, asked.c, result, *self.convert))
        return None

    def sum_of(self, stage: Stage) -> Plan | None:
        """The plan of the sum alone."""
        asked = self.asked
        with suppress(ParameterError):
            return Plan(asked.a, asked.b, asked.c, Products(stage, self.start), *self.convert)
        return None

    @cached_property
    def _ended(self) -> Elementwise:
        c = Given(1, self.asked.c)
        end = replaced(self.end, lambda node: c if isinstance(node, Element) else None)
        return Elementwise(end, (self.format, self.asked.c))

    def ended(self, sums: Matrix, c: Matrix) -> Matrix:
        """The results for patterns of sums and of c."""
        if isinstance(self.end, Given):
            return sums
        return self._ended.of((sums, c)).astype(np.uint64)


def form_of(asked: Signature, plan: Plan) -> Form:
    """The form of a plan of one sum, from which `Form.plan` makes the plan again."""
    (total,) = plan.sums
    assert isinstance(total.start, Element | Constant)
    hole = Given(0, total.stage.d)
    end = replaced(plan.result, lambda node: hole if isinstance(node, Products) else None)
    return Form(asked, hole.format, (plan.convert_a, plan.convert_b), total.start, end)


def named(plan: Plan) -> Plan:
    """The plan, with a name from its text: the conversions of inputs, roundings other than to nearest even or to a
    format of results, and IEEE operations with sums wider than most units'."""
    out = plan.result.rounding.mode if isinstance(plan.result, Round) else "nearest_even"
    hows = {"a": plan.convert_a, "b": plan.convert_b}
    both = {"inputs": plan.convert_a} if plan.convert_a == plan.convert_b else hows
    inputs = "".join(f", {side} rounded to {how.format.name}, {how.mode}" for side, how in both.items() if how)
    result = "" if out == "nearest_even" else f", result rounded {out}"
    roundings = [*hows.values(), plan.result.rounding if isinstance(plan.result, Round) else None]
    usual = {*USUAL, *(rounding_text(how) for how in roundings if how)}
    step, every = step_text(plan)
    others = "".join(f", {name}: {text}" for name, text in every.items() if text not in usual)
    wide = (one for one in dict.fromkeys(plan.models) if not any(fmt.holds(one.d) for fmt in (plan.d, SUMS)))
    wider = "".join(f", {model.reference}" for model in wide if model.reference.startswith("ieee/"))
    return replace(plan, reference=f"{step}{inputs}{result}{others}{wider}")


def with_sums(plan: Plan, change: Callable[[Products], Products]) -> Plan:
    """The plan with other sums, named anew."""
    result = replaced(plan.result, lambda node: change(node) if isinstance(node, Products) else None)
    return named(replace(plan, result=result))


def plain(asked: Signature, fmt: Format, convert: Conversion = (None, None)) -> Iterator[Form]:
    """The usual forms of a sum: rounded once, c at its start; and c added at its end."""
    hole, out = Given(0, fmt), Rounding(asked.d)
    end = hole if fmt == asked.d else Round(hole, out)
    yield Form(asked, fmt, convert, Element("c") if asked.addend else Constant(), end)
    if asked.addend:
        yield Form(asked, fmt, convert, Constant(), Round(ExactSum((hole, Element("c"))), out))


@np.errstate(all="ignore")
def forms_of(asked: Signature, sample: Sample, zero_point: int = 0) -> list[Form]:
    """The forms near to the results of a sample, for the possible formats of sums: the nearest first, and of equally
    near forms the likeliest first; if too few results are finite, all usual forms. Last come the usual forms of sums in
    a format of fewer bits than the results', if that format holds all results. `zero_point`: what integer results are
    for sums of 0."""
    integers = ("int32",) if asked.of_integers else ()
    names = dict.fromkeys((*integers, "f32", asked.d.name, *(("f64",) if asked.d.name in ("f32", "f64") else ())))
    seen = _Seen.of(asked, sample, zero_point)
    near = [*chain.from_iterable(_near(asked, FORMATS.get(name, asked.d), seen) for name in names)]
    fewer = None if seen is None else seen.fewer_bits
    return near if fewer is None else [*near, *plain(asked, fewer)]


@np.errstate(all="ignore")
def told_sums(asked: Signature, sample: Sample, sums: NDArray[np.int64], zero_point: int = 0) -> NDArray[np.int64]:
    """Those of some exact sums whose results narrow the factors down that the results of a sample admit."""
    if (seen := _Seen.of(asked, sample, zero_point)) is None or not (spans := seen.spans(seen.sums + seen.c)):
        return sums[:0]
    differ = np.zeros(sums.shape, np.bool_)
    for mode, *ends in spans:
        least, most = (_rounded_to(np.asarray(sums * end, np.float64), Rounding(asked.d, mode)) for end in ends)
        differ |= least != most
    told: NDArray[np.int64] = sums[differ & ((sums > 0) | (not seen.rectified))]
    return told


@np.errstate(all="ignore")
def stored_of(asked: Signature, sample: Sample, forms: Sequence[Form], zero_point: int = 0) -> list[Format]:
    """The formats narrower than the results' in which sums of runs may be stored before their addition. If summation
    cannot explain the median error of the nearest forms: the formats whose rounding loses about as much; otherwise: the
    formats with as many fraction bits as all results use, if that is fewer than the results' format has."""
    if (seen := _Seen.of(asked, sample, zero_point)) is None or not forms:
        return []
    firsts = {form.format: form for form in reversed(forms)}.values()
    kept = (
        seen.d[seen.finite] > 0 if seen.rectified else slice(None)
    )  # results that an activation sets to 0 lose nothing
    squares = [float(np.median(seen.squares(form, seen.converted(form.convert))[kept])) for form in firsts]
    lost = min(squares) ** 0.5 / float(np.mean(seen.d[seen.finite][kept] ** 2)) ** 0.5
    some = [fmt for name in STORED if (fmt := FORMATS[name]).fraction < asked.d.fraction]
    near = [fmt for fmt in some if 1 / KEPT < lost / (LOST * 2.0**-fmt.fraction) < KEPT]
    fewer = seen.fewer_bits  # perhaps also the format of the sums of runs
    own = [fmt for fmt in some if fewer is not None and fmt.fraction == fewer.fraction]
    return near if lost > _usual_loss(asked.d) else own


def _near(asked: Signature, fmt: Format, seen: _Seen | None) -> list[Form]:
    usual = list(plain(asked, fmt))
    if seen is None:
        return usual
    apart: list[tuple[float, Form, Numbers]] = []
    for convert, exact in seen.conversions:
        pairs = product(seen.scalars(exact), _hows(fmt))
        every = (_every(asked, fmt, convert, scalars, seen.rectified, how) for scalars, how in pairs)
        for form in dict.fromkeys(seen.with_zero_point(chain.from_iterable(every))):
            squares = seen.squares(form, exact)
            size = float(np.sqrt(np.mean(squares)))
            if np.isfinite(size):
                apart.append((size, form, squares))
    nearest, _, best = min(apart, key=lambda one: one[0], default=(0.0, None, np.zeros(1)))
    least = max(nearest, np.finfo(np.float64).tiny)
    near = [
        (0 if alike else int(np.log(max(size / least, 1)) / np.log(ALIKE)), number, form)
        for number, (size, form, squares) in enumerate(apart)
        if (alike := _alike(squares - best)) or size <= NEAR * least
    ]
    most = MOST_OF_INTEGERS if asked.of_integers else MOST_FORMS
    return [form for _, _, form in sorted(near)[:most]] or usual


def _alike(more: Numbers) -> bool:
    """Whether the mean of some numbers is zero or less, within `DECIDED` standard errors."""
    return bool(more.mean() <= DECIDED * more.std() / np.sqrt(more.size))


def _usual(asked: Signature) -> Iterator[Conversion]:
    """No conversion of inputs, then the conversions by libraries."""
    yield None, None
    if asked.a.name == asked.b.name == "f32":
        for name, modes in CONVERSIONS.items():
            yield from ((how, how) for how in (Rounding(FORMATS[name], mode) for mode in modes))


def _cuts(asked: Signature, lost: float) -> Iterator[Conversion]:
    """Roundings of one side, or of both, to fewer bits, which lose about the share `lost` of a product."""
    place = round(-np.log2(lost / LOST))
    for bits in range(max(1, place - PLACES), place + PLACES + 1):
        sides = [[*_cut(fmt, bits)] for fmt in (asked.a, asked.b)]
        yield from ((how, None) for how in sides[0])
        yield from ((None, how) for how in sides[1])
        yield from ((how, how) for how in sides[0] if how in sides[1])


def _usual_loss(d: Format) -> float:
    """The share of results that sums, and the rounding of results to a format, may lose."""
    return max(SLIGHT * 2.0 ** -max(d.fraction, FORMATS["f32"].fraction), LOST * 2.0**-d.fraction / CLEARER)


def _cut(fmt: Format, bits: int) -> Iterator[Rounding]:
    """Roundings of a format's numbers to `bits` bits of fraction."""
    for mode in CUTS.get(fmt.name, ()) if bits < fmt.fraction else ():
        own = (FORMATS[name] for name in CONVERSIONS if FORMATS[name].fraction == bits)
        yield from (Rounding(one, mode) for one in dict.fromkeys((_of_bits(fmt, bits), *filter(fmt.holds, own))))


def _of_bits(fmt: Format, bits: int) -> Format:
    """The format with the exponents of `fmt` and `bits` bits of fraction."""
    rows = {(row.exponent, row.fraction, row.specials): row for row in FORMATS.values()}
    return rows.get((fmt.exponent, bits, "ieee")) or format_named(f"e{fmt.exponent}m{bits}_ieee")


def _hows(fmt: Format) -> list[Rounding]:
    """How steps after a sum of a format are rounded."""
    names = ("f32", "f64") if fmt.is_integer else ("f64" if fmt.name == "f64" else "f32",)
    return [Rounding(FORMATS[name]) for name in names]


def _every(
    asked: Signature, fmt: Format, convert: Conversion, scalars: tuple[float, float], rectified: bool, how: Rounding,
) -> Iterator[Form]:  # fmt: skip
    """The forms of a sum of a format, the likeliest first. `scalars`: alpha, beta; `how`: the rounding of steps after
    the sum."""
    hole, c, out, form = Given(0, fmt), Element("c"), Rounding(asked.d), partial(Form, asked, fmt, convert)
    stored = [Rounding(FORMATS[name]) for name in dict.fromkeys((asked.d.name, *NARROW)) if name in FORMATS]
    stored = [one for one in stored if one.format != fmt and fmt.holds(one.format)]
    kept = [*stored, out] if fmt.is_integer and how.format.holds(asked.d) and not asked.d.is_integer else stored
    alpha, beta = scalars
    others = TO_INTEGERS if asked.d.is_integer and alpha != 1 else ()  # a sum of integers is an integer
    outs = [out, *(Rounding(asked.d, mode) for mode in others)]

    def ended(start: Element | Constant, terms: Iterable[Node]) -> Iterator[Form]:
        for term in terms:
            if term == hole and fmt == asked.d and not rectified:
                yield form(start, hole)
                continue
            for one, last in product(_rounded(term, how, out), outs):
                yield form(start, Round(Relu(one) if rectified else one, last))
            if others and not rectified:  # halves are rounded up: a half is added, and the sum cut
                yield form(start, Round(ExactSum((term, HALF)), Rounding(asked.d, "down")))

    def scaled(alpha: float, beta: float, total: Node, at: Node | None) -> Iterator[Node]:
        """Alpha times the sum, plus beta times c: each product fused with the addition, rounded, or stored as well."""
        if at is None:
            yield from _times(alpha, total, how)
        else:
            for one, end in product(_times(alpha, total, how, kept), _times(beta, at, how, [out])):
                yield ExactSum((one, end))

    converted = [how] if fmt.is_integer and not how.format.holds(fmt) else []
    holes: list[Node] = [hole, *(Round(hole, one) for one in (*converted, *stored))]
    if not asked.addend or alpha == beta:
        start = c if asked.addend else Constant()
        for total in holes[: 1 + (bool(converted) and asked.addend and alpha != 1)]:
            yield from ended(start, scaled(alpha, 0, total, None))
    together = fmt.is_integer and asked.c.is_integer and alpha == beta != 1  # integers are added before a factor
    for total in holes if asked.addend and beta and not together else ():
        yield from ended(Constant(), scaled(alpha, beta, total, c))
    for total in () if asked.addend and beta else holes[0 if asked.addend else 1 :]:
        if alpha == 1 and total == Round(hole, out):  # already rounded to the format of the results
            continue
        yield from ended(Constant(), scaled(alpha, 0, total, None))
    if (alpha, beta) in ((1, 0), (1, 1)) and fmt != asked.d and not rectified:
        start = c if beta else Constant()
        yield form(start, Round(hole, Rounding(asked.d, "toward_zero")))


def _rounded(term: Node, how: Rounding, out: Rounding) -> list[Node]:
    """A term unchanged, and the term rounded before further steps."""
    return [term] if isinstance(term, Given | Round) or how.format == out.format else [term, Round(term, how)]


def _times(scalar: float, node: Node, how: Rounding, stored: Iterable[Rounding] = ()) -> list[Node]:
    """A scalar times a number: fused with the next operation, and rounded; then stored in narrower formats."""
    if scalar == 1:
        return [node]
    pattern = np.array(scalar, np.float64 if how.format.name == "f64" else np.float32)
    times = Product(Literal(int(pattern.view(f"u{pattern.itemsize}")), how.format), node)
    ways: list[Node] = [times, Round(times, how)] if np.frexp(pattern)[0] != 0.5 else [times]
    return [*ways, *(Round(ways[-1], one) for one in stored if one != how)]


@dataclass(frozen=True)
class _Seen:
    """The numbers of a sample's inputs and results, and which results are finite. `d`: the results less their zero
    point, which is 0 unless they are integers."""

    asked: Signature
    sample: Sample
    sums: Numbers
    c: Numbers
    d: Numbers
    finite: NDArray[np.bool_]
    zero_point: int

    @classmethod
    def of(cls, asked: Signature, sample: Sample, zero_point: int = 0) -> _Seen | None:
        """The numbers of a sample; None where too few numbers are finite."""
        a, b, c, d = sample.numbers(asked)
        with np.errstate(all="ignore"):
            sums = a @ b
        finite = np.isfinite(np.square(sums) + np.square(c) + np.square(d)) & (sums != 0)
        finite &= within_ends(d, asked.d)
        d = d - zero_point
        whole = finite.sum() >= ENOUGH and d[finite].any()
        return cls(asked, sample, sums, c, d, finite, zero_point) if whole else None

    def with_zero_point(self, forms: Iterable[Form]) -> Iterator[Form]:
        """Some forms; of results with a zero point, these forms with steps that add it."""
        for form in forms:
            ends = with_zero_point(form.end, self.zero_point) if self.zero_point else (form.end,)
            yield from (replace(form, end=end) for end in ends)

    @property
    def rectified(self) -> bool:
        """Whether no result is negative, though sums are."""
        return bool((self.d[self.finite] >= 0).all() and (self.sums[self.finite] < 0).sum() >= ENOUGH)

    @cached_property
    def conversions(self) -> list[tuple[Conversion, Numbers]]:
        """Possible conversions of inputs, each with the exact sums of converted inputs: the conversions of libraries,
        or conversions to fewer bits of one or both sides if these explain more of the results."""
        usual = {convert: self.converted(convert) for convert in _usual(self.asked)}
        left = {convert: self.left(exact) for convert, exact in usual.items()}
        least, size = min(left.values()), float(np.sqrt(np.mean(self.d[self.finite] ** 2)))
        lossy = least > _usual_loss(self.asked.d) * size
        for convert in dict.fromkeys(_cuts(self.asked, left[None, None] / size) if lossy else ()):
            if convert not in left and self.left(exact := self.converted(convert)) < CLEARER * least:
                usual[convert], left[convert] = exact, self.left(exact)
        most = HOPELESS * max(min(left.values()), np.finfo(np.float64).eps * size)
        return [(convert, exact) for convert, exact in usual.items() if not left[convert] > most]

    @property
    def fewer_bits(self) -> Format | None:
        """The format of the fewest bits that holds all results; None if this is the format of the results."""
        fmt, every = self.asked.d, int(np.bitwise_or.reduce(self.sample.d[np.isfinite(self.d)]))
        zeros = (every & -every).bit_length() - 1
        return _of_bits(fmt, fmt.fraction - zeros) if fmt.name in CUTS and 0 < zeros < fmt.fraction else None

    def converted(self, convert: Conversion) -> Numbers:
        """The exact sums of converted inputs."""
        sides = in_f64(self.sample.a, self.asked.a), in_f64(self.sample.b, self.asked.b)
        a, b = (side if how is None else _rounded_to(side, how) for side, how in zip(sides, convert, strict=True))
        with np.errstate(all="ignore"):
            return np.asarray(a @ b)

    def left(self, exact: Numbers) -> float:
        """The root mean square error of the best multiples of exact sums and of c."""
        _, _, left = self._fitted(exact)
        return float(np.sqrt(np.mean(left**2))) if len(left) else float("inf")

    @cached_property
    def _weights(self) -> Numbers:
        """What each result counts in a fit: a sum of integers is exact, so that the error is that of its rounding,
        which is relative to the result."""
        if not self.asked.of_integers or self.asked.d.is_integer:
            return np.ones_like(self.d)
        return 1 / np.maximum(np.abs(self.d), 2.0**self.asked.d.emin)

    def spans(self, sums: Numbers) -> list[tuple[Mode, float, float]]:
        """From which to which factor the results are the products with exact sums, rounded: the factors that all
        results admit, for each way of rounding for which there are any."""
        d = self.d
        errors: dict[Mode, tuple[Numbers, Numbers]]
        if self.asked.d.is_integer:
            half, zeros = np.full_like(d, 0.5), np.zeros_like(d)
            cut = np.where(d > 0, zeros, -1), np.where(d < 0, zeros, 1)
            errors = {"nearest_even": (-half, half), "toward_zero": cut, "down": (zeros, 2 * half)}
        else:
            unit = np.maximum(np.abs(d), 2.0**self.asked.d.emin) * 2.0**-self.asked.d.fraction
            errors = {"nearest_even": (-unit / 2, unit / 2), "toward_zero": (-unit, unit)}
        known = self.finite & (np.abs(sums) <= float(FORMATS["int32"].most)) & (sums != 0)
        known &= (d > 0) if self.rectified else True
        spans = list[tuple[Mode, float, float]]()
        for mode, (low, high) in errors.items() if known.any() else ():
            ends = np.sort([((d + low) / sums)[known], ((d + high) / sums)[known]], axis=0)
            least, most = float(ends[0].max()), float(ends[1].min())
            slack = ROUNDED * max(abs(least), abs(most))
            if least - slack <= most + slack:
                spans.append((mode, least - slack, most + slack))
        return spans

    @property
    def _unrounded(self) -> list[Numbers]:
        """By how much results may be smaller than numbers that were rounded to them, in the mean: integers that were
        rounded toward zero, or down, are half of one too small."""
        zeros = np.zeros_like(self.d)
        return [zeros, *([np.sign(self.d) / 2, zeros + 0.5] if self.asked.d.is_integer else [])]

    def _fitted(self, exact: Numbers, moved: Numbers | float = 0.0) -> tuple[Numbers, NDArray[np.floating], Numbers]:
        """The terms of the results (exact sums, and c if there is one), their factors by least squares, and the
        remaining errors; of results that are larger by `moved`."""
        d = self.d + moved
        chosen = self.finite & np.isfinite(exact) & ((self.d > 0) if self.rectified else True)
        with_c = self.asked.addend and bool(self.c[chosen].any())
        terms = np.stack([exact[chosen], *([self.c[chosen]] if with_c else [])], axis=1) * self._weights[chosen, None]
        d = (d * self._weights)[chosen]
        solution, *_ = np.linalg.lstsq(terms, d, rcond=None)
        return terms, solution, np.asarray(d - terms @ solution)

    def squares(self, form: Form, exact: Numbers) -> Numbers:
        """The squared distances of a form's results, with exact sums, from the sample's."""
        with np.errstate(all="ignore"):
            sums = _rounded_to(exact + self.c if form.start == Element("c") else exact, Rounding(form.format))
            apart = (_value(form.end, sums, self.c) - self.zero_point - self.d)[self.finite]
            return np.asarray(apart**2)

    def scalars(self, exact: Numbers) -> list[tuple[float, float]]:
        """Alpha and beta such that the results are about alpha times the exact sums plus beta times c: 1 and 1, or 1
        and 0, if the numbers admit these, or the simplest factors that they admit."""
        if self.asked.of_integers and (not self.asked.addend or self.asked.c.is_integer):
            factors = dict.fromkeys(chain.from_iterable(_between(*ends) for _, *ends in self.spans(exact + self.c)))
            if factors:
                return [(one, one if self.asked.addend else 0.0) for one in factors]
        every = [self._fitted(exact, moved) for moved in self._unrounded]
        terms, solution, left = min(every, key=lambda fitted: float(np.sum(fitted[2] ** 2)))
        with np.errstate(all="ignore"):
            errors = [float(np.sqrt(np.mean(left**2)) / np.sqrt(np.mean(side**2))) for side in terms.T]
        count = np.sqrt(len(left))
        near = [_simple(float(x), error, SAMPLED * error / count) for x, error in zip(solution, errors, strict=True)]
        betas = near[1] if len(near) > 1 else [1.0 if self.asked.addend else 0.0]
        return list(product(near[0], betas))


def _between(least: float, most: float) -> Iterator[float]:
    """Factors from `least` to `most`, the simplest first."""
    middle = (least + most) / 2
    digits = (float(f"{middle:.{count}g}") for count in range(DIGITS + 1, 10))
    longer = islice((one for one in digits if least <= one <= most), 1)
    near = (one for one in _factors(middle) if least <= one <= most)
    single = np.float32(middle)
    steps = (single, np.nextafter(single, np.float32(np.inf)), np.nextafter(single, np.float32(-np.inf)))
    beside = (float(one) for one in steps if least <= one <= most)
    yield from dict.fromkeys((*islice(near, FACTORS), *longer, float(single), *beside))


def _simple(value: float, most: float, least: float) -> list[float]:
    """Factors near a value, the simplest first. `most`: the error of an estimate from one result; `least`: from all
    results, not counting that truncated sums are nearer to zero."""
    most = max(most, abs(value) * BIASED)
    if not value or abs(value) <= least:
        return [0.0]
    if abs(value - 1) <= most:
        return [1.0]
    near = [one for error in (least, most) for one in _factors(value) if abs(one - value) <= error]
    longer = (float(f"{value:.{digits}g}") for digits in range(DIGITS + 1, LONG + 1))
    exact = islice((one for one in longer if abs(one - value) <= max(least, abs(value) * CUT)), 1)
    return list(dict.fromkeys(near))[:FACTORS] or [*exact, float(np.float32(value))]


def _factors(value: float) -> Iterator[float]:
    """Possible factors near a value: numbers of few digits, and inverses and roots of sizes."""
    yield from (float(f"{value:.{digits}g}") for digits in (1, 2))
    yield 2.0 ** round(np.log2(abs(value))) * np.sign(value)
    size = abs(value)
    if 1 / SIDES[-1] <= 2 * size <= 4 * SIDES[-1]:  # of others no square need be a number
        for near in (round(1 / size), round(1 / size**2)):
            if near in SIDES:
                yield float(np.sign(value)) * (1 / near if near == round(1 / size) else near**-0.5)
        if round(size**2) in SIDES:
            yield float(np.sign(value)) * round(size**2) ** 0.5
    yield from (float(f"{value:.{digits}g}") for digits in range(3, DIGITS + 1))


def _value(node: Node, sums: Numbers, c: Numbers) -> Numbers:
    """The numbers of the expression `end` of a form in f64, for the numbers of sums and of c. Not bit for bit:
    for bits, the operations of each expression would have to be recorded first."""
    match node:
        case Given():
            return sums
        case Literal():
            return in_f64(np.array(node.pattern), node.format)
        case Product(left, right):
            return _value(left, sums, c) * _value(right, sums, c)
        case ExactSum(items):
            return np.asarray(sum(_value(item, sums, c) for item in items))
        case Relu():
            return np.maximum(_value(node.term, sums, c), 0)
        case Round():
            return _rounded_to(_value(node.term, sums, c), node.rounding)
    assert node == Element("c"), f"no form ends so: {node.kind}"
    return c


def _rounded_to(numbers: Numbers, how: Rounding) -> Numbers:
    """Numbers rounded: by NumPy, where NumPy has this rounding."""
    if how.format.is_integer and how.mode == "nearest_even":
        least, most = map(float, how.format.interval)
        return np.asarray(np.clip(np.rint(numbers), least, most))
    kind = type_of(how.format)
    if how.mode == "nearest_even" and format_of(kind) == how.format:
        with np.errstate(all="ignore"):  # numbers beyond the format are infinities
            return numbers.astype(kind).astype(np.float64)
    wide = FORMATS["f64"]
    rounded = Elementwise(Round(Round(Given(0, wide), how), Rounding(wide)), (wide,))
    return in_f64(rounded.of((numbers.view(np.uint64),)), wide)
