"""Properties of one model, each stated as problems about two evaluations of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from mmaprobe.queries.kernel.naming import model_text
from mmaprobe.queries.kernel.questions.problem import Problem, admits, evaluate_on
from mmaprobe.smtmodel.arithmetic.decode import unpack
from mmaprobe.smtmodel.arithmetic.formats import format_named
from mmaprobe.smtmodel.arithmetic.ordering import negated, pattern_key, product_key
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits
from mmaprobe.smtmodel.evaluate.model import Evaluation, Model
from mmaprobe.smtmodel.evaluate.operands import RAISED, Layout, Operands, check_addend
from mmaprobe.smtmodel.inputs.admitted import Compare, Inputs
from mmaprobe.smtmodel.nodes import Constant, Each, Element, ExactSum, Index, Literal, Product, Round, Scale
from mmaprobe.smtmodel.nodes.element import power_of_two
from mmaprobe.smtmodel.nodes.node import of_kind
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.operand import DRAWS, NAMED, RANDOM
from mmaprobe.smtmodel.tables.reference import with_parameters
from mmaprobe.smtmodel.units.unit import added_together

MOST_BITS = 6  # random bits of which all numbers are tried in one formula


@dataclass(frozen=True)
class Reordered(Problem):
    """A model compared with itself with its products in another order: `order[k]` is the product in place k."""

    order: tuple[int, ...] = ()

    def moved(self, operands: Operands[Bits]) -> Operands[Bits]:
        a, b, _, *rest = (
            tuple(side[k] for k in self.order) if side and NAMED[name].moves else side
            for name, side in operands.sides.items()
        )
        return replace(operands, a=a, b=b, rest=tuple(rest))

    @property
    def sides(self) -> tuple[str, str]:
        return "given order", f"order {'-'.join(map(str, self.order))}"

    @property
    def stated(self) -> str:
        return f"d of {model_text(self.left)} is the same in the {self.sides[1]} of its products"


@dataclass(frozen=True)
class Negated(Problem):
    """A model compared with itself with every a and c negated, and the result negated back. Raises ParameterError if a,
    c or d has no sign."""

    signs_apart = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("a", "c", "d"):
            fmt = getattr(self.left, name)
            if not fmt.signed:
                raise ParameterError(name, f"{fmt.name} has no sign: {name} cannot be negated")

    def evaluate(self, operands: Operands[Bits], traced: bool = True) -> tuple[Evaluation, Evaluation]:
        left = self.compute(operands, traced)  # of two maxima of the same terms the first one is kept
        right = self.compute(self.moved(operands), traced)
        return left, replace(right, d=negated(right.d, self.right.d))

    def compute(self, operands: Operands[Bits], traced: bool = True) -> Evaluation:
        """The evaluation that should be symmetric."""
        return evaluate_on(self.left, operands, traced)

    def moved(self, operands: Operands[Bits]) -> Operands[Bits]:
        a = tuple(negated(x, self.left.a) for x in operands.a)
        return replace(operands, a=a, c=negated(operands.c, self.left.c) if self.left.addend else operands.c)

    @property
    def sides(self) -> tuple[str, str]:
        return "d(a, b, c)", "-d(-a, b, -c)"

    @property
    def stated(self) -> str:
        return f"of {model_text(self.left)}, {' = '.join(self.sides)}"


@dataclass(frozen=True)
class Monotonic(Problem):
    """A model compared with itself with one operand raised: the addend (`raised` is None), or one product. The sides
    "differ" if the result falls; a NaN neither rises nor falls. A product rises if its value does: another pair of
    factors with the same product does not count as an increase, though units may align this product elsewhere. Raises
    ParameterError for a product that the model does not have, and for an operand of which only zeros are admitted."""

    raised: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_addend(self.left, self.raised is None, instead="it has no addend that could rise")
        if self.raised is not None and not 0 <= self.raised < self.length:
            last = self.length - 1
            raise ParameterError("raised", f"{self.raised} is impossible; it takes a product from 0 to {last}")
        zeros = self.zeros
        if self.raised is None and ("c" in zeros or self.length in self.inputs.zero_terms):
            raise ParameterError("c", f"of the addend zeros alone are admitted: it cannot rise{_reach(zeros, 'c')}")
        if self.raised is not None and zeros.keys() & {"a", "b"}:
            raise ParameterError("a, b", f"zeros alone are admitted: no product can rise{_reach(zeros, *'ab')}")

    @property
    def focus(self) -> int | None:
        return self.raised

    @property
    def sides(self) -> tuple[str, str]:
        what = "c" if self.raised is None else f"a{self.raised}*b{self.raised}"
        return "before", f"after {what} rose"

    @property
    def stated(self) -> str:
        what = "c" if self.raised is None else f"product {self.raised}"
        return f"d of {model_text(self.left)} does not fall when {what} rises"

    @property
    def layout(self) -> Layout:
        base, model = super().layout, self.left
        k = self.raised
        added = ((model.c, f"c{RAISED}"),) if k is None else ((model.a, f"a{k}{RAISED}"), (model.b, f"b{k}{RAISED}"))
        formats, names = zip(*added, strict=True)
        return replace(base, formats=(*base.formats, *formats), names=(*base.names, *names))

    def moved(self, operands: Operands[Bits]) -> Operands[Bits]:
        k, changed = self.raised, operands.changed
        if k is None:
            return replace(operands, c=changed[0], changed=())
        a, b = ((*side[:k], new, *side[k + 1 :]) for side, new in zip((operands.a, operands.b), changed, strict=True))
        return replace(operands, a=a, b=b, changed=())

    def differ(self, left: Bits, right: Bits) -> Bit:
        fmt = self.left.d
        defined = ~(unpack(left, fmt).is_nan | unpack(right, fmt).is_nan)
        return defined & pattern_key(right, fmt).slt(pattern_key(left, fmt))

    def admits(self, operands: Operands[Bits]) -> Bit:
        moved, model, k = self.moved(operands), self.left, self.raised
        both = admits(self.inputs, model, operands) & admits(self.inputs, model, moved)
        if k is None:
            nan = unpack(operands.c, model.c).is_nan | unpack(moved.c, model.c).is_nan
            return both & ~nan & pattern_key(operands.c, model.c).slt(pattern_key(moved.c, model.c))
        (before, one), (after, two) = (
            product_key(unpack(side.a[k], model.a), unpack(side.b[k], model.b)) for side in (operands, moved)
        )
        return both & ~one & ~two & before.slt(after)


@dataclass(frozen=True)
class Exact(Problem):
    """A model compared with the exact sum of its inputs, rounded once."""

    @property
    def sides(self) -> tuple[str, str]:
        return "the unit", "the exact sum"

    @property
    def stated(self) -> str:
        return f"d of {model_text(self.left)} = the exact sum, rounded once"


@dataclass(frozen=True)
class Mean(Problem):
    """The results of a model for all random bits, added, compared with as many exact sums of its inputs."""

    @property
    def sides(self) -> tuple[str, str]:
        return "all results added", "as many exact sums"

    @property
    def stated(self) -> str:
        return f"of {model_text(self.left)}, {' = '.join(self.sides)}"

    @property
    def every(self) -> tuple[str, ...]:
        return (RANDOM.name,)

    @property
    def model(self) -> Model:
        """The model whose results are added. Raises ParameterError where the left side adds no such results."""
        unit = self.left.unit
        total = unit.last.term
        first = total.items[0] if isinstance(total, ExactSum) else total
        if not isinstance(first, Round) or first.random is None:
            raise ParameterError(RANDOM.name, "it adds no results that are rounded by random bits")
        result = replace(first, random=Element(RANDOM.name))
        return Model(self.left.reference, unit.with_result(result))


def subject_of(wanted: str, problem: Problem) -> Model:
    """The model that a problem is about: the left side, but for zero-padding the longer model."""
    if isinstance(problem, Mean):
        return problem.model
    return problem.right if wanted == "zero-padding" else problem.left


def _reach(zeros: Mapping[str, str], *names: str) -> str:
    """The reason why only zeros are admitted, in parentheses; empty if none is given."""
    why = next((zeros[name] for name in names if name in zeros), "")
    return f" ({why})" if why else ""


def exchangeable(model: Model) -> list[Sequence[int]]:
    """The groups of products whose order may have no effect: the products that one step, scale block or group adds."""
    if model.scale is None:
        return list(model.blocks)
    return [part for step in model.blocks for part in _parts(step, _scaled_together(model))]


def _scaled_together(model: Model) -> int:
    """The number of consecutive products that have the same scale factors and are added in one sum."""
    sums = [node.term for node in of_kind(model.unit.result, Scale) if isinstance(node.term, ExactSum)]
    counts = {sum(item.count for item in total.items) for total in sums}
    return min([model.scale_block, *counts])


def reordered_groups(model: Model) -> list[Sequence[int]]:
    """The groups of products whose order is asked about: the products of each step, scale block or group. A chain of
    single products is one group."""
    groups = exchangeable(model)
    if all(len(group) == 1 for group in groups):
        groups = [[k for group in groups for k in group]]
    return groups


def exchanged_text(model: Model) -> tuple[str, str]:
    """In words: the products whose order is asked about, those of one of the `reordered_groups`; and other products."""
    if len(reordered_groups(model)) == 1:
        alike = model.scale is None or model.scale_block == model.length
        return "any two products" if alike else "any two products, but not their scale factors,", ""
    if model.scale is None:
        return "products that one step adds", "products of different steps"
    together = f"of {_scaled_together(model)} in a row with the same scale factors,"
    return f"products that one step adds, {together}", "other products"


def reorderings(model: Model) -> list[Reordered]:
    """Reorderings that generate every order within each group; for a single product, its only order."""
    reordered = [problem for group in reordered_groups(model) for problem in reorderings_of(model, group)]
    reordered = reordered or [Reordered(model, model, order=tuple(range(model.length)))]
    return sorted(reordered, key=lambda problem: problem.order, reverse=True)  # rotations show a difference soonest


def reorderings_of(model: Model, group: Sequence[int]) -> list[Reordered]:
    """The exchange of the first two products of a group and the rotation of the group: these two generate every
    order."""
    reordered = []
    for moved in sorted({(group[1], group[0], *group[2:]), (*group[1:], group[0])}) if len(group) > 1 else ():
        order = list(range(model.length))
        for place, source in zip(group, moved, strict=True):
            order[place] = source
        reordered.append(Reordered(model, model, order=tuple(order)))
    return reordered


def symmetries_of(model: Model, group: Sequence[int]) -> list[Reordered]:
    """Reorderings that together bring each product of an exchangeable group to the place of every other, chosen so that
    they have no effect if any such reorderings have none. If even and odd products are summed separately, these are
    reorderings of the first kind, and the exchange of both kinds; otherwise `reorderings_of`."""
    parts = {part for part in added_together(model.unit) if part < set(group)}
    if len(parts) != 2 or set().union(*parts) != set(group):
        return reorderings_of(model, group)
    first, second = sorted(map(sorted, parts))
    if len(first) != len(second):
        return reorderings_of(model, group)
    swapped = list(range(model.length))
    for one, other in zip(first, second, strict=True):
        swapped[one], swapped[other] = other, one
    return [*reorderings_of(model, first), Reordered(model, model, order=tuple(swapped))]


def _parts(step: Sequence[int], size: int) -> list[Sequence[int]]:
    groups: dict[int, list[int]] = {}
    for k in step:
        groups.setdefault(k // size, []).append(k)
    return list(groups.values())


def negations(model: Model) -> list[Negated]:
    """Negating every a and c negates the result; +0 and -0 are equal."""
    return [Negated(model, model, compare="value")]


def raised_addend(model: Model) -> list[Monotonic]:
    """The result does not fall when the addend rises."""
    return [Monotonic(model, model)]


def raised_products(model: Model) -> list[Monotonic]:
    """The result does not fall when any one product rises."""
    return [Monotonic(model, model, raised=k) for k in range(model.length)]


def paddings(model: Model) -> list[Problem]:
    """Every shorter dot product of the model equals the whole dot product with zeros in the remaining products. Raises
    ParameterError if the model has no shorter dot product."""
    if model.member is None:
        why = "zero-padding is asked of a unit whose length is a parameter (@length=N)"
        raise ParameterError("length", f"{model.reference} has one length, and no shorter dot product: {why}")
    problems = []
    for length in range(1, model.length):
        try:
            shorter = with_parameters(model, {"length": length})
        except ParameterError:
            continue  # the length is not a whole number of its blocks, groups or scales
        problems.append(Problem(shorter, model))
    if not problems:
        raise ParameterError("length", f"{model.reference} has no shorter dot product that zeros could be added to")
    return problems


def exactness(model: Model) -> list[Problem]:
    """The result is the exact sum, rounded once as the model rounds its results. The last rounding also decides what a
    NaN sum becomes, even if that is a number. Raises ParameterError for models with scales."""
    return [Exact(model, _exact_sum(model), compare="value")]


def means(model: Model) -> list[Problem]:
    """The mean of the results over all random bits is the exact sum, wherever all results are finite. Both sides are
    rounded to odd, to a format that holds any sum of multiples of two neighbours with two bits to spare, so that the
    sides are equal only if the sums are. Both sides are NaN where a result is no number. Raises ParameterError for
    models that round no result by random bits, or by more than `MOST_BITS`, and for models with scales."""
    unit, last = model.unit, model.unit.last
    if last.random is None:
        raise ParameterError(RANDOM.name, f"{model.reference} rounds no result by random bits")
    if unit.result != last or RANDOM.name not in unit.formats:
        raise ParameterError(RANDOM.name, f"{model.reference} rounds several results by random bits, not one")
    bits, fmt, given = unit.formats[RANDOM.name].width, last.rounding.format, unit.formats[RANDOM.name]
    if bits > MOST_BITS:
        what = f"the mean of results is asked for where there are at most {MOST_BITS} random bits, not {bits}"
        raise ParameterError(RANDOM.name, what)
    low, high = fmt.unit - 2, fmt.emax + bits + 2
    exponent = max(2 - low, high + 1).bit_length() + 1
    wide = Rounding(format_named(f"e{exponent}m{fmt.precision + bits + 3}_ieee"), "to_odd", "infinity")
    results = tuple(replace(last, random=Literal(one, given)) for one in range(1 << bits))
    number = Product(results[-1], Constant())  # NaN where the largest result is no number
    sides = (*results, number), (Scale(_all_terms(model), power_of_two(bits), power_of_two(0)), number)
    left, right = (unit.with_result(Round(ExactSum(side), wide)) for side in sides)
    return [Mean(Model(model.reference, left), Model(model.reference, right), compare="value")]


def _exact_sum(model: Model) -> Model:
    """The model that rounds the exact sum of all products, and of c if the model reads it, once, as the results are
    rounded and by the same random bits; it flushes no subnormals. Raises ParameterError if the model does not read each
    of a and b."""
    unit = model.unit
    if DRAWS.name in unit.formats:
        raise ParameterError(DRAWS.name, f"{model.reference} rounds several results by random bits, its exact sum one")
    exact = replace(unit.last, term=_all_terms(model), rounding=replace(unit.rounding, subnormals="keep"))
    return Model(model.reference, unit.with_result(exact))


def _all_terms(model: Model) -> ExactSum:
    """The exact sum of all products, and of c if the model reads it. Raises ParameterError as `_exact_sum`, and for
    models with scales."""
    if model.scale is not None:
        raise ParameterError("scale_format", "exact sums of scaled products are not modelled")
    unit, loop = model.unit, Index(0, ((1, 1),))
    if not {"a", "b"} <= {node.operand for node in of_kind(unit.result, Element)}:
        raise ParameterError("inputs", f"{model.reference} does not read each of a and b")
    terms = Each(1, range(unit.length), Product(Element("a", loop), Element("b", loop)))
    addend = (Element("c"),) if unit.addend else ()
    return ExactSum((terms, *addend))


PROPERTIES: dict[str, Callable[[Model], Sequence[Problem]]] = {
    "order-independent": reorderings,
    "sign-symmetric": negations,
    "monotonic": lambda model: [*(raised_addend(model) if model.addend else ()), *raised_products(model)],
    "monotonic-addend": raised_addend,
    "monotonic-product": raised_products,
    "zero-padding": paddings,
    "exact": exactness,
    "unbiased": means,
}


def problems_of(wanted: str, model: Model, inputs: Inputs, compare: Compare | None = None) -> list[Problem]:
    """The problems of a property: it holds on the admitted inputs if the sides of all of them are equal. Raises
    ParameterError for restrictions that admit no input, or under which the problems together would not mean the
    property."""
    if inputs.zero_terms and wanted in ("order-independent", "zero-padding"):
        raise ParameterError("zero_terms", f"{wanted} is asked with all products free")
    problems = [problem for problem in PROPERTIES[wanted](model) if not _fixed(problem, inputs)]
    if inputs.zero_terms and not problems:
        raise ParameterError("zero_terms", "every product is fixed to zero: none can rise")
    return [replace(problem, inputs=inputs, compare=compare or problem.compare) for problem in problems]


def _fixed(problem: Problem, inputs: Inputs) -> bool:
    """Whether a problem asks about a rising product that the inputs fix to zero."""
    return isinstance(problem, Monotonic) and problem.raised is not None and problem.raised in inputs.zero_terms
