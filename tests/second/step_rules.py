"""Rules about the steps of a plan: what each does to the error E and to the size A of a sum so far. Magnitudes of a and
b have the number of a pair of words in place of an index, and mean sums over all products of the step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from tests.second.document import conclude, holds, largest_number, need_lemmas
from tests.second.goals import CHAIN, Condition, Facts, Goal, frozen
from tests.second.loop_rules import SLACK, linear, need_close
from tests.second.magnitudes import (
    ONE,
    Form,
    add,
    changed,
    covers,
    flat,
    lifted,
    lifts,
    most,
    need,
    plain,
    read_form,
    single,
    times,
    two,
)
from tests.second.node_rules import after_rounding, grid_of
from tests.second.part_rules import Polynomials

START = 0  # the level of what a sum starts from
G, K = single("growth"), single("count")
NEAREST = ("nearest_even", "nearest_away")
OPERANDS = ("a", "b", "c", "scale_a", "scale_b")


def from_zero(tree: Any, goal: Goal, premises: Sequence[int], _: Any) -> None:
    (premise,) = premises
    below, facts = tree.enclosed(premise)
    need(goal.kind == "FromZero" and below.node == tree.unit["result"], "it is not about the result")
    need(below.assuming == {(CHAIN, frozenset())}, "it is not about an addend that is zero")
    need(goal.provided == below.provided, "something else may not overflow")
    forms = {"own": facts.error, "size": facts.size}
    for name, form in forms.items():
        need(linear(form, CHAIN)[:2] == (0, 0), "the result reads another addend")
        need(read_form(goal.parts[name]) == form, "the conclusion does not follow")


# -- forms


def products(form: Form) -> tuple[Form, Form]:
    """What of a form is about products, and the rest."""
    sides: tuple[Form, Form] = ({}, {})
    for atom, value in flat(form).items():
        (item,) = atom
        sides[0 if any(factor[0] in ("a", "b") for factor in item) else 1][atom] = value
    return sides


def apart(*forms: Form) -> Form:
    """The sum of forms that are about different products: of each product the largest coefficient counts."""
    sides = [products(form) for form in forms]
    names = set[str]().union(*(lifts(own) for own, _ in sides))
    return add(most(*(lifted(own, names) for own, _ in sides)), *(rest for _, rest in sides))


def magnitude(error: bool) -> Form:
    """The error, or the size, of the step that is looked at."""
    return single("error" if error else "size", CHAIN)


def without_overflow(tree: Any, fmt: int, factor: Form | None = None) -> Condition:
    """That what is rounded to a format at the end of a step does not overflow."""
    value = add(magnitude(True), magnitude(False))
    value = value if factor is None else times(value, factor)
    return Condition(tree.unit["result"], (), largest_number(tree.formats[fmt])[0], frozen(value))


def exactly_as(one: Condition, other: Condition) -> bool:
    """Whether two conditions are one, but for a bound that is rounded up a little."""
    alike = replace(one, most=frozen({})) == replace(other, most=frozen({}))
    claimed, least = dict(one.most or ()), dict(other.most or ())
    return alike and covers(claimed, least) and covers(times(least, SLACK), claimed)


def need_conditions(goal: Goal, known: Iterable[Goal], *own: Condition) -> None:
    """The conditions of the goal must be those of the premises, and these."""
    before = frozenset[Condition]().union(*(one.provided for one in known))
    rest = goal.provided - before
    need(before <= goal.provided, "something else may not overflow")
    for one in own:
        need(
            any(exactly_as(hypothesis, one) for hypothesis in goal.provided),
            "it is not said where nothing may overflow",
        )
    need(all(any(exactly_as(hypothesis, one) for one in own) for hypothesis in rest), "something else may not overflow")


def need_forms(tree: Any, goal: Goal, facts: Facts) -> None:
    """The facts of the goal must be these, but for coefficients that are rounded up a little."""
    assert goal.facts is not None
    claimed = goal.facts.low
    need_close(claimed, facts.error)
    found = tree.numbers(facts.formats, claimed, claimed, facts.size, facts.grid, bits=facts.bits)
    conclude(goal, replace(found, least=facts.least))


def need_from(goal: Goal, *known: Goal) -> None:
    """What the goal assumes, and the growth of its G, must be those of the premises."""
    every = frozenset[Any]().union(*(one.assuming for one in known))
    need(len({level for level, _ in every}) == len(every), "different things are assumed of one sum")
    need(goal.assuming == every, "it assumes something else than its premises")
    growing = [one.parts for one in known if one.parts["growth"] is not None]
    need(len({one["loops"] > 0 for one in growing}) <= 1, "loops and halves of any number grow in different ways")
    rate = max((Fraction(one["growth"]) for one in growing), default=None)
    need(_rate(goal) == rate and goal.parts["loops"] == max((one["loops"] for one in growing), default=0),
         "it grows otherwise")  # fmt: skip


def _rate(goal: Goal) -> Fraction | None:
    return None if goal.parts["growth"] is None else Fraction(goal.parts["growth"])


def power_sum(rate: Fraction, count: int) -> Form:
    """1 + r + ... + r^(count - 1)."""
    return plain(sum((rate**k for k in range(count)), Fraction(0)))


# -- steps without a loop


def _begins(tree: Any, goal: Goal, premises: Sequence[int], level: int) -> None:
    need(not premises and not goal.provided and len(goal.assuming) == 1, "it assumes one thing and rests on nothing")
    need(goal.parts["growth"] is None and goal.parts["loops"] == 0, "it does not grow")
    ((own, formats),) = goal.assuming
    need(own == level, "it is about another sum so far")
    error, size = (single(name, level) if formats else {} for name in ("error", "size"))
    conclude(goal, tree.numbers(formats, error, error, size))


def begun(tree: Any, goal: Goal, premises: Sequence[int], _: Any) -> None:
    tree.step(goal, "Begin")
    _begins(tree, goal, premises, START)


def held(tree: Any, goal: Goal, premises: Sequence[int], _: Any) -> None:
    _begins(tree, goal, premises, tree.step(goal, "SoFar")["level"])


def nothing(tree: Any, goal: Goal, premises: Sequence[int], _: Any) -> None:
    tree.step(goal, "Zero")
    need(not premises and not goal.provided and not goal.assuming, "it rests on something")
    need(goal.parts["growth"] is None and goal.parts["loops"] == 0, "it does not grow")
    conclude(goal, tree.numbers(frozenset(), {}, {}, {}))


def tile(tree: Any, goal: Goal, premises: Sequence[int], _: Any) -> None:
    step = tree.step(goal, "Tile")
    does, start = (tree.goals[premise] for premise in premises)
    need(does.kind in ("Chained", "FromZero") and does.parts["unit"] == step["model"], "it is about another unit")
    (before,) = tree.summed([premises[1]], [step["start"]])
    unit, pair = tree.units[step["model"]], tree.pairs.index(tuple(step["read"]))
    taken = tree.formats[unit["c"]]
    fits = before.formats is not None and all(holds(taken, tree.formats[fmt]) for fmt in before.formats)
    need(fits, "the start is no addend")
    if any(tree.nodes[node]["kind"] != "element" for own in tree.pairs for node in own):
        need_each_product_once(tree, unit)
    shrinks = False
    if does.kind == "Chained":
        told_ = does.parts["step"]
        growth, part = Fraction(told_["growth"]), Fraction(told_["part"])
        entered, own, size = add(times(before.error, growth), times(before.size, part)), told_["own"], told_["size"]
        shrinks = growth < 1
    else:
        need(before.nothing, "the start is not zero")
        entered, own, size = {}, does.parts["own"], does.parts["size"]
    (own, fixed), (size, rest) = (products(read_form(form)) for form in (own, size))
    need(not rest and set(fixed) <= {ONE}, "an instruction adds more than products")
    error = apart(entered, add(_of_pair(own, pair), fixed))
    need_from(goal, start)
    limits = [replace(one, most=None if one.most is None else frozen(_placed(dict(one.most), pair)),
                      where=tuple((mark, frozen(_placed(dict(form), pair))) for mark, form in one.where))
              for one in does.provided]  # fmt: skip
    limits += [Condition(unit["result"], (), 0, None)] if shrinks else []
    need(goal.provided == start.provided | frozenset(limits), "something else may not overflow")
    conclude(goal, tree.numbers(frozenset({unit["d"]}), error, error, apart(before.size, _of_pair(size, pair))))


def _placed(form: Form, pair: int) -> Form:
    """A form about elements of an instruction, about any one of a pair of words."""
    return changed(form, lambda factor: (factor[0], pair, (), factor[3]) if factor[0] in ("a", "b") else factor)


def _of_pair(form: Form, pair: int) -> Form:
    """A form about an instruction's products, over all of them: of one kind the largest coefficient counts."""
    found: Form = {}
    for atom, value in flat(form).items():
        (item,) = atom
        need(len({factor[1] for factor in item if factor[0] in ("a", "b")}) == 1, "it is not about each product")
        need(all(factor[0] in OPERANDS and not factor[2] for factor in item), "it is not about inputs")
        of_pair = [(name, pair if name in ("a", "b") else 0, rest, raised) for name, _, rest, raised in item]
        kind = frozenset({tuple(sorted(of_pair))})
        found[kind] = max(found.get(kind, value), value)
    return found


