"""The arithmetic of a unit in words, line by line, derived from its nodes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from typing import TypeVar

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.arithmetic.rounding import NEAREST
from mmaprobe.smtmodel.base.digits import is_digits
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.wording import as_words, some_of
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import (
    Cancelling,
    Constant,
    Counting,
    Cut,
    Each,
    Element,
    FusedSum,
    Gate,
    GridSum,
    Node,
    Product,
    Relu,
    Repeat,
    Round,
    Running,
    Scale,
    Sum,
)
from mmaprobe.smtmodel.nodes.node import of_kind
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.nodes.sums import in_order
from mmaprobe.smtmodel.tables.reference import with_parameters
from mmaprobe.smtmodel.units.unit import Unit

INNER = ", of a rounding on the way"  # the end of a line about a rounding other than the result's
_NUMBER = re.compile("-?[0-9]+")
Kind = TypeVar("Kind", bound=Node)
#: line of a data sheet -> the parameters of families on which it depends
LINES = {
    "Operation": ("family", "group", "partials"),
    "Products": ("length", "block", "block_order"),
    "Runs on": ("family",),
    "Grid": ("family",),
    "Fraction bits": ("fraction_bits",),
    "Bits shifted out": ("align_rounding", "late_rounding"),
    "Carry bits": ("carry_bits",),
    "Exponent floor": ("exponent_floor", "floor_applies_to"),
    "Products before alignment": ("product", "product_rounding", "product_overflow"),
    "Addend": ("family", "late_fraction_bits", "late_rounding", "late_small_addend"),
    "Cut of the sum": ("late_sum_bits",),
    "Activation": (),
    "Rounding on the way": ("family", "product", "product_rounding", "late_rounding"),
    "Rounding of the result": ("output", "output_rounding"),
    "Results beyond the range": ("overflow",),
    "Zero results": ("zero_sign",),
    "Subnormal results": ("flush_outputs",),
    "Subnormal inputs": ("flush_inputs",),
    "Zero inputs": ("input_zeros",),
}
_BEYOND = {"infinity": "infinity", "saturate": "the largest finite number",
           "sat_finite": "the largest finite number, infinities too",
           "sat_propagate": "the largest finite number, infinities too where the format has none",
           "ieee": "as IEEE 754 has it for this rounding mode"}  # fmt: skip
_TINY = {
    "keep": "kept",
    "flush_after": "become zero",
    "flush_before": "tiny results become zero before they are rounded",
}
_READ = {"keep": "kept", "zero": "read as zero, with their sign", "positive_zero": "read as +0"}
_ZERO = {"ieee": "signed as IEEE 754 has it", "exact_positive": "+0 for an exact zero sum", "positive": "+0"}


def arithmetic(unit: Unit) -> list[tuple[str, str]]:
    """The lines of a data sheet about a unit's arithmetic, each as its name and text."""
    sums, grids = list(of_kind(unit.result, FusedSum)), list(of_kind(unit.result, GridSum))
    inputs = [node for node in of_kind(unit.result, Element) if not node.is_factor]
    aligned = bool(sums or grids)
    products = [node for node in of_kind(unit.result, Product) if aligned or node.limit is not None]
    others, formats = _other_roundings(unit), unit.formats
    *result, tiny = _rounding(unit.rounding, _wraps(unit)).items()
    lines = [
        ("Operation", "; ".join(_operations(unit))),
        ("Products", f"{unit.length}; {_steps(unit)}"),
        ("Fraction bits", _each(unit, sums, _fraction_bits)),
        ("Bits shifted out", _each(unit, sums, _shifted_out)),
        ("Grid", _each(unit, grids, lambda node: node.sentence())),
        ("Carry bits", _each(unit, sums, _carry_bits)),
        ("Exponent floor", _each(unit, sums, _floor)),
        ("Products before alignment", _each(unit, products, _product)),
        ("Addend", _addend(unit)),
        ("Cut of the sum", _each(unit, of_kind(unit.result, Cut), lambda node: node.sentence())),
        ("Activation", _each(unit, of_kind(unit.result, Relu), lambda node: node.sentence())),
        ("Rounding on the way", _each(unit, others, lambda node: node.sentence(), _rounded)),
        *result,
        ("Subnormal inputs", _each(unit, (one for one in inputs if _has_subnormals(formats[one.operand])), _read_tiny)),
        ("Zero inputs", _each(unit, (one for one in inputs if formats[one.operand].has_negative_zero), _read_zero)),
        tiny,
    ]
    return [(name, text) for name, text in lines if text]


def _has_subnormals(fmt: Format) -> bool:
    return fmt.subnormals and not fmt.is_integer


def _read_tiny(node: Element) -> str:
    return _READ["positive_zero" if node.positive_zeros and node.subnormals == "zero" else node.subnormals]


def _read_zero(node: Element) -> str:
    return "read as +0" if node.positive_zeros else "keep their signs"


