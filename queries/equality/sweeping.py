"""Equality of a model and a design by sweeping: words that agree in simulation are proved equal, from the inputs on.

A design is a netlist. It has a word for each cell, and the names of words do not guide the proof. Each word of the
design, made of words that have been proved equal to others, gets a lemma: it equals a word of the model, or an earlier
word of the design, with the same values on all samples. In a lemma's query the terms that both sides share are free
variables (cut-points): all shared terms at first; where this is too coarse, only those further from the claim. An input
that refutes a lemma joins the samples.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from math import inf
from typing import TypeVar

import numpy as np
import pysmt.operators as op
from pysmt.fnode import FNode

from mmaprobe.queries.equality.attempt import Attempt
from mmaprobe.queries.equality.cases import Case, Patience, Zeros, leading_zeros, values_of
from mmaprobe.queries.equality.sampled import Samples, random_values
from mmaprobe.queries.equality.shared import WIRING, Shared
from mmaprobe.queries.equality.simulated import in_order, simulate
from mmaprobe.queries.kernel.questions.designs import Designed
from mmaprobe.queries.kernel.terms.cutting import Replacement
from mmaprobe.queries.kernel.terms.facts import Fact, equal, never, replaced, themselves
from mmaprobe.queries.kernel.terms.same import Compared, agreed
from mmaprobe.queries.kernel.theorem import Theorem, goal_of
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.samples import Table, sample_rows, subnormal_rows, tie_rows
from mmaprobe.queries.search.witness import answered_row, differs_on, replay, shrunk_witness
from mmaprobe.queries.solvers.engines import engines_of
from mmaprobe.queries.tactics.ledger import Ledger, UnprovedError
from mmaprobe.queries.tactics.records import Proof
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.carriers.limbs import LIMB
from mmaprobe.smtmodel.nodes.trace import Part, Stage

SAMPLES = 2048  # inputs of each kind
NEAR = 64  # inputs that join the samples when an input refutes a lemma
TRIED = 3  # the most words that are tried as equal to a word, and the most proofs by the sum that are tried
BRIEF, SIGNAL = 2.0, 30.0  # processor seconds for a lemma about a word; for a lemma about a signal of the model
WHOLE = 30.0  # seconds for the result as a whole, where it can be divided into cases
SHARE = 0.5  # share of the remaining time for the result
SETTLED = 100  # the most times that words are replaced again, as a replacement may contain replaced words
OFFSET = {op.BV_ADD, op.BV_SUB, op.BV_EXTRACT, op.BV_CONCAT, op.ITE}  # kinds of words that may differ by a constant
WIDEST = 32  # the most bits of these words
RESULT = "result"
One = TypeVar("One")
Lanes = Callable[[FNode], Table]
Scaled = dict[tuple[bool, int], list[tuple[FNode, int]]]
_AN = dict.fromkeys(("add", "and", "equals", "extract", "iff", "ite", "or"), "an")


def prove_design(problem: Designed, options: Options | None = None, confirm: bool = True) -> Proof:
    """Prove a design equal to a model on every admitted input, or find an input on which they differ. An interrupt ends
    the work; lemmas proved until then are kept. Raises SolverFaultError."""
    return _Sweep(problem, options or Options(), confirm).run()


class _Sweep(Attempt[Designed]):
    open: dict[FNode, str]  # words of the design that may be words of the model
    engine_seconds = 0.0  # processor seconds that the engines used
    refuted = 0  # number of refuted lemmas
    replayed = 0  # samples on which design and model have been compared

    def _work(self) -> None:
        rows = self._inputs()
        self.replayed = len(rows)
        if not self._differ_on(rows):
            self._build(rows)
            with self.compared.carrier.until(self.options.deadline):
                if self._sweep() and not self._differ(always=True):
                    if self._remaining() != 0:
                        self.proof.left_open = self._left_open()
                    self._conclude()

    def _inputs(self) -> Table:
        layout, fmt = self.problem.layout, self.problem.left.d
        kinds = (sample_rows(layout, 2 * SAMPLES), tie_rows(layout, fmt, SAMPLES), subnormal_rows(layout, SAMPLES))
        return np.concatenate([rows for rows in kinds if len(rows)])

    def _differ_on(self, rows: Table) -> bool:
        """Whether design and model differ on some inputs. The first of these is shrunk and kept as the witness."""
        self.proof.witness = shrunk_witness(self.problem, rows, replay(self.problem, rows).differs)
        return self.proof.witness is not None

    def _differ(self, always: bool = False) -> bool:
        """Whether design and model differ on inputs that refuted lemmas. They are compared after 1, 2, 4, ... refuted
        lemmas, or `always`: a design takes long to evaluate, and an input that refutes a lemma about one word need not
        change the result."""
        new = self.samples.rows[self.replayed :]
        if not len(new) or not (always or self.refuted & self.refuted - 1 == 0):
            return False
        self.replayed = len(self.samples.rows)
        return self._differ_on(new)

    def _build(self, rows: Table) -> None:
        self.compared = compared = Compared(self.problem, "select", self.options.deadline)
        self.proof.compared = compared
        self.ledger = Ledger(compared)
        self.undefined = set(compared.carrier.undefined_words)
        self.signals = {signal.value.node: signal.name for signal in compared.left.trace}
        named = self.problem.design.named(compared.inputs.sides, compared.carrier).items()
        self.own = {bits.node: name for name, bits in reversed(named)}
        self.names = {word: str(name) for word, name in self.signals.items()}
        self.zeros = [compared.carrier.manager.Equals(word, compared.carrier.constant(0, word.bv_width()))
                      for word in self._parts(Part.SIGNIFICAND)]  # fmt: skip
        self.ours = in_order([*self.zeros, *self.names, compared.left.d.node])
        self.theirs = in_order([compared.right.d.node])
        self.changes: dict[FNode, FNode] = {}
        self.open = {}
        self.proved: list[tuple[Theorem, FNode, FNode]] = []
        self.replace = Replacement(compared.carrier.environment, self.changes)
        self.samples = Samples(compared.inputs.every, self.undefined, rows)
        self.shared = Shared()
        simulate([*self.ours, *self.theirs], self.samples.first)
        self._look_up()
        self._zeros_alike()

    def _look_up(self) -> None:
        """Note the words of the model by their values."""
        self.known: dict[int, list[FNode]] = {}
        for term in self.ours:
            self.known.setdefault(self.samples.key(term), []).append(term)
        self.scaled = self._by_scale(self.samples.first_lanes)
        self.offsets: dict[int, dict[int, list[tuple[FNode, int]]]] = {}

    # -- words

    def _zeros_alike(self) -> None:
        """Prove which words of the model say that a significand is zero, and replace them by one word. A design makes
        this test on its operands, or on a shifted word; without these lemmas, each later lemma about the test would
        depend on the product."""
        for zero in self.zeros:
            name = f"{self.names[zero.arg(0)]} is zero"
            for term in self.known[self.samples.key(zero)]:
                if term != zero and term.get_type().is_bool_type() and self.samples.agree(term, zero):
                    self._decide(f"{self._called(term)} of the model says that {name}", term, zero, term)
            self.names[zero] = name
        self.names = {self.replace(word): name for word, name in self.names.items()}
        self.signals = {self.replace(word): name for word, name in self.signals.items()}
        self.ours = in_order(dict.fromkeys(map(self.replace, self.ours)))
        self._look_up()

    def _sweep(self) -> bool:
        """Prove words of the design equal to others. Returns whether no input found meanwhile shows a difference."""
        ours = set(self.ours)
        for number, term in enumerate(self.theirs):
            if self._remaining() == 0:
                return True
            now = self.replace(term)
            if now in ours or now.is_constant() or now.is_symbol():
                continue
            again, word = True, f"{self.own.get(term, f'word {number}')} of the design"
            self.proof.left_open = f"{word} and the words that depend on it"
            while again:
                again = False
                for name, other in self._candidates(term):
                    if now == other:
                        break
                    theorem = self._decide(f"{word} is {name}", now, other, term)
                    if theorem is False:  # an input refutes the lemma
                        if self._differ():
                            return False
                        again = True
                        break
                    if theorem is True:
                        self.open.pop(term, None)
                        break
                    if theorem is None:
                        self.open.setdefault(term, f"{word}, which seems to be {name}")
            if now.is_bv_add() and self.replace(term) == now:
                self._added(term)
            self._learn(term)
        return True

    def _left_open(self) -> str:
        """The first word of the design that may be a word of the model; else the first named word that has not been
        proved equal to a word of the model."""
        ours = set(self.ours)
        for term, text in self.open.items():
            if term in self.own:
                return text
            reader = next((name for word, name in self.own.items() if term in in_order([word])), "")
            return f"{text}, in {reader}" if reader else text
        none = (name for term in self.theirs if (name := self.own.get(term)) and self.replace(term) not in ours)
        return f"{next(none, 'the result')} of the design"

    def _added(self, term: FNode) -> None:
        """Replace a carry-save sum, one row of adders after another, by the sum of the words that the rows add: the
        first two words, plus the sum of the others. The latter may be a word of the model, such as a product."""
        manager, whole = self.compared.carrier.manager, self.replace(term)
        every, last = [term], list[FNode]()
        while (parts := _carry_save(whole)) is not None:
            before = manager.BVAdd(*parts[:2])
            wanted = manager.BVAdd(before, parts[2])
            alike = self._holds(manager.Equals(whole, wanted))
            found = alike and self._decide("a carry-save sum", whole, wanted, whole, SIGNAL)
            if found is not True:
                break
            every.append(whole)
            last.append(parts[2])
            whole = before
        if not last:
            return
        added = last.pop()  # not replaced itself: the sums that contain this word would become other terms
        for part in reversed(last):
            now, wanted = manager.BVAdd(manager.BVAdd(whole, added), part), manager.BVAdd(added, part)
            if self._decide("a sum in another order", now, manager.BVAdd(whole, wanted), now, SIGNAL) is not True:
                break
            added = self._placed(wanted)
        for one in every:  # the replacements of these have changed
            self.replace.memoization.pop(one, None)
        self.replace.memoization[term] = _settled(term, self.replace)

    def _placed(self, added: FNode) -> FNode:
        """A sum as a word of the model followed by zeros; without such a word, the sum itself."""
        manager = self.compared.carrier.manager
        used = int(np.bitwise_or.reduce(self.samples.lanes(added)))
        zeros = max((used & -used).bit_length() - 1, 0)
        number = manager.BVExtract(added, zeros, added.bv_width() - 1)
        for word in islice((word for word in self._same(number) if not word.get_type().is_bool_type()), TRIED):
            placed = manager.BVConcat(word, manager.BV(0, zeros)) if zeros else word
            name, fitted = f"the words added are {self._called(word)}", self._fitted(placed, added)
            if added == fitted or self._decide(name, added, fitted, added, SIGNAL) is True:
                return fitted
        return added

    def _reordered(self, name: str, claim: FNode, pair: tuple[FNode, FNode]) -> Theorem | bool | None:
        """The theorem that two sums of the same words are equal, where some words are written in different ways."""
        both = self.shared.common(*pair)
        own, others = (_summands(side, both) for side in pair)
        if len(own) < 3:
            return None
        free, facts = {word: self.samples.lanes(word).tobytes() for word in others if word not in both}, list[Theorem]()
        for word in [word for word in own if word not in both]:
            lanes = self.samples.lanes(word).tobytes()
            twin = next(
                (one for one, values in free.items() if values == lanes and one.get_type() == word.get_type()), None
            )
            if twin is None:
                return None
            free.pop(twin)
            fact = self._claim("a word that is added", equal(self.compared, word, twin), [], BRIEF)
            if not isinstance(fact, Theorem):
                return fact
            facts.append(fact)
        return None if free else self._lemma(name, claim, [[*own, *others]], BRIEF, pair, facts=facts)

    def _holds(self, claim: FNode) -> bool:
        """Whether a claim is true on the samples."""
        return bool(np.all(self.samples.lanes(claim)))

    def _same(self, term: FNode) -> Iterator[FNode]:
        """Known words with the same values as `term`, signals of the model first."""
        now = self.replace(term)
        for word in sorted(self.known.get(self.samples.key(term), []), key=lambda word: word not in self.names):
            if self.samples.agree(now, word):
                yield word

    def _candidates(self, term: FNode) -> Iterator[tuple[str, FNode]]:
        """Words with the same values as `term`, or with these values at other places; and a word that differs from
        `term` by a constant, as exponents do, or has more bits, as a negative number may."""
        for word in islice(self._same(term), TRIED):
            yield self._called(word), word
        manager, now = self.compared.carrier.manager, self.replace(term)
        for places, word, moved in self._moved(term, self.scaled, self.samples.first_lanes):
            if self.samples.agree(now, moved):
                yield f"{self._called(word)} {'>>' if places > 0 else '<<'} {abs(places)}", moved
        if not _may_be_offset(term):
            return
        width = term.bv_width()
        own, first = self._relative_values(term, width)
        for word, start in self._by_distance(width).get(own, []):
            if first != start or word.bv_width() > width:
                offset, fitted = (first - start) % (1 << width), self._fitted(word, term)
                raised = manager.BVAdd(fitted, manager.BV(offset, width)) if offset else fitted
                if self.samples.agree(now, raised):
                    yield f"{self._called(word)} + {offset}", raised
                    return

    def _by_distance(self, width: int) -> dict[int, list[tuple[FNode, int]]]:
        """The words of the model that may differ from others by a constant, each with its first value. The key is a
        hash of a word's values minus the first value."""
        if width not in self.offsets:
            found: dict[int, list[tuple[FNode, int]]] = {}
            for word in filter(_may_be_offset, self.ours):
                own, first = self._relative_values(word, width)
                found.setdefault(own, []).append((word, first))
            self.offsets[width] = found
        return self.offsets[width]

    def _moved(self, term: FNode, scaled: Scaled, lanes: Lanes) -> Iterator[tuple[int, FNode, FNode]]:
        """Yields the words of the model whose values on the samples of `lanes` are those of `term`, with the bits at
        other places: by how many places the term's bits lie lower, the word, and the word moved to these places."""
        manager = self.compared.carrier.manager
        for numbers, zeros in self._scaled(term, lanes):
            for word, others in scaled.get(numbers, []):
                if (places := others - zeros) > 0:
                    part = manager.BVExtract(word, places, word.bv_width() - 1)
                    yield places, word, self._fitted(part, term, numbers[0])
                elif numbers[0] and (places or word.bv_width() != term.bv_width()):
                    part = manager.BVConcat(word, manager.BV(0, -places)) if places else word
                    yield places, word, self._fitted(part, term, True)

    def _by_scale(self, lanes: Lanes) -> Scaled:
        """The words of the model and their common trailing zeros, by their values without these zeros."""
        found: Scaled = {}
        for term in self.ours:
            for numbers, zeros in self._scaled(term, lanes):
                if zeros or numbers[0]:
                    found.setdefault(numbers, []).append((term, zeros))
        return found

    def _scaled(self, term: FNode, lanes: Lanes) -> Iterator[tuple[tuple[bool, int], int]]:
        """Yields a key for the values of a word without their common trailing zeros, with the number of these zeros:
        for the word as an unsigned number, and, if the highest bit is ever set, for the word as a signed number."""
        if term.is_constant() or term.get_type().is_bool_type() or (width := term.bv_width()) > LIMB:
            return
        values = lanes(term)
        used = int(np.bitwise_or.reduce(values))
        zeros = (used & -used).bit_length() - 1
        if zeros < 0:
            return
        yield (False, hash((values >> np.uint64(zeros)).tobytes())), zeros
        if used >> width - 1:
            signed = (values << np.uint64(LIMB - width)).view(np.int64)
            yield (True, hash((signed >> np.int64(LIMB - width + zeros)).tobytes())), zeros

    def _relative_values(self, term: FNode, width: int) -> tuple[int, int]:
        """A hash of the values of a word minus the first value, in `width` bits; and the first value."""
        lanes = self.samples.first_lanes(term)
        return hash(((lanes - lanes[0]) & np.uint64((1 << width) - 1)).tobytes()), int(lanes[0])

    def _learn(self, term: FNode) -> None:
        """Note the replacement of a word, which later words may equal."""
        now = self.replace(term)
        same = self.known.setdefault(self.samples.key(term), [])
        if now not in same and not now.is_constant():
            same.append(now)

    def _called(self, term: FNode) -> str:
        """The name of a word in texts for people: a signal of the model, or the operation that gives the word."""
        operation = op.op_to_str(term.node_type()).removeprefix("BV_").lower()
        return self.names.get(term, f"{_AN.get(operation, 'a')} {operation}")

    def _decide(
        self, name: str, term: FNode, other: FNode, original: FNode, seconds: float | None = None
    ) -> bool | None:
        """Whether a word equals another; None: open. After False, the samples have an input that refutes this."""
        wanted = self._fitted(other, term)
        claim = equal(self.compared, term, wanted)
        seconds = seconds or (SIGNAL if other in self.names or term.is_bv_mul() else BRIEF)
        pair = term, wanted
        theorem = self._reordered(name, claim, pair) if term.is_bv_add() and wanted.is_bv_add() else None
        if theorem is None:
            theorem = self._lemma(name, claim, self._cuts(pair), seconds, pair)
        if isinstance(theorem, Theorem):
            self.changes[term] = wanted
            self.proved.append((theorem, term, wanted))
            self.replace.memoization[original] = wanted
            return True
        return theorem

    def _fitted(self, word: FNode, like: FNode, signed: bool = False) -> FNode:
        """A word converted to the type of `like`: extended (by the sign if `signed`), or cut to its low bits. A Boolean
        becomes 0 or 1."""
        manager = self.compared.carrier.manager
        if word.get_type() == like.get_type():
            return word
        if like.get_type().is_bool_type():
            return manager.Equals(manager.BVExtract(word, 0, 0), manager.BV(1, 1))
        width = like.bv_width()
        if word.get_type().is_bool_type():
            return manager.Ite(word, manager.BV(1, width), manager.BV(0, width))
        own = word.bv_width()
        if own > width:
            return manager.BVExtract(word, 0, width - 1)
        return (manager.BVSExt if signed else manager.BVZExt)(word, width - own)

    def _lemma(
        self, name: str, claim: FNode, levels: Iterable[list[FNode]], seconds: float | None,
        pair: tuple[FNode, FNode] | None = None, every: bool = False, facts: Sequence[Theorem] = (),
    ) -> Theorem | bool | None:  # fmt: skip
        """The theorem of a claim from the admitted inputs and `facts`, with the first cut-points of `levels` that
        suffice; False: an input refutes the claim; None: open. `seconds`: processor seconds for all of `levels`;
        `every`: ask all engines, not the likeliest alone."""
        end = None if seconds is None else self._spent() + seconds
        solver = None if every else engines_of(self.options.solver)[0]
        for cuts in levels:
            if cuts and not facts and self._too_coarse(claim, cuts):
                continue
            left = self._remaining()
            if left == 0 or (end is not None and (seconds := end - self._spent()) <= 0):
                break
            title = f"lemma {name}: {counted(len(cuts), 'cut-point')}"
            engines = self.options.engines(left, title, solver, processor=seconds)
            inputs = () if cuts else self.compared.symbols
            try:
                theorem = self.ledger.prove(name, claim, [self.ledger.admitted, *facts], cuts, engines, inputs)
            except UnprovedError:
                self.proof.tried += [answer for one in engines.answered_queries for answer in one.answers]
                answer = engines.answered_queries[-1].answer
                if not cuts and answer.status == "sat":
                    row = answered_row(self.problem.layout, answer)
                    undefined = self.undefined & set(in_order([claim]))
                    if not undefined or differs_on(self.problem, row):
                        self._add_near(row)
                        return False
                continue
            finally:
                self.engine_seconds += sum(answer.seconds for one in engines.answered_queries for answer in one.answers)
            lemma = self.ledger.lemma_of(theorem)
            points, known = tuple(cuts), _terms(facts)
            self.proof.lemmas.append(replace(lemma, name=name, pair=pair, points=points, facts=known))
            return theorem
        return None

    def _spent(self) -> float:
        """The processor seconds spent on lemmas. A stored answer counts with the seconds that it took, so that the
        limit ends a lemma at the same place whatever other programs do, and whatever earlier runs stored."""
        return time.thread_time() + self.engine_seconds

    def _claim(
        self, name: str, claim: FNode, cuts: list[FNode], seconds: float | None, facts: Sequence[Theorem] = ()
    ) -> Theorem | bool | None:
        """The theorem of a claim, with these cut-points, as a fact for later claims."""
        return self._lemma(name, claim, [cuts], seconds, (claim, self.compared.carrier.manager.TRUE()), facts=facts)

    def _add_near(self, row: Sequence[int]) -> None:
        """Add an input that refutes a lemma to the samples, and inputs one bit apart, which refute similar lemmas."""
        random = np.random.default_rng(len(self.samples.rows))
        widths = [fmt.width for fmt in self.problem.layout.formats]
        rows = np.array([row] * NEAR, dtype=np.uint64)
        for number, place in enumerate(random.integers(0, sum(widths), NEAR - 1), start=1):
            column = int(np.searchsorted(ends := np.cumsum(widths), place, side="right"))
            rows[number, column] ^= np.uint64(1 << int(ends[column] - place - 1))
        self.samples.add(rows)
        self.refuted += 1

    def _cuts(self, sides: Sequence[FNode]) -> Iterator[list[FNode]]:
        """Lists of cut-points to try for a claim about two words. Only the last, the empty list, cuts no significand
        that the words share."""
        return self.shared.cuts(sides, set(self._parts(Part.SIGNIFICAND)))

    def _too_coarse(self, claim: FNode, cuts: Sequence[FNode]) -> bool:
        """Whether random values of the cut-points refute a claim."""
        random = np.random.default_rng(len(cuts))
        order = in_order([claim], chosen := set(cuts))
        values = {term: random_values(random, term) for term in order if term in chosen or term.is_symbol()}
        simulate(order, values)
        return not np.all(values[claim].node)

    # -- the result

    def _conclude(self) -> None:
        compared = self.compared
        differ = compared.differ.node
        alike = _settled(themselves(compared, [differ]), lambda now: replaced(now, self.proved), lambda now: now.goal)
        manager = compared.carrier.manager
        goal = manager.Not(alike.goal.others[0])  # type: ignore[attr-defined]
        left = self._remaining()
        sides = [self.replace(side.d.node) for side in (compared.left, compared.right)]
        exponents = self._parts(Part.EXPONENT)
        seconds = None if left is None else left * SHARE
        special = manager.Or(*self._parts(Part.NAN), *self._parts(Part.INFINITE))
        if len(exponents) == 2:
            seconds = min(seconds or WHOLE, WHOLE)
        theorem = self._by_sum(goal, special) if len(exponents) > 2 else None
        if theorem is None:
            theorem = self._lemma(RESULT, goal, self._cuts(sides), seconds, every=True)
        if theorem is None and len(exponents) == 2:
            theorem = self._by_cases(goal, special, *exponents)
        if theorem is False:
            self._differ(always=True)
        if isinstance(theorem, Theorem):
            self.proof.theorem = agreed(compared, never(compared, differ, alike, theorem))

    def _ordinary_products(self, special: FNode, products: Sequence[FNode]) -> Iterator[_Multiplied]:
        """Multiplications of the design that give a product of the model unless the result is a special value, as a
        design may give infinities and NaNs another leading bit; also multiplications of significands without their
        leading zeros: (x << s) * (y << t) is (x * y) << s << t."""
        manager = self.compared.carrier.manager
        for own in [product for product in products if product.is_bv_mul()]:
            for term in in_order([self.replace(self.compared.right.d.node)]):
                if term == own or not term.is_bv_mul() or term.bv_width() != own.bv_width():
                    continue
                alike = [self._ordinary_factor(special, *pair) for pair in zip(own.args(), term.args(), strict=True)]
                found = [one for one in alike if one is not None]
                if len(found) < len(alike):
                    continue
                facts, factors = [fact for fact, _ in found], [*map(_factor, own.args())]
                lost = [zeros for _, zeros in found if zeros is not None]
                whole = reduce(manager.BVLShl, lost, own)
                claim = manager.Or(special, manager.Equals(whole, term))
                cuts = [special, *own.args(), *term.args(), *lost]
                theorem = self._claim("a product of ordinary numbers", claim, cuts, SIGNAL, facts)
                if isinstance(theorem, Theorem):
                    most = max(factor.bv_width() for factor in factors)
                    cases = tuple(tuple(values_of(manager, zeros, most)) for zeros in lost)
                    self.proof.lemmas[-1] = replace(self.proof.lemmas[-1], cases=cases)
                    yield _Multiplied(term, theorem, factors if lost else [])

    def _ordinary_factor(self, special: FNode, one: FNode, other: FNode) -> tuple[Theorem, FNode | None] | None:
        """The theorem that a factor of the design is a factor of the model unless the result is a special value; and
        the number of leading zeros that the design's factor has lost, None if it has lost none."""
        manager = self.compared.carrier.manager
        zeros = leading_zeros(manager, _factor(one), one.bv_width())
        for lost, factor in ((None, one), (zeros, manager.BVLShl(one, zeros))):
            claim = manager.Or(special, manager.Equals(factor, other))
            if self._holds(claim):
                theorem = self._claim("a factor of ordinary numbers", claim, [], SIGNAL)
                return (theorem, lost) if isinstance(theorem, Theorem) else None
        return None

    def _parts(self, part: Part) -> list[FNode]:
        """The words of the model's signals that are this part of a number."""
        return [word for word, name in self.signals.items() if name.part is part]

    def _ordinary_sum(self, special: FNode) -> _Sum | None:
        """A sum of the design that equals the model's last sum on the samples unless the result is a special value."""
        totals = [word for word, name in self.signals.items() if name.stage is Stage.SUM and name.part is Part.WHOLE]
        ordinary = self.samples.lanes(special) == 0

        def lanes(term: FNode) -> Table:
            values: Table = self.samples.lanes(term)[ordinary]
            return values

        scaled = self._by_scale(lanes)
        for term in reversed(in_order([self.replace(self.compared.right.d.node)])):
            if term.is_bv_add():
                for _, word, moved in self._moved(term, scaled, lanes):
                    if word in totals[-1:]:
                        return _Sum(term, word, moved, lanes, scaled)
        return None

    def _by_sum(self, goal: FNode, special: FNode) -> Theorem | bool | None:
        """The theorem of a claim by the sum that design and model share; after an input that refutes a lemma, tried
        again with this input."""
        for _ in range(TRIED):
            total = self._ordinary_sum(special)
            found = None if total is None else self._from_sum(goal, special, total)
            if found is not False or self._differ(always=True):
                return found
        return None

    def _from_sum(self, goal: FNode, special: FNode, total: _Sum) -> Theorem | bool | None:
        """The theorem of a claim by cases of the place of the leading one of the model's sum, once the design's sum is
        proved to be the same number. The design adds the same words, with other leading and trailing bits."""
        manager = self.compared.carrier.manager
        known, facts = list[FNode](), list[Theorem]()
        shared = set(in_order([total.word]))
        for term in _summands(total.term, shared):
            if term not in shared:
                claims = [(word, manager.Or(special, manager.Equals(term, moved)))
                          for _, word, moved in self._moved(term, total.scaled, total.lanes)]  # fmt: skip
                if not claims:
                    return None
                alike = self._claim("a summand of ordinary numbers", claims[0][1], [], SIGNAL)
                if not isinstance(alike, Theorem):
                    return alike
                facts.append(alike)
                known.append(term)
                term = claims[0][0]
            known.append(term)
            bits = manager.Or(special, self._within(term, total.lanes))
            within = self._claim("the bits of a summand", bits, [], SIGNAL)
            if within is False:
                return False
            facts += [within] if isinstance(within, Theorem) else []
        claim = manager.Or(special, manager.Equals(total.term, total.moved))
        alike = self._claim("the sum of ordinary numbers", claim, [special, *known], SIGNAL, facts)
        if not isinstance(alike, Theorem):
            return alike
        bits = manager.Or(special, self._within(total.word, total.lanes))
        within = self._claim("the bits of the sum", bits, [special, *known], SIGNAL, facts)
        if within is False:
            return False
        facts = [alike, *([within] if isinstance(within, Theorem) else [])]
        magnitude = [word for word, name in self.signals.items()
                     if name.stage is Stage.SUM and name.part is Part.MAGNITUDE][-1]  # fmt: skip
        case = Case(None, (0, 0), {magnitude: Zeros(magnitude)})
        return self._divided(goal, special, case, [[special, total.term, total.word], []], facts)

    def _within(self, term: FNode, values: Lanes) -> FNode:
        """The term that a number has the trailing zeros that its values on the samples share, and no more bits than
        these values."""
        manager, width = self.compared.carrier.manager, term.bv_width()
        lanes = values(term)
        used = int(np.bitwise_or.reduce(lanes)) or 1
        zeros = (used & -used).bit_length() - 1
        signed = (lanes << np.uint64(LIMB - width)).view(np.int64) >> np.int64(LIMB - width)
        top = max(int(np.max(np.maximum(signed, ~signed))).bit_length(), zeros)
        part = manager.BVExtract(term, zeros, top)
        placed = manager.BVConcat(part, manager.BV(0, zeros)) if zeros else part
        return manager.Equals(term, manager.BVSExt(placed, width - placed.bv_width()))

    def _by_cases(self, goal: FNode, special: FNode, one: FNode, other: FNode) -> Theorem | bool | None:
        """The theorem of a claim by cases of the distance of two exponents of the model, and of the places of the
        leading ones of its significands."""
        manager = self.compared.carrier.manager
        width = max(one.bv_width(), other.bv_width()) + 1
        first, second = (manager.BVZExt(word, width - word.bv_width()) for word in (one, other))
        apart = manager.BVSub(first, second)
        significands = self._parts(Part.SIGNIFICAND)
        products = [word for word in significands if len(word.get_free_variables()) > 1]
        known = list(self._ordinary_products(special, products))
        cuts, alike = [one.product for one in known], [one.theorem for one in known]
        shifted = dict.fromkeys(factor for one in known for factor in one.shifted)
        self.names |= {factor: f"factor {number}" for number, factor in enumerate(shifted)}
        every = {word: Zeros(word) for word in (*shifted, *significands)}
        case = Case(apart, (-1 << width - 1, (1 << width - 1) - 1), every)
        return self._divided(goal, special, case, [cuts], alike)

    def _divided(
        self, goal: FNode, special: FNode, whole: Case, cuts: Sequence[list[FNode]], alike: Sequence[Theorem]
    ) -> Theorem | bool | None:
        """The theorem of a claim by the parts of a case. There is a lemma for each part, in which all shifts are by
        constants, or for many parts at once where that is as easy. The claim follows from these lemmas, once an engine
        finds that there is no other case. A case is divided if its lemma takes longer than its parts are expected to
        take, by the times of earlier cases."""
        manager = self.compared.carrier.manager
        found = self._claim(f"{RESULT}, a special value", manager.Or(manager.Not(special), goal), [], SIGNAL)
        if not isinstance(found, Theorem):
            return found
        facts, patience = [self.ledger.admitted, found], Patience()

        def decide(case: Case) -> bool | None:
            parts, start = case.parts(), self._spent()
            seconds = patience.limit(case) if parts else inf
            if seconds:
                claim = manager.Or(special, *map(manager.Not, case.conditions(manager)), goal)
                name, limit = f"{RESULT}, {case.called(self.names)}", None if seconds == inf else seconds
                found = self._lemma(name, claim, cuts, limit, (claim, manager.TRUE()), facts=alike)
                patience.tell(case, self._spent() - start, isinstance(found, Theorem))
                if isinstance(found, Theorem):
                    facts.append(found)
                    return True
                if found is False or not parts or self._remaining() == 0:
                    return found
            start = self._spent()
            for part in parts:
                if (decision := decide(part)) is not True:
                    return decision
            patience.tell_parts(case, self._spent() - start)
            return True

        if (decision := decide(whole)) is not True:
            return decision
        try:
            engines = self.options.engines(self._remaining(), f"lemma {RESULT}, all cases")
            points = [*([] if whole.apart is None else [whole.apart]), goal, special, *whole.zeros]
            found = self.ledger.prove(RESULT, goal, facts, points, engines)
        except UnprovedError:
            return None
        lemma = self.ledger.lemma_of(found)
        self.proof.lemmas.append(replace(lemma, name=RESULT, points=tuple(points), facts=_terms(facts)))
        return found


