"""Instances of the rules about claims: random claims on so few inputs that all of them are looked at.

What a claim says is worked out by benchmarks/claim_values.py, from exact rationals; what parts give, by the oracles of
nodes and of algorithms (tests/oracles/node_oracle.py, tests/oracles/algorithm_oracle.py).
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial, reduce
from itertools import product
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks import claim_statements, claim_values
from benchmarks.campaign import claim_of
from benchmarks.claim_values import NoNumberError, Pattern, Words
from benchmarks.rules.campaign import Campaign
from benchmarks.rules.enclosures import Deriving
from benchmarks.rules.facts import ENGINE
from benchmarks.rules.lemmas import Truths, tallied
from benchmarks.rules.shares import least_share, word_is_small
from mmaprobe.hypotheses.claim import Claim
from mmaprobe.queries.kernel.bounds.shares import Apart, Space, WordIsSmall, space_of
from mmaprobe.queries.kernel.bounds.unit_shares import Errs, ErrsUpTo, share_claim, unit_of, windows_of
from mmaprobe.queries.kernel.errors import RuleError
from mmaprobe.queries.kernel.questions.recorded import recorded_part
from mmaprobe.queries.kernel.questions.scene import lanes_of
from mmaprobe.queries.kernel.terms.undecided import (
    ByFirstWords,
    ConditionsReadNumbers,
    FirstWordIsWhole,
    NoInputDecides,
    NoLengthDecides,
    Question,
    ZerosGiveZero,
    lemmas_of,
)
from mmaprobe.queries.kernel.theorem import Theorem
from mmaprobe.queries.plans.bound import bound_of_plan
from mmaprobe.queries.properties.bound import bound_of
from mmaprobe.smtmodel.algorithms.assertion import Assertion
from mmaprobe.smtmodel.algorithms.parts import Part
from mmaprobe.smtmodel.algorithms.scene import Shape
from mmaprobe.smtmodel.base.errors import MmaprobeError
from mmaprobe.smtmodel.plans.multiword import is_scheme, parse_scheme
from mmaprobe.smtmodel.plans.stages import Parted
from mmaprobe.smtmodel.units.unit import Unit
from tests.oracles import algorithm_oracle, claim_oracle, node_oracle, oracle
from tests.said import believed

INPUTS = 300  # of a claim, at most


# -- what parts give


def run_of(part: Part, given: str) -> Any:
    """A part as a function of patterns, a and b in the format `given`."""
    (model,) = part.plan.models
    unit, known = model.unit, dict[Any, int]()

    def result(a: Sequence[int], b: Sequence[int], c: int) -> int:
        key = tuple(a), tuple(b), c
        if key not in known:
            filled = [[*side, *[0] * (unit.length - len(side))] for side in (a, b)]
            found = node_oracle.evaluate(unit, *filled, c)
            known[key] = unit.d.nan if found == node_oracle.ANY_NAN else found
        return known[key]

    def run(a: Sequence[int], b: Sequence[int], c: int) -> int:
        source = part.source.name
        if given != source:
            a, b = ([algorithm_oracle.convert(x, given, source, "nearest_even") for x in side] for side in (a, b))
        if not is_scheme(part.text):
            stage, runs = part.plan.sums[0].stage, [c]
            size = stage.period if isinstance(stage, Parted) else len(a)
            for start in range(0, len(a), size):
                own = (side[start : start + size] for side in (a, b))
                runs.append(algorithm_oracle.gemm(result, unit.length, *own, 0 if start else runs.pop()))
            return reduce(partial(oracle.ieee_add, unit.d.name, "nearest_even"), runs)
        return claim_oracle.algorithm_of(parse_scheme(part.text), model, result)(a, b, c)

    return run


def columns_of(assertion: Assertion) -> list[list[int]]:
    shape, terms = assertion.shape, assertion.terms
    a, b = (claim_values._patterns(shape.factors.name, window) for window in (shape.window.a, shape.window.b))
    c = claim_values._patterns(shape.addend.name, "zero" if assertion.zero_addend else shape.window.c)
    return [a] * terms + [b] * terms + [c]


_KNOWN: deque[tuple[Assertion, list[Words]]] = deque(maxlen=4)  # the inputs of the last claims, whatever these say


def inputs_of(assertion: Assertion) -> list[Words]:
    """All inputs in the windows of a claim, with what its parts give."""
    for known, inputs in _KNOWN:
        if known.shape is assertion.shape and columns_of(known) == columns_of(assertion):
            return inputs
    shape, terms = assertion.shape, assertion.terms
    runs = {name: (run_of(part, shape.factors.name), part.result.name) for name, part in shape.parts.items()}
    found = []
    for row in product(*columns_of(assertion)):
        a, b, c = row[:terms], row[terms:-1], row[-1]
        parts = {name: Pattern(fmt, run(a, b, c)) for name, (run, fmt) in runs.items()}
        sides = (tuple(Pattern(shape.factors.name, x) for x in side) for side in (a, b))
        found.append(Words(*sides, Pattern(shape.addend.name, c), parts))
    _KNOWN.append((assertion, found))
    return found


# -- meanings


def no_input_decides(goal: NoInputDecides, rng: random.Random) -> Iterator[str]:
    own = goal.assertion
    truth = claim_values.truth(inputs_of(own), own.where, own.text, own.quantifier)
    if truth.deciding or truth.at_fault:
        yield str(truth)


def by_first_words(goal: ByFirstWords, rng: random.Random) -> Iterator[str]:
    """Step by step, on all inputs in the windows."""
    table = np.array(list(product(*columns_of(goal.assertion))), dtype=np.uint64)
    sides = [lanes_of(one, table).steps(goal.part)
             for one in (goal.assertion, goal.assertion.reshaped(whole=frozenset({goal.part})))]  # fmt: skip
    for step, bits in sides[1].items():
        if (np.asarray(sides[0][step].node) != np.asarray(bits.node)).any():
            yield f"{step} is another"


def _at_lengths(own: Assertion) -> Iterator[Assertion]:
    """A claim about several numbers of products for those that have few inputs."""
    for count in range(own.terms, (own.most or own.terms) + 1, own.terms):
        at = replace(own.at(count), text=own.text.replace("terms()", str(count)))
        if prod(map(len, columns_of(at))) <= INPUTS:
            yield at


def no_length_decides(goal: NoLengthDecides, rng: random.Random) -> Iterator[str]:
    for at in _at_lengths(goal.assertion):
        yield from no_input_decides(NoInputDecides(at), rng)


def errs_up_to(goal: ErrsUpTo, rng: random.Random) -> Iterator[str]:
    """The share of each number of products, on the line between both."""
    space, (low, high), last = goal.space, goal.shares, goal.space.terms
    shape = Shape(space.factors, space.addend, space.window, {"p": goal.part})
    own = Assertion("all", goal.first, shape, space.no_addend, (), "", last)
    for at in _at_lengths(own):
        share = low + (high - low) * Fraction(at.terms - goal.first, max(1, last - goal.first))
        text = f"{share.denominator} * error(p) <= {share.numerator} * magnitude_sum()"
        yield from no_input_decides(NoInputDecides(replace(at, where=("nonzero(a)", "nonzero(b)"), text=text)), rng)


MEANINGS = {NoInputDecides: no_input_decides, ByFirstWords: by_first_words, NoLengthDecides: no_length_decides,
            ErrsUpTo: errs_up_to}  # fmt: skip


def conditions_read_numbers(own: ConditionsReadNumbers) -> bool:
    try:
        for one in inputs_of(own.about):
            all(one.says(text) for text in own.about.where)
    except NoNumberError:
        return False
    return True


def first_word_is_whole(own: FirstWordIsWhole) -> bool:
    what = parse_scheme(own.part.text)
    (model,) = own.part.plan.models
    given, source = own.factors.name, own.part.source.name
    numbers = sorted({x for window in own.windows for x in claim_values._patterns(given, window)})
    wide = [x if given == source else algorithm_oracle.convert(x, given, source, "nearest_even") for x in numbers]
    for fmt in (model.a.name, model.b.name):
        first, *rest = algorithm_oracle.words(wide, source, fmt, what.split, what.words, what.scale)
        sides = [(oracle.decode(given, x), oracle.decode(fmt, w)) for x, w in zip(numbers, first, strict=True)]
        one_zero = oracle.FORMATS[fmt].one_zero  # then -0 is +0 there
        if any(w.kind != "finite" or x.value != w.value or (x.sign != w.sign and not (one_zero and not w.value))
               for x, w in sides):  # fmt: skip
            return False
        if any(word for words in rest for word in words):
            return False
    return True


def zeros_give_zero(own: ZerosGiveZero) -> bool:
    """Of all factors that are finite, and a zero for each product."""
    model, count = own.model, own.count
    a, b = ([pattern for pattern in range(1 << fmt.width) if oracle.decode(fmt.name, pattern).kind == "finite"]
            for fmt in (model.a, model.b))  # fmt: skip
    none = [{pattern for pattern in side if oracle.decode(fmt.name, pattern).value == 0}
            for side, fmt in ((a, model.a), (b, model.b))]  # fmt: skip
    pairs = [(x, y) for x in a for y in b if x in none[0] or y in none[1]]
    rest = [0] * (model.length - count)
    for row in product(pairs, repeat=count):
        for c in (0, model.c.sign_bit):
            found = node_oracle.evaluate(model.unit, [*(x for x, _ in row), *rest], [*(y for _, y in row), *rest], c)
            if found == node_oracle.ANY_NAN or (found if not c else found & ~model.d.sign_bit):
                return False
    return True


# -- instances


SHARES = ("2**2", "2", "1", "2**-1", "2**-2", "3 * 2**-3", "2**-4", "-1", "value(c)")
PREDICATES = ("bits(p) == bits(q)", "value(p) == value(q)", "error(p) <= error(q)", "distance(p, q) <= 1", "finite(p)",
              "value(p) >= exact()", "error(p) <= 2**-1 * top()", "abs(value(p)) <= 2 * magnitude_sum()")  # fmt: skip
CONDITIONS = ("finite(p)", "finite(p) and finite(q)", "nonnegative(a)", "nonzero(b)", "value(p) >= 0", "not zero(q)")


ADDED = """plan: added
formats: {{a: {factors}, b: {factors}, c: e4m3, d: e4m3}}
units: {{unit: ./p.yaml}}
roundings: {{r: "round(e4m3, nearest_even)"}}
steps: {{d: "sum(add({run}, unit, r), c)"}}
"""


def claim_in(folder: Path, rng: random.Random) -> Claim:
    """A random claim: of units alone or of algorithms of two words, some against the sum of magnitudes."""
    while True:
        share = rng.random() < 0.75
        factors, window, terms = rng.choice(claim_values.FACTORS)
        length, where = rng.randint(1, terms), rng.sample(CONDITIONS, rng.choice((0, 0, 1, 2)))
        addend, last = (claim_statements.ADDEND, [-1, 0]) if share else rng.choice(claim_values.ADDENDS)
        by = f"{rng.choice(SHARES)} * magnitude_sum()"
        text = f"{rng.choice(('error(p)', 'abs(value(p) - value(q))'))} <= {by}" if share else rng.choice(PREDICATES)
        given = {"format": factors, "a": window, "b": window, "c": rng.choice(("zero", last)), "where": where}
        data = {"id": "random", "about": "", "source": "", "says": "nothing", "expect": "holds", "terms": terms,
                "quantifier": "all" if share else rng.choice(("all", "exists")), "claim": text,
                "inputs": given}  # fmt: skip
        try:
            parts = {}
            for name in "pq":
                own = (claim_statements._unit(rng, name, factors, length) if share
                       else claim_values._unit(rng, name, factors, addend, length))  # fmt: skip
                parts[name] = f"{folder}/{name}.yaml"
                Path(parts[name]).write_text(own, encoding="utf-8")
            if rng.random() < 0.5:
                data, parts = _of_words(data, parts, rng)
            elif share and rng.random() < 0.3:
                text = ADDED.format(factors=factors, run=length * rng.choice((1, 1, 2)))
                parts["p"] = f"{folder}/added.yaml"
                Path(parts["p"]).write_text(text, encoding="utf-8")
            found = claim_of(data | {"parts": parts})
        except MmaprobeError:
            continue
        if isinstance(found, Claim) and prod(map(len, columns_of(found.assertion))) <= INPUTS:
            return found


def _of_words(data: dict[str, Any], parts: dict[str, str], rng: random.Random) -> tuple[dict[str, Any], dict[str, str]]:
    """A claim with algorithms of two words in the place of units, at times for numbers that one word does not hold."""
    how = rng.choice(("nearest_even", "nearest_even", "toward_zero"))
    every = rng.random() < 0.7
    for name in list(parts) if every else [rng.choice(list(parts))]:
        words = f"source=f16,words=2,products={rng.choice((1, 3, 4))},split={how}"
        words += rng.choice((*("",) * 9, ",scale=2,sums=by_size"))
        parts = parts | {name: f"multiword@unit=({parts[name]}),{words}"}
    if every and rng.random() < 0.4:
        data = data | {"inputs": data["inputs"] | {"format": rng.choice(("e3m2", "e2m3", "e2m2_none")), "where": []}}
    return data, parts


def instances(campaign: Campaign, truths: Truths, rng: random.Random) -> None:
    """That no input decides a claim: from facts about its terms, and from shares."""
    with TemporaryDirectory() as folder:
        _about(campaign, truths, claim_in(Path(folder), rng).assertion, rng)


def _about(campaign: Campaign, truths: Truths, assertion: Assertion, rng: random.Random) -> None:
    call = campaign.call
    if any(is_scheme(part.text) and parse_scheme(part.text).scale for part in assertion.shape.parts.values()):
        _by_shares(campaign, truths, assertion, rng)  # the oracle of algorithms has no such words
        return
    asked = tallied(campaign, ConditionsReadNumbers(assertion), conditions_read_numbers)
    other = replace(assertion, where=tuple(rng.sample([one for one in CONDITIONS if "q" not in one], 2)))
    tallied(campaign, ConditionsReadNumbers(other), conditions_read_numbers)
    first = [one for name in assertion.shape.parts if (one := _whole(campaign, assertion, name, rng)) is not None]
    some = first if rng.random() < 0.5 else []
    if rng.random() < 0.05:
        some = first[1:]
    whole = frozenset(one.goal.part for one in some)  # type: ignore[attr-defined]
    try:
        question = Question(assertion, whole)
    except (MmaprobeError, RuleError):
        return
    admitted = call("given", question, check=False)
    assert admitted is not None
    facts = [call("follows", question, bit.node, [admitted], [], ENGINE, check=False)
             for bit in (question.none, question.fits)]  # fmt: skip
    none, numbers = facts
    for given in ((none, numbers), (none, None), (numbers, none)):
        if given[0] is not None:
            for known in dict.fromkeys((asked, None)):
                call("undecided", question, *given, some, known)
    if none is not None:
        call("undecided", question, none, numbers, first if not some else [], asked)
    _by_shares(campaign, truths, assertion, rng)


def _whole(campaign: Campaign, assertion: Assertion, name: str, rng: random.Random) -> Theorem | None:
    """That the steps of a part are made of first words."""
    try:
        lemmas = lemmas_of(assertion, name)
    except RuleError:
        (model,) = assertion.shape.parts[name].plan.models
        tallied(campaign, ZerosGiveZero(model, min(assertion.terms, model.length)), zeros_give_zero)
        return None
    for _ in range(2):
        low = rng.randint(-3, 2)
        windows = ((low, low + rng.randint(0, 3)), lemmas[0].windows[1])
        tallied(campaign, replace(lemmas[0], windows=windows), first_word_is_whole)
    whole, zeros = (tallied(campaign, lemma, true)
                    for lemma, true in zip(lemmas, (first_word_is_whole, zeros_give_zero), strict=True))  # fmt: skip
    if whole is None or zeros is None:
        return None
    campaign.call("by_first_words", assertion, rng.choice(list(assertion.shape.parts)), whole, zeros)
    campaign.call("by_first_words", assertion, name, zeros, whole)
    return campaign.call("by_first_words", assertion, name, whole, zeros)


def _every_length(campaign: Campaign, assertion: Assertion, part: Part, rng: random.Random) -> None:
    """The same for several numbers of products, at times for those of which the plan says nothing."""
    period = part.plan.sums[0].stage.period
    first = period if rng.random() < 0.8 else rng.choice((1, 2, 3))
    last = first * rng.choice((1, 2, 4)) + (rng.random() < 0.05)
    space = replace(space_of(assertion), terms=last)
    lengths = None if rng.random() < 0.95 else period, first if rng.random() < 0.9 else 2 * first
    try:
        bound, once = (bound_of_plan(part.plan, count, believed, windows_of(space)) for count in lengths)
    except (MmaprobeError, RuleError):
        return
    within = campaign.call("of_plan", space, part, first, bound, once if rng.random() < 0.9 else None)
    (name,) = (name for name, own in assertion.shape.parts.items() if own is part)
    for other, also in assertion.shape.parts.items():
        if within is not None and also is not part:
            _both_lengths(campaign, replace(assertion, terms=first, most=last), (name, other), within, rng)
    for share in (f"({rng.choice(SHARES[:4])} + {rng.choice((0, 1))} * terms())", rng.choice(SHARES)):
        about = replace(assertion, terms=first, most=last, text=f"error({name}) <= {share} * magnitude_sum()")
        if within is not None:
            campaign.call("for_every_length", about if rng.random() < 0.95 else about.at(first), [within])


def _both_lengths(
    campaign: Campaign, about: Assertion, names: tuple[str, str], within: Theorem, rng: random.Random
) -> None:
    """Claims about two results, and about one where a condition reads another."""
    part, first = about.shape.parts[names[1]], about.terms
    space = replace(space_of(about), terms=about.most or first)
    try:
        bounds = [bound_of_plan(part.plan, count, believed, windows_of(space)) for count in (None, first)]
    except (MmaprobeError, RuleError):
        return
    also = campaign.call("of_plan", space, part, first, *bounds)
    share = f"({rng.choice(SHARES)} + {rng.choice((0, 1))} * terms())"
    distance, asked = (
        f"abs(value({names[0]}) - value({names[1]}))",
        rng.choice((f"value({names[1]}) > 0", "nonzero(a)")),
    )
    for compared, where in ((distance, ()), (f"error({names[0]})", (asked,)), (f"error({names[0]})", ())):
        own = replace(about, where=where, text=f"{compared} <= {share} * magnitude_sum()")
        for given in ([within, also], [within], [also, within]):
            if None not in given:
                campaign.call("for_every_length", own, given)


def _by_plan(campaign: Campaign, assertion: Assertion, part: Part, space: Space, rng: random.Random) -> None:
    """The same from the bound of the part's plan for as many products, at times for others."""
    count = assertion.terms if rng.random() < 0.9 else rng.choice((None, 1, 2, 3))
    try:
        bound = bound_of_plan(part.plan, count, believed, windows_of(space))
    except (MmaprobeError, RuleError):
        return
    if (within := campaign.call("of_plan_at", space, part, bound)) is not None:
        campaign.call("compares", assertion, [within])