def on_the_way(unit: Unit) -> dict[str, list[str]]:
    """For each line about the result's rounding, the texts that the line would have for the unit's other roundings."""
    steps: dict[str, list[str]] = {}
    for node in _other_roundings(unit):
        for name, text in _rounding(node.rounding).items():
            if text:
                steps.setdefault(name, []).append(text)
    return steps


def _other_roundings(unit: Unit) -> list[Round]:
    return [node for node in of_kind(unit.result, Round) if node.rounding != unit.rounding]


def _rounding(how: Rounding, wraps: bool = False) -> dict[str, str]:
    """The lines about a rounding; one that says nothing of the format is empty. `wraps`: a wrapped sum is rounded."""
    fmt = how.format
    zero = _ZERO[how.zero] if fmt.has_negative_zero else "the format's only zero"
    return {
        "Rounding of the result": f"{as_words(how.mode)}, to {fmt.name}",
        "Results beyond the range": "" if wraps and fmt.is_integer else _beyond(how),
        "Zero results": "" if fmt.is_integer else zero,
        "Subnormal results": _TINY[how.subnormals] if _has_subnormals(fmt) else "",
    }


def _beyond(how: Rounding) -> str:
    """What becomes of a finite number beyond the largest one, in this format."""
    fmt = how.format
    if fmt.is_integer:
        return "the nearest end of the format"
    if fmt.has_infinity:
        return _BEYOND["infinity" if how.stochastic and how.overflow == "ieee" else how.overflow]
    if how.beyond == "saturate":
        return _BEYOND[how.overflow]
    if not fmt.has_nan or (how.overflow == "ieee" and how.mode in ("toward_zero", "to_odd")):
        return _BEYOND["saturate"]
    every = how.overflow == "infinity" or how.stochastic or how.mode in NEAREST
    return "NaN, as the format has no infinity" if every else "NaN where IEEE 754 has infinity for this rounding mode"


def _wraps(unit: Unit) -> bool:
    """Whether the sum that is rounded to the result wraps."""
    sums = [node for node in of_kind(unit.result, FusedSum) if node.carry_bits is not None]
    return bool(sums) and unit.rounding.format.is_integer


@lru_cache(maxsize=512)
def with_value(model: Model, parameter: str, value: str) -> dict[str, str]:
    """The lines of a model with another value of a parameter; empty where the value is impossible. If the value changes
    only a rounding on the way, the line about the result's rounding is replaced by one about that rounding."""
    try:
        unit = with_parameters(model, {parameter: value}).unit
    except ParameterError:
        return {}
    lines, before, inner = dict(arithmetic(unit)), dict(arithmetic(model.unit)), on_the_way(model.unit)
    for name, texts in on_the_way(unit).items():
        other = [*(Counter(texts) - Counter(inner.get(name, [])))]
        if other and lines.get(name) == before.get(name):
            lines[name] = f"{alternatives_text(other)}{INNER}"
    return lines


def in_words(parameter: str, value: str) -> str:
    """A value of a parameter of an inner step, in words."""
    tables = {"overflow": _BEYOND, "zero_sign": _ZERO, "flush_outputs": _TINY}
    if value in tables.get(parameter, {}):
        return f"{tables[parameter][value]}{INNER}"
    if parameter == "block" and is_digits(value):
        return f"{value} products in a step"
    return "c joins the finished sum" if (parameter, value) == ("family", "late") else as_words(f"{parameter} {value}")


def alternatives_text(texts: Iterable[str]) -> str:
    """The texts as alternatives. Texts that differ only in a first number share the rest: `3 or 4, then it wraps`."""
    numbers: dict[str, list[int]] = {}
    for text in dict.fromkeys(texts):
        number = _NUMBER.match(text)
        ends = numbers.setdefault(text[number.end() :] if number else text, [])
        ends += [int(number.group())] if number else []
    return "; or ".join(" or ".join(map(str, sorted(ends))) + rest for rest, ends in numbers.items())


def _each(
    unit: Unit, nodes: Iterable[Kind], say: Callable[[Kind], str], name: Callable[[Unit, Node], str] | None = None
) -> str:
    """The text of nodes of a kind: one text if all agree, else each text after the names of its nodes."""
    texts = {node: say(node) for node in nodes}
    if len(set(texts.values())) < 2:
        return next(iter(texts.values()), "")
    named: dict[str, list[str]] = {}
    for node, text in texts.items():
        named.setdefault(text, []).append((name or _name)(unit, node))
    return "; ".join(f"{', '.join(dict.fromkeys(names))}: {text}" for text, names in named.items())


def _name(unit: Unit, node: Node) -> str:
    return node.operand if isinstance(node, Element) else unit.labels[node] or "d"


def _rounded(unit: Unit, node: Node) -> str:
    """The name of a rounding's operand."""
    term = node.term if isinstance(node, Round) else node
    return term.operand if isinstance(term, Element) else f"each {_kind(term)}"


def _operations(unit: Unit) -> Iterator[str]:
    """The sums in words, in the order in which they are formed; consecutive sums of equal form share a text."""
    sums = list(of_kind(unit.result, Sum))
    for text, run in groupby(sums, key=_operation):
        names = list(dict.fromkeys(unit.labels[node] for node in run))
        yield text if len(sums) == 1 or not names[0] else f"{names[0]}{f' to {names[-1]}' * (len(names) > 1)}: {text}"