def need_each_product_once(tree: Any, unit: Mapping[str, Any]) -> None:
    """The exact value of a unit must be c and every product, each once."""
    found = Polynomials(tree, ()).of(unit["result"], (), {})
    read = {tuple(sorted(symbol[1:3] for symbol in item)): value for item, value in found.items()}
    every = {(("a", k), ("b", k)): 1 for k in range(unit["length"])} | {(("c", 0),): 1}
    need(len(read) == len(found) and read == every, "not every product, and c, is added once")


def added(tree: Any, goal: Goal, premises: Sequence[int], _: Any) -> None:
    step = tree.step(goal, "Added")
    count, how = len(step["values"]), step["rounding"]
    every = tree.summed(premises[:count], step["values"])
    goals = [tree.goals[premise] for premise in premises[:count]]
    need_lemmas(tree, premises[count:], "RoundingLoses", [{"format": how["format"], "mode": how["mode"]}])
    need_from(goal, *goals)
    need_conditions(goal, goals, without_overflow(tree, how["format"]))
    error, size = apart(*(one.error for one in every)), apart(*(one.size for one in every))
    some = [one for one in every if not one.nothing]
    exact = Facts(error, error, size, grid=grid_of(every), bits=some[0].bits if len(some) == 1 else None)
    conclude(goal, after_rounding(tree, exact, how))


