"""The value from which a sum starts, and whether its products are rounded before they are added."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial

from mmaprobe.documents.identify import Order
from mmaprobe.documents.parts import ABSENT
from mmaprobe.queries.order.mask_traces import Power
from mmaprobe.queries.order.probe import Probe, idle, power_pattern
from mmaprobe.queries.order.tree import Leaf, Node, compact, nodes_of, not_added_once
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.inputs.vectors import Vector

NOT_ASKED = "it is not asked whether they are rounded before they are added"


@dataclass(frozen=True)
class Ends:
    """`fused`: the products that keep a bit below the last place of the result's format when they are added; `rounded`:
    the products that lose this bit; `why`: the reason why no answer decides about the products. `start`: the value from
    which the sum starts, in words. `weights`: sign and exponent of the powers of two by which terms are multiplied,
    where not all are 1; `length`: the number of products. `left_out`: the products that are not in the sum, or are
    taken with other factors (`instead`); `twice`: the products that are added twice."""

    start: str
    fused: tuple[int, ...] = ()
    rounded: tuple[int, ...] = ()
    why: str = ""
    weights: Mapping[Leaf, Power] = field(default_factory=dict)
    length: int = 0
    left_out: tuple[int, ...] = ()
    twice: tuple[int, ...] = ()
    instead: str = ""

    def lines(self) -> list[str]:
        """The findings in words, a line for each."""
        lines = not_added_once(self.left_out, self.twice, self.instead)
        lines += [f"starts from: {self.start}", *sentences(self.weights, self.length)]
        if self.why:
            return [*lines, f"products: {self.why}"]
        if self.fused:
            lines.append(f"products not rounded to the result's format before they are added: {compact(self.fused)}")
        if self.rounded:
            how = "rounded before they are added, added to +0 first, or cut where terms are aligned"
            lines.append(f"products {how}: {compact(self.rounded)}")
        return lines

    def add_to(self, document: Order) -> Order:
        """The document with these findings."""
        other = {leaf: weight for leaf, weight in self.weights.items() if weight != (1, 0)}
        weights = {str(leaf): f"{'-' if sign < 0 else ''}2^{shift}" for leaf, (sign, shift) in other.items()}
        return replace(
            document,
            starts_from=self.start,
            products_fused=self.fused,
            products_rounded=self.rounded,
            left_out=self.left_out or ABSENT,
            twice=self.twice or ABSENT,
            instead=self.instead or ABSENT,
            weights=weights if self.weights else ABSENT,
            products_not_told=self.why or ABSENT,
        )


def sentences(weights: Mapping[Leaf, Power], length: int) -> list[str]:
    """The terms that are subtracted, or multiplied, in words, a line for each fact; of a sum of `length` products."""
    negative = frozenset(leaf for leaf, (sign, _) in weights.items() if sign < 0)
    lines = [f"it subtracts {terms_text(negative, length)}"] if negative else []
    for shift in sorted({shift for _, shift in weights.values()} - {0}):
        scaled = frozenset(leaf for leaf, (_, own) in weights.items() if own == shift)
        lines.append(f"it multiplies {terms_text(scaled, length)} by 2^{shift}")
    return lines


def terms_text(places: frozenset[int | str], length: int) -> str:
    """Terms of a sum of `length` products, in words."""
    products = sorted(place for place in places if isinstance(place, int))
    every = "every product" if len(products) == length else f"the products at {compact(products)}"
    return " and ".join([*([every] if products else []), *(["c"] if "c" in places else [])])


def ends_of(probe: Probe, root: Node | Leaf) -> Ends:
    """Ask about products and start of a sum whose tree is known."""
    fused, rounded, why = products_of(probe, root)
    return Ends(_start(probe, root), fused, rounded, why, probe.weights, probe.model.length, probe.left_out)


# -- products


def products_of(probe: Probe, root: Node | Leaf) -> tuple[tuple[int, ...], tuple[int, ...], str]:
    """(fused products, rounded products, why neither): each product is given one bit more than the result's format has,
    and another leaf the negative of the product's other bits."""
    model = probe.model
    if model.scale is not None:
        return (), (), f"with scale factors {NOT_ASKED}"
    if probe.weights:
        return (), (), f"as some terms are subtracted or scaled, {NOT_ASKED}"
    partners = list(_partners(root))
    read = (model.d, model.c) if "c" in dict(partners).values() else (model.d,)
    kept = min(fmt.precision for fmt in read)
    bits = min(model.a.precision, kept) - 1, min(model.b.precision, kept) - 1
    if why := never_rounded(model) or _too_few(model, bits):
        return (), (), why
    last = sum(bits)
    asked = []
    for product, partner in partners:
        text = f"whether product {product} keeps its last bit, 2^{-last}, if the term at {partner} cancels the others"
        asked.append((product, partner, text))
    forms = [(partial(_residue, probe, product, partner, bits), text) for product, partner, text in asked]
    products: dict[bool, list[int]] = {True: [], False: []}
    for (product, _, _), d in zip(asked, probe.patterns(forms), strict=True):
        products[exact_value(d, model.d) == Fraction(1, 1 << last)].append(product)
    return tuple(sorted(products[True])), tuple(sorted(products[False])), ""