def _operation(node: Sum) -> str:
    terms = [*node.items]
    if isinstance(node, FusedSum):
        return f"{_what(terms)} aligned to the largest exponent and added at once"
    if isinstance(node, GridSum):
        return f"{_what(terms)} on one grid, added at once"
    if len(terms) == 1 and not isinstance(terms[0], Each):
        return f"exact {_what(terms)}, then rounded"
    return f"exact sum of {_what(terms)}, then rounded" if len(terms) > 1 else f"exact sum of {_what(terms)}"


def _what(terms: list[Node]) -> str:
    """The terms of a sum in words."""
    kinds = [_kind(term) for term in terms]
    parts = [f"{kind}s" if len(list(run)) > 1 and not kind.endswith("s") else kind for kind, run in groupby(kinds)]
    return " and ".join(parts)


def _kind(term: Node) -> str:
    match term:
        case Each():
            return f"{_kind(term.body)}s"
        case Product():
            return "product"
        case Gate():
            return f"product ({term.sentence().removeprefix('the product, but ')})"
        case Cancelling():
            return f"{_kind(term.term)} (zero where it cancels)"
        case Counting():
            return _kind(term.term)
        case Scale():
            return f"scaled {_kind(term.term)}"
        case Element():
            return "addend" if term.operand == "c" else f"element of {term.operand}"
        case Running():
            return "previous result"
        case Constant():
            return "zero"
        case Relu():
            return f"rectified {_kind(term.term)}"
        case Round() if isinstance(term.term, Product):
            return "rounded product"
    return "sum"


def _steps(unit: Unit) -> str:
    steps, size = len(unit.blocks), len(unit.blocks[0])
    if steps == 1:
        sums = sum(any(map(_has_products, node.items)) for node in of_kind(unit.result, Sum))
        return "all products in one step" if sums < 2 else f"added in {sums} sums"
    if len(list(of_kind(unit.result, Repeat))) != 1:
        return f"{steps} steps of {size}"
    plain = [k for block in unit.blocks for k in block] == list(range(unit.length))
    order = "products in order" if plain else f"the first of products {some_of(unit.blocks[0], 6)}"
    return f"{steps} steps of {size}, {order}, each result the next step's addend"


def _fraction_bits(node: FusedSum) -> str:
    bits = node.fraction_bits
    each = str(bits) if isinstance(bits, int) else f"{', '.join(map(str, bits))} (of its terms in order)"
    return f"{each} below the largest exponent"


def _shifted_out(node: FusedSum) -> str:
    truncated = "truncated" if node.rounding == "toward_zero" else f"rounded {as_words(node.rounding)}"
    lost = "ORed into one bit below the sum" if node.sticky else truncated
    return lost + node.vanishing("the largest exponent")


def _carry_bits(node: FusedSum) -> str:
    return "as many as needed" if node.carry_bits is None else f"{node.carry_bits}, then it wraps"


def _floor(node: FusedSum) -> str:
    counting = [item for item in node.items if isinstance(item.body if isinstance(item, Each) else item, Counting)]
    other = f", except {_what(counting)}" if counting else ""
    if node.zeros is None and node.least is None and not node.floors:
        return f"none: zero terms have no exponent{other}"
    parts = [f"{node.zeros}: the exponent of zero terms in the alignment{other}"] if node.zeros is not None else []
    parts += [f"{node.least}: the largest exponent is at least this"] if node.least is not None else []
    parts += [f"{in_order(node.floors)}: the least exponents of its terms in order"] if node.floors else []
    return "; ".join(parts)


def _product(node: Product) -> str:
    limit = "" if node.limit is None else f", infinite from 2^{node.limit} on"
    return ("normalised" if node.normalised else "unnormalised") + limit


def _addend(unit: Unit) -> str:
    """How c, or the running sum, is added to the products."""
    joins = [node for node in of_kind(unit.result, Sum) if any(map(_comes_in, node.items))]
    late = [node for node in joins if any(item.is_addend for item in node.items)]
    if late and any(of_kind(unit.result, Constant)):
        joins = late
    texts = dict.fromkeys(map(_joins, joins))
    return "; ".join(texts)


def _comes_in(term: Node) -> bool:
    return isinstance(term, Running) or term.is_addend


def _has_products(item: Node) -> bool:
    """Whether an operand of a sum is a product, or products, whatever is done to each of them first."""
    if isinstance(item, (Cancelling, Counting, Relu, Round, Scale)):
        return _has_products(item.term)
    return isinstance(item, (Each, Gate, Product))


def _joins(node: Sum) -> str:
    others = [item for item in node.items if not _comes_in(item)]
    with_products = any(map(_has_products, others))
    finished = f"the finished sum{'s' * (len(others) > 1)} of the products"
    if node.bits_of_terms:
        return f"aligned with {'the products' if with_products else finished}"
    return "in the exact sum with the products" if with_products else f"added to {finished}"