# -- loops


def iterated(tree: Any, goal: Goal, premises: Sequence[int], _: Any) -> None:
    step = tree.step(goal, "Loop")
    first, facts = tree.summed(premises[:2], [step["start"], step["body"]])
    start, body = (tree.goals[premise] for premise in premises[:2])
    level, count = step["level"], step["count"]
    own = [formats for at, formats in body.assuming if at == level]
    need(len(own) == len(body.assuming) == 1, "a round depends on more than the sum so far")
    need(all(one.formats is not None and one.formats <= own[0] for one in (first, facts)), "it is no sum so far")
    need(not any(at == level for at, _ in start.assuming) and _rate(body) is None, "it is within another such loop")
    growth, part, rest = linear(facts.error, level)
    entered, kept, more = linear(facts.size, level)
    (lost, fixed), (size, others) = products(rest), products(more)
    need(growth >= 1 and not entered and kept <= 1 and not others and set(fixed) <= {ONE}, "it enters otherwise")
    need(count is None or count >= 1, "a loop has a round")
    rate, before = _rate(start), start.parts["loops"]
    if count is None:
        need(rate is None or before > 0, "it begins with halves of any number")
        rate, before = max(growth, rate or growth), before + 1
    need(_rate(goal) == rate and goal.parts["loops"] == before, "it grows otherwise")
    need(goal.assuming == start.assuming, "it assumes something else than its start")
    more_times = G if count is None else power_sum(growth, count - 1)  # 1 + r + ... + r^(n - 2)
    last = add(plain(1), times(more_times, growth - 1))  # r^(n - 1)
    goals = [start, body]
    if len(premises) > 2:
        (told_,) = tree.summed(premises[2:], [step["body"]])
        zero = tree.goals[premises[2]]
        goals.append(zero)
        need(first.nothing and _rate(start) is None and _rate(zero) is None, "the start is not zero")
        need(zero.assuming == {(level, frozenset())}, "the first round is not from zero")
        need(told_.formats is not None and facts.formats is not None and told_.formats <= facts.formats,
             "the first sum is another number")  # fmt: skip
        need(not any(factor[0] in ("error", "size") for form in (told_.error, told_.size) for atom in form
                     for item in atom for factor in item), "the first round reads the sum so far")  # fmt: skip
        begins = add(times(told_.error, last), times(told_.size, times(more_times, part)))
        names = lifts(lost) | lifts(told_.error)
        lost, begins, raised = lifted(lost, names), lifted(begins, names), lifted(size, names)
        # r^(n - 2) of own is (1 + (r - 1) G) / r, and part (1 + ... + r^(n - 3)) of size is part (G - 1) / r
        falls: Form = {atom: max(Fraction(0), (value - part * raised.get(atom, Fraction(0))) / growth)
                       for atom, value in lost.items()}  # fmt: skip
        rises = add(times(lost, (growth - 1) / growth), times(raised, part / growth))
        error = apart(begins, add(falls, times(rises, more_times), times(fixed, more_times)))
        size = apart(told_.size, size)
    else:
        every = add(plain(1), times(more_times, growth))  # 1 + r + ... + r^(n - 1)
        own_error = add(times(lost, last), times(lifted(size, lifts(lost)), times(more_times, part)))
        old = add(_after(first.error, growth, more_times, last), times(first.size, times(every, part)))
        error = apart(old, add(own_error, times(fixed, every)))
        size = apart(first.size, size)
    need_conditions(goal, goals)
    need_forms(tree, goal, tree.numbers(facts.formats or frozenset(), error, error, size))


