"""Bounds on the error of a truncating fused dot product (Xie et al. 2026, Table 9), by lemmas about its stages.

All in units u = 2^(largest exponent - F). Each of the L + 1 terms loses less than u when it is cut off (one lemma for
every term of one form; where F holds every fraction bit of the terms, one that has the largest exponent loses
nothing); the sum adds no error, since it has room for all its bits; and rounding takes the sum, a whole number of u,
to a whole number of ulps toward zero, which loses at most ulp - u, and nothing where the ulp is at most u. The bound
follows from these in linear arithmetic.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from hypotheses.unit_claims import BoundClaim
from queries.claims.outcome import Asked, Outcome
from queries.claims.scope import truncating_steps
from queries.equality.confirm import confirm
from queries.equality.cutting import Cutter, renamed
from queries.equality.lemmas import Lemma
from queries.search.distinguish import Options
from queries.solvers.smtlib import Query
from smtmodel.algebra import Bit, Bits, choose, constant
from smtmodel.carriers.terms import TermCarrier
from smtmodel.decode import Exponent, Unpacked, unpack
from smtmodel.dot import Model, evaluate
from smtmodel.errors import ParameterError
from smtmodel.formats import Format
from smtmodel.nodes import Element, FusedSum, Round
from smtmodel.nodes.node import walk
from smtmodel.trace import Name, Part, Stage, Trace


def verify_bound(claim: BoundClaim, options: Options) -> Outcome:
    """Prove a bound, or leave it unknown. Raises ParameterError for a model that these lemmas are not about."""
    start = time.monotonic()
    outcome = Outcome(claim)
    try:
        proof = _Proof(claim, options, outcome)
        if proof.run():
            outcome.verdict = "holds"
            outcome.lemmas = confirm(outcome.lemmas, options, time.monotonic() - start)
    except KeyboardInterrupt:
        outcome.interrupted = True
    outcome.seconds = time.monotonic() - start
    return outcome


@dataclass(frozen=True)
class _Term:
    """A term of the sum: its selected exponent, its exact magnitude and the one cut off, both in units of
    u * 2^-spare."""

    name: str
    exponent: Bits
    exact: Bits
    kept: Bits


class _Proof:
    def __init__(self, claim: BoundClaim, options: Options, outcome: Outcome) -> None:
        self.claim, self.options, self.outcome = claim, options, outcome
        self.deadline = None if options.timeout is None else time.monotonic() + options.timeout
        self.asked: dict[str, bool] = {}
        self.carrier = TermCarrier(maximum="relational")
        model = claim.model
        total, self.fraction_bits = _sum_of(model)
        sides = [[self.carrier.symbol(f"{name}{k}", fmt.width) for k in range(model.length)]
                 for name, fmt in (("a", model.a), ("b", model.b))]  # fmt: skip
        self.inputs = [*zip(sides[0], [model.a] * model.length, strict=True),
                       *zip(sides[1], [model.b] * model.length, strict=True)]  # fmt: skip
        c = self.carrier.symbol("c", model.c.width)
        self.inputs.append((c, model.c))
        self.trace = evaluate(model, sides[0], sides[1], c).trace
        terms = self.trace.entered[""][1]
        _check_floor(total, [item for _, item in terms])
        maximum = self.trace[Name("", Stage.MAXIMUM)]
        bits = maximum.bits
        self.maximum = Exponent(bits, maximum.offset, maximum.offset + (1 << bits.width) - 1)
        self.names = [name for name, _ in terms]

    def run(self) -> bool:
        """Whether every lemma is proved."""
        terms = [_term(self.trace, name, self.maximum, self.fraction_bits) for name in self.names]
        if not self._largest(terms) or not all(map(self._loss, terms)) or not all(map(self._inside, terms)):
            return False
        return self._rounding() and self._finite() and self._linear(len(terms))

    def _lemma(self, name: str, facts: list[Bit], claim: Bit, cuts: dict[Bits, str] | None = None) -> bool:
        manager, environment = self.carrier.manager, self.carrier.environment
        fresh = {bits.node: manager.Symbol(symbol, bits.node.get_type()) for bits, symbol in (cuts or {}).items()
                 if not bits.node.is_constant()}  # fmt: skip
        parts = list(map(Cutter(environment, fresh), [*(fact.node for fact in facts), (~claim).node]))
        return self._ask(name, Query((), renamed(environment, parts)), len(fresh))

    def _ask(self, name: str, query: Query, cuts: int, solver: str | None = None) -> bool:
        if query.text not in self.asked:
            limit = None if self.deadline is None else max(0.0, self.deadline - time.monotonic()) * 0.6
            answers = self.options.ask(query, limit, name, solver)
            self.outcome.asked.append(Asked(name, tuple(answers)))
            self.asked[query.text] = answers[0].status == "unsat"
            if self.asked[query.text]:
                self.outcome.lemmas.append(Lemma(name, cuts, query, answers[0]))
        return self.asked[query.text]

    def _largest(self, terms: list[_Term]) -> bool:
        """The maximum is that of the terms' exponents: none is above it, and one is it."""
        symbol = self.maximum.bits.node
        if symbol not in self.carrier.maxima:
            raise ParameterError(self.claim.model.reference, "its largest exponent is not that of the terms alone")
        return self.carrier.maxima[symbol] == frozenset(term.exponent.node for term in terms)

    def _loss(self, term: _Term) -> bool:
        """A term loses less than u, if its exponent is at most the maximum; nothing where it is the maximum."""
        maximum = self.maximum.bits
        spare = 1 << (term.exact.width - term.kept.width)
        kept = term.kept.pad(term.exact.width - term.kept.width)
        small = (term.exact - kept).ult(constant(self.carrier, spare, kept.width)) & kept.ule(term.exact)
        kind = "a product" if term.name.isdigit() else "the addend"
        proved = self._lemma(f"{kind} loses less than u", [term.exponent.ule(maximum)], small)
        if self.claim.bound == "loose" or not proved:
            return proved
        whole = kept.eq(term.exact)
        return self._lemma(f"{kind} at the largest exponent loses nothing", [term.exponent.eq(maximum)], whole)

    @property
    def _highest(self) -> Bits:
        """The largest exponent that a finite term can have, as the maximum counts."""
        model = self.claim.model
        most = max(model.a.emax + model.b.emax, model.c.emax)
        return constant(self.carrier, most - self.maximum.low, self.maximum.bits.width)

    def _inside(self, term: _Term) -> bool:
        """The exponent of a finite term is in range."""
        count = self.claim.model.length
        product = term.name.isdigit()
        kind, places = ("a product", [int(term.name)] * 2) if product else ("the addend", [2 * count])
        inputs = [self.inputs[place + k * count] for k, place in enumerate(places)]
        return self._lemma(f"the exponent of {kind} is in range", _finite(inputs), term.exponent.ule(self._highest))

    def _rounding(self) -> bool:
        """The result is the sum's magnitude cut off to a whole number of ulps, unless it overflows."""
        fmt = self.claim.model.d
        magnitude = self.trace[Name("", Stage.SUM, part=Part.MAGNITUDE)].bits
        rounded = self.trace[Name("", Stage.ROUNDED)].bits
        value = unpack(rounded, fmt)
        term, maximum, carrier = value.term, self.maximum, self.carrier
        room = 16  # bits of every exponent's difference, in two's complement
        offset = term.exponent.low - fmt.fraction - maximum.low + self.fraction_bits
        places = term.exponent.bits.zext(room) - maximum.bits.zext(room) + constant(carrier, offset, room)
        width = magnitude.width + fmt.precision + 2
        wide, digits = magnitude.zext(width), term.significand.zext(width)
        low = digits.shl(places)
        inside = low.ule(wide) & wide.ult(low + constant(carrier, 1, width).shl(places))
        coarse = choose(places.slt(constant(carrier, magnitude.width + 1, room)), inside, ~digits.any())
        exact = wide.shl(-places).eq(digits) & (-places).slt(constant(carrier, fmt.precision, room))
        fine = exact | (~wide.any() & ~digits.any())
        truncated = choose(places.msb(), fine, coarse)
        facts = [~value.is_infinite, maximum.bits.ule(self._highest)]
        cuts = {magnitude: "magnitude", maximum.bits: "maximum"}
        return self._lemma("rounding loses less than one ulp, and no part of u", facts, truncated, cuts)

    def _finite(self) -> bool:
        """Of finite inputs the result is the rounded sum."""
        result, rounded = (self.trace[Name("", stage)].bits for stage in (Stage.RESULT, Stage.ROUNDED))
        return self._lemma("the result of finite inputs is the rounded sum", _finite(self.inputs), result.eq(rounded),
                           {rounded: "rounded"})  # fmt: skip

    def _linear(self, count: int) -> bool:
        """The bound from the lemmas: losses l in units of u, rounding r, and q = ulp / u."""
        names = [f"l{k}" for k in range(count)]
        total = f"(+ r {' '.join(names)})"
        largest = f"(+ {count - 2}.0 (ite (< q 1.0) 1.0 q))" if self.claim.bound == "tight" else f"(+ {count}.0 q)"
        lines = [f"(declare-const {name} Real)" for name in (*names, "r", "q")]
        lines += [f"(assert (and (< (- 1.0) {name}) (< {name} 1.0)))" for name in names]
        lines += ["(assert (> q 0.0))", "(assert (=> (<= q 1.0) (= r 0.0)))",
                  "(assert (=> (> q 1.0) (and (<= (- 1.0 q) r) (<= r (- q 1.0)))))"]  # fmt: skip
        if self.claim.bound == "tight":
            lines.append(f"(assert (or {' '.join(f'(= {name} 0.0)' for name in names)}))")
        lines.append(f"(assert (or (> {total} {largest}) (< {total} (- {largest}))))")
        return self._ask("the bound follows", Query((), (), epilogue="\n".join(lines), logic="QF_LRA"), 0, "z3")