@dataclass(frozen=True)
class _Sum:
    """A sum of the design, `term`, that equals `moved`, the model's sum `word` at the term's places, on ordinary
    samples; `lanes`: the values of a word on these samples; `scaled`: the words of the model by these values."""

    term: FNode
    word: FNode
    moved: FNode
    lanes: Lanes
    scaled: Scaled


@dataclass(frozen=True)
class _Multiplied:
    """A product of the design that `theorem` says is a product of the model. `shifted`: the model's factors, if the
    design's factors have lost leading zeros."""

    product: FNode
    theorem: Theorem
    shifted: Sequence[FNode]


def _terms(facts: Iterable[Theorem]) -> tuple[FNode, ...]:
    """The terms that facts state to be true."""
    return tuple(goal_of(fact, Fact, RESULT).term for fact in facts)


def _factor(word: FNode) -> FNode:
    """A factor without zero extension."""
    return word.arg(0) if word.is_bv_zext() else word


def _settled(one: One, change: Callable[[One], One], key: Callable[[One], object] = lambda now: now) -> One:
    """A word, or a theorem, changed again until it stays as it is. `key`: a key by which two of them are compared."""
    for _ in range(SETTLED):
        before, one = one, change(one)
        if key(one) == key(before):
            break
    return one


def _summands(term: FNode, known: Container[FNode]) -> list[FNode]:
    """The summands of a sum, or parts of summands; the words in `known` are not divided."""
    parts, waiting = dict[FNode, None](), [term]
    while waiting:
        one = waiting.pop()
        if one not in known and (one.is_bv_add() or one.node_type() in WIRING):
            waiting += [arg for arg in one.args() if not arg.is_constant()]
        else:
            parts[one] = None
    return list(parts)


def _carry_save(term: FNode) -> tuple[FNode, FNode, FNode] | None:
    """The three inputs of a row of full adders, whose sum and carry a term may add. The last input is that of the outer
    exclusive or. None: the term adds no exclusive or of three words."""
    if not term.is_bv_add() or term.bv_width() > LIMB:
        return None
    for one in term.args():
        if not one.is_bv_xor():
            continue
        for inner, new in (one.args(), one.args()[::-1]):
            if inner.is_bv_xor():
                return (*inner.args(), new)
    return None


def _may_be_offset(term: FNode) -> bool:
    return term.node_type() in OFFSET and not term.get_type().is_bool_type() and 2 < term.bv_width() <= WIDEST