def _by_shares(campaign: Campaign, truths: Truths, assertion: Assertion, rng: random.Random) -> None:
    """That a claim against the sum of magnitudes is decided by none, from the error of its one part."""
    call = campaign.call
    try:
        wanted = share_claim(assertion)
    except RuleError:
        for other in [
            *campaign.recent.of(Apart)[-3:],
            *campaign.recent.of(Errs)[-3:],
        ]:  # what is wrong is seen before that
            call("compares", assertion, [other])
        return
    space = wanted.space
    if len(wanted.parts) == 1:
        _by_plan(campaign, assertion, wanted.parts[0], space, rng)
        try:
            bound = bound_of(unit_of(wanted.parts[0], space), believed)
        except RuleError:
            return
        within = call("of_unit", space, wanted.parts[0], bound)
        if within is not None:
            call("compares", assertion, [within])
        _every_length(campaign, assertion, wanted.parts[0], rng)
        return
    nears, words = [], list[Theorem]()
    for part in wanted.parts:
        try:
            known: Any = recorded_part(part, space.factors, space.terms)
        except RuleError:
            return
        chain = []
        while hasattr(known, "model"):
            chain.append(known)
            known = known.addend
        near = call("begins", space, known)
        for step in reversed(chain):
            own: Unit = step.model.unit
            bound = Deriving(campaign, truths, own, rng, chain=False).node(own.result, ())
            for side, how in (("a", step.a.words), ("b", step.b.words)):
                window = getattr(space.window, side)
                for k in range(how.count):
                    lemma = WordIsSmall(how, window, least_share(how, window, k), k)
                    words += [one for one in [tallied(campaign, lemma, word_is_small)] if one is not None]
            if near is None or bound is None:
                return
            near = call("after_instruction", step, near, bound, words)
        if near is None:
            return
        nears.append(near)
    within = call("near_each_other", nears, words)
    if within is not None:
        call("compares", assertion, [within])