def _after(form: Form, growth: Fraction, more: Form, last: Form) -> Form:
    """A form times r^n; if more is G, what has G in it already is r times as much in terms of a further loop's."""
    sides: tuple[Form, Form] = ({}, {})
    for atom, value in flat(form).items():
        (item,) = atom
        count = sum(factor[0] == "growth" for factor in item)
        need(count < 2, "it begins with compensated sums of any number")
        sides[count][atom] = value
    whole = times(last, growth)
    return add(times(sides[0], whole), times(sides[1], plain(growth) if more == G else whole))


def compensated(tree: Any, goal: Goal, premises: Sequence[int], _: Any) -> None:
    """Additions to nearest with u = half a last place. Neumaier: all that n of them lose is at most T (r^n - 1), r = 1
    + u; the sum of what is lost has n - 1 additions, of numbers that are so large together. Kahan: see `_kahan`."""
    step = tree.step(goal, "Compensated")
    inner = len(step["parts"])
    every = tree.summed(premises[: 1 + inner], [step["start"], *step["parts"]])
    goals = [tree.goals[premise] for premise in premises[: 1 + inner]]
    count, how = step["count"], step["rounding"]
    fmt = tree.formats[how["format"]]
    need(inner > 0 and (count is None or count >= inner), "not every part is added")
    need(not any(one.assuming for one in goals[1:]), "a part reads another sum")
    need(count is not None or all(_rate(one) is None for one in goals), "a sum of any number among any number")
    need(how["mode"] in NEAREST and how["subnormals"] == "keep", "what is lost is no number")
    need(fmt["specials"] == "ieee" and fmt["subnormals"], "what is lost is no number")
    need(all(one.nothing or (one.formats is not None and all(holds(fmt, tree.formats[own]) for own in one.formats))
             for one in every), "another number is added")  # fmt: skip
    need_lemmas(tree, premises[1 + inner :], "RoundingLoses", [{"format": how["format"], "mode": how["mode"]}])
    unit = two(-fmt["fraction"] - 1)
    rate = 1 + unit if step["by"] == "neumaier" else _steps_of_kahan(unit)[1]
    more = G if count is None else power_sum(rate, count - 1)
    number = K if count is None else plain(count)
    parts = [products(one.error) for one in every[1:]]
    need(not any(products(one.size)[1] for one in every[1:]), "a part is more than products")
    error = add(apart(every[0].error, *(own for own, _ in parts)), times(number, most(*(rest for _, rest in parts))))
    size = apart(*(one.size for one in every))
    total = add(error, size)
    if step["by"] == "neumaier":
        sums = add(plain(1), times(more, rate))  # 1 + ... + r^(n - 1), so that r^n - 1 is u times that
        before = add(error, times(total, times(times(sums, more), unit * unit)))
        last = add(plain(1), times(sums, unit))
        grid = tree.last(how["format"])
        facts = after_rounding(tree, Facts(before, before, size, grid=grid), how)
        power = times(last, last)
    else:
        lost, power = _kahan(unit, more)
        error = add(error, times(total, lost))
        facts = tree.numbers(frozenset({how["format"]}), error, error, size)
    need_from(replace(goal, parts={**goal.parts, "growth": None, "loops": 0}) if count is None else goal, *goals)
    if count is None:
        need((_rate(goal), goal.parts["loops"]) == (rate, 1), "it grows otherwise")
    limits = [without_overflow(tree, how["format"], one) for one in (plain(1), power)]
    need_conditions(goal, goals, *limits)
    need_forms(tree, goal, facts)


