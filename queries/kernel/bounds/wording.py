"""Forms as text: coefficients rounded up to a few digits, magnitudes in the names of operands."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction

from mmaprobe.queries.kernel.bounds.forms import ERROR, EXACT, ONE, SIZE, Atom, Factor, Form, Monomial
from mmaprobe.smtmodel.arithmetic.display import exponent_of
from mmaprobe.smtmodel.nodes import Node, Product, Relu, Segment
from mmaprobe.smtmodel.nodes.element import flushed_in
from mmaprobe.smtmodel.nodes.known import power
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.units.unit import Unit

SHORT = 1 << 9  # numerators that are printed as they are
DIGITS = 10**4
GROWTH, COUNT = "growth", "count"  # the names of G(n) and of K among magnitudes
SIGNLESS = {ERROR: "E", SIZE: "A", COUNT: "K"}  # magnitudes that are not those of a number with a sign
GROUPS = 3  # up to this number of coefficients of like atoms are printed separately; of more, the largest


def up_text(value: Fraction) -> str:
    """A nonnegative number as a multiple of a power of two; one with many digits is rounded up."""
    return _text(value, lambda scaled: -(-scaled // 1))


def down_text(value: Fraction) -> str:
    """A nonnegative number as `up_text` writes it, but rounded down."""
    return _text(value, lambda scaled: scaled // 1)


def _text(value: Fraction, whole: Callable[[Fraction], int]) -> str:
    if not value:
        return "0"
    place = (value.numerator & -value.numerator).bit_length() - (value.denominator & -value.denominator).bit_length()
    rest = value / power(place)
    if rest.denominator == 1 and rest.numerator < SHORT:
        return _times(str(rest.numerator), place)
    place = exponent_of(value)
    digits = whole(value * DIGITS / power(place))
    if digits == 2 * DIGITS:
        return _times("1", place + 1)
    return _times(f"{float(digits) / DIGITS:.4f}", place)


def up_decimal(value: Fraction | float, digits: int) -> str:
    """A nonnegative number in decimals, rounded up to `digits` digits: what is at most the number is at most this."""
    exact, context = Fraction(value), Context(prec=digits, rounding=ROUND_CEILING)
    quotient = context.divide(Decimal(exact.numerator), Decimal(exact.denominator))
    return f"{float(quotient):.{digits}g}"


def up_float(value: Fraction) -> float:
    """The smallest f64 that is not below a number."""
    near = float(value)
    return near if Fraction(near) >= value else math.nextafter(near, math.inf)


def _times(number: str, place: int) -> str:
    if -6 <= place <= 6 and number.isdigit() and place >= 0:
        return str(int(number) << place)
    return f"2^{place}" if number == "1" else f"{number}*2^{place}" if place else number


def form_text(form: Form) -> str:
    """A form, or an upper bound of it, on one line: atoms that differ only in their places are printed as a sum."""
    groups: dict[tuple[str, ...], list[tuple[Atom, Fraction]]] = {}
    for atom, value in form.parts.items():
        groups.setdefault(_shape(atom), []).append((atom, value))
    order = sorted(groups, key=lambda shape: (shape == _shape(ONE), shape[0] == "max"))
    texts = [text for shape in order for text in _texts(groups[shape])]
    return " + ".join(texts) or "0"


def _texts(members: Sequence[tuple[Atom, Fraction]]) -> list[str]:
    values = sorted({value for _, value in members}, reverse=True)
    if len({up_text(value) for value in values}) > GROUPS:
        values = values[:1]
    texts = []
    for value in values:
        atoms = [atom for atom, own in members if own == value or len(values) == 1]
        coefficient = "" if value == 1 else up_text(value)
        text = _atoms_text(atoms)
        texts.append(f"{coefficient} * {text}" if coefficient and text else coefficient or text or "1")
    return texts


def _shape(atom: Atom) -> tuple[str, ...]:
    """A key, equal for atoms that are printed together."""
    return ("max", str(sorted(map(sorted, atom)))) if len(atom) > 1 else _kind(next(iter(atom)))


def _kind(item: Monomial) -> tuple[str, ...]:
    """The names of its factors; and their places, if its elements of a and b have different ones."""
    alike = len({factor[1:3] for factor in item if factor.name in ("a", "b")}) < 2
    return "".join(map(_name, item)), "" if alike else str(item)


def _name(factor: Factor) -> str:
    return f"|{factor.name}{'°' if factor.raised else ''}|"


def _atoms_text(atoms: Sequence[Atom]) -> str:
    if atoms == [ONE]:
        return ""
    if len(atoms) == 1 and len(atoms[0]) > 1:
        return _largest_text(atoms[0])
    items = [item for atom in atoms for item in atom]
    if len(items) == 1:
        return _item_text(items[0], "")
    return f"sum {_item_text(items[0], _places(items))}"


def _largest_text(atom: Atom) -> str:
    kinds: dict[tuple[str, ...], list[Monomial]] = {}
    for item in sorted(atom):
        kinds.setdefault(_kind(item), []).append(item)
    return (
        f"max({', '.join(_item_text(items[0], _places(items) if len(items) > 1 else '') for items in kinds.values())})"
    )


def _places(items: Sequence[Monomial]) -> str:
    numbers = sorted({item[0].offset for item in items})
    return f"k={numbers[0]}..{numbers[-1]}" if numbers == list(range(numbers[0], numbers[-1] + 1)) else \
        f"k={','.join(map(str, numbers))}"  # fmt: skip


def _item_text(item: Monomial, places: str) -> str:
    return f"{_magnitude(item, summed=True)} ({places})" if places else _magnitude(item, summed=False)


def _magnitude(item: Monomial, summed: bool) -> str:
    """`summed`: elements are those of any product k."""
    parts, elements = [], any(factor.name in ("a", "b") for factor in item)
    for factor in item:
        if factor.name in SIGNLESS:
            parts.append(SIGNLESS[factor.name])
            continue
        single = factor.name in ("c", EXACT) or (elements and factor.name.startswith("scale"))  # the product's own
        place = "" if single else "_k" if summed else f"_{_place(factor)}"
        parts.append(f"{factor.name}{place}{'°' if factor.raised else ''}")
    text = " ".join(parts)
    return text if all(factor.name in SIGNLESS for factor in item) else f"|{text}|"


def _place(factor: Factor) -> str:
    loops = [f"{'' if step == 1 else step}{'ijklmn'[level % 6]}" for level, step in factor.factors]
    return "+".join([*loops, *([str(factor.offset)] if factor.offset or not loops else [])])


def sum_text(form: Form, named: Callable[[Monomial], str] | None = None) -> str:
    """A bound of a plan, rounded up, on one line: a magnitude of a product means the sum over all products, and each
    coefficient is a polynomial in G."""
    named = named or _sum_name
    kinds: dict[Monomial, dict[int, Fraction]] = {}
    for atom, value in form.flat().parts.items():
        (item,) = atom
        kind = tuple(factor for factor in item if factor.name != GROWTH)
        kinds.setdefault(kind, {})[len(item) - len(kind)] = value
    order = sorted(kinds, key=lambda kind: (not kind, "a" not in {factor.name for factor in kind}, -len(kind), kind))
    return " + ".join(_sum_part(named(kind), kinds[kind]) for kind in order) or "0"


def largest_text(form: Form) -> str:
    """A bound in the largest elements of a row and of a column, as `sum_text` writes it."""
    return sum_text(
        form,
        lambda kind: " * ".join(
            f"{'max ' * (factor.name in ('a', 'b'))}{_magnitude((factor,), summed=True)}"
            for factor in sorted(kind, key=lambda factor: factor.name != COUNT)
        ),
    )


def _sum_name(kind: Monomial) -> str:
    """A magnitude over all products."""
    summed = any(factor.name in ("a", "b") for factor in kind)
    return f"{'sum ' * summed}{_magnitude(kind, summed)}"


def _sum_part(name: str, values: dict[int, Fraction]) -> str:
    texts = [up_text(values[times]) + ("", " G", f" G^{times}")[min(times, 2)] for times in sorted(values)[::-1]]
    if len(texts) > 1 and name:
        texts = [f"({' + '.join(texts)})"]
    if not name:
        return " + ".join(texts)
    return name if texts == ["1"] else f"{texts[0]} * {name}"


def raised(unit: Unit | Plan, other_formats: Sequence[str] = ()) -> str:
    """The meaning of x° in a form; `other_formats`: a phrase for each input whose smallest normal number is that of
    another format."""
    sides = [(name, getattr(unit, name)) for name in ("a", "b", *["c"] * unit.addend)]
    integers = [f"for {name}, an integer, 2^{fmt.emin}" for name, fmt in sides if fmt.is_integer]
    besides = f" ({', '.join([*other_formats, *integers])})" if other_formats or integers else ""
    return f"x° is x, or the smallest normal number of its format{besides} where x is smaller and not zero"


def raised_in(plan: Plan) -> str:
    """The meaning of x° in a form about a plan."""
    fewer = []
    for side, name in enumerate("ab"):
        formats = [word.rounding.format for word in plan.words_read(side) if word is not None]
        if plan.least_normal(name) > getattr(plan, name).emin:
            fewer.append(f"for {name} that of {max(formats, key=lambda fmt: fmt.emin).name}")
    return raised(plan, fewer)


def premises_of(result: Node, kept: Collection[str] = (), rectified: bool = False) -> list[str]:
    """The inputs for which a bound of the error of this result holds, and its exact value, in words. `kept`: operands
    whose subnormal numbers are not zero in the exact value, though the unit reads them as zero; `rectified`: the result
    is rectified elsewhere."""
    nodes = list(walk(result))
    premises = ["inputs are finite", "no rounding overflows"]
    limits = sorted({node.limit for node in nodes if isinstance(node, Product) and node.limit is not None})
    premises += [f"no product reaches 2^{limit}" for limit in limits]
    flushed = sorted(flushed_in(result) - {*kept})
    of_all = " and ".join([", ".join(flushed[:-1]), flushed[-1]] if flushed[1:] else flushed)
    read = [f"subnormals of {of_all} as zero"] if flushed else []
    read += ["segments of significands alone"] if any(isinstance(node, Segment) for node in nodes) else []
    rectified = rectified or any(isinstance(node, Relu) for node in nodes)
    exact = f"exact is the result without rounding{', with its ReLU' * rectified}"
    exact += f" for inputs as they are read: {' and '.join(read)}" if read else ""
    return [*premises, exact] if read or rectified else premises


def premises_of_plan(plan: Plan) -> list[str]:
    """The inputs for which a bound of a plan's error holds: the premises of each of its units, in words."""
    kept = {
        name for side, name in enumerate("ab") if plan.words_read(side) != (None,)
    }  # what words lose is in the bound
    kept |= set() if plan.addend else {"c"}
    rectified = any(isinstance(node, Relu) for node in walk(plan.result))
    return sorted({text for model in plan.models for text in premises_of(model.unit.result, kept, rectified)})
