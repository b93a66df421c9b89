"""The arithmetic of a device of which nothing is known: its order first, then what each step does, by questions.

Steps are decided one role at a time, from the last one down: its inputs are sums that the steps below pass on as they
are. Then come products and what sums begin with, the smallest numbers and zeros, the largest, infinities and NaNs; each
stage has inputs on which only its own choices can show. Candidates are drafted from the choices of a stage, tried
against the answers so far, and the next question is the one that splits them best. The unit that is left answers
thousands of vectors over the whole range before it is called found.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from queries.building.axes import (
    MODES,
    Tier,
    all_tiny,
    carry_tiers,
    end_tiers,
    format_of,
    late_tiers,
    needless,
    neighbours,
    of_ends,
    product_tiers,
    step_tiers,
    tiny_tiers,
    zero_tiers,
)
from queries.building.draft import Choices, Drafter, Step, TooDeepError
from queries.building.mending import beside, in_mode, mended, of_result
from queries.building.naming import SAME_FORM, name_of, of_known_form, same_signature, with_nan
from queries.building.roles import Part, adders_of, alike, apart, kinds_of, placements, uniform, words_of
from queries.building.shapes import Kind, Shapes
from queries.covering.cover import Change, Cover, Covering
from queries.order.probe import AskAll
from queries.order.tree import Leaf, Node, leaves_of, nodes_of
from queries.search.distinguish import Options
from queries.search.samples import Table
from smtmodel.batch import Patterns, evaluate_models
from smtmodel.dot import Model
from smtmodel.errors import IncompleteError, ParameterError
from smtmodel.formats import Format
from smtmodel.numbers import nans
from smtmodel.operands import layout_of
from smtmodel.signature import Signature
from smtmodel.unit import Unit
from smtmodel.unitfile import parse_unit, unit_text
from smtmodel.vectors import Vector
from smtmodel.wording import counted

Verdict = Literal["built", "unexplained", "open"]
Kept = frozenset[Leaf] | None  # the leaves that are not zero; None: any
KINDS: tuple[Kind, ...] = ("middle", "heavy", "small", "large", "anything")
BUILT = "built"  # the reference of what is drafted
POOL = 240  # inputs from which the questions of a stage are chosen
CONFIRMED = 600  # inputs from which those are chosen that confirm what a tier left
FIRST = 40  # of them, for many candidates
ROUNDS = 6  # such looks
MANY = 60  # candidates for which a few inputs are looked at first
KEPT = 120  # candidates for a step that go on to the next one
ENDS = 120  # candidates that go on from one end of the range to the next
TIER = 0.3  # of the time that is left, for one tier
ORDERS = 0.4  # of it, for some of the orders that a device may have
BY_STEPS = 0.8  # of the time, after which only changes of what came near are tried
AT_ONCE = 6  # questions between two looks at what is left
VALIDATION = 6000  # vectors over the whole range
PROOFS = 40.0  # seconds for the proofs that candidates are equal
COVERED = 1024  # samples of each kind from which covering vectors are chosen, besides the rows of every stage
BESIDE = 0.3  # of the time that is left, for rows of every role that tell a unit from those beside it
COVERING = 12.0  # seconds for those that reach conditions
COMPARED = 60  # units that proofs are sought for
BATCH = 512  # of them at a time
WHOLE = 8  # products of a sum that is looked at through all of its leaves; through few of more
LONG = 64  # products of a sum that is validated with fewer vectors, and whose conditions are not looked at
AGAIN = 5  # times that a unit is sought anew, with the answers that refuted the last one
AGAIN_ALIKE = 3  # times, where steps are still to be told apart
LIKELY = 5  # tiers of choices that most units have
APART = 12  # steps that may each have a role of their own
SHORT = 4  # bits of factors whose products no step below rounds; fewer where results have no more
NAMED = 40  # of them, from which the nearest is named where none is found
NEAR = 0.3  # of the answers, that a unit of which one stage is decided again may not give
NOTED = 6  # candidates that came near, which are looked at again
MENDS = 4  # of these and of what is known, those that changes are made to
MENDED = 160  # answers that changed units are checked against first
REMEMBERED = 1 << 15  # units of choices
TOGETHER = 256  # units that are evaluated at a time
NARROW = -100  # the smallest exponent of formats above which sums within may be tiny though terms are not
PLACED = 4  # roles whose smallest numbers are looked at apart
TRIED = 20  # orders of which each is looked at by itself, where no uniform arithmetic fits any
FEW = 3  # neighbours of one role that are looked at together
PLACES = 3  # sets of leaves that show what a step does


@dataclass(frozen=True)
class Pool:
    """Where the inputs of a stage come from. `kept`: the leaves that are not zero."""

    kept: Kept
    rows: Callable[[int], Table]


@dataclass(frozen=True)
class Stage:
    """Choices to decide, in tiers: the next one where no candidate of those before fits. `counts`: the results by which
    candidates are judged. `rank`: its inputs tell about stages from that on. `otherwise`: the stages that are tried
    one after another where no tier fits."""

    name: str
    rank: int
    tiers: Sequence[Tier]
    pools: Sequence[Pool]
    counts: Callable[[Patterns, Format], NDArray[np.bool_]]
    otherwise: tuple[Stage, ...] = ()


@dataclass(frozen=True)
class Answered:
    """Questions and their answers."""

    rows: Table
    answers: Patterns
    rank: int
    kept: Kept = None


@dataclass
class Built:
    """The outcome: the unit, or the vectors that no candidate explains and the nearest candidate."""

    verdict: Verdict = "open"
    unit: Unit | None = None
    choices: Choices | None = None
    equal: list[tuple[Model, str]] = field(default_factory=list)  # proved equal to the unit, and how
    open: list[Model] = field(default_factory=list)  # that answer alike as far as was asked, and nothing is proved
    near: tuple[Model, int] | None = None  # the instruction of the table with the fewest different answers
    near_vector: Vector | None = None  # the smallest input on which that one differs
    questions: int = 0
    validated: int = 0
    refuted: int = 0  # units that differ from it in one choice, told from it by vectors that the device was asked
    unseen: int = 0  # and those for which none was found
    why: str = ""
    stage: str = ""
    nearest: Unit | None = None
    unexplained: list[tuple[Vector, int, int]] = field(default_factory=list)  # vector, answer, the nearest one's


def ordinary(patterns: Patterns, fmt: Format) -> NDArray[np.bool_]:
    """Finite numbers that are not subnormal."""
    fields = (patterns & np.uint64((1 << fmt.field_width) - 1)) >> np.uint64(fmt.padding)
    normal = (fields >> np.uint64(fmt.fraction) > 0) & (fields <= np.uint64(fmt.largest_field))
    found: NDArray[np.bool_] = normal | (fields == 0) & ~nans(patterns, fmt)
    return found


def finite(patterns: Patterns, fmt: Format) -> NDArray[np.bool_]:
    fields = (patterns & np.uint64((1 << fmt.field_width) - 1)) >> np.uint64(fmt.padding)
    found: NDArray[np.bool_] = (fields <= np.uint64(fmt.largest_field)) & ~nans(patterns, fmt)
    return found


def nonzero(patterns: Patterns, fmt: Format) -> NDArray[np.bool_]:
    """Finite numbers other than zero."""
    found: NDArray[np.bool_] = (patterns & np.uint64((1 << fmt.field_width) - 1)) > 0
    return found & finite(patterns, fmt)


def not_zero(patterns: Patterns, fmt: Format) -> NDArray[np.bool_]:
    return nonzero(patterns, fmt) | ~finite(patterns, fmt)


def every(patterns: Patterns, fmt: Format) -> NDArray[np.bool_]:
    return np.ones(patterns.shape, dtype=np.bool_)


@dataclass(frozen=True)
class Candidate:
    """A unit, and the choices from which it was drafted: None for a unit that ships, or one found by single changes."""

    choices: Choices | None
    unit: Unit

    @property
    def model(self) -> Model:
        return Model(BUILT, self.unit)


def _choices(candidates: Sequence[Candidate]) -> list[Choices]:
    return [candidate.choices for candidate in candidates if candidate.choices is not None]


class OutOfTimeError(IncompleteError):
    """The time for the arithmetic ran out."""


class Sketch:
    """Trees that a device may have, and the roles of their steps."""

    def __init__(self, parts: Sequence[Part], asked: Signature) -> None:
        self.parts, self.asked = parts, asked
        self.count = max(part.count for part in parts)
        self.kinds = [kinds_of(part) for part in parts]
        self._drafters: dict[tuple[int, Kept], Drafter] = {}
        self._units: dict[tuple[Choices, Kept], Unit] = {}

    def start(self) -> list[Choices]:
        return [Choices(tree=tree, steps=(Step(),) * self.count) for tree in range(len(self.parts))]

    def unit(self, choices: Choices, kept: Kept) -> Unit:
        """The unit of some choices; `kept`: as far as its other leaves are zero. Raises ParameterError."""
        if (choices, kept) not in self._units:
            if len(self._units) >= REMEMBERED:
                self._units.clear()
            self._units[choices, kept] = self._drafted(choices, kept)
        return self._units[choices, kept]

    def _drafted(self, choices: Choices, kept: Kept) -> Unit:
        key = choices.tree, kept
        if key not in self._drafters:
            whole = self.parts[choices.tree]
            part = whole if kept is None else whole.of_few(kept)
            assert part is not None
            self._drafters[key] = Drafter(part, self.asked, kept is not None)
        return self._drafters[key].unit(choices)


class Builder:
    """Builds the unit of one device, whose summation tree is one of `roots`. `ask`: its answers to vectors. Raises what
    `ask` does."""

    def __init__(
        self,
        roots: Sequence[Node | Leaf],
        asked: Signature,
        ask: AskAll,
        options: Options,
        deadline: float | None = None,
    ) -> None:
        self.asked, self.ask, self.options, self.deadline = asked, ask, options, deadline
        self.limit = deadline  # of what is under way
        self.progress = options.progress
        self.result = Built()
        self.layout = layout_of(asked)
        self.shapes = Shapes(asked)
        self.chance = random.Random(1)
        self.random = np.random.default_rng(1)
        self.bank: list[Answered] = []
        self.validated: list[Answered] = []
        self.sketch = Sketch([uniform(root) for root in roots], asked)
        self.roots = roots
        self.quick = False  # only what is likely is tried, as steps are still to be told apart
        self.strict = False  # the last step to be decided must give every answer of ordinary numbers
        self.farthest = -1, ""  # the last stage at which the search ended, by its number
        self.ended: tuple[int, Sequence[Choices]] | None = None  # where the last attempt ended, and with what
        self._noted: dict[Unit, Choices | None] = {}  # candidates that came near, and the choices of this sketch
        self.stages = self._stages()

    def run(self) -> Built:
        result = self.result
        try:
            if alive := self._finished(self._recognised()):
                return self._built(alive)
            if alive := self._by_steps() or self._by_changes():
                return self._built(alive)
            result.verdict = "open" if result.why else "unexplained"
            result.stage = self.farthest[1] or result.stage
        except TooDeepError:
            result.why = "its order has no repetition, and so many steps within steps are no unit's"
            return result
        except OutOfTimeError as error:
            result.why = str(error)
        self._unexplained()
        return result

    def _by_steps(self) -> list[Candidate]:
        """The candidates found step by step, which gets most of the time."""
        sketches, now = list(self._parts()), time.monotonic()
        self.limit = None if self.deadline is None else now + BY_STEPS * (self.deadline - now)
        try:
            for number, parts in enumerate(sketches):
                before = self.stages
                self.sketch, self.strict = Sketch(parts, self.asked), False
                self._noted = dict.fromkeys(self._noted)
                self.quick = number < len(sketches) - 1
                self.stages = self._stages()
                self._ranked_anew(before)
                share = ORDERS if self.quick and len(self.roots) > 1 else 1.0
                if alive := self._within(share, partial(self._sought, AGAIN_ALIKE if self.quick else AGAIN)):
                    return alive
        except OutOfTimeError as error:
            self.result.why = str(error)
        return []

    def _by_changes(self) -> list[Candidate]:
        """The candidates found by changing units that came near, in all of the time that is left."""
        self.limit = self.deadline
        for _ in range(AGAIN):
            if not (alive := self._mended()):
                break
            if alive := self._finished(alive):
                return alive
        return []

    def _built(self, alive: Sequence[Candidate]) -> Built:
        result = self.result
        result.verdict, result.why, result.choices = "built", "", alive[0].choices
        assert result.unit is not None
        result.unit = with_nan(result.unit, self._nan())
        return result

    def _parts(self) -> Iterator[list[Part]]:
        """Steps that look alike are taken to do the same; then, if there are few, any of them may differ. Of several
        orders those of one step come first."""
        if len(self.roots) > 1:
            at_once = [x for x in self.roots if isinstance(x, Node) and len(x.children) == len(leaves_of(x)) > 2]
            yield from ([uniform(root)] for root in at_once)
            yield [uniform(root) for root in self.roots]
            yield from ([uniform(root)] for root in at_once)  # if it is the last one, with all that such a step may do
            for root in self.roots if len(self.roots) <= TRIED else []:
                yield [apart(root)]
            return
        [root] = self.roots
        yield [alike(root)]
        if len(nodes_of(root)) <= APART and (each := apart(root)).count > alike(root).count:
            yield [each]

    def _sought(self, times: int) -> list[Candidate]:
        """The candidates that answer everything as the device does, found in at most `times` attempts."""
        for _ in range(times):
            before, ended = self.questions, self.ended
            if alive := self._finished(self.by_stages()):
                return alive
            if self.farthest[0] >= len(self.stages) - 5 and (alive := self._finished(self._one_stage_again())):
                return alive
            if self.farthest[0] >= len(self.stages) - 3 and (alive := self._finished(self._mended())):
                return alive
            stuck = self.questions == before or (self.ended is not None and self.ended == ended)
            if stuck and (self.strict or not self._late()):
                return []
            self.strict = self._late()
        return []

    def _finished(self, alive: list[Candidate]) -> list[Candidate]:
        """The candidates that pass all of validation and every proof."""
        if alive:
            self.farthest = len(self.stages), "validation"
            alive = self._validated(alive)
        while alive and not self._covered(alive[0]):
            alive = self._agreeing(alive, self._everything)
        return self._decided(alive) if alive else []

    def _recognised(self) -> list[Candidate]:
        """The instructions of the table, and units that ship, that give every answer: a few questions tell those of
        one signature apart."""
        alive = [Candidate(None, of_result(model.unit, model.unit.result)) for model in same_signature(self.asked)]
        self.result.stage = "what is known"
        for kind, rank in zip(KINDS, self._ranks(), strict=True):
            stage = Stage(self.result.stage, rank, (), (), every)
            alive = self._split(alive, stage, None, self.shapes.rows(kind, POOL))
        return alive

    def _mended(self) -> list[Candidate]:
        """The units that give every answer, of those a few changes away from one that came near, or is known."""
        self.result.stage = "what is known, changed"
        chosen = [asked for asked in self.bank if asked.kept is None] + self.validated
        if not chosen or self.asked.length > LONG:
            return []
        rows, answers = (np.concatenate([getattr(asked, name) for asked in chosen]) for name in ("rows", "answers"))
        near = [*list(self._noted)[-NOTED:], *(model.unit for model in same_signature(self.asked))]
        near = [of_result(unit, unit.result) for unit in near]
        if not near:
            return []
        answers = self._same(answers)

        def wrong_on(some: NDArray[np.int64], units: Sequence[Unit]) -> NDArray[np.bool_]:
            return np.asarray(self._evaluated(units, rows[some]) != answers[some])

        sample = np.sort(self.random.permutation(len(rows))[: MENDED * 4])
        least = wrong_on(sample, near).sum(axis=1)
        best = [near[at] for at in np.argsort(least, kind="stable")[:MENDS]]
        whole = wrong_on(np.arange(len(rows)), best)
        told = np.flatnonzero(whole.any(axis=0))
        some = np.unique(np.concatenate([sample[: MENDED // 2], self.random.permutation(told)[:MENDED]]))
        found = mended(best, lambda units: wrong_on(some, units))
        right = [unit for unit in found if not wrong_on(np.arange(len(rows)), [unit]).any()]
        return [Candidate(None, unit) for unit in right]

    def _one_stage_again(self) -> list[Candidate]:
        """The units that give every answer, of those that differ from one that came near in what one stage decides: the
        first tier that fits a stage's inputs need not be the right one."""
        near = [(unit, choices) for unit, choices in list(self._noted.items())[-NAMED:] if choices is not None]
        if not near:
            return []
        wrong = [self._wrong(unit) for unit, _ in near]
        if min(wrong) > NEAR * sum(len(asked.rows) for asked in (*self.bank, *self.validated)):
            return []
        base = near[int(np.argmin(wrong))][1]
        for stage in self.stages:
            tiers = stage.tiers if stage in self.stages[-3:] else [self._ended(tier) for tier in stage.tiers]
            last = self._everything.rank
            whole = replace(stage, name=f"{stage.name}, again", rank=last, tiers=tiers, counts=every, otherwise=())
            if found := self._through([base], whole):
                return self._drafted(_choices(found), lambda given: [given], None)
        return []

    def _ended(self, tier: Tier) -> Tier:
        """A tier of choices whose treatment of overflow and tiny results is unchanged."""
        return lambda given: (of_ends(found, given, self.asked) for found in tier(given))

    def _wrong(self, unit: Unit) -> int:
        """How many of the answers the unit does not give."""
        return int(self._differences(Model(BUILT, unit), [*self.bank, *self.validated]).sum())

    def _unit(self, candidate: Candidate, kept: Kept) -> Unit:
        """The unit of a candidate, as far as leaves that are not kept are zero."""
        return candidate.unit if candidate.choices is None else self.sketch.unit(candidate.choices, kept)

    def _late(self) -> bool:
        """Whether the last attempt ended where all numbers are ordinary, but every step was taken to be decided."""
        return self.result.stage in (stage.name for stage in self.stages[-5:-3])

    def _ranked_anew(self, before: Sequence[Stage]) -> None:
        """What was asked while other steps had roles of their own tells about no single step."""
        if before:
            old, new = before[-5].rank, self.stages[-5].rank
            self.bank = [replace(asked, rank=new + max(0, asked.rank - old)) for asked in self.bank]

    @property
    def questions(self) -> int:
        return sum(len(asked.rows) for asked in self.bank)

    # -- stages

    def _stages(self) -> list[Stage]:
        """Every stage: the steps by role, from the last one down, then the choices that all steps share."""
        kinds, asked = self.sketch.kinds, self.asked
        every_kind = sorted({kind for found in kinds for kind in found.values()})
        count, found = self.sketch.count, []
        if len(self.sketch.parts) > 1:
            found = [
                Stage("the order and the roundings", 0, step_tiers("any", 0, asked), self._pools("middle"), ordinary)
            ]
        elif isinstance(self.sketch.parts[0].root, int | str):
            found = [Stage("the rounding", 0, step_tiers("exact", 0, asked), self._pools("middle"), ordinary)]
        else:
            for role in range(count):
                found += self._of_role(role, kinds[0][role], 2 * len(found))
        rank = 2 * len(found)
        found.append(
            Stage("products", rank, product_tiers(every_kind, asked, self._adding()), self._pools("middle"), ordinary)
        )
        found.append(Stage("carries", rank + 1, carry_tiers(range(count)), self._pools("heavy"), ordinary))
        small = [*self._pools("small"), *self._small_by_role()]
        return [
            *found,
            Stage("the smallest numbers", rank + 2, tiny_tiers(asked), small, nonzero),
            Stage("zeros", rank + 2, zero_tiers(every_kind, asked), [self._pool("small")], finite),
            Stage("overflow and specials", rank + 3, end_tiers(asked), *self._ends()),
        ]  # fmt: skip

    def _ends(self) -> tuple[list[Pool], Callable[[Patterns, Format], NDArray[np.bool_]]]:
        """The largest numbers; of long sums at few leaves, where zeros that the others add have signs of their own."""
        return ([self._pool("large")], every) if self.asked.length <= LONG else (self._pools("large"), not_zero)

    @property
    def _everything(self) -> Stage:
        """The last stage, in which every answer counts."""
        return replace(self.stages[-1], counts=every)

    def _ranks(self) -> list[int]:
        """For each kind of rows, the ranks of the stages about which they give information."""
        products, carries, small, _, ends = (stage.rank for stage in self.stages[-5:])
        return [products, carries, small, ends, ends]

    def _of_role(self, role: int, kind: str, rank: int) -> list[Stage]:
        """How the steps of a role add, and for fused ones then how the rest joins their products."""
        part, tiers = self.sketch.parts[0], step_tiers(kind, role, self.asked)
        places = placements(part, role, self.chance, PLACES)
        tiers = tiers[:LIKELY] if self.quick else tiers
        name = f"step {role + 1} of {self.sketch.count}, {words_of(part.steps(role)[0])}"
        if kind != "fused":
            return [Stage(name, rank, tiers, self._sums(places), ordinary)]
        alone = list(dict.fromkeys(frozenset(self._alone(place, role)) for place in places))
        alone = [place for place in alone if len(place) > 1]
        if not alone or set(alone) == set(places):
            return [Stage(name, rank, tiers, self._sums(places), ordinary)]
        products = Stage(f"{name}, its products", rank, tiers, self._sums(alone), ordinary)
        joins = Stage(f"{name}, what joins", rank + 1, late_tiers(role), self._sums(places), ordinary)
        return [Stage(name, rank + 1, tiers, self._sums(places), ordinary, (products, joins))]

    def _alone(self, place: frozenset[Leaf], role: int) -> Iterator[Leaf]:
        """The leaves that are products of a step of this role itself."""
        own = {child for node in self.sketch.parts[0].steps(role) for child in node.children if isinstance(child, int)}
        return (leaf for leaf in place if leaf in own)

    def _sums(self, places: Sequence[frozenset[Leaf]]) -> list[Pool]:
        def rows(place: frozenset[Leaf], bits: int) -> Callable[[int], Table]:
            return lambda count: self.shapes.sums(count, place, bits)

        return [Pool(place, rows(place, max(1, min(SHORT, self.asked.d.precision // 2)))) for place in places]

    def _pool(self, kind: Kind, place: Kept = None) -> Pool:
        """Rows of a kind, whose products are nonzero at some leaves only."""
        if place is None:
            return Pool(None, lambda count: self.shapes.rows(kind, count))
        return Pool(place, lambda count: self.shapes.at(kind, count, place))

    def _pools(self, kind: Kind) -> list[Pool]:
        """Rows with products at any leaves, or in long sums at few leaves."""
        several = len(self.sketch.parts) > 1
        if self.asked.length <= WHOLE:
            return [self._pool(kind)]
        leaves = leaves_of(self.sketch.parts[0].root)
        chosen = [
            frozenset(["c", *leaves[:3], *self.chance.sample(leaves, 3), *self._of_each_role()]) & frozenset(leaves)
            for _ in range(2)
        ]
        if several:  # neighbours, and what lies far apart
            length = self.asked.length
            near: list[list[int]] = [[0, 1, 2, 3], [0, 1, length // 2, length // 2 + 1]]
            near += [[*range(0, length, length // 4)], [0, 1, 2, length - 1]]
            chosen = [frozenset(leaf for leaf in leaves if leaf == "c" or leaf in places) for places in near]
        return [self._pool(kind, place) for place in chosen]

    def _adding(self) -> list[int]:
        """The roles whose steps add products; none where the order is open."""
        adders = adders_of(self.sketch.parts[0]) if len(self.sketch.parts) == 1 else {}
        return sorted({role for leaf, role in adders.items() if leaf != "c"})

    def _of_each_role(self) -> Iterator[Leaf]:
        """Neighbours that steps of one role add, for each role."""
        adding = self._adding()
        if len(adding) < 2:
            return
        adders = adders_of(self.sketch.parts[0])
        for role in adding[:PLACED]:
            own = [leaf for leaf in leaves_of(self.sketch.parts[0].root) if leaf != "c" and adders[leaf] == role]
            start = self.chance.randrange(max(1, len(own) - FEW + 1))
            yield from own[start : start + FEW]

    def _small_by_role(self) -> list[Pool]:
        """Small numbers at leaves that show one role."""
        part, long = self.sketch.parts[0], self.asked.length > WHOLE
        if len(self.sketch.parts) > 1 or part.count < 2:
            return []
        places = [placements(part, role, self.chance, 1)[0] for role in range(part.count)]
        pools = [self._pool("small", place) for place in places[:PLACED] if any(leaf != "c" for leaf in place)]
        return pools if long else [replace(pool, kept=None) for pool in pools]

    def by_stages(self) -> list[Candidate]:
        """The units that are left when every stage has been decided once."""
        alive = self.sketch.start()
        for number, stage in enumerate(self.stages):
            found = self._through(alive, stage)
            if not found:
                self.farthest = max(self.farthest, (number, self.result.stage), key=lambda reached: reached[0])
                self.ended = number, alive
                return []
            alive = _choices(found[: ENDS if stage in self.stages[-3:] else KEPT])
        self.ended = None
        return self._drafted(alive, lambda given: [given], None)  # so far they may be parts, of few leaves

    def _through(self, alive: Sequence[Choices], stage: Stage) -> list[Candidate]:
        """The candidates of the first tier that fits."""
        self.result.stage = stage.name
        for tier in stage.tiers:
            if found := self._within(TIER, partial(self._narrow, alive, tier, stage)):
                return found
        found = []
        for other in stage.otherwise:
            found = self._through(alive, other)
            if not found:
                break
            alive = _choices(found[:KEPT])
        return found

    def _within(self, share: float, look: Callable[[], list[Candidate]]) -> list[Candidate]:
        """The candidates found in a share of the time that is left; none if that share is too short."""
        whole, now = self.limit, time.monotonic()
        self.limit = None if whole is None else now + share * (whole - now)
        try:
            return look()
        except OutOfTimeError:
            if whole is not None and time.monotonic() > whole:
                raise
            return []
        finally:
            self.limit = whole

    def _in_time(self) -> None:
        if self.limit is not None and time.monotonic() > self.limit:
            raise OutOfTimeError(
                f"the time ran out after {counted(self.questions, 'question')} about the arithmetic, at "
                f"{self.result.stage}"
            )

    def _drafted(self, alive: Sequence[Choices], tier: Tier, kept: Kept) -> list[Candidate]:
        """All combinations of the remaining candidates with a tier's choices, each arithmetic once."""
        seen: dict[Unit, Candidate] = {}
        for base in alive:
            for choices in tier(base):
                if needless(choices, self.asked):
                    continue
                try:
                    unit = self.sketch.unit(choices, kept)
                except ParameterError:
                    continue
                if unit not in seen:
                    seen[unit] = Candidate(choices, unit)
        return list(seen.values())

    def _narrow(self, alive: Sequence[Choices], tier: Tier, stage: Stage) -> list[Candidate]:
        """The candidates that give every answer, once no input of the stage distinguishes them any more."""
        choices: list[Choices] = [found for base in alive for found in tier(base) if not needless(found, self.asked)]
        for number, pool in enumerate(stage.pools):
            self._in_time()
            candidates = self._drafted(choices, lambda given: [given], pool.kept)
            candidates = self._agreeing(candidates, stage)
            if not candidates:
                return []
            for _ in range(ROUNDS):
                self._in_time()
                if len(candidates) > MANY:
                    candidates = self._split(candidates, stage, pool.kept, pool.rows(FIRST))
            ordinary_only, first = stage.counts is ordinary, AT_ONCE if number == 0 else AT_ONCE // 2
            several = number == 0 and len(candidates) > 1
            for _ in range(2 if several else 1):
                doubted = 0 if ordinary_only and number else first
                candidates = self._split(candidates, stage, pool.kept, pool.rows(POOL), doubted)
            if candidates and ordinary_only:
                candidates = self._confirmed(candidates, stage, pool, first)
            choices = _choices(candidates)
        return candidates

    def _confirmed(self, alive: list[Candidate], stage: Stage, pool: Pool, most: int) -> list[Candidate]:
        """Those that stand some inputs, `most` at most, that tell one of them from the units that differ from it in one
        choice: what splits a tier need not tell it from what is right in another one."""
        [choices] = _choices(alive[:1])
        beside = self._drafted([choices], lambda given: neighbours(given, self.asked), pool.kept)
        rows = pool.rows(CONFIRMED)
        results = self._counted(self._results([alive[0], *beside], rows, pool.kept), stage)
        usable = np.flatnonzero(stage.counts(results, self.asked.d).all(axis=0))
        tells, chosen = results[1:, usable] != results[0, usable], list[int]()
        while len(chosen) < most and tells.any():
            best = int(tells.sum(axis=0).argmax())
            chosen.append(int(usable[best]))
            tells = tells[~tells[:, best]]
        if chosen:
            self._asked(rows[chosen], stage.rank, pool.kept)
        return self._agreeing(alive, stage)

    def _split(
        self, alive: list[Candidate], stage: Stage, kept: Kept, pool: Table, first: int = AT_ONCE
    ) -> list[Candidate]:
        """Ask what splits the candidates best, until this pool tells nothing more. `first`: questions whether any
        candidate is right, where the pool splits none."""
        if not alive or not len(pool):
            return alive
        results, fresh = self._counted(self._results(alive, pool, kept), stage), True
        usable = np.asarray(stage.counts(results, self.asked.d).all(axis=0))
        if stage.counts is ordinary:
            usable &= ~self._tiny_within(alive, results, pool, kept, stage).any(axis=0)
        left, places = np.flatnonzero(usable), np.arange(len(alive))  # of the pool, and of the candidates
        while len(places) and len(left):
            now = results[np.ix_(places, left)]
            kinds = np.array([len(np.unique(column)) for column in now.T]) if len(places) > 1 else np.ones(len(left))
            order = np.argsort(kinds, kind="stable")[::-1][:AT_ONCE]
            chosen = left[[place for place in order if kinds[place] > 1]]
            if not len(chosen):
                if not fresh or not first:
                    break
                # whether any candidate is right
                chosen = left[self._inexact(alive[places[0]], pool[left], kept)[:first]]
            asked = self._asked(pool[chosen], stage.rank, kept)
            counts = stage.counts(asked.answers, self.asked.d)
            agreed = results[np.ix_(places, chosen)] == self._counted(asked.answers, stage)
            agreed |= ~counts
            if not agreed.all(axis=1).any():
                self._note(alive[places[int(agreed.sum(axis=1).argmax())]])
            places, left = places[agreed.all(axis=1)], np.setdiff1d(left, chosen)
            if fresh and (kinds <= 1).all():
                break
            fresh = False
            self.progress(f"{stage.name}: {len(places)} candidates, {self.questions} questions")
        return [alive[place] for place in places]

    def _inexact(self, candidate: Candidate, rows: Table, kept: Kept) -> NDArray[np.int64]:
        """Some rows whose result depends on how the candidate rounds."""
        unit = self._unit(candidate, kept)
        found = self._evaluated([in_mode(unit, mode) for mode in MODES], rows)
        kinds = [len(np.unique(column)) for column in found.T]
        return np.argsort(kinds, kind="stable")[::-1][:AT_ONCE]

    def _tiny_within(
        self, alive: Sequence[Candidate], results: Patterns, rows: Table, kept: Kept, stage: Stage
    ) -> NDArray[np.bool_]:
        """Where it matters that a sum within, or the result, is tiny for a candidate, kept in a narrow range."""
        found = np.zeros(results.shape, dtype=np.bool_)
        narrow = [
            (at, x.choices) for at, x in enumerate(alive) if x.choices is not None and self._narrow_within(x.choices)
        ]
        if narrow:
            flushing = [
                replace(alive[at], choices=all_tiny(choices, "flush_before", False, self.asked))
                for at, choices in narrow
            ]
            places = [at for at, _ in narrow]
            found[places] = self._counted(self._results(flushing, rows, kept), stage) != results[places]
        return found

    def _narrow_within(self, choices: Choices) -> bool:
        """Whether sums are kept in a format of a narrow range."""
        return any(format_of(how, self.asked).emin > NARROW for how in choices.hows().values())

    def _agreeing(self, candidates: list[Candidate], stage: Stage) -> list[Candidate]:
        """The candidates that give the answers so far to the inputs of this stage and of earlier ones."""
        alive, rank = candidates, stage.rank
        if self.strict and stage is self.stages[-6]:
            rank = self.stages[-4].rank
        for kept in dict.fromkeys(asked.kept for asked in self.bank):
            some = [asked for asked in self.bank if asked.kept == kept and asked.rank <= rank]
            if not some:
                continue
            answers, rows = np.concatenate([x.answers for x in some]), np.concatenate([x.rows for x in some])
            ranks = np.concatenate([np.full(len(x.rows), x.rank) for x in some])
            counts = np.flatnonzero(stage.counts(answers, self.asked.d))
            counts = counts[np.argsort(ranks[counts], kind="stable")[::-1]]  # the newest first: they tell most
            for part in (counts[:1], counts[1:AT_ONCE], counts[AT_ONCE : 8 * AT_ONCE], counts[8 * AT_ONCE :]):
                if not len(part) or not alive:
                    continue
                results = self._counted(self._results(alive, rows[part], kept), stage)
                agreed = results == self._counted(answers[part], stage)
                if stage.counts is ordinary and not agreed.all():
                    agreed |= self._tiny_within(alive, results, rows[part], kept, stage)
                fitting = [candidate for candidate, row in zip(alive, agreed, strict=True) if row.all()]
                if not fitting:
                    self._note(alive[int(agreed.sum(axis=1).argmax())])
                alive = fitting
        return alive

    def _results(self, candidates: Sequence[Candidate], table: Table, kept: Kept) -> Patterns:
        """The results of all candidates, shape (candidates, rows); those that are one unit here are evaluated once."""
        places: dict[Unit, int] = {}
        which = [places.setdefault(self._unit(candidate, kept), len(places)) for candidate in candidates]
        return self._evaluated(list(places), table)[which]

    def _evaluated(self, units: Sequence[Unit], table: Table) -> Patterns:
        """The results of some units, with one pattern for all NaNs, shape (units, rows)."""
        found: list[Patterns] = []
        for start in range(0, len(units), TOGETHER):
            self._in_time()
            models = [Model(BUILT, unit) for unit in units[start : start + TOGETHER]]
            found.append(self._same(evaluate_models(models, table)))
        return np.concatenate(found) if found else np.zeros((0, len(table)), dtype=np.uint64)

    def _counted(self, patterns: Patterns, stage: Stage) -> Patterns:
        """One pattern for all NaNs; where numbers are ordinary also for zeros, whose signs are decided later."""
        same = self._same(patterns)
        if stage.counts is not ordinary:
            return same
        negative_zero = (same == np.uint64(self.asked.d.sign_bit)) & ~nans(same, self.asked.d)
        return np.where(negative_zero, np.uint64(0), same)

    def _same(self, patterns: Patterns) -> Patterns:
        """The results with one pattern for all NaNs."""
        return np.where(nans(patterns, self.asked.d), np.uint64(self.asked.d.nan), patterns)

    def _asked(self, rows: Table, rank: int, kept: Kept) -> Answered:
        answers = np.array(self.ask([self._vector(row) for row in rows]), dtype=np.uint64)
        asked = Answered(rows, answers, rank, kept)
        self._keep(asked)
        return asked

    def _keep(self, asked: Answered) -> None:
        self.bank.append(asked)
        self.result.questions = self.questions

    def _vector(self, row: Any) -> Vector:
        return Vector(self.asked, self.layout.split([int(x) for x in row]), id=f"build-{self.questions}")

    # -- the end

    def _nan(self) -> int | None:
        """The pattern of NaNs, where all are alike."""
        answers = np.concatenate([asked.answers for asked in (*self.bank, *self.validated)])
        seen = {int(d) for d in answers[nans(answers, self.asked.d)]}
        return seen.pop() if len(seen) == 1 else None

    def _validated(self, alive: list[Candidate]) -> list[Candidate]:
        """Those that give the answers to vectors over the whole range; some that none gives are kept as questions."""
        self.result.stage = "validation"
        count = (
            VALIDATION // 4 if self.asked.length <= LONG else max(FIRST, VALIDATION * LONG // self.asked.length // 4)
        )
        ranks = self._ranks()
        new = [self._checked(self.shapes.rows(kind, count), rank) for kind, rank in zip(KINDS, ranks, strict=True)]
        wrong = np.array([self._differences(candidate.model, new) for candidate in alive])
        right = [candidate for candidate, row in zip(alive, wrong, strict=True) if not row.any()]
        if right:
            return right
        best = int(wrong.sum(axis=1).argmin())
        self._note(alive[best])
        places, start = np.flatnonzero(wrong[best]), 0
        for asked in new:
            here = places[(places >= start) & (places < start + len(asked.rows))] - start
            here = here[np.argsort((asked.rows[here] != 0).sum(axis=1), kind="stable")][:MANY]
            if len(here):
                self._keep(Answered(asked.rows[here], asked.answers[here], asked.rank))
            start += len(asked.rows)
        return []

    def _checked(self, rows: Table, rank: int) -> Answered:
        """Vectors of validation with the device's answers."""
        answers = np.zeros(len(rows), dtype=np.uint64)
        for start in range(0, len(rows), BATCH):
            part = rows[start : start + BATCH]
            self.progress(f"validation: {self.result.validated} vectors")
            answers[start : start + BATCH] = self.ask([self._vector(row) for row in part])
            self.result.validated += len(part)
        asked = Answered(rows, answers, rank)
        self.validated.append(asked)
        return asked

    def _covered(self, found: Candidate) -> bool:
        """Whether the device answers as the unit does on the covering vectors of the unit: on inputs that reach its
        conditions, and on some that tell it from each unit that differs in a single choice. Others are kept as
        questions."""
        result, few = self.result, self.asked.length > WHOLE and found.choices is not None
        result.stage = "validation"
        until = None if self.deadline is None else time.monotonic() + BESIDE * (self.deadline - time.monotonic())
        places: dict[Kept, list[tuple[int, Table]]] = {None: []}
        for rank, pool in self._beside(few):
            places.setdefault(pool.kept, []).append((rank, pool.rows(POOL)))
        told: set[str] = set()
        names: set[str] = set()
        right = True
        for kept, pools in places.items():
            cases = kept is None and self.asked.length <= LONG and self.asked.addend
            changes = [] if few and kept is None else list(self._changes(found, kept))
            if not cases and not changes:
                continue
            model = Model(BUILT, self._unit(found, kept))
            covering = Covering(model, False, changes, cases=cases, samples=COVERED)
            ranks: list[int] = []
            for number, (rank, rows) in enumerate(pools):
                if number >= len(KINDS) and until is not None and time.monotonic() > until:
                    break
                covering.take(rows)
                ranks += [rank] * (len(covering.found.rows) - len(ranks))
            if cases:
                covering.run(replace(self.options, timeout=COVERING), changes=False)
                ranks += [self.stages[-1].rank] * (len(covering.found.rows) - len(ranks))
            cover = covering.finished()
            right &= self._agrees(cover, np.array(ranks), kept, found)
            names |= {change.name for change in covering.changes if change not in cover.same}
            told |= {change.name for change in covering.changes if cover.counts[change]}
        result.refuted, result.unseen = len(told), len(names - told)
        return right

    def _changes(self, found: Candidate, kept: Kept) -> Iterator[Change]:
        """The units that differ from one in a single choice."""
        if found.choices is None:
            yield from (Change(str(number), Model(BUILT, unit)) for number, unit in enumerate(beside(found.unit)))
            return
        for number, choices in enumerate(neighbours(found.choices, self.asked)):
            if choices != found.choices:
                try:
                    yield Change(str(number), Model(BUILT, self.sketch.unit(choices, kept)))
                except ParameterError:
                    continue

    def _agrees(self, cover: Cover, ranks: NDArray[np.int64], kept: Kept, found: Candidate) -> bool:
        """Whether the device answers covering vectors as the unit does; where not, they are kept as questions: of the
        leaves alone, but where the signs of the other zeros count."""
        if not cover.rows:
            return True
        rows = np.array(cover.rows, dtype=np.uint64)
        [expected] = self._evaluated([self._unit(found, None)], rows)
        alone = self._same(np.array(cover.results, dtype=np.uint64)) == expected
        right = True
        for rank in dict.fromkeys(ranks.tolist()):
            here = np.flatnonzero(ranks == rank)
            asked = self._checked(rows[here], rank)
            wrong = self._same(asked.answers) != expected[here]
            for some, leaves in ((wrong & alone[here], kept), (wrong & ~alone[here], None)):
                if some.any():
                    self._keep(Answered(asked.rows[some], asked.answers[some], rank, leaves))
            if wrong.any():
                self._note(found)
                right = False
        return right

    def _beside(self, few: bool) -> Iterator[tuple[int, Pool]]:
        """Rows of every kind, over all leaves and over those that show one role; `few`: as if there were no others."""
        part = self.sketch.parts[0]
        ranks = self._ranks()
        if self.asked.length <= LONG:
            for kind, rank in zip(KINDS, ranks, strict=True):
                yield rank, self._pool(kind)
        if len(self.sketch.parts) == 1:
            for role in range(part.count):
                for place in placements(part, role, self.chance, 2):
                    for kind, rank in zip(KINDS, ranks, strict=True):
                        if any(leaf != "c" for leaf in place):
                            yield rank, replace(self._pool(kind, place), kept=place if few else None)

    def _differences(self, model: Model, asked: Sequence[Answered]) -> NDArray[np.bool_]:
        """Where a model gives another answer than the device."""
        found = [self._same(evaluate_models([model], part.rows)[0]) != self._same(part.answers) for part in asked]
        return np.concatenate(found) if found else np.zeros(0, dtype=np.bool_)

    def _decided(self, alive: list[Candidate]) -> list[Candidate]:
        """Solvers prove what is left equal, to the instructions of the table that answer alike as well, or find vectors
        that the device is asked; none is left where it answers otherwise than all of them."""
        result, last = self.result, self._everything
        while alive:
            known = self._known()
            result.stage = "proof"
            drafts: list[Model] = [candidate.model for candidate in alive]
            self.progress(f"proving {len(drafts) + len(known)} candidates equal")
            own = of_known_form(drafts, known) or (known[0] if known else drafts[0])
            others = [model for model in (*known, *drafts) if model is not own]
            limit = time.monotonic() + PROOFS
            limit = limit if self.deadline is None else min(limit, self.deadline)
            found = name_of(own, others, self.options, limit, COMPARED)
            if not found.witnesses:
                break
            self._asked(np.array(found.witnesses, dtype=np.uint64), last.rank, None)
            alive = self._agreeing(alive, last)
        else:
            return []
        own_name = [(own, SAME_FORM)] if own.reference != BUILT else []
        result.unit, result.equal, result.open = own.unit, [*own_name, *found.equal], found.open
        return alive

    def _known(self) -> list[Model]:
        """The instructions and units that ship, of these formats and this length, that give every answer so far."""
        found: list[Model] = []
        wrong: list[tuple[int, Model]] = []
        nan = self._nan()
        for model in same_signature(self.asked):
            if None not in (nan, model.nan) and nan != model.nan:
                continue
            count = int(self._differences(model, [*self.bank, *self.validated]).sum())
            wrong.append((count, model))
            found += [model] if not count else []
        self.result.near = None if found or not wrong else min(wrong, key=lambda pair: pair[0])[::-1]
        self.result.near_vector = None if self.result.near is None else self._smallest(self.result.near[0])
        return found

    def _smallest(self, model: Model) -> Vector | None:
        """The smallest input so far to which a model gives another answer than the device."""
        asked = [*self.bank, *self.validated]
        rows = np.concatenate([part.rows for part in asked])[self._differences(model, asked)]
        if not len(rows):
            return None
        return self._vector(rows[np.argmin((rows != 0).sum(axis=1))])

    def _note(self, candidate: Candidate) -> None:
        """A candidate that came near; the nearest of the last ones is named where none is found."""
        try:
            unit = self._unit(candidate, None)
        except ParameterError:  # of few leaves alone it was one
            return
        self._noted.pop(unit, None)
        self._noted[unit] = candidate.choices

    def _unexplained(self) -> None:
        """The nearest candidate, and the smallest vectors that it does not explain."""
        if not self.bank:
            return
        self._known()
        if not self._noted:
            return
        rows, answers = (np.concatenate([getattr(asked, name) for asked in self.bank]) for name in ("rows", "answers"))
        answers = self._same(answers)
        near = list(self._noted)[-NAMED:]
        right = [(self._same(evaluate_models([Model(BUILT, unit)], rows)[0]) == answers).sum() for unit in near]
        self.result.nearest = near[int(np.argmax(right))]
        found = self._same(evaluate_models([Model(BUILT, self.result.nearest)], rows)[0])
        wrong = np.flatnonzero(found != answers)
        wrong = wrong[np.argsort((rows[wrong] != 0).sum(axis=1), kind="stable")][:3]
        self.result.unexplained = [
            (self._vector(rows[place]), int(answers[place]), int(found[place])) for place in wrong
        ]


def text_of(unit: Unit) -> str:
    """The unit file of a unit; what it says is read again and compared. Raises AssertionError where it is another."""
    text = unit_text(unit)
    assert parse_unit(text, "built.yaml") == unit
    return text
