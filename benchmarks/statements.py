"""Random statements about random small expressions, each on so few inputs that evaluating all of them tells the truth.

All properties of `prove`, equality and error bounds; formats of at most 8 bits, up to 3 products, some with scale
factors, restrictions of the inputs. The truth is of the array carrier's results (held against the exact rationals of
tests/oracles/node_oracle.py) and of NumPy's own numbers; it shares nothing with the goals that provers are given: all
orders of the products are tried, not an exchange and a rotation, and every pair of inputs one of which is larger.

A unit is drawn with one parameter after another changed until the statement is as true as its number wants: half of the
statements hold, where such a unit is found.

`python -m benchmarks.statements [--count 300] [--first 0] [--timeout 20] [--only PROPERTY] [--blind] [--relu]
    [-o FILE]`
"""

from __future__ import annotations

import random
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.campaign import parser
from benchmarks.pages import put_page
from mmaprobe.queries.equality.staged import _Prover
from mmaprobe.queries.kernel.bounds.enclosures import weakened
from mmaprobe.queries.kernel.bounds.forms import EXACT, Factor, Form
from mmaprobe.queries.kernel.bounds.induction import Carried, carried
from mmaprobe.queries.kernel.questions.problem import Problem
from mmaprobe.queries.kernel.questions.statements import problems_of
from mmaprobe.queries.kernel.theorem import RuleError, Theorem
from mmaprobe.queries.properties import forms, monotonic, proving
from mmaprobe.queries.properties.bound import Settle, bound_of, chain_of, error_of
from mmaprobe.queries.properties.bound_samples import Near, covered
from mmaprobe.queries.properties.wraps import wrapped_input
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.witness import Witness
from mmaprobe.queries.tactics.records import Proof
from mmaprobe.queries.tactics.settling import Settled
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format, format_named
from mmaprobe.smtmodel.base.errors import FaultError, MmaprobeError, ParameterError
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch, sides_of
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import layout_of
from mmaprobe.smtmodel.families.member import FUNCTIONS, nvidia_nan
from mmaprobe.smtmodel.families.parameters import FAMILY
from mmaprobe.smtmodel.inputs.admitted import Compare, ExponentRange, Inputs
from mmaprobe.smtmodel.nodes import (
    Cancelling,
    Constant,
    Counting,
    Cut,
    Each,
    Element,
    ExactSum,
    Gate,
    Literal,
    Node,
    Product,
    Relu,
    Repeat,
    Round,
    Running,
    Scale,
    Segment,
    Signed,
    SortedSum,
    Sum,
)
from mmaprobe.smtmodel.nodes.node import walk
from mmaprobe.smtmodel.nodes.relu import NANS, RELU_ZEROS
from mmaprobe.smtmodel.nodes.rewriting import rebuilt
from mmaprobe.smtmodel.tables.reference import with_parameters
from mmaprobe.smtmodel.units.unit import Unit
from mmaprobe.smtmodel.units.unitfile import unit_text
from tests.node_units import Maker
from tests.oracles import node_oracle, oracle
from tests.said import believed

Table = NDArray[np.uint64]
Lanes = NDArray[np.float64]
Flags = NDArray[np.bool_]

LARGEST, USUAL = 1 << 20, 1 << 15  # inputs of one statement: of some, of most
TRIES = 40  # units drawn for a statement that is as true as wanted
HELD = 60  # inputs of each unit on which the results are held against the oracle
#: formats of a, of b and of c, and the number of products
SHAPES = (
    *(("e2m1", "e2m1", c, 1) for c in ("e4m3", "e5m2", "e3m2", "e2m3", "e4m3fnuz", "binary6p3se")),
    ("e3m2", "e2m1", "e3m2", 1), ("e2m3", "e2m1", "e2m1", 1), ("binary4p2se", "e2m1_ieee", "binary6p3se", 1),
    ("e2m1_all_ones", "e2m1", "e5m2", 1), ("e3m2", "e3m2", "e2m1", 1), ("binary3p2se", "e1m1_none", "e4m3", 1),
    *(("e2m1", "e1m1_none", c, 2) for c in ("e2m1", "e3m2", "e1m1_none")), ("e2m1", "e2m1", "e2m1", 2),
    ("binary3p2se", "e1m1_none", "binary4p2se", 2), ("e1m1_none", "e1m1_none", "e2m3", 2),
    ("e2m1_ieee", "e1m1_none", "e2m1_ieee", 2), ("e2m1", "e2m1", "e1m1_none", 2),
    ("e1m1_none", "e1m1_none", "e1m1_none", 3), ("binary3p2se", "ue1m1_none", "e2m1", 3),
    ("e1m1_none", "ue1m1_none", "e2m1_ieee", 3), ("e1m1_none", "ue1m1_none", "e3m2", 3),
)  # fmt: skip
#: chains of instructions: formats of a, of b and of c and d, products of one, and how many
CHAINED = (
    ("e1m1_none", "e1m1_none", "e2m1", 1, 2), ("e2m1", "e1m1_none", "e3m2", 1, 2), ("e2m1", "e2m1", "e2m1", 1, 2),
    ("e1m1_none", "e1m1_none", "e2m3", 1, 2), ("e1m1_none", "ue1m1_none", "e2m1", 1, 3),
)  # fmt: skip
#: the same of units with scale factors, with the format of these
SCALED = (
    ("e1m1_none", "e1m1_none", "e2m1", 1, "ue1m1_all_ones"), ("e2m1", "e1m1_none", "e2m1", 1, "ue1m1_none"),
    ("e1m1_none", "e1m1_none", "e1m1_none", 1, "ue2m1_ieee"),
    ("ue1m1_none", "ue1m1_none", "e1m1_none", 2, "ue1m1_none"),
    ("binary3p2se", "e1m1_none", "e2m1_ieee", 1, "ue1m1_all_ones"),
)  # fmt: skip
SCALED_SHARE, LONGER_SHARE = 0.2, 0.2  # of statements about equality: with a unit of one product more
RESULTS = ("e4m3", "e5m2", "e4m3", "e3m2", "e2m3", "e4m3fnuz", "binary6p3se", "e3m4_ieee", "e2m1")
RESTRICTIONS = (
    *(Inputs(),) * 6, Inputs(finite=True), Inputs(finite=True, nonnegative=True), Inputs(nonnegative=True),
    Inputs(finite=True, normal=True), Inputs(finite=True, nonzero=True), Inputs(special=True),
    Inputs(finite=True, exponents=ExponentRange(min=0, max=1)), Inputs(exponents=ExponentRange(min=-2, max=1)),
    Inputs(finite=True, products_below_two=True),
)  # fmt: skip
PROPERTIES = ("equal", "order-independent", "sign-symmetric", "monotonic-addend", "monotonic-product", "monotonic",
              "zero-padding", "exact", "error-bound", "error-bound")  # fmt: skip