def _steps_of_kahan(unit: Fraction) -> tuple[Fraction, Fraction]:
    """What is carried on is at most v times |s| + |y|; |s| + |y| grows with q: one addition, and what is carried."""
    carried = (1 + unit) * (2 + unit) * unit
    return carried, (1 + unit) * (1 + carried)


def _kahan(unit: Fraction, more: Form) -> tuple[Form, Form]:
    """What is lost by n sums, in T: by the additions of what is carried on (`h`), by those of the difference (`f`), by
    those of what is left (`g`), and what is carried on at last; and how large any value is."""
    carried, rate = _steps_of_kahan(unit)
    every = add(plain(1), times(more, carried))
    h = times(every, unit)
    d = times(add(plain(1), times(more, rate)), unit)
    f = times(add(times(every, 1 + unit), d), unit)
    g = times(add(d, f), unit)
    last = add(plain(1), times(more, rate - 1))
    return add(h, f, g, times(last, carried)), times(last, Fraction(4))


def halved(tree: Any, goal: Goal, premises: Sequence[int], _: Any) -> None:
    step = tree.step(goal, "Halved")
    count, how = len(step["leaves"]), step["rounding"]
    every = tree.summed(premises[:count], step["leaves"])
    goals = [tree.goals[premise] for premise in premises[:count]]
    need_lemmas(tree, premises[count:], "RoundingLoses", [{"format": how["format"], "mode": how["mode"]}])
    need(all(one.formats is not None and one.formats <= {how["format"]} for one in every), "a leaf is another number")
    need(all(one.assuming <= goals[0].assuming and _rate(one) is None for one in goals), "leaves of any number")
    grown = kept = constant = Fraction(0)
    own, sizes = [], []
    for number, facts in enumerate(every, 1):
        growth, part, rest = linear(facts.error, START)
        entered, held_, more = linear(facts.size, START)
        (lost, fixed), (size, others) = products(rest), products(more)
        need(not entered and held_ <= 1 and not others and set(fixed) <= {ONE}, "the start enters a leaf otherwise")
        grown, kept = max(grown, growth), max(kept, part)
        constant = max(constant, fixed.get(ONE, Fraction(0)) / number)
        own.append(lost)
        sizes.append(size)
    error, old = single("error", START), single("size", START)
    sum_of_two = Facts(error, error, old, grid=tree.last(how["format"]))
    rate, part, rest = linear(after_rounding(tree, sum_of_two, how).error, START)
    need(rate >= 1 and set(rest) <= {ONE}, "an addition loses otherwise")
    last, lost, size = add(plain(1), times(G, rate - 1)), most(*own), most(*sizes)
    first = add(times(error, grown), times(old, kept), lost)
    above = times(add(old, lifted(size, lifts(lost))), times(G, part))
    bound = add(times(first, last), above, times(times(last, K), constant + rest.get(ONE, Fraction(0))))
    need(_rate(goal) == rate and goal.parts["loops"] == 0 and goal.assuming == goals[0].assuming, "it grows otherwise")
    need_conditions(goal, goals, without_overflow(tree, how["format"]))
    conclude(goal, tree.numbers(frozenset({how["format"]}), bound, bound, add(old, size)))