_ABOUT = "the bound is about one truncating sum of exact products and c, rounded once"


def _sum_of(model: Model) -> tuple[FusedSum, int]:
    """The sum, and its F. Raises ParameterError for a model that the lemmas are not about, by what is at fault."""
    unit = model.unit
    chain = truncating_steps(unit, _ABOUT)
    if len(chain.blocks) > 1:
        raise ParameterError("steps", f"{len(chain.blocks)}: {_ABOUT}")
    if any(isinstance(node, Element) and node.subnormals != "keep" for node in walk(unit.result)):
        raise ParameterError("inputs", f"subnormals are read as zero: {_ABOUT}")
    if unit.rounding.subnormals != "keep":
        raise ParameterError("subnormals", f"results are flushed: {_ABOUT}")
    total = unit.result.term if isinstance(unit.result, Round) else None
    if not isinstance(total, FusedSum) or not isinstance(total.fraction_bits, int):
        raise ParameterError("fused", f"an exact sum: {_ABOUT}")
    bits = total.fraction_bits
    products, c, d = model.a.emax + model.b.emax + 2, model.c.emax, model.d.emax  # no product reaches 2^products
    beside_c = c < d or (c == d and products <= c - bits)  # or c has the largest exponent, and they are cut off whole
    if products + model.length.bit_length() > d or not beside_c:
        raise ParameterError("d", f"{model.d.name} can overflow on finite inputs: {_ABOUT}")
    return total, bits