#: parameters of members of families, for statements about shorter dot products
MEMBERS: dict[str, tuple[Any, ...]] = {
    "block": (0, 0, 1),  # 0: all products
    FAMILY: ("t-fdpa", "t-fdpa", "emulated-fp8", "tr-fdpa", "gtr-fdpa", "e-fdpa", "fma-chain", "ftz-addmul"),
    "fraction_bits": (*range(1, 9), "exact"), "carry_bits": ("exact", "exact", 0, 1, 2, 3),
    "product": ("unnormalised", "unnormalised", "normalised", "rounded_e5m2"),
    "align_rounding": ("toward_zero", *oracle.ROUND, "sticky"), "late_fraction_bits": tuple(range(1, 10)),
    "late_rounding": ("down", *oracle.ROUND), "late_small_addend": ("keep", "cut"), "group": (1, 2),
    "partials": ("unnormalised", "unnormalised", "normalised"), "exponent_floor": (None, None, -6, -3, -1, 0, 2),
    "floor_applies_to": ("zero_terms", "maximum"), "output": ("f16", "f32"), "output_rounding": tuple(oracle.ROUND),
    "flush_inputs": (False, False, True), "flush_outputs": (False, True),
    "input_format": ("own", "own", "f16", "e5m2", "e3m4_ieee"), "zero_sign": ("positive", "ieee"),
    "overflow": ("infinity", "saturate", "ieee"),
}  # fmt: skip

for _name, _row in (("e2m2_none", (2, 2, 0, "none")), ("ue1m1_none", (1, 1, 1, "none")),
                    ("ue1m1_all_ones", (1, 1, 1, "all_ones")), ("ue2m1_ieee", (2, 1, 0, "ieee"))):  # fmt: skip
    oracle.FORMATS.setdefault(_name, oracle.Format(*_row, signed=not _name.startswith("u")))


@dataclass(frozen=True)
class Statement:
    """What is said of a unit (of two: that they are equal), on which inputs; and on how many inputs, or pairs of them,
    it is false. `claimed`: a bound of the error after `count` instructions of a chain, that share of the one proved;
    None where none is."""

    number: int
    wanted: str
    models: tuple[Model, ...]
    inputs: Inputs = field(default_factory=Inputs)
    compare: Compare | None = None
    count: int = 1
    share: Fraction = Fraction(1)
    claimed: Form | None = None
    broken: int = 0

    @property
    def true(self) -> bool:
        return not self.broken

    def text(self) -> str:
        """On one line: the last steps of the units, and what is said of them."""
        units = " against ".join(_short(model.unit) for model in self.models)
        inputs = self.inputs.model_dump(exclude_defaults=True) or "all inputs"
        chain = f", {self.count} instructions" if self.count > 1 else ""
        part = f", {float(self.share):.3g} of it" if self.share != 1 else ""
        return f"{self.wanted}{chain}{part} of {units}; {inputs}{', by value' if self.compare == 'value' else ''}"


def text_of(unit: Unit) -> str:
    """As a unit file; what has none, as an expression."""
    try:
        return unit_text(unit)
    except ParameterError:  # elements of one operand are read in several ways
        return f"steps: {unit.result}"


def _short(unit: Unit) -> str:
    text = text_of(unit)
    steps = text.partition("roundings:")[2] or text.partition("steps:")[2]
    shape = f"{unit.length} x {unit.a.name} {unit.b.name} + {unit.c.name}"
    return f"{shape}: " + " | ".join(line.strip() for line in steps.splitlines() if line.strip())


# -- inputs and results


@cache
def values_of(fmt: Format) -> Lanes:
    """The number of every pattern, by the oracle."""
    found = [oracle.decode(fmt.name, pattern) for pattern in range(1 << fmt.width)]
    return np.array([np.nan if x.kind == "nan" else (-1 if x.sign else 1) * np.inf if x.kind == "inf" else
                     (-1.0 if x.sign else 1.0) * float(abs(x.value)) for x in found])  # fmt: skip


@cache
def admitted(fmt: Format, inputs: Inputs) -> tuple[int, ...]:
    """The patterns of an operand that the restrictions admit, each by itself."""
    found, window, values = [], inputs.exponents, values_of(fmt)
    for pattern, value in enumerate(values.tolist()):
        finite = bool(np.isfinite(value))
        normal = value == 0 or (finite and abs(value) >= 2.0**fmt.emin) or not finite
        wrong = (inputs.finite and not finite) or (inputs.nonzero and value == 0)
        wrong |= inputs.nonnegative and bool(_signed(fmt, pattern))
        wrong |= inputs.normal and not normal
        if window is not None and value != 0:
            inside = finite and normal and window.min <= np.floor(np.log2(abs(value))) <= window.max
            wrong |= not inside
        if inputs.normal and not finite:
            wrong = True
        if not wrong:
            found.append(pattern)
    return tuple(found)


def _signed(fmt: Format, pattern: int) -> bool:
    return fmt.signed and bool(pattern >> (fmt.width - 1))


def formats_of(model: Model) -> list[Format]:
    return list(layout_of(model).formats)