def never_rounded(model: Model) -> str:
    """Why rounding a product to the result's format changes nothing, or nothing but what is beyond its range; empty if
    products have more bits."""
    a, b, d = model.a, model.b, model.d
    if a.precision + b.precision - (1 in (a.precision, b.precision)) > d.precision:
        return ""
    largest = max(map(abs, a.interval)) * max(map(abs, b.interval))
    if largest <= d.most and a.unit + b.unit >= (d.unit if d.is_integer else d.emin):
        return f"each fits {d.name}, so that rounding it first would change nothing"
    return (
        f"none has more bits than {d.name}, so that rounding it first would change only those that overflow there or "
        "are subnormal"
    )


def _too_few(model: Model, bits: tuple[int, int]) -> str:
    """Why products are not asked about; empty if they are. No (1 + 2^-i) * (1 + 2^-j), with i and j up to `bits`, has a
    bit below the last place of the result's format."""
    if min(bits) >= 1 and sum(bits) >= model.d.precision:
        return ""
    return f"none with a bit below the last place of {model.d.name} suits the question whether they are rounded"


def _partners(root: Node | Leaf) -> Iterable[tuple[int, Leaf]]:
    """Each product with a leaf that it meets in the step that it joins, from another branch of this step."""
    below: dict[int, Leaf] = {}  # one leaf of each step
    for node in nodes_of(root):
        ends = [below[id(child)] if isinstance(child, Node) else child for child in node.children]
        below[id(node)] = ends[0]
        for place, child in enumerate(node.children):
            if isinstance(child, int):
                yield child, ends[1 if place == 0 else 0]


def _residue(probe: Probe, product: int, partner: Leaf, bits: tuple[int, int], text: str, number: int) -> Vector:
    """(1 + 2^-i) * (1 + 2^-j) as a product, and -(1 + 2^-i + 2^-j) at its partner: their sum is 2^-(i + j)."""
    model = probe.model
    a, b, c = [0] * model.length, [0] * model.length, 0
    a[product], b[product] = (_near_one(fmt, bit) for fmt, bit in zip((model.a, model.b), bits, strict=True))
    if partner == "c":
        c = _near_one(model.c, *bits) | model.c.sign_bit
    elif bits[0] >= bits[1]:
        a[partner], b[partner] = _near_one(model.a, *bits), power_pattern(model.b, -1, 0)
    else:
        a[partner], b[partner] = power_pattern(model.a, -1, 0), _near_one(model.b, *bits)
    return Vector(model, Operands(tuple(a), tuple(b), c), id=number, extra={"question": text})


def _near_one(fmt: Format, *bits: int) -> int:
    """The pattern of 1 and the sum of the 2^-bit, which is at most 1."""
    more = sum(1 << fmt.fraction - bit for bit in bits)
    if more >> fmt.fraction:
        return power_pattern(fmt, 1, 1)
    return power_pattern(fmt, 1, 0) | more << fmt.padding


# -- the start


def _start(probe: Probe, root: Node | Leaf) -> str:
    """The value to which the first step adds. A sum of negative zeros alone is -0 only if no +0 is added to them, or if
    sums are rounded down: then terms that cancel give -0. The questions about the tree have such terms, a huge number
    and its negative that hide all other terms."""
    model = probe.model
    step = next((node for node in nodes_of(root) if "c" in node.children), None)
    from_c = step is not None and not any(isinstance(child, Node) for child in step.children)
    minus = model.d.sign_bit if model.d.has_negative_zero else None  # where there is no -0, every zero sum is +0
    down = any(question.d == minus for question in probe.questions)
    [zero] = probe.patterns([(partial(_zeros, probe), "the sum of negative zeros alone")])
    plain = zero == minus
    if from_c:
        return "c" if plain else "c (a sum of negative zeros is +0)"
    if not plain:
        return "+0 (or the first product, if every zero sum is +0 here)"
    return "the first product (or +0, as terms that cancel give -0)" if down else "the first product"


def _zeros(probe: Probe, text: str, number: int) -> Vector:
    """Products and c that are -0. Where the format of a has no -0, products are those of a negative number and +0."""
    model = probe.model
    negative = model.a.sign_bit if model.a.has_negative_zero else model.a.one | model.a.sign_bit
    signs = {leaf: sign for leaf, (sign, _) in probe.weights.items()}
    c = model.c.sign_bit if "c" in probe.leaves and signs.get("c", 1) > 0 else 0
    a = tuple(negative if signs.get(k, 1) > 0 else 0 for k in range(model.length))
    operands = Operands(a, (0,) * model.length, c, tuple(map(tuple, idle(model).values())))
    return Vector(model, operands, id=number, extra={"question": text})