def _check_floor(total: FusedSum, items: Sequence[Unpacked]) -> None:
    """Raises ParameterError for a floor above the exponents of terms: u would not be that of the largest term."""
    if total.floor_matters(items):
        floor = total.least if total.zeros is None else total.zeros
        raise ParameterError("fused", f"its floor {floor} can exceed the exponents of all terms: {_ABOUT}")


def _finite(inputs: Sequence[tuple[Bits, Format]]) -> list[Bit]:
    values = [unpack(bits, fmt) for bits, fmt in inputs]
    return [~(value.is_nan | value.is_infinite) for value in values]


def _term(trace: Trace, name: str, maximum: Exponent, fraction_bits: int) -> _Term:
    whole = Name("", Stage.TERM, name)
    significand, kept = trace[whole], trace[Name("", Stage.ALIGNED, name)].bits
    exponent, place = trace[whole.its(Part.EXPONENT)].bits, significand.scale
    assert place is not None
    spare = max(maximum.high - fraction_bits - place.low, 0)
    highest = place.high - maximum.low  # of the distance, in the widest case
    width = kept.width + spare
    room = (highest + spare + (1 << maximum.bits.width)).bit_length() + 2
    carrier = kept.carrier
    distance = place.bits.zext(room) - maximum.bits.zext(room)
    amount = distance + constant(carrier, place.low - maximum.low + fraction_bits + spare, room)
    return _Term(name, exponent, significand.bits.zext(width).shl(amount), kept)