def format_of(model: Model | Unit, operand: str) -> Format:
    found: Format = getattr(model, operand if len(operand) == 1 else "scale")
    return found


def columns_of(model: Model, inputs: Inputs) -> list[tuple[int, ...]]:
    """The patterns of each operand that are admitted."""
    found = [admitted(fmt, inputs if place <= 2 * model.length else Inputs(finite=inputs.finite))
             for place, fmt in enumerate(formats_of(model))]  # fmt: skip
    for index in inputs.zero_terms:
        for place in (2 * index,) if index == model.length else (index, model.length + index):
            found[place] = (0,)
    return found


def grid_of(columns: Sequence[Sequence[int]]) -> Table:
    """All rows, the last column fastest."""
    axes = [np.array(column, dtype=np.uint64) for column in columns]
    return np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)


def counted(model: Model, inputs: Inputs, table: Table) -> Flags:
    """The rows that the restrictions about several operands admit."""
    k, found = model.length, np.ones(len(table), dtype=bool)
    if inputs.special:
        zeros = {2 * k if index == k else index for index in inputs.zero_terms}
        formats = formats_of(model)[: 2 * k + 1]
        special = [~np.isfinite(values_of(fmt)[table[:, place]]) for place, fmt in enumerate(formats)
                   if (place if place == 2 * k else place % k) not in zeros]  # fmt: skip
        found &= np.any(special, axis=0)
    if inputs.products_below_two:
        for place in range(k):
            one, two = (_significand(fmt, table[:, column]) for fmt, column in ((model.a, place), (model.b, k + place)))
            found &= one * two < 2
    return found


def _significand(fmt: Format, patterns: Table) -> Lanes:
    """From 1 to 2 for normal numbers, below 1 for subnormal ones."""
    values = np.abs(values_of(fmt)[patterns])
    with np.errstate(divide="ignore", invalid="ignore"):
        exponent = np.maximum(np.floor(np.log2(np.where(values > 0, values, 1))), fmt.emin)
    return np.where(np.isfinite(values), values / 2.0**exponent, 0)


def results(model: Model, table: Table) -> Table:
    return evaluate_batch(model, *sides_of(model, table))


def numbers(model: Model, patterns: Table) -> Lanes:
    """Results as numbers."""
    if model.d.width <= 16:
        return values_of(model.d)[patterns]
    return patterns.astype(np.uint32).view(np.float32).astype(np.float64)


def unlike(one: Lanes, other: Lanes) -> Flags:
    """Where two numbers differ, all NaNs and both zeros as one."""
    found: Flags = (one != other) & ~(np.isnan(one) & np.isnan(other))
    return found


def different(left: tuple[Model, Table], right: tuple[Model, Table], compare: Compare) -> Flags:
    """Where two results differ as the contract has it."""
    x, y = (numbers(model, found) for model, found in (left, right))
    if compare == "value":
        return unlike(x, y)
    found: Flags = left[1] != right[1]
    if all(model.nan is not None for model, _ in (left, right)):
        return found
    both: Flags = np.isnan(x) & np.isnan(y)
    return found & ~both


# -- the truth of a statement: on how many inputs it is false


def broken_equal(statement: Statement, table: Table) -> int:
    left, right = statement.models
    k, more = left.length, right.length - left.length  # products of zeros
    padded = np.insert(table, [k] * more + [2 * k] * more, 0, axis=1)
    sides = (left, results(left, table)), (right, results(right, padded))
    return int(different(*sides, statement.compare or "bits").sum())


def broken_order(statement: Statement, table: Table) -> int:
    """All orders of the products that one step adds; where each takes one, of those of all steps."""
    (model,) = statement.models
    own, k, count = (model, results(model, table)), model.length, 0
    groups = [group for group in model.blocks if len(group) > 1] or [sum(model.blocks, ())]
    for orders in product(*(permutations(group) for group in groups)):
        place = list(range(k))
        for group, order in zip(groups, orders, strict=True):
            for at, source in zip(group, order, strict=True):
                place[at] = source
        if place != sorted(place):
            moved = table.copy()
            moved[:, : 2 * k] = table[:, [*place, *(k + x for x in place)]]
            count += int(different(own, (model, results(model, moved)), statement.compare or "bits").sum())
    return count


@cache
def negation_of(fmt: Format) -> Table:
    """The pattern of each number with the other sign."""
    values, half = values_of(fmt), 1 << (fmt.width - 1)
    flipped = [pattern ^ half for pattern in range(1 << fmt.width)]
    if not fmt.has_negative_zero:
        flipped = [pattern if values[pattern] == 0 or np.isnan(values[pattern]) else other
                   for pattern, other in enumerate(flipped)]  # fmt: skip
    return np.array(flipped, dtype=np.uint64)


def broken_sign(statement: Statement, table: Table) -> int:
    (model,) = statement.models
    moved, k = table.copy(), model.length
    for place in (*range(k), 2 * k):
        moved[:, place] = negation_of(formats_of(model)[place])[table[:, place]]
    left, right = (numbers(model, results(model, side)) for side in (table, moved))
    return int(unlike(left, -right).sum())


def falls(before: Lanes, ranks: NDArray[np.int64], counts: Flags) -> int:
    """How many results, of rows along the last axis in the order of their ranks, lie below one of a lower rank."""
    defined = counts & ~np.isnan(before)
    most = np.maximum.accumulate(np.where(defined, before, -np.inf), axis=-1)
    last = np.searchsorted(ranks, ranks, side="left") - 1  # the last place of a lower rank
    reached = np.where(last >= 0, most[..., np.maximum(last, 0)], -np.inf)
    return int((defined & (before < reached)).sum())


def broken_addend(statement: Statement, table: Table) -> int:
    (model,) = statement.models
    values = values_of(model.c)[np.array(columns_of(model, statement.inputs)[2 * model.length])]
    return _broken_along(statement, table, [2 * model.length], values)


