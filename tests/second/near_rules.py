"""How far values of an algorithm lie from exact sums, said a second time, of plain data.

A document has the inputs (as in `share_rules.py`, with the formats of the factors and of c), the units, each as a
document of its own with its bound and what may not overflow, the values, each after those that it is made of, and
theorems, premises first. M is |c| + sum of |a_k b_k|. Of a value it is said which products of words it adds to a base,
how far it lies from that sum, and how large it is: so much of |c|, of each |a_k b_k|, and of M.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from tests.second.document import Document, holds
from tests.second.goals import read_condition
from tests.second.loop_rules import SLACK
from tests.second.magnitudes import Factor, Form, Monomial, need, read_form, two
from tests.second.share_rules import Inputs
from tests.second.step_rules import need_each_product_once

TheoremData = Mapping[str, Any]


class Sizes(Inputs):
    """The magnitudes that an instruction reads: words of a and b, `shares` of their numbers; a c of `addend` M."""

    def __init__(self, data: TheoremData, unit: TheoremData, addend: Fraction, shares: Sequence[Fraction]) -> None:
        super().__init__(data, data["terms"])
        self.shares, self.own = {"c": addend, "ab": shares[0] * shares[1]}, unit
        self.shares["exact"] = self.shares["c"] + self.shares["ab"]
        tops = {name: two(data["windows"][name][1] + 1) * share for name, share in zip("ab", shares, strict=True)}
        # M is below this
        self.largest = tops | {name: self.shares[name] * self.every for name in ("c", "exact")}

    def lift(self, factor: Factor) -> Fraction:
        if not factor[3]:
            return Fraction(0)
        fmt = self.own["formats"][self.own["unit"][factor[0]]]
        return two((1 if fmt["subnormals"] else 0) - fmt["bias"])

    def most(self, factor: Factor) -> Fraction:
        need(factor[0] in self.largest, "a magnitude is none of an instruction")
        return self.largest[factor[0]] + self.lift(factor)

    def share(self, form: Form) -> Fraction:
        """Products are s_a s_b M together: only the place with the largest coefficient counts. What is added to small
        numbers is a share of the least M."""
        places, rest = Counter[int](), Fraction(0)
        for atom, value in form.items():
            (item, *others) = atom
            if not others and _is_product(item):
                places[item[0][1]] += value  # type: ignore[assignment]
                rest += value * self._more(item)
            else:
                rest += value * max(map(self._of, atom))
        return rest + max(places.values(), default=0) * self.shares["ab"]

    def _of(self, item: Monomial) -> Fraction:
        name = "ab" if _is_product(item) else item[0][0] if len(item) == 1 else ""
        if name in self.shares:
            return self.shares[name] + self._more(item)
        size = Fraction(1)
        for factor in item:
            size *= self.most(factor)
        return size / self.least

    def _more(self, item: Monomial) -> Fraction:
        """How much raised magnitudes are larger than those that are not, in the least M."""
        raised, plain = Fraction(1), Fraction(1)
        for factor in item:
            raised, plain = raised * self.most(factor), plain * self.largest[factor[0]]
        return (raised - plain) / self.least


def _is_product(item: Monomial) -> bool:
    return [factor[0] for factor in item] == ["a", "b"] and item[0][1] == item[1][1] and not any(x[2] for x in item)


class Nears:
    """The theorems of a document."""

    def __init__(self, data: TheoremData) -> None:
        self.data, self.values, self.every = data, data["values"], data["theorems"]
        for number, value in enumerate(self.values):
            below = [value[name] for name in ("addend", "first", "second") if name in value]
            need(all(one < number for one in below), "a value stands before what it is made of")

    def check(self) -> None:
        for number, theorem in enumerate(self.every):
            need(all(premise < number for premise in theorem["premises"]), "a premise comes later")
            rule = getattr(self, theorem["rule"], None)
            need(rule is not None, "there is no such rule")
            assert rule is not None
            rule(theorem, [self.every[premise] for premise in theorem["premises"]])

    def settled(self, theorem: TheoremData, premises: Sequence[TheoremData]) -> None:
        """A lemma about words, which engines answer."""
        need(theorem["goal"]["is"] == "WordIsSmall" and not premises, "it is no lemma about words")

    def begins(self, theorem: TheoremData, premises: Sequence[TheoremData]) -> None:
        goal = theorem["goal"]
        kind = self.values[goal["value"]]["kind"]
        need(kind in ("addend", "nothing") and not premises and goal["base"] == goal["value"], "it is made of others")
        weight = kind == "addend" and self.data["addend"]
        self._need(goal, [], Fraction(0), Fraction(weight), [Fraction(0)] * self.data["terms"], Fraction(0))

    def from_here(self, theorem: TheoremData, premises: Sequence[TheoremData]) -> None:
        (near,) = premises
        before, goal = near["goal"], theorem["goal"]
        need(before["is"] == "Near" and goal["base"] == goal["value"] == before["value"], "it is about another value")
        self._need(goal, [], Fraction(0), *_sizes(before))

    def after_instruction(self, theorem: TheoremData, premises: Sequence[TheoremData]) -> None:
        goal, (before, *words) = theorem["goal"], [premise["goal"] for premise in premises]
        value, terms = self.values[goal["value"]], self.data["terms"]
        need(value["kind"] == "instruction" and value["addend"] == before["value"], "it is about another addend")
        need(goal["base"] == before["base"], "it has another base")
        unit = self.data["units"][value["model"]]
        formats = {name: unit["formats"][unit["unit"][name]] for name in "abc"}
        for side in "ab":
            how = value[side]["words"]
            need(how["into"] == formats[side] and how["given"] == self.data["factors"], "other words")
            need(0 <= value[side]["number"] < how["count"], "there is no such word")
        given = self._format(value["addend"])
        need(given is None or holds(formats["c"], given), "the addend is no number of the unit's")
        need(0 <= value["start"] < value["stop"] <= min(terms, value["start"] + unit["unit"]["length"]), "too many")
        need_each_product_once(Document(unit), unit["unit"])
        shares = [self._share(side, value[side], words) for side in "ab"]
        weight, weights, off = _sizes(before)
        sizes = Sizes(self.data, unit, max(weight, *weights) + off, shares)
        need(all(map(sizes.fits, map(read_condition, unit["provided"]))), "a rounding may overflow")
        loss = sizes.share(read_form(unit["bound"]))
        own = [shares[0] * shares[1] * (value["start"] <= k < value["stop"]) for k in range(terms)]
        added = [*before["products"], [value["a"], value["b"], value["start"], value["stop"]]]
        more = [x + y for x, y in zip(weights, own, strict=True)]
        self._need(goal, added, Fraction(before["distance"]) + loss, weight, more, off + loss)

    def after_addition(self, theorem: TheoremData, premises: Sequence[TheoremData]) -> None:
        goal, (one, two_) = theorem["goal"], [premise["goal"] for premise in premises]
        value = self.values[goal["value"]]
        need(value["kind"] == "sum" and [value["first"], value["second"]] == [one["value"], two_["value"]], "others")
        fmt = value["format"]
        for number in (one, two_):
            given = self._format(number["value"])
            need(given is None or holds(fmt, given), "a number is of another format")
        need(fmt["specials"] == "ieee" and fmt["signed"] and fmt["subnormals"], "what it loses is not told")
        bases = [number["base"] for number in (one, two_) if self.values[number["base"]]["kind"] != "nothing"]
        need(len(bases) < 2, "both have a base")
        need(goal["base"] == (bases[0] if bases else one["base"]) or (
            not bases and self.values[goal["base"]]["kind"] == "nothing"), "it has another base")  # fmt: skip
        sides = [_sizes(number) for number in (one, two_)]
        size = sum(max(weight, *weights) + off for weight, weights, off in sides)
        need(size * Inputs(self.data, self.data["terms"]).every < two(_emax(fmt)), "the sum may overflow")
        loss = size * two(-fmt["fraction"] - 1)
        distance = Fraction(one["distance"]) + Fraction(two_["distance"]) + loss
        weights = [x + y for x, y in zip(sides[0][1], sides[1][1], strict=True)]
        self._need(goal, [*one["products"], *two_["products"]], distance, sides[0][0] + sides[1][0], weights,
                   sides[0][2] + sides[1][2] + loss)  # fmt: skip

    def near_each_other(self, theorem: TheoremData, premises: Sequence[TheoremData]) -> None:
        """Place by place: what only one of both adds there."""
        goal, every = theorem["goal"], [premise["goal"] for premise in premises]
        nears = [one for one in every if one["is"] == "Near"]
        need(len(nears) == 2 and every[:2] == nears, "it is not about two results")
        need(goal["is"] == "Apart" and goal["values"] == [one["value"] for one in nears], "it is about others")
        need(nears[0]["base"] == nears[1]["base"], "they have no base in common")
        share, most, sizes_of = Fraction(0), Counter[str](), dict[str, Fraction]()
        for place in range(self.data["terms"]):
            only = Counter[str]()
            for near, sign in zip(nears, (1, -1), strict=True):
                for a, b, start, stop in near["products"]:
                    if start <= place < stop:
                        only[repr((a, b))] += sign
                        sizes_of[repr((a, b))] = self._share("a", a, every[2:]) * self._share("b", b, every[2:])
            for pair, count in only.items():
                most[pair] = max(most[pair], abs(count))
        share += sum((Fraction(one["distance"]) for one in nears), Fraction(0))
        share += sum((count * sizes_of[pair] for pair, count in most.items()), Fraction(0))
        need(share <= Fraction(goal["share"]), "they may lie further apart")
        sizes = [max(weight, *weights) + off for weight, weights, off in map(_sizes, nears)]
        need(max(sizes) <= Fraction(goal["size"]), "one may be larger")

    def _share(self, side: str, word: TheoremData, words: Sequence[TheoremData]) -> Fraction:
        """How large a word is beside its number, by one of the lemmas."""
        for one in words:
            need(one["is"] == "WordIsSmall", "a premise is no lemma about words")
            if (
                one["words"] == word["words"]
                and one["number"] == word["number"]
                and (list(one["window"]) == list(self.data["windows"][side]))
            ):
                return Fraction(one["share"])
        need(False, "nothing is known of a word")
        raise AssertionError

    def _format(self, number: int) -> TheoremData | None:
        """The format of a value; None for +0, which every format has."""
        value = self.values[number]
        match value["kind"]:
            case "addend":
                found: TheoremData = self.data["addend_format"]
                return found
            case "instruction":
                unit = self.data["units"][value["model"]]
                found = unit["formats"][unit["unit"]["d"]]
                return found
            case "sum":
                found = value["format"]
                return found
        return None

    def _need(self, goal: TheoremData, products: Sequence[Any], distance: Fraction, weight: Fraction,
              weights: Sequence[Fraction], off: Fraction) -> None:  # fmt: skip
        """What is claimed of a value must be this, but for what is rounded up a little."""
        need(goal["is"] == "Near" and list(map(list, goal["products"])) == list(map(list, products)), "other products")
        need(distance <= Fraction(goal["distance"]) <= distance * SLACK, "it may lie further away")
        need(
            Fraction(goal["weight"]) == weight and list(map(Fraction, goal["weights"])) == list(weights),
            "it weighs more",
        )
        need(off <= Fraction(goal["off"]) <= off * SLACK, "it may be larger")


def _sizes(goal: TheoremData) -> tuple[Fraction, list[Fraction], Fraction]:
    return Fraction(goal["weight"]), list(map(Fraction, goal["weights"])), Fraction(goal["off"])


def _emax(fmt: TheoremData) -> int:
    return int((1 << fmt["exponent"]) - 2 - fmt["bias"])
