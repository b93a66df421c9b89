"""The search for the worst input of a quantity: a concrete search changes the worst inputs so far, and a bisection asks
a solver for a worse one."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from mmaprobe.documents.verify import Step as Tried
from mmaprobe.documents.verify import Worst as Document
from mmaprobe.hypotheses.claim import Claim, Largest
from mmaprobe.hypotheses.claim_file import Statement
from mmaprobe.queries.claims.outcome import SearchStep
from mmaprobe.queries.claims.samples import BATCH, SHRINK, claim_rows, mutated
from mmaprobe.queries.claims.vectors import ClaimInput
from mmaprobe.queries.kernel.questions.scene import columns_of, scene_of, symbolic_scene
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.search.samples import Table
from mmaprobe.queries.search.scene import meets_quantity
from mmaprobe.queries.search.witness import Row, answered_row, shrink_rows
from mmaprobe.queries.solvers.asking import SolverFaultError
from mmaprobe.queries.solvers.smtlib import Query
from mmaprobe.smtmodel.algorithms import fixed
from mmaprobe.smtmodel.algorithms.exact import Fixed
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.progress import Share, Wait
from mmaprobe.smtmodel.base.yamlfile import located
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits
from mmaprobe.smtmodel.evaluate.batch import to_integers
from mmaprobe.smtmodel.evaluate.programs import ARRAYS

ELITE = 64  # inputs, the best so far, that are changed
RESTART = 30  # rounds without a better input after which the search begins anew, from other inputs
SEARCH_SHARE = 0.5  # share of the time for the concrete search
Found = Callable[[Fraction, Row], None]


@dataclass
class Worst:
    """The largest value of quantity / unit found, and its input; `bound`: a value that no input reaches, proved by
    `engine`; `most`: a value that no input exceeds, by what decided the claim.

    Value and bound are about inputs on which every result read is a number. `left_out`: the number of other admitted
    inputs tried: a result is infinite, NaN or beyond the range of exact sums.
    """

    claim: Claim
    largest: Largest
    value: Fraction | None = None
    row: Row | None = None
    bound: Fraction | None = None
    engine: str | None = None
    most: Fraction | None = None
    left_out: int = 0
    asked: list[SearchStep] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def document(self) -> Document:
        """The largest value found, as a number and exactly, its input, and what is proved."""
        quantity, unit = (ast.unparse(tree) for tree in (self.largest.quantity, self.largest.unit))
        return Document(
            quantity=quantity if unit == "1" else f"{quantity} in {unit}",
            where=[ast.unparse(tree) for tree in self.largest.where],
            value=None if self.value is None else float(self.value),
            exact_value=None if self.value is None else str(self.value),
            bound=None if self.bound is None else str(self.bound),
            engine=self.engine,
            most=None if self.most is None else str(self.most),
            left_out=self.left_out,
            seconds=round(self.seconds, 3),
            asked=[Tried(what=step.what, answers=list(map(str, step.answers))) for step in self.asked],
            vector=None if self.row is None else ClaimInput(self.claim, self.row).document,
        )


def maximise(
    claim: Statement, options: Options | None = None, most: Fraction | None = None, also: Sequence[Row] = ()
) -> Worst:
    """Search within the time of the options. `most`: a value that is proved never to be exceeded; `also`: inputs found
    before, of any number of products. Raises InputError for a claim without a quantity to maximise."""
    with located(claim.file, ("maximise",)):
        claim, largest = maximised(claim)
        search = _Search(claim, largest, options or Options())
        search.worst.most = most
        return search.run([row for row in also if len(row) == len(claim.layout.formats)])


def climb(
    claim: Claim, largest: Largest, seconds: float, enough: Callable[[Row], bool], also: Sequence[Row] = (),
    found: Found | None = None, looked: Callable[[Table], object] | None = None,
) -> Worst:  # fmt: skip
    """The worst of the inputs `also` and of those found by concrete search, which ends as soon as `enough` holds for
    the best row. `found` takes every worst input so far, `looked` all inputs that are evaluated."""
    search = _Search(claim, largest, Options(timeout=seconds))
    search.enough, search.found, search.looked = enough, found or search.found, looked or search.looked
    search.take(also)
    search.climb(seconds - (time.monotonic() - search.start))
    return search.worst


def maximised(claim: Statement) -> tuple[Claim, Largest]:
    """A claim about algorithms, and its quantity to maximise. Raises ParameterError if it has none."""
    if not isinstance(claim, Claim) or claim.maximise is None:
        raise ParameterError("maximise", f"{claim.id} has no quantity to maximise (key `maximise` of its file)")
    return claim, claim.maximise


class _Search:
    def __init__(self, claim: Claim, largest: Largest, options: Options) -> None:
        self.claim, self.largest, self.options = claim, largest, options
        self.start = time.monotonic()
        self.worst = Worst(claim, largest)
        self.rng = np.random.default_rng(1)
        self.enough: Callable[[Row], bool] = lambda row: False
        self.found: Found = lambda value, row: None
        self.looked: Callable[[Table], object] = lambda table: None
        self.units = 0, 0  # exponents of the last places of the quantity and of its unit

    def run(self, also: Sequence[Row]) -> Worst:
        try:
            self.take(also)
            self.climb(SEARCH_SHARE * (self.options.timeout or 60.0))
            self._bisect()
        except KeyboardInterrupt:
            pass
        if self.worst.row is not None:
            self._shrink()
        self.worst.seconds = time.monotonic() - self.start
        return self.worst

    def _recorded(self, *columns: Bits) -> tuple[Bit, Bit, Bits, Bits]:
        """`meets_quantity` with the quantity and its unit as bits; the exponents of their last places go into
        `units`."""
        scene = scene_of(self.claim.assertion, columns)
        counts, left_out, quantity, unit = meets_quantity(self.claim, self.largest, scene)
        self.units = quantity.unit, unit.unit
        return counts, left_out, quantity.bits, unit.bits

    def _values(self, table: Table) -> list[Fraction]:
        """quantity / unit of every row; -1 for a row that does not count."""
        count = len(table)
        self.looked(table)
        with np.errstate(over="ignore"):
            counts, left_out, *bits = ARRAYS.formed(self, self._recorded, *columns_of(self.claim.assertion, table))
            quantity, unit = (Fixed(own, place) for own, place in zip(bits, self.units, strict=True))
            chosen, others = (np.flatnonzero(to_integers(flags, count)) for flags in (counts, left_out))
            if self.claim.zero_addend:
                chosen, others = (rows[table[rows, -1] == 0] for rows in (chosen, others))
            self.worst.left_out += len(others)
        values = [Fraction(-1)] * count
        if len(chosen):
            tops, units = quantity.numbers(count), unit.numbers(count)
            for k in chosen:
                values[k] = tops[k] / units[k]
        return values

    def climb(self, seconds: float, begin: Row | None = None) -> None:
        """Change the best inputs for some seconds."""
        began, rounds, idle, batch = time.monotonic(), 0, 0, BATCH // 4
        elite: list[tuple[Fraction, Row]] = []
        self.options.progress(Wait("searching for the worst input", seconds))
        first = [] if begin is None else [np.array([begin] * ELITE, dtype=np.uint64)]
        while time.monotonic() - began < seconds:
            if not elite or idle > RESTART:
                elite, idle = [], 0
                tables = [*first, claim_rows(self.claim, BATCH, int(self.rng.integers(1 << 31)))]
                table = np.concatenate(tables)
            else:
                rows = np.array([row for _, row in elite], dtype=np.uint64)
                table = mutated(self.claim, rows, batch, self.rng)
            ranked = zip(self._values(table), map(tuple, table.tolist()), strict=True)
            best = elite[0][0] if elite else Fraction(-1)
            elite = sorted({*elite, *(pair for pair in ranked if pair[0] >= 0)}, reverse=True)[:ELITE]
            idle = 0 if elite and elite[0][0] > best else idle + 1
            rounds += 1
            if elite and (self.worst.value is None or elite[0][0] > self.worst.value):
                self._found(*elite[0])
                text, spent = f"{rounds} rounds: {float(elite[0][0]):.6g}", time.monotonic() - began
                self.options.progress(Share(text, min(spent, seconds), seconds, "rounds"))
                if self.enough(elite[0][1]):
                    break
        self.worst.asked.append(SearchStep(f"{rounds} rounds of concrete search", (), time.monotonic() - began))

    def take(self, rows: Sequence[Row]) -> None:
        """Take the worst of some inputs, if it is worse than what was found."""
        values = self._values(np.array(rows, dtype=np.uint64)) if rows else ()
        value, row = max(zip(values, rows, strict=True), default=(Fraction(-1), ()))
        if value > (self.worst.value if self.worst.value is not None else -1):
            self._found(value, row)

    def _found(self, value: Fraction, row: Row) -> None:
        self.worst.value, self.worst.row = value, row
        self.found(value, row)

    def _remaining(self, share: float = 1.0) -> float:
        limit = self.options.timeout or 60.0
        return max(0.0, limit - (time.monotonic() - self.start)) * share

    def _bisect(self) -> None:
        """Ask for inputs beyond the best: first for twice its value, then for values between the best and a proved
        bound."""
        worst, factor = self.worst, Fraction(2)
        while self._remaining() > 1 and worst.value is not None:
            best = max(worst.value, Fraction(1))
            target = Fraction(int(best * factor) or 1)
            if target <= worst.value:
                target += 1
            if worst.bound is not None and target >= worst.bound:
                target = Fraction(int((worst.value + worst.bound) / 2))
                if target <= worst.value:
                    return
            answer = self._ask(target)
            if answer == "unsat":
                worst.bound = target
            elif answer == "unknown":
                if worst.bound is not None or factor > 16:
                    return
                factor *= 4  # a far target is sometimes easier to refute

    def _ask(self, target: Fraction) -> str:
        what = f"is there an input with at least {target}?"
        answers = self.options.ask(self._query(target), self._remaining(0.5), what)
        self.worst.asked.append(SearchStep(what, tuple(answers)))
        answer = answers[0]
        if answer.status == "sat":
            row = answered_row(self.claim.layout, answer)
            (value,) = self._values(np.array([row], dtype=np.uint64))
            if value < target:
                raise SolverFaultError(f"{answer.engine} {answer.version} gave an input that does not reach {target}")
            self.worst.value, self.worst.row = value, row
            self.climb(min(5.0, self._remaining(0.2)), row)
        if answer.status == "unsat":
            self.worst.engine = f"{answer.engine} {answer.version}"
        return answer.status

    def _query(self, target: Fraction) -> Query:
        scene, symbols = symbolic_scene(self.claim.assertion)
        counts, _, quantity, unit = meets_quantity(self.claim, self.largest, scene)
        goal = ~fixed.less(quantity, fixed.multiply(fixed.number(scene.carrier, target), unit))
        return Query(symbols, (counts.node, goal.node))

    def _shrink(self) -> None:
        least, row = self.worst.value, self.worst.row
        assert least is not None
        assert row is not None

        def good(rows: list[Row]) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
            values = self._values(np.array(rows, dtype=np.uint64))
            return np.array([value >= least for value in values], dtype=np.uint64)

        self.worst.row = shrink_rows(self.claim.layout, row, good, SHRINK)
        (self.worst.value,) = self._values(np.array([self.worst.row], dtype=np.uint64))
