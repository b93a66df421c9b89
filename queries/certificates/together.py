"""Checks that parts prove a property of a unit: a second statement of the rules of queries/kernel/together.py, over
plain data.

A part is a question whether two sides agree, as its file states it, with both units as plain data (`left`, `right`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from queries.certificates.document import nan_as, operands_of
from queries.certificates.magnitudes import FaultError, need
from queries.certificates.writing_out import alike, free_of

Plain = dict[str, Any]
Order = tuple[int, ...]


def property_fault(stated: Plain, unit: Plain, parts: Sequence[Plain]) -> str:
    """Why the parts do not prove the property; empty if they do."""
    try:
        need(stated["property"] in RULES, "there is no such property")
        need(stated["compare"] in ("bits", "value"), "it is not known how results are compared")
        for part in parts:
            need(part["inputs"] == stated["inputs"], "a part is about other inputs")
            own = [part["left"] == unit, part["right"] == unit]
            need(any(own) if part["asks"] == "agree" else all(own), "a part is about another unit")
            reordered = part["asks"] == "reordered"
            need(reordered or part["compare"] == stated["compare"], "a part compares results in another way")
        RULES[stated["property"]](stated, unit, parts)
    except FaultError as fault:
        return str(fault)
    except (KeyError, ValueError, TypeError, IndexError) as error:
        return f"cannot be read: {type(error).__name__} {error}"
    return ""


def refuting_fault(asked: Plain) -> str:
    """Why two sides that differ on an admitted input do not refute what is asked (`property`: "equal" or a property);
    empty if they do."""
    try:
        wanted, left = asked["property"], asked["left"]
        if wanted == "equal":
            need(asked["asks"] == "agree", "it asks for something else than equality")
        elif wanted == "zero-padding":
            _padded(asked, asked["right"], [asked])
        elif wanted == "exact":
            _exact(asked, left, [asked])
        else:
            need(left == asked["right"], "it is about two units")
            {"order-independent": _moved_in_groups, "sign-symmetric": _symmetric}.get(wanted, _some_rise)(
                asked, left, [asked]
            )
    except FaultError as fault:
        return str(fault)
    return ""


def _moved_in_groups(stated: Plain, unit: Plain, parts: Sequence[Plain]) -> None:
    """The order moves products within the groups whose order is to have no effect."""
    (order,) = _orders(unit, parts, stated["compare"])
    for group in groups_of(unit):
        need({order[k] for k in group} == set(group), "a product leaves the step that adds it")


def _some_rise(stated: Plain, unit: Plain, parts: Sequence[Plain]) -> None:
    """What rises is the addend, or a product, as the property has it."""
    (part,) = parts
    need(part["asks"] == "raised", "it asks for something else than a rise")
    what = "monotonic-addend" if _raised(part) is None else "monotonic-product"
    need(stated["property"] in (what, "monotonic"), "something else rises")


def property_text(stated: Plain, unit: Plain, parts: Sequence[Plain]) -> str:
    """The stated property, in words."""
    text = {
        "order-independent": f"any order of products {_groups_text(unit)} gives the same d",
        "sign-symmetric": "-d(-a, b, -c) is d(a, b, c)",
        "monotonic-addend": "d does not fall when c rises",
        "monotonic-product": "d does not fall when a product rises",
        "monotonic": "d does not fall when c or a product rises",
        "zero-padding": f"{_lengths(parts)} products, and +0 beyond them, give what the unit of that length gives",
        "exact": "d is the exact sum, rounded once",
    }[stated["property"]]
    limits = {name: value for name, value in stated["inputs"].items() if value not in (False, None, [])}
    how = "as values" if stated["compare"] == "value" else "bit by bit, NaNs alike unless the unit names their pattern"
    return f"{text}; {how}" + (f"; where inputs are {limits}" if limits else "")


# -- every order


def _every_order(stated: Plain, unit: Plain, parts: Sequence[Plain]) -> None:
    """An exchange of two neighbours of a group and a rotation of the whole group by one place generate every order of
    it, and orders of groups that share no product are composed. Restrictions are alike in each product."""
    orders = set(_orders(unit, parts, stated["compare"]))
    need(not stated["inputs"]["zero_terms"], "some products stand fixed")
    count, seen = unit["unit"]["length"], set[int]()
    for group in groups_of(unit):
        need(seen.isdisjoint(group), "two groups share a product")
        seen |= set(group)
        if len(group) > 1:
            exchange, turn = list(range(count)), list(range(count))
            exchange[group[0]], exchange[group[1]] = group[1], group[0]
            for place, product in enumerate(group):
                turn[product] = group[(place + 1) % len(group)]
            need(tuple(exchange) in orders, f"nothing says that {group[0]} and {group[1]} may be exchanged")
            need(tuple(turn) in orders, f"nothing says that {list(group)} may be turned")
    need(seen == set(range(count)), "a product is in no group")


def _orders(unit: Plain, parts: Iterable[Plain], compare: str) -> Iterator[Order]:
    for part in parts:
        need(part["asks"] == "reordered", "a part is about something else than an order")
        need(part["compare"] == compare, "a part compares results in another way")
        need(sorted(part["order"]) == list(range(unit["unit"]["length"])), "it is not an order of the products")
        yield tuple(part["order"])


def groups_of(unit: Plain) -> list[Order]:
    """The groups of products that each step adds, in the order of the steps: those that a loop reads in each round, and
    those read outside of loops; with scale factors, the parts of these that have the same ones; all products in one
    group if each step adds one."""
    nodes, count = unit["nodes"], unit["unit"]["length"]
    free = free_of(nodes)
    loops = [at for at, node in enumerate(nodes) if node["kind"] == "repeat" and not free[at]]
    steps = [_reads(nodes, nodes[at]["body"], {nodes[at]["level"]: place}) for at in loops for place in
             nodes[at]["places"]]  # fmt: skip
    if loops:
        steps.append(_reads(nodes, unit["unit"]["result"], {}) - set().union(*steps))
    groups = [tuple(sorted(step)) for step in steps if step] or [tuple(range(count))]
    if unit["unit"]["scale"] is not None:
        size = min([count // unit["unit"]["scales"], *_scaled(nodes)])
        groups = [tuple(k for k in group if k // size == part) for group in groups
                  for part in dict.fromkeys(k // size for k in group)]  # fmt: skip
    if all(len(group) == 1 for group in groups):
        return [tuple(k for group in groups for k in group)]
    return groups


def _scaled(nodes: Sequence[Plain]) -> Iterator[int]:
    """The number of terms of every exact sum that is scaled."""
    for node in nodes:
        if node["kind"] == "scale" and nodes[node["term"]]["kind"] == "exact":
            items = [nodes[item] for item in nodes[node["term"]]["items"]]
            yield sum(len(item["places"]) if item["kind"] == "each" else 1 for item in items)


def _reads(nodes: Sequence[Plain], at: int, places: Mapping[int, int]) -> set[int]:
    """The indices of the elements of a that a node reads."""
    node = nodes[at]
    if node["kind"] == "element":
        if node["operand"] != "a":
            return set()
        index = node["index"]
        return {index["offset"] + sum(factor * places[level] for level, factor in index["factors"])}
    if node["kind"] in ("each", "repeat"):
        rounds = [_reads(nodes, node["body"], {**places, node["level"]: place}) for place in node["places"]]
        return set().union(*rounds)
    return set().union(*(_reads(nodes, operand, places) for operand in operands_of(node)))


def _groups_text(unit: Plain) -> str:
    groups = [group for group in groups_of(unit) if len(group) > 1]
    shown = [f"{group[0]}-{group[-1]}" if list(group) == list(range(group[0], group[-1] + 1)) else
             ", ".join(map(str, group)) for group in groups]  # fmt: skip
    return "; of ".join(shown) or "that are alone in their steps"


# -- signs, and what rises


def _symmetric(stated: Plain, unit: Plain, parts: Sequence[Plain]) -> None:
    need([part["asks"] for part in parts] == ["negated"], "one part, about the negated input, is needed")
    need(stated["compare"] == "value", "zeros of both signs count as one")


def _addend(stated: Plain, unit: Plain, parts: Sequence[Plain]) -> None:
    rising = [part for part in parts if part["asks"] == "raised"]
    need([_raised(part) for part in rising] == [None] and len(parts) == 1, "the addend must rise, and it alone")


def _products(stated: Plain, unit: Plain, parts: Sequence[Plain]) -> None:
    """Each product that is not fixed to zero rises in a part; or orders that change no result, bit by bit, bring it to
    a place where a product rises: the result before and after is that of the moved inputs."""
    fixed = set(stated["inputs"]["zero_terms"])
    rising = {_raised(part) for part in parts if part["asks"] == "raised"} - {None}
    orders = list(_orders(unit, [part for part in parts if part["asks"] != "raised"], "bits"))
    need(not orders or not fixed, "some products stand fixed, and orders are used")
    wanted, known = set(range(unit["unit"]["length"])) - fixed, set(rising)
    need(bool(wanted), "no product can rise")
    for _ in wanted:  # in as many steps, every place that orders reach is reached
        known |= {order[place] for order in orders for place in known if place is not None}
    need(wanted <= known, f"products {sorted(wanted - known)} do not rise")


def _monotonic(stated: Plain, unit: Plain, parts: Sequence[Plain]) -> None:
    _addend(stated, unit, [part for part in parts if part["asks"] == "raised" and part["raised"] is None])
    _products(stated, unit, parts)


def _raised(part: Plain) -> int | None:
    found = part["raised"]
    need(found is None or (type(found) is int and 0 <= found < part["left"]["unit"]["length"]), "no such product rises")
    return found  # type: ignore[no-any-return]


# -- against other units


def _padded(stated: Plain, unit: Plain, parts: Sequence[Plain]) -> None:
    """Each part compares a shorter unit of the same formats with this one, whose remaining products are zeros."""
    need(bool(parts), "there is no shorter unit")
    for part in parts:
        left = part["left"]["unit"]
        need(part["asks"] == "agree", "a part is about something else")
        need(part["right"] == unit, "a part is about another unit")
        need(0 < left["length"] < unit["unit"]["length"], "a part is about a unit that is not shorter")
    need(len(set(_lengths(parts).split(", "))) == len(parts), "two parts are about one length")


def _lengths(parts: Sequence[Plain]) -> str:
    return ", ".join(str(part["left"]["unit"]["length"]) for part in parts)


def _exact(stated: Plain, unit: Plain, parts: Sequence[Plain]) -> None:
    """The part's other side is the exact sum of c and a[k] * b[k] for all k, each unchanged, rounded as the unit's
    result is, with no result flushed."""
    (part,) = parts
    need(part["asks"] == "agree" and stated["compare"] == "value", "it is about something else")
    own, sums = unit, part["right"]
    need(part["left"] == unit, "the part is about another unit")
    need({k: v for k, v in sums["unit"].items() if k != "result"} == {k: v for k, v in own["unit"].items()
                                                                     if k != "result"}, "other operands")  # fmt: skip
    nodes = sums["nodes"]
    last, rounded = nodes[sums["unit"]["result"]], _last_rounding(own)
    need(last["kind"] == "round", "it is not rounded once")
    how = last["rounding"] | {"format": sums["formats"][last["rounding"]["format"]]}
    need(
        how == rounded | {"format": own["formats"][rounded["format"]], "subnormals": "keep"}, "it is rounded otherwise"
    )
    total = nodes[last["term"]]
    need(total["kind"] == "exact" and len(total["items"]) == 2, "it is not the sum of all")
    each, addend = (nodes[item] for item in total["items"])
    need(each["kind"] == "each" and each["places"] == list(range(own["unit"]["length"])), "it is not over all products")
    factors = nodes[each["body"]]
    need(factors["kind"] == "product" and not factors["normalised"] and factors["limit"] is None, "no plain product")
    index = {"offset": 0, "factors": [[each["level"], 1]]}
    read = [nodes[factors["left"]], nodes[factors["right"]], addend]
    for node, (operand, at) in zip(read, (("a", index), ("b", index), ("c", None)), strict=True):
        need((node["kind"], node["operand"], node["index"]) == ("element", operand, at), f"it does not read {operand}")
        need(node["subnormals"] == "keep" and not node["positive_zeros"], f"{operand} is not read as it is")


def _last_rounding(unit: Plain) -> Plain:
    node = unit["nodes"][unit["unit"]["result"]]
    while node["kind"] == "repeat":
        node = unit["nodes"][node["body"]]
    found: Plain = node["rounding"]
    return found


RULES = {
    "order-independent": _every_order,
    "sign-symmetric": _symmetric,
    "monotonic-addend": _addend,
    "monotonic-product": _products,
    "monotonic": _monotonic,
    "zero-padding": _padded,
    "exact": _exact,
}


# -- by what units are made of


def one_unit(left: Plain, right: Plain, order: Sequence[int] | None = None) -> bool:
    """Whether two units compute their results in the same way from the same operands, those of the right one in an
    order; if one of them specifies no NaN pattern, all NaN results are equal in both."""
    given = [({name: value for name, value in side["unit"].items() if name not in ("result", "d")},
              side["formats"][: 1 + max(side["unit"][name] for name in ("a", "b", "c", "scale") if
                                        side["unit"][name] is not None)]) for side in (left, right)]  # fmt: skip
    return given[0] == given[1] and alike(*any_pattern(left, right), order)


def any_pattern(left: Plain, right: Plain) -> tuple[Plain, Plain]:
    """Two units, with all NaNs as one if one of them specifies no NaN pattern."""
    patterns = [_last_rounding(side)["nan"] for side in (left, right)]
    return (_any_nan(left, patterns[0]), _any_nan(right, patterns[1])) if None in patterns else (left, right)


def rewritten_unit(tree: Plain) -> Plain:
    """The unit that a tree of theorems, all valid, says to compute the same as its own. Raises FaultError if it says
    something else."""
    (goal,) = (tree["theorems"][number]["goal"] for number in tree["states"])
    need(goal["is"] == "SameResults", "it is not said what the unit computes the same as")
    return {"unit": {**tree["unit"], "result": goal["other"]}, "nodes": tree["nodes"], "formats": tree["formats"]}


def _any_nan(unit: Plain, pattern: int | None) -> Plain:
    """The unit with all NaNs equal in place of NaNs of one pattern. A number that is written for a NaN is not a NaN."""

    def changed(node: Plain) -> Plain:
        if node["kind"] != "round":
            return node
        how = node["rounding"]
        if how["nan"] != pattern or nan_as(how, unit["formats"][how["format"]]) != "nan":
            return node
        return {**node, "rounding": {**how, "nan": None}}

    if nan_as(_last_rounding(unit), unit["formats"][_last_rounding(unit)["format"]]) != "nan":
        return unit
    return {**unit, "nodes": [changed(node) for node in unit["nodes"]]}