def broken_product(statement: Statement, table: Table) -> int:
    (model,) = statement.models
    columns, k, count = columns_of(model, statement.inputs), model.length, 0
    for place in set(range(k)) - set(statement.inputs.zero_terms):
        one, two = (values_of(fmt)[np.array(columns[at])] for fmt, at in ((model.a, place), (model.b, k + place)))
        with np.errstate(invalid="ignore"):
            values = np.multiply.outer(one, two).ravel()
        count += _broken_along(statement, table, [place, k + place], values)
    return count


def _broken_along(statement: Statement, table: Table, axes: list[int], values: Lanes) -> int:
    """Falls where the operands of these columns rise, whose values are those."""
    (model,) = statement.models
    shape = [len(column) for column in columns_of(model, statement.inputs)]
    found = numbers(model, results(model, table)).reshape(shape)
    counts = counted(model, statement.inputs, table).reshape(shape)
    order = np.argsort(values, kind="stable")
    order = order[~np.isnan(values[order])]
    ranks = np.unique(values[order], return_inverse=True)[1].ravel()
    ends = range(-len(axes), 0)

    def along(side: NDArray[Any]) -> NDArray[Any]:
        return np.moveaxis(side, axes, ends).reshape(-1, len(values))[:, order]

    return falls(along(found), ranks, along(counts))


def broken_monotonic(statement: Statement, table: Table) -> int:
    addend = 0 if statement.models[0].length in statement.inputs.zero_terms else broken_addend(statement, table)
    return addend + broken_product(statement, table)


def broken_padding(statement: Statement, table: Table) -> int:
    """Every shorter dot product that there is, against the whole one with +0 beyond."""
    (model,) = statement.models
    k, count = model.length, 0
    for length in range(1, k):
        try:
            shorter = with_parameters(model, {"length": length})
        except ParameterError:
            continue
        padded = table.copy()
        padded[:, [*range(length, k), *range(k + length, 2 * k)]] = 0
        cut = padded[:, [*range(length), *range(k, k + length), 2 * k]]
        sides = (shorter, results(shorter, cut)), (model, results(model, padded))
        count += int(different(*sides, statement.compare or "bits").sum())
    return count


def broken_exact(statement: Statement, table: Table) -> int:
    """Against the exact sum, rounded once by the oracle."""
    (model,) = statement.models
    values = [values_of(fmt)[table[:, place]] for place, fmt in enumerate(formats_of(model))]
    with np.errstate(invalid="ignore"):
        total = sum((values[k] * values[model.length + k] for k in range(model.length)), values[-1])
    how = replace(model.unit.rounding, subnormals="keep")
    distinct, place = np.unique(total, return_inverse=True)
    rounded = np.array([_rounded(float(value), how) for value in distinct])[place.ravel()]
    return int(unlike(numbers(model, results(model, table)), rounded).sum())


def _rounded(value: float, how: Any) -> float:
    if np.isnan(value):
        given = node_oracle.NAN
    elif np.isinf(value):
        given = node_oracle.infinite(value < 0)
    else:
        given = node_oracle.Value("finite", Fraction(value))
    found = node_oracle.rounded(given, how)
    if found.kind != "finite":
        return np.nan if found.kind == "nan" else float(np.inf * found.exact)
    return float(found.exact)


def exact_values(unit: Unit, values: dict[str, list[Lanes]]) -> Lanes:
    """The expression without rounding, of inputs as the unit reads them."""

    def of(node: Node, places: dict[int, int], running: dict[int, Lanes]) -> Lanes:
        match node:
            case Element():
                own = values[node.operand][0 if node.index is None else node.index.at(places)]
                fmt = format_of(unit, node.operand)
                flushed = node.subnormals != "keep" and fmt.subnormals
                return np.where(np.abs(own) < 2.0**fmt.emin, 0, own) if flushed else own
            case Constant():
                return np.zeros(1)
            case Literal():
                return values_of(node.format)[[node.pattern]]
            case Running():
                return running[node.level]
            case Segment():
                value, fmt = of(node.term, places, running), getattr(unit, node.element.operand)
                exponent = np.frexp(np.abs(value))[1] - 1
                last = 2.0 ** (np.maximum(exponent, -99 if node.leading else fmt.emin) - node.end + 1)
                return np.sign(value) * (np.floor(np.abs(value) / last) % 2.0 ** (node.end - node.first)) * last
            case Product():
                return of(node.left, places, running) * of(node.right, places, running)
            case Scale():
                return of(node.term, places, running) * of(node.left, places, running) * of(node.right, places, running)
            case Gate():
                return of(node.term, places, running)  # of finite numbers: those whose errors are looked at
            case Sum() | SortedSum():
                return sum((of(item, places, running) for item in node.items), np.zeros(1))
            case Each():
                return sum((of(node.body, {**places, node.level: at}, running) for at in node.places), np.zeros(1))
            case Relu():
                return np.maximum(of(node.term, places, running), 0)
            case Cancelling() | Counting() | Signed() | Cut() | Round():
                return of(node.term, places, running)
            case Repeat():
                found = of(node.start, places, running)
                for at in node.places:
                    found = of(node.body, {**places, node.level: at}, {**running, node.level: found})
                return found
        raise TypeError(node.kind)

    return of(unit.result, {}, {})