# -- all products


def of_all_products(tree: Any, goal: Goal, premises: Sequence[int], _: Any) -> None:
    stage = tree.node(goal, "sum")
    total, (start, begin) = tree.goals[premises[0]], tree.enclosed(premises[1])
    need(total.kind == "Summed" and start.node == stage["start"], "the premises are not about the sum and its start")
    facts = total.facts
    tree.need_same_steps(total.parts["step"], stage["stage"])
    rate, at = _rate(total), tree.unit
    need(rate is None or (rate <= Fraction(at["growth"]) and total.parts["loops"] <= at["loops"]), "it grows faster")
    need({level for level, _ in total.assuming} <= {START}, "it assumes something of a sum so far")
    need(begin.formats is not None and all(any(holds(tree.formats[own], tree.formats[fmt]) for own in formats)
         for _, formats in total.assuming for fmt in begin.formats), "the start is another number")  # fmt: skip
    need(all(isinstance(level, tuple) for level, _ in start.assuming), "the start assumes something")
    tree.need_single_sums()
    words = tree.words
    starts, starts_at = {"error": begin.error, "size": begin.size}, (("error", START), ("size", START))
    forms = []
    for form in (facts.error, facts.size):
        own, rest = products(form)
        begun_by = put_in(rest, lambda factor: starts[factor[0]] if factor[:2] in starts_at else None)
        forms.append(add(tree.over_all(words.put(own)), begun_by))
    times_all = [add(times(own, tree.count), rest) for own, rest in map(products, forms)]
    marks = frozen(single("error", CHAIN)), frozen(single("size", CHAIN))
    ends = tuple((mark, frozen(form)) for mark, form in zip(marks, times_all, strict=True))
    limits = {replace(one, most=None if one.most is None else frozen(words.put(dict(one.most))), each=True,
                      where=(*((mark, frozen(words.put(dict(form)))) for mark, form in one.where), *ends))
              for one in total.provided}  # fmt: skip
    for node in words.kept:
        what = tree.nodes[node]
        top = largest_number(tree.formats[what["rounding"]["format"]])[0]
        limits.add(Condition(node, (), top, frozen(words.size_of(what["term"])), each=True))
    need(goal.provided == start.provided | limits, "something else may not overflow")
    need(goal.assuming == start.assuming | {(("kept", node), frozenset()) for node in words.kept}, "it keeps others")
    hows = [tree.nodes[node]["rounding"] for node in words.kept]
    need_lemmas(tree, premises[2:], "RoundingLoses", [{"format": one["format"], "mode": one["mode"]} for one in hows])
    error, size = forms
    conclude(goal, tree.numbers(facts.formats or frozenset(), error, error, size))


def put_in(form: Form, change: Any) -> Form:
    """A form with other forms in place of some magnitudes."""
    found: Form = {}
    for atom, value in flat(form).items():
        (item,) = atom
        one = plain(value)
        for factor in item:
            other = change(factor)
            one = times(one, single(*factor) if other is None else other)
        found = add(found, one)
    return found
