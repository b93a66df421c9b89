"""Rules about values of an algorithm: how far they lie from exact sums, as shares of the sum of magnitudes M."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from queries.certificates.document import Document
from queries.certificates.goals import Goal
from queries.certificates.magnitudes import Form, Monomial, need, two

Parts = Mapping[str, Any]


class Inputs:
    """The inputs of a space: zeros, and normal numbers whose exponents lie in windows."""

    def __init__(self, space: Parts) -> None:
        self.space, window, self.terms = space, space["window"], space["terms"]
        (self.low_a, self.high_a), (self.low_b, self.high_b), (self.low_c, self.high_c) = (
            window[side] for side in "abc"
        )
        self.no_addend = space["no_addend"]
        need(type(self.terms) is int and self.terms > 0, "there are no products")

    @property
    def least(self) -> Fraction:
        products: Fraction = two(self.low_a + self.low_b)
        return products if self.no_addend else min(products, two(self.low_c))

    @property
    def most(self) -> Fraction:
        return int(self.terms) * two(self.high_a + self.high_b + 2) + (0 if self.no_addend else two(self.high_c + 1))

    def window(self, side: str) -> list[int]:
        return list(self.space["window"][side])


def _near(tree: Document, premise: int) -> Parts:
    goal = tree.goals[premise]
    need(goal.kind == "Near", "a premise about a value is needed")
    return goal.parts


def _share(tree: Document, space: Parts, side: str, word: Parts, premises: Iterable[int], kind: str) -> Fraction:
    """The share stated by the lemma about a word, or all words. Raises FaultError if no premise is that lemma."""
    wanted = {"words": word["words"], "window": list(space["window"][side])}
    wanted |= {"number": word["number"]} if kind == "WordIsSmall" else {}
    need(word["words"]["given"] == space["factors"], "the words are those of other numbers")
    for premise in premises:
        goal = tree.goals[premise]
        if goal.kind == kind and {name: goal.parts[name] for name in wanted} == wanted:
            return Fraction(goal.parts["share"])
    need(False, "a lemma about a word is missing")
    raise AssertionError


def _conclude(goal: Goal, kind: str, **parts: Any) -> None:
    need(goal.kind == kind, "its goal is of another kind")
    wrong = [name for name, value in parts.items() if goal.parts[name] != value]
    need(not wrong and set(goal.parts) == set(parts), f"the conclusion does not follow: {', '.join(wrong)}")


def begins(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    value, space = goal.parts["value"], goal.parts["space"]
    need(not premises and value in ({"kind": "addend"}, {"kind": "nothing"}), "it is not a value to begin with")
    weight = "0" if value["kind"] == "nothing" or space["no_addend"] else "1"
    _conclude(goal, "Near", space=space, value=value, base=value, products=[], distance="0", weight=weight,
              weights=["0"] * Inputs(space).terms, off="0")  # fmt: skip


def from_here(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    (premise,) = premises
    near = _near(tree, premise)
    _conclude(goal, "Near", **(dict(near) | {"base": near["value"], "products": [], "distance": "0"}))


def after_instruction(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    before, bound, *words = premises
    near, unit, value = _near(tree, before), tree.unit, goal.parts["value"]
    space = near["space"]
    inputs, known = Inputs(space), tree.goals[bound]
    need(value["kind"] == "instruction" and value["addend"] == near["value"], "the premise is not about its addend")
    need(known.kind == "Enclosed" and known.node == unit["result"], "the bound is not that of the result")
    need(not known.places and not known.assuming, "the bound assumes something")
    assert known.facts is not None
    need(_format(tree, value["addend"], space, unit["c"]) == unit["c"], "the addend is of another format")
    start, stop = value["start"], value["stop"]
    need(0 <= start < stop <= min(inputs.terms, start + unit["length"]), "the unit has fewer products")
    need([value[side]["words"]["into"] for side in "ab"] == [unit["a"], unit["b"]], "the words are of other formats")
    _adds_products(tree)
    need(all(0 <= value[side]["number"] < value[side]["words"]["count"] for side in "ab"), "there is no such word")
    one, other = (_share(tree, space, side, value[side], words, "WordIsSmall") for side in "ab")
    sizes = _Sizes(tree, inputs, _size(near), (one, other), bound)
    sizes.no_overflow()
    loss = Fraction(goal.parts["distance"]) - Fraction(near["distance"])
    need(loss >= sizes.share(known.facts.error), "it claims less than the bound of the unit gives")
    weights = [Fraction(own) + (one * other if start <= k < stop else 0) for k, own in enumerate(near["weights"])]
    products = [*near["products"], [value["a"], value["b"], start, stop]]
    wanted = dict(near) | {"value": value, "products": products, "distance": goal.parts["distance"]}
    _conclude(goal, "Near", **wanted | {"weights": list(map(str, weights)), "off": str(Fraction(near["off"]) + loss)})


def after_addition(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    one, other = (_near(tree, premise) for premise in premises)
    value, space, inputs = goal.parts["value"], one["space"], Inputs(one["space"])
    need(value["kind"] == "sum" and space == other["space"], "its premises are about other inputs")
    need([value["first"], value["second"]] == [one["value"], other["value"]], "the premises are not about its numbers")
    number = value["format"]
    fmt = tree.formats[number]
    need(all(_format(tree, near["value"], space, number) == number for near in (one, other)), "of another format")
    need(fmt["specials"] == "ieee" and fmt["signed"] and fmt["subnormals"], "it is not a format of IEEE 754")
    bases = [one["base"], other["base"]]
    need({"kind": "nothing"} in bases, "both numbers have a base")
    base = bases[1] if bases[0] == {"kind": "nothing"} else bases[0]
    size = _size(one) + _size(other)
    need(size * inputs.most < two(_emax(fmt)), "the sum may overflow")
    loss = size * two(-fmt["fraction"] - 1)
    sums = {name: Fraction(one[name]) + Fraction(other[name]) for name in ("distance", "weight", "off")}
    weights = [str(Fraction(x) + Fraction(y)) for x, y in zip(one["weights"], other["weights"], strict=True)]
    _conclude(goal, "Near", space=space, value=value, base=base, products=one["products"] + other["products"],
              distance=str(sums["distance"] + loss), weight=str(sums["weight"]), weights=weights,
              off=str(sums["off"] + loss))  # fmt: skip


def near_the_sum(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    near, *lemmas = _near(tree, premises[0]), *premises[1:]
    space = near["space"]
    need(near["base"] == {"kind": "addend"}, "the error is not counted from c on")
    there: set[str] = set()
    kinds: dict[str, list[Parts]] = {}
    for a, b, start, stop in near["products"]:
        kinds[repr((a["words"], b["words"]))] = [a["words"], b["words"]]
        for k in range(start, stop):
            place = repr((a["number"], b["number"], k))
            need(place not in there, "a product is added twice")
            there.add(place)
    (sides,) = kinds.values()
    found = Fraction(1)
    for side, words in zip("ab", sides, strict=True):
        found *= 1 + _share(tree, space, side, {"words": words}, lemmas, "WordsLeave")
    found -= 1
    for i in range(sides[0]["count"]):
        for j in range(sides[1]["count"]):
            if any(repr((i, j, k)) not in there for k in range(space["terms"])):
                pair = zip("ab", ({"words": sides[0], "number": i}, {"words": sides[1], "number": j}), strict=True)
                one, other = (_share(tree, space, side, word, lemmas, "WordIsSmall") for side, word in pair)
                found += one * other
    _within(goal, [near], found)


def near_each_other(tree: Document, goal: Goal, premises: Sequence[int], _: Any) -> None:
    one, other, *lemmas = (_near(tree, premises[0]), _near(tree, premises[1]), *premises[2:])
    need(one["base"] == other["base"] and one["space"] == other["space"], "the two have no base in common")
    rest = list(other["products"])
    only = []
    for product in one["products"]:
        if product in rest:
            rest.remove(product)
        else:
            only.append(product)
    counts: dict[str, dict[int, int]] = {}
    pairs: dict[str, Fraction] = {}
    for a, b, start, stop in only + rest:
        key = repr((a, b))
        pairs[key] = (_share(tree, one["space"], "a", a, lemmas, "WordIsSmall")
                      * _share(tree, one["space"], "b", b, lemmas, "WordIsSmall"))  # fmt: skip
        for k in range(start, stop):
            counts.setdefault(key, {})[k] = counts.get(key, {}).get(k, 0) + 1
    found = sum((max(counts[key].values()) * share for key, share in pairs.items()), Fraction(0))
    _within(goal, [one, other], found)


def _within(goal: Goal, nears: Sequence[Parts], found: Fraction) -> None:
    found += sum(Fraction(near["distance"]) for near in nears)
    need(found <= Fraction(goal.parts["share"]), "it claims less than is known")
    _conclude(goal, "Within", space=nears[0]["space"], values=[near["value"] for near in nears],
              share=goal.parts["share"], size=str(max(map(_size, nears))))  # fmt: skip


def _size(near: Parts) -> Fraction:
    return max(map(Fraction, (near["weight"], *near["weights"]))) + Fraction(near["off"])


def _format(tree: Document, value: Parts, space: Parts, wanted: int) -> int:
    kinds = {"addend": space["addend"], "instruction": tree.unit["d"], "nothing": wanted}
    return int(value["format"] if value["kind"] == "sum" else kinds[value["kind"]])


def _emax(fmt: Parts) -> int:
    """The exponent of the largest numbers, or the one below."""
    return int((1 << fmt["exponent"]) - 2) - int(fmt["bias"])


def _adds_products(tree: Document) -> None:
    """The result is made of c and of each product a_k b_k once, as they are given; no sum has a sticky bit."""
    wanted = sorted([[], *([k, k] for k in range(tree.unit["length"]))])
    need(sorted(_summands(tree, tree.unit["result"], {}, {})) == wanted, "not every product, and c, is added once")


def _summands(tree: Document, node: int, places: Mapping[int, int], running: Mapping[int, Any]) -> list[list[int]]:
    what = tree.nodes[node]
    kind = what["kind"]
    if kind == "zero":
        return []
    if kind == "acc":
        found: list[list[int]] = running[what["level"]]
        return found
    if kind in ("round", "cut"):
        return _summands(tree, what["term"], places, running)
    if kind in ("fused", "exact"):
        need(not what.get("sticky"), "a sum has a sticky bit")
        terms = tree.terms(what["items"], places.items())
        return [one for term, at, _ in terms for one in _summands(tree, term, dict(at), running)]
    if kind == "repeat":
        state = _summands(tree, what["start"], places, running)
        for place in what["places"]:
            state = _summands(tree, what["body"], {**places, what["level"]: place}, {**running, what["level"]: state})
        return state
    factors = [what]
    if kind == "product":
        need(what["limit"] is None and not what["normalised"], "a product that is not exact and unnormalised")
        factors = [tree.nodes[what["left"]], tree.nodes[what["right"]]]
    need(all(one["kind"] == "element" and one["subnormals"] == "keep" for one in factors), "a factor is not an input")
    need([one["operand"] for one in factors] in (["a", "b"], ["b", "a"], ["c"]), "a product of other inputs")
    at = {one["operand"]: _index(one["index"], places) for one in factors}
    return [[at["a"], at["b"]] if "a" in at else []]


def _index(index: Parts | None, places: Mapping[int, int]) -> int:
    if index is None:
        return 0
    return int(index["offset"]) + sum(int(step) * places[level] for level, step in index["factors"])


class _Sizes:
    """The largest values of the magnitudes in a bound, and their shares."""

    def __init__(self, tree: Document, inputs: Inputs, addend: Fraction, shares: tuple[Fraction, Fraction],
                 bound: int) -> None:  # fmt: skip
        self.tree, self.inputs, self.addend = tree, inputs, addend
        self.product = shares[0] * shares[1]
        self.most = {"a": shares[0] * two(inputs.high_a + 1), "b": shares[1] * two(inputs.high_b + 1),
                     "c": addend * inputs.most, "exact": (addend + self.product) * inputs.most}  # fmt: skip
        self.below: set[int] = set()
        waiting = [bound]
        while waiting:
            number = waiting.pop()
            if number not in self.below:
                self.below.add(number)
                waiting += tree.theorems[number]["premises"]

    def value(self, form: Form) -> Fraction:
        return sum((factor * max(map(self._monomial, atom)) for atom, factor in form.items()), Fraction(0))

    def _monomial(self, item: Monomial) -> Fraction:
        found = Fraction(1)
        for name, level, _, raised in item:
            found *= self._running(name, level) if name in ("error", "size") else self._own(name, raised)
        return found

    def _own(self, name: str, raised: bool) -> Fraction:
        need(name in self.most, "the unit has scale factors")
        return self.most[name] + (two(self.tree.emin(self.tree.unit[name])) if raised else 0)

    def _running(self, name: str, level: int) -> Fraction:
        found = Fraction(0)
        for number in self.below:
            theorem, goal = self.tree.theorems[number], self.tree.goals[number]
            if theorem["rule"] != "repeated" or self.tree.nodes[goal.node]["level"] != level:
                continue
            assert goal.facts is not None
            found = max(found, self.value(goal.facts.error if name == "error" else goal.facts.size))
        return found

    def no_overflow(self) -> None:
        for number in self.below:
            theorem, goal = self.tree.theorems[number], self.tree.goals[number]
            if theorem["rule"] == "rounded":
                operand = self.tree.goals[theorem["premises"][0]].facts
                assert operand is not None
                fmt = self.tree.formats[self.tree.nodes[goal.node]["rounding"]["format"]]
                need(self.value(operand.value) < two(_emax(fmt)), "a rounding may overflow")

    def share(self, form: Form) -> Fraction:
        found, products = Fraction(0), dict[int, Fraction]()
        for atom, value in form.items():
            own = [self._share(item) for item in atom]
            places = [_place(item) for item in atom]
            if len(own) == 1 and places[0] is not None:
                products[places[0]] = products.get(places[0], Fraction(0)) + value
                found += value * (own[0] - self.product)
            else:
                found += value * max(own)
        return found + self.product * max(products.values(), default=Fraction(0))

    def _share(self, item: Monomial) -> Fraction:
        names, least = [factor[0] for factor in item], self.inputs.least
        if _place(item) is not None:
            return self.product + (self._monomial(item) - self.most["a"] * self.most["b"]) / least
        if names == ["exact"]:
            return self.addend + self.product
        if names == ["c"]:
            return self.addend + (self._monomial(item) - self.most["c"]) / least
        return self._monomial(item) / least


def _place(item: Monomial) -> int | None:
    """k, of a_k b_k."""
    if [factor[0] for factor in item] != ["a", "b"] or any(factor[2] for factor in item) or item[0][1] != item[1][1]:
        return None
    return item[0][1]