def beyond(statement: Statement, bound: Form) -> tuple[int, float]:
    """On how many inputs the error of a chain of instructions is above a bound, and the largest ratio of the two: of
    those on which nothing overflows, in 53 bits. Units with scale factors are no chains."""
    (model,) = statement.models
    k, n, s = model.length, statement.count, model.scales
    columns = [np.flatnonzero(np.isfinite(values_of(fmt))).tolist() for fmt in formats_of(model)]
    table = grid_of([*columns[:k] * n, *columns[k : 2 * k] * n, *columns[2 * k :]])
    sides = np.split(table, np.cumsum([n * k, n * k, 1, s]).tolist(), axis=1)
    operands = dict(zip(("a", "b", "c", "scale_a", "scale_b"), sides, strict=True))
    values = {name: [values_of(format_of(model, name))[side[:, at]] for at in range(side.shape[1])]
              for name, side in operands.items()}  # fmt: skip
    counts, d, exact = np.ones(len(table), dtype=bool), operands["c"][:, 0], values["c"][0]
    with np.errstate(invalid="ignore"):
        for step in range(n):
            own = slice(step * k, step * k + k)
            rows = np.column_stack([operands["a"][:, own], operands["b"][:, own], d, table[:, 2 * n * k + 1 :]])
            given = values | {"a": values["a"][own], "b": values["b"][own], "c": [exact]}
            chained = replace(model.unit, result=_kept(model.unit.result)) if step else model.unit
            exact = np.broadcast_to(exact_values(chained, given), (len(table),))
            d, fine = _covered(model, rows)
            counts &= fine
        errors = np.abs(numbers(model, d) - exact)
    limit = np.broadcast_to(_valued(bound, model, values, np.abs(exact)), errors.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(errors > 0, errors / limit, 0)
        above = counts & (errors > limit * (1 + 2.0**-45))
    return int(above.sum()), float(np.max(ratios[counts], initial=0.0))


def _kept(node: Node) -> Node:
    """With the addend read as it is: of a chain's exact result nothing is lost where it is read."""

    def leaf(old: Node, new: Node) -> Node:
        return replace(new, subnormals="keep") if isinstance(new, Element) and new.operand == "c" else new

    return rebuilt(node, leaf, {})


def _covered(model: Model, rows: Table) -> tuple[Table, Flags]:
    """Results, and where nothing overflows, some rows at a time."""
    parts = [covered(model, rows[start : start + 8192]) for start in range(0, len(rows), 8192)]
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def _valued(bound: Form, model: Model, values: dict[str, list[Lanes]], exact: Lanes) -> Lanes:
    """The bound on every row."""

    def magnitude(factor: Factor) -> Lanes:
        if factor.name == EXACT:
            return exact
        own = np.abs(values[factor.name][factor.offset])
        least = 2.0 ** format_of(model, factor.name).emin
        return np.where(own > 0, np.maximum(own, least), 0) if factor.raised else own

    found = np.zeros(1)
    for atom, coefficient in bound.parts.items():
        items = [np.prod(np.broadcast_arrays(*map(magnitude, item)), axis=0) if item else np.ones(1) for item in atom]
        found = found + float(coefficient) * np.max(np.broadcast_arrays(*items), axis=0)
    return found


TRUTH: dict[str, Callable[[Statement, Table], int]] = {
    "equal": broken_equal, "order-independent": broken_order, "sign-symmetric": broken_sign,
    "monotonic-addend": broken_addend, "monotonic-product": broken_product, "monotonic": broken_monotonic,
    "zero-padding": broken_padding, "exact": broken_exact,
}  # fmt: skip


def judged(statement: Statement) -> Statement | None:
    """With the truth about it; None where there are no inputs or too many. Raises ParameterError for what cannot be
    asked of the unit."""
    problems_about(statement)
    model = statement.models[0]
    columns = columns_of(model, statement.inputs)
    count = int(np.prod([len(column) for column in columns]))
    if not 0 < count <= LARGEST:
        return None
    table = grid_of(columns)
    if not statement.wanted.startswith("monotonic"):
        table = table[counted(model, statement.inputs, table)]
    return replace(statement, broken=TRUTH[statement.wanted](statement, table)) if len(table) else None


# -- statements at random


@dataclass
class _Maker(Maker):
    """Expressions whose results are small formats."""

    gates: float = 0.15
    literals: float = 0.1  # the share of numbers that are written down
    positive_zeros: bool = False

    def __post_init__(self) -> None:
        self.positive_zeros = self.rng.random() < 0.1

    def rounding(self, fmt: Format | None = None) -> Any:
        return super().rounding(fmt or format_named(self.rng.choice(RESULTS)))

    def element(self, operand: Any, level: int | None = None) -> Element:
        return replace(super().element(operand, level), positive_zeros=self.positive_zeros)

    def number(self, depth: int) -> Node:
        if self.rng.random() >= self.literals:
            return super().number(depth)
        fmt = format_named(self.rng.choice(RESULTS))
        return Literal(self.rng.choice((fmt.one, fmt.one | fmt.sign_bit, fmt.largest, 1, fmt.infinity, fmt.nan)), fmt)


def random_unit(rng: random.Random, shape: tuple[str, str, str, int], wanted: str, scale: str | None = None) -> Unit:
    """A unit of few nodes that reads c, and all factors where it is to be an exact sum. `scale`: the format of its
    scale factors."""
    a, b, c = map(format_named, shape[:3])
    factors = None if scale is None else format_named(scale)
    length, least = shape[3], {"c"} if wanted != "exact" else {"a", "b", "c"}
    while True:
        maker = _Maker(rng, length, {"a": a, "b": b, "c": c}, factors)
        simple = rng.random() < 0.5
        try:
            top = simple_sum(rng, maker) if simple else maker.repeat(2) if rng.random() < 0.3 else maker.round(2)
            nodes = list(walk(top))
            if sum(not isinstance(x, Element) for x in nodes) > 9:
                continue
            if not least <= {x.operand for x in nodes if isinstance(x, Element)}:
                continue
            return Unit(a, b, c, length, top, factors, length if factors else 0)
        except ParameterError:
            continue


def rectified(rng: random.Random, unit: Unit) -> Unit:
    """The unit with relu before one of its roundings, or after it."""
    chosen = rng.choice([node for node in walk(unit.result) if isinstance(node, Round)])
    before, nan, zero = rng.random() < 0.5, rng.choice(NANS), rng.choice(RELU_ZEROS)

    def change(old: Node, new: Node) -> Node:
        if old != chosen or not isinstance(new, Round):
            return new
        if before:
            return replace(new, term=Relu(new.term, nan, zero) if new.term.is_number else Relu(new.term))
        after = Relu(new, nan, zero)
        return Round(after, new.rounding) if old == unit.result else after

    return replace(unit, result=rebuilt(unit.result, change, {}))


def simple_sum(rng: random.Random, maker: Maker) -> Node:
    """All products and c, in one sum or in a chain of them, rounded."""
    k = maker.length
    if k > 1 and rng.random() < 0.3:
        level, maker.levels = maker.levels, maker.levels + 1
        items = (Running(level), maker.product(0, level))
        start: Node = rng.choice((Element("c"), Constant(False)))
        loop = Repeat(level, range(k), start, Round(maker.sum_of(items), maker.rounding()))
        return loop if start == Element("c") else Round(ExactSum((loop, Element("c"))), maker.rounding())
    level, maker.levels = maker.levels, maker.levels + 1
    terms = (Each(level, range(k), maker.product(0, level)), Element("c"))
    return Round(maker.sum_of(terms), maker.rounding())


def changed(rng: random.Random, unit: Unit) -> Unit | None:
    """The unit with one parameter of one kind of nodes changed, or of a single node."""
    nodes = [node for node in walk(unit.result) if list(node.variants())]
    node = rng.choice(nodes)
    change = rng.choice(list(node.variants()))
    alone = rng.random() < 0.5
    try:
        result = rebuilt(unit.result, lambda old, new: new.varied(change) if old == node or not alone else new, {})
        found = replace(unit, result=result)
    except ParameterError:
        return None
    return found if found.result != unit.result else None


def longer(unit: Unit) -> Unit:
    """The unit with one product more in what reads all of them."""
    every = range(unit.length)

    def change(_: Node, new: Node) -> Node:
        over = isinstance(new, (Each, Repeat)) and tuple(new.places) == tuple(every)
        return replace(new, places=range(unit.length + 1)) if over else new

    return replace(unit, result=rebuilt(unit.result, change, {}), length=unit.length + 1)


def random_member(rng: random.Random, shape: tuple[str, str, str, int]) -> Model:
    """A member of a family."""
    a, b, c = map(format_named, shape[:3])
    while True:
        function = FUNCTIONS[rng.choice(MEMBERS[FAMILY])]
        values = {name: rng.choice(choices) for name, choices in MEMBERS.items() if name in function.defaults}
        if "block" in values:
            values["block"] = values["block"] or shape[3]
        nan = rng.choice((None, None, nvidia_nan(FORMATS[values["output"]])))
        try:
            return Model.of("member", a, b, c, function(length=shape[3], nan=nan, **values))
        except ParameterError:
            continue


def restricted(rng: random.Random, wanted: str, length: int) -> Inputs:
    inputs = rng.choice(RESTRICTIONS)
    if wanted in ("order-independent", "zero-padding") or rng.random() > 0.1:
        return inputs
    return inputs.model_copy(update={"zero_terms": (rng.randrange(length + 1),)})


def drawn(number: int, rng: random.Random, largest: int) -> Statement | None:
    """One statement on at most so many inputs, of unknown truth; None where the draw makes none."""
    wanted = PROPERTIES[number % len(PROPERTIES)]
    if wanted == "error-bound" and largest >= USUAL and rng.random() < 0.3:
        *names, length, count = rng.choice(CHAINED)
        a, b, c = map(format_named, names)
        unit = Unit(a, b, c, length, _chained(rng, length, c))
        return Statement(number, wanted, (Model("small", unit),), count=count)
    shapes = [shape for shape in SHAPES if shape[3] > 1 or wanted not in ("order-independent", "zero-padding")]
    shape = rng.choice(shapes)
    if wanted == "zero-padding":
        found: tuple[Model, ...] = (random_member(rng, shape),)
    elif wanted != "exact" and random.Random(f"scaled {number}").random() < SCALED_SHARE:
        *shape, scale = rng.choice([shape for shape in SCALED if shape[3] > 1 or wanted != "order-independent"])
        found = (Model("small", random_unit(rng, tuple(shape), wanted, scale)),)
    else:
        found = (Model("small", random_unit(rng, shape, wanted)),)
    inputs = Inputs() if wanted == "error-bound" else restricted(rng, wanted, shape[3])
    columns = columns_of(found[0], inputs)
    if not 0 < np.prod([len(column) for column in columns]) <= largest:
        return None
    compare: Compare | None = rng.choice((None, None, None, "value")) if wanted in ("equal", "zero-padding") else None
    if wanted == "equal":
        unit = found[0].unit
        lengthen = unit.scale is None and random.Random(f"longer {number}").random() < LONGER_SHARE
        other = longer(unit) if lengthen else changed(rng, unit)
        if other is not None and rng.random() < 0.2:
            other = changed(rng, other)
        if other is None or other.result == found[0].unit.result:
            return None
        if other.d != found[0].d:
            compare = "value"
        found = (*found, Model("changed", other))
    return Statement(number, wanted, found, inputs, compare)


def _chained(rng: random.Random, length: int, fmt: Format) -> Node:
    """All products and c in one sum, rounded to the format of c."""
    maker = _Maker(rng, length, {}, None)
    while True:
        try:
            terms = (Each(0, range(length), maker.product(0, 0)), maker.element("c"))
            maker.levels = 1
            return Round(maker.sum_of(terms), maker.rounding(fmt))
        except ParameterError:
            continue


@contextmanager
def rectifying() -> Iterator[None]:
    """Every unit that is drawn rectifies."""
    plain = random_unit

    def rectified_unit(rng: random.Random, *given: Any) -> Unit:
        while True:
            with suppress(ParameterError):
                return rectified(rng, plain(rng, *given))

    with patch(f"{__name__}.random_unit", rectified_unit):
        yield


def make(number: int, true: bool | None = None, largest: int | None = None) -> Statement:
    """The statement of a number, always the same one: it holds or does not, as is wanted (by its number, in turns),
    where one is found soon. `largest`: inputs, at most."""
    largest = largest or (LARGEST if number % 20 == 7 else USUAL)
    rng, found = random.Random(f"statement {number}"), None
    wanted = number // len(PROPERTIES) % 2 == 0 if true is None else true
    for tried in range(10 * TRIES):
        if tried >= TRIES and found is not None:
            break
        statement = drawn(number, rng, largest)
        if statement is None:
            continue
        try:
            statement = claimed(rng, statement, wanted) if statement.wanted == "error-bound" else judged(statement)
        except ParameterError:  # it cannot be asked of this unit
            continue
        if statement is None:
            continue
        found = statement
        if found.true == wanted:
            break
    if found is None:
        raise ValueError(f"no statement {number}")
    return found


def claimed(rng: random.Random, statement: Statement, wanted: bool) -> Statement:
    """A statement about the bound that is proved, or about a part of it: often just less than some error."""
    try:
        error = error_of(bound_theorem(statement, believed))
    except RuleError:
        return statement
    share = Fraction(1)
    if not wanted:
        most = Fraction(beyond(statement, error)[1])
        share = most * Fraction(15, 16) if most and rng.random() < 0.7 else Fraction(rng.randrange(8, 16), 16)
    bound = error * share
    return replace(statement, claimed=bound, share=share, broken=beyond(statement, bound)[0])


def problems_about(statement: Statement) -> list[Problem]:
    if statement.wanted == "equal":
        left, right = statement.models
        return [Problem(left, right, statement.inputs, statement.compare or "bits")]
    return problems_of(statement.wanted, statement.models[0], statement.inputs, statement.compare)


# -- what the provers say


@dataclass(frozen=True)
class Result:
    """What was said, in how many seconds, and what is wrong with it."""

    statement: Statement
    verdict: str
    seconds: float
    trouble: tuple[str, ...] = ()

    @property
    def wrong(self) -> bool:
        return bool(self.trouble)


@contextmanager
def blind() -> Iterator[None]:
    """No prover looks at an example: what is left is what it would prove."""
    shown = _Prover._differ_at_random

    def matched_alone(self: _Prover) -> bool:
        shown(self)
        self.proof = Proof(self.problem)
        return False

    with ExitStack() as stack:
        for owner, name, value in (
            (_Prover, "_differ_at_random", matched_alone),
            (_Prover, "_differ_when_small", lambda self: False),
            (forms, "_differ_on_samples", lambda problem: False),
            (monotonic, "find_fall", lambda problem: None),
            (proving, "check_problems", lambda problems: None),
        ):
            stack.enter_context(patch.object(owner, name, value))
        yield


def proofs_about(statement: Statement, options: Options) -> list[Proof]:
    """What comes of a statement that is not about an error bound. Raises MmaprobeError."""
    return proving.proofs_of(problems_about(statement), options, confirm=False)


def check(statement: Statement, timeout: float) -> Result:
    """What the provers say of it, held against the truth."""
    start, options = time.monotonic(), Options(timeout=timeout)
    if statement.wanted == "error-bound":
        statement, verdict, trouble = _bounded(statement, options)
        return Result(statement, verdict, time.monotonic() - start, tuple(trouble))
    try:
        proofs = proofs_about(statement, options)
    except FaultError as error:
        return Result(statement, "fault", time.monotonic() - start, (str(error),))
    except MmaprobeError as error:
        return Result(statement, "refused", time.monotonic() - start, (str(error),))
    except Exception as error:  # what the command reports as a fault
        places = traceback.extract_tb(error.__traceback__)[-3:]
        where = ", ".join(f"{Path(place.filename).name}:{place.lineno}" for place in places)
        return Result(statement, "fault", time.monotonic() - start, (f"{type(error).__name__}: {error} ({where})",))
    verdict, seconds = proving.verdict_of(proofs), time.monotonic() - start
    found = []
    if verdict not in ("unknown", "equal" if statement.true else "different"):
        found.append(f"it is false on {statement.broken} inputs")
    for proof in proofs:
        found += _faults(proof.problem, proof.witness)
    found += _oracle(statement)
    return Result(statement, verdict, seconds, tuple(found))


def _bounded(statement: Statement, options: Options) -> tuple[Statement, str, list[str]]:
    """Whether the rules let the bound that is claimed pass; and whether the one that is proved is exceeded, as it is or
    with the coefficients merged."""
    try:
        theorem = bound_theorem(statement, Settled(options, confirmed=False))
    except RuleError:
        near = wrapped_input(statement.models[0], statement.count)
        return (statement, "unknown", []) if near is None else (statement, "different", _not_beyond(statement, near))
    except FaultError as fault:
        return statement, "fault", [str(fault)]
    claimed, trouble = statement.claimed, []
    verdict = "equal" if claimed is not None and passes(theorem, claimed) else "open"
    if verdict == "equal" and not statement.true:
        trouble.append(f"the bound claimed is exceeded on {statement.broken} inputs")
    error = error_of(theorem)
    for name, form in (("", error), ("merged ", error.merged())):
        if count := beyond(statement, form)[0]:
            trouble.append(f"the {name}bound is exceeded on {count} inputs")
    return statement, verdict, [*trouble, *_oracle(statement)]


def _not_beyond(statement: Statement, near: Near) -> list[str]:
    """What is wrong with an input on which a result is said to be further off than all magnitudes together."""
    (model,) = statement.models
    k, width = model.length, len(formats_of(model))
    rows = [near.row[start : start + width] for start in range(0, len(near.row), width)]
    found = _unlike_oracle(model, rows, near.results)
    exact, size = values_of(model.c)[rows[0][-1]], abs(values_of(model.c)[rows[0][-1]])
    for step, row in enumerate(rows):
        scales = row[2 * k + 1 : 2 * k + 1 + model.scales], row[2 * k + 1 + model.scales :]
        sides = ("a", row[:k]), ("b", row[k : 2 * k]), ("scale_a", scales[0]), ("scale_b", scales[1])
        values = {name: [values_of(format_of(model, name))[x] for x in side] for name, side in sides}
        unit = replace(model.unit, result=_kept(model.unit.result)) if step else model.unit
        exact = exact_values(unit, values | {"c": [exact]})
        size = exact_values(unit, {name: list(map(abs, side)) for name, side in values.items()} | {"c": [size]})
        found += [] if not step or row[-1] == near.results[step - 1] else ["an addend is not the result before it"]
    error = abs(numbers(model, np.array(near.results[-1:], dtype=np.uint64))[0] - exact)
    return [*found, *([] if error > size else [f"an error of {error} is not above {size}"])]


def bound_theorem(statement: Statement, settle: Settle) -> Theorem:
    """The bound that is proved of one instruction, or of a chain. Raises RuleError where there is none."""
    unit = statement.models[0].unit
    return bound_of(unit, settle) if statement.count == 1 else carried(chain_of(unit, settle), statement.count)


def passes(theorem: Theorem, claimed: Form) -> bool:
    """Whether a bound that is claimed follows from the one that is proved."""
    if isinstance(theorem.goal, Carried):
        return claimed.covers(theorem.goal.error)
    try:
        return bool(weakened(theorem, claimed))
    except RuleError:
        return False


def _faults(problem: Problem, witness: Witness | None) -> list[str]:
    """What is wrong with an input that is said to break a statement: its results must be the oracle's."""
    if witness is None:
        return []
    row = witness.operands
    sides = [(problem.left, witness.left), (problem.right, witness.right)]
    found = []
    for model, pattern in sides if type(problem) is Problem else sides[:1]:  # the other sides of properties are moved
        rest = (0,) * (model.length - len(row.a))
        scales = (*row.scale_a, *row.scale_b)
        found += _unlike_oracle(model, [(*row.a, *rest, *row.b, *rest, row.c, *scales)], [pattern])
    return found


def _oracle(statement: Statement) -> list[str]:
    """Some results of each unit against the oracle."""
    found, rng = [], np.random.default_rng(statement.number)
    for model in statement.models:
        columns = [np.arange(1 << fmt.width) for fmt in formats_of(model)]
        table = np.stack([rng.choice(column, HELD) for column in columns], axis=1).astype(np.uint64)
        found += _unlike_oracle(model, table.tolist(), results(model, table).tolist())
    return found


def _unlike_oracle(model: Model, rows: Sequence[Sequence[int]], given: Sequence[int]) -> list[str]:
    k, s = model.length, model.scales
    for row, pattern in zip(rows, given, strict=True):
        scales = row[2 * k + 1 : 2 * k + 1 + s], row[2 * k + 1 + s :]
        exact = node_oracle.evaluate(model.unit, row[:k], row[k : 2 * k], row[2 * k], *scales)
        own = numbers(model, np.array([pattern], dtype=np.uint64))[0]
        if not (np.isnan(own) if exact == node_oracle.ANY_NAN else exact == pattern):
            return [f"the oracle gives {exact:x}, not {pattern:x}, for {list(map(hex, row))}"]
    return []


# -- the table


def report(found: Sequence[Result], seconds: float, blindly: bool) -> str:
    judged_ = [one for one in found if one.verdict not in ("open",)]
    unknown = sum(one.verdict in ("unknown", "refused") for one in found)
    lines = [f"# {(__doc__ or '').splitlines()[0]}", (__doc__ or "").split("\n\n", 1)[1].rpartition("\n\n")[0]]
    lines.append(
        f"{len(found)} statements in {seconds:.0f} s{', the provers without examples' if blindly else ''}: "
        f"{sum(one.wrong for one in found)} wrong, {unknown} unknown ({100 * unknown / max(1, len(found)):.1f} "
        f"percent), {len(judged_)} answered by a verdict. A claimed part of an error bound that is not proved is "
        "`open`: no prover says that a bound is false, but where a sum wraps and none holds."
    )
    rows = ["| statements about | number | true | false | proved | refuted | open | unknown | wrong | s | longest, s |",
            "|---|---|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    for wanted in dict.fromkeys([*PROPERTIES, "all"]):
        own = [one for one in found if wanted in ("all", one.statement.wanted)]
        true = sum(one.statement.true for one in own)
        cells = [wanted, len(own), true, len(own) - true]
        cells += [sum(one.verdict == verdict for one in own) for verdict in ("equal", "different", "open")]
        cells += [sum(one.verdict in ("unknown", "refused") for one in own), sum(one.wrong for one in own)]
        times = [one.seconds for one in own]
        rows.append(f"| {' | '.join(map(str, cells))} | {sum(times):.0f} | {max(times, default=0.0):.1f} |")
    lines.append("\n".join(rows))
    odd = [one for one in found if one.wrong or one.verdict in ("unknown", "refused", "fault")]
    lines += [
        f"- {one.statement.number}: {one.verdict}; {one.statement.text()}; {'; '.join(one.trouble)}" for one in odd
    ]
    return "\n\n".join(lines) + "\n"


def main() -> None:
    options = parser(__doc__, 300, 20.0)
    options.add_argument("--step", type=int, default=1)
    options.add_argument("--only", default="")
    options.add_argument("--blind", action="store_true", help="the provers look at no example")
    options.add_argument("--relu", action="store_true", help="units rectify: max(x, 0) before or after a rounding")
    options.add_argument("-o", "--output", type=Path)
    given = options.parse_args()
    found, start = [], time.monotonic()
    for number in range(given.first, given.first + given.count * given.step, given.step):
        if given.only and PROPERTIES[number % len(PROPERTIES)] != given.only:
            continue
        with rectifying() if given.relu else ExitStack():
            statement = make(number)
        with blind() if given.blind else ExitStack():
            found.append(check(statement, given.timeout))
        one = found[-1]
        truth = "true" if one.statement.true else f"false on {one.statement.broken}"
        print(number, truth, one.verdict, f"{one.seconds:.1f}", one.statement.text(), *one.trouble, sep=" | ",
              file=sys.stderr, flush=True)  # fmt: skip
    text = report(found, time.monotonic() - start, given.blind)
    put_page(text, given.output)
    sys.exit(1 if any(one.wrong for one in found) else 0)


if __name__ == "__main__":
    main()
