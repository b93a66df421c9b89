"""The steps by which a plan adds its products, found again: its stages take the products one after another, and each
must be taken once.

A step is the number of what it is made of, so that equal steps have one number. Rounds of a loop are run one after
another, each from the sum so far, and must be one step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from queries.certificates.magnitudes import need
from queries.certificates.sum_rules import Covered
from smtmodel.dot import Model
from smtmodel.formats import Format
from smtmodel.nodes import Index
from smtmodel.nodes.round import Rounding
from smtmodel.plans import Chain, Halves, Interleaved, Lanes, Plan, Promoted, Rounded, Span, Split, Stage, Turns, Uneven
from smtmodel.plans.stages import Engine, First, Swizzled, Whole
from smtmodel.unit import Unit

Made = tuple[Any, ...]
TIMES = (2, 3)  # of periods, for which equal steps are looked at one by one
MOST = 512  # products of a part of halves, each number of which is looked at


class Steps:
    """Steps by number."""

    def __init__(self, units: Mapping[Unit, int]) -> None:
        self.units = units
        self.known: dict[Made, int] = {}

    def made(self, *parts: Any) -> int:
        return self.known.setdefault(parts, len(self.known))

    def written(self, steps: Sequence[Mapping[str, Any]], formats: Sequence[Mapping[str, Any]]) -> list[int]:
        """The numbers of the steps of a document."""
        found: list[int] = []

        def plainly(value: Any) -> Any:
            return None if value is None else _plain(value | {"format": formats[value["format"]]})

        def before(place: int) -> int:
            need(0 <= place < len(found), "a step stands before what it is made of")
            return found[place]

        for one in steps:
            match one:
                case {"kind": "begin" | "zero" as kind}:
                    found.append(self.made(kind))
                case {"kind": "sofar", "level": int(level)}:
                    found.append(self.made("sofar", level))
                case {"kind": "tile", "model": int(model), "converts": converts, "start": start}:
                    found.append(self.made("tile", model, tuple(map(plainly, converts)), before(start)))
                case {"kind": "added", "values": values, "rounding": how}:
                    found.append(self.made("added", tuple(map(before, values)), plainly(how)))
                case {"kind": "loop", "level": int(level), "count": count, "start": start, "body": body}:
                    found.append(self.made("loop", level, count, before(start), before(body)))
                case {"kind": "halved", "width": int(width), "rounding": how, "leaves": leaves}:
                    found.append(self.made("halved", width, plainly(how), tuple(map(before, leaves))))
                case _:
                    need(False, f"there is no step {one['kind']}")
        return found


def _plain(rounding: Mapping[str, Any]) -> Made:
    return tuple(sorted((name, str(value)) for name, value in rounding.items()))


def _data(rounding: Rounding) -> Made:
    how = {field.name: getattr(rounding, field.name) for field in fields(rounding)}
    return _plain(how | {"format": asdict(rounding.format)})


def covered(plan: Plan, length: int | None) -> Covered:
    """The numbers of products that the steps of a plan are about. Raises FaultError."""
    if length is not None:
        return Covered(length)
    found = {_covered(one.stage) for one in plan.sums}
    need(len(found) == 1, "sums repeat after different numbers of products")
    return found.pop()


def _covered(stage: Stage) -> Covered:
    match stage:
        case Rounded():
            return _covered(stage.body)
        case Uneven():
            return Covered(None, stage.at[-1], stage.body.period)
        case First():
            return Covered(None, stage.number, stage.body.period)
        case Whole() if stage.head is not None:
            return Covered(None, stage.number, stage.period)
        case Halves(first="larger"):
            # the grain divides width: of width * 2^t products the first half is half, and the other no larger
            return Covered(None, 0, 1, stage.grain * max(1, stage.most // stage.grain))
        case Halves(first="smaller"):
            # of width * 2^t + grain - 1 products, the second half is at most width * 2^(t - 1) + grain - 1
            return Covered(None, 0, 1, stage.grain * max(1, (stage.most + 1 - stage.grain) // stage.grain))
    return Covered(None, 0, stage.period)


def steps_of(steps: Steps, plan: Plan, stage: Stage, length: int | None) -> int:
    """What a stage makes of `length` products, each taken once; without a length, of any number that is covered: what
    is taken any number of times is compared with what the stage makes of each number of turns in `TIMES`. Raises
    FaultError, and ParameterError for products that do not fit."""
    runner, about, begin = _Runner(steps, plan), _covered(stage), steps.made("begin")
    count = about.before + about.period if length is None else length
    whole = _endless(stage, True) if length is None else stage
    found = whole.run(runner, Span.of(count), begin)
    runner.need_all(count)
    for times in TIMES if length is None and not about.width else ():
        every, own = _Unrolled(steps, plan, times), about.before + times * about.period
        repeated, once = whole.run(every, Span.of(count), begin), _Unrolled(steps, plan, times)
        need(repeated == stage.run(once, Span.of(own), begin), f"{times} periods are not equal steps")
        once.need_all(own)
    return found


class _Runner(Engine[int]):
    def __init__(self, steps: Steps, plan: Plan) -> None:
        self.steps, self.taken, self.level = steps, list[int](), 0
        self.converts = tuple(None if how is None else _data(how) for how in (plan.convert_a, plan.convert_b))

    def need_all(self, count: int) -> None:
        """The products taken since this was asked are the first ones, each once."""
        need(sorted(self.taken) == list(range(count)), "not every product is added once")
        self.taken = []

    def zero(self, fmt: Format) -> int:
        return self.steps.made("zero")

    def tile(self, model: Model, span: Span, start: int) -> int:
        for run in range(span.groups):
            first = span.start.offset + run * span.pitch
            self.taken += range(first, first + span.size * span.step, span.step)
        return self.steps.made("tile", self.steps.units[model.unit], self.converts, start)

    def rounded(self, values: Sequence[int], rounding: Rounding) -> int:
        return self.steps.made("added", tuple(values), _data(rounding))

    def repeat(self, count: int, name: str, start: int, body: Callable[[Index, int], int]) -> int:
        if count == 1:
            return body(Index(0), start)
        return self.loop(count, start, lambda so_far: {body(Index(place), so_far) for place in range(count)})

    def loop(self, count: int | None, start: int, rounds: Callable[[int], set[int]]) -> int:
        self.level += 1
        found = rounds(self.steps.made("sofar", self.level))
        need(len(found) == 1, "rounds of a loop are not alike")
        made = self.steps.made("loop", self.level, count, start, *found)
        self.level -= 1
        return made

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        yield


class _Unrolled(_Runner):
    """Runs every round of a loop, and `times` rounds of one of any number."""

    def __init__(self, steps: Steps, plan: Plan, times: int) -> None:
        super().__init__(steps, plan)
        self.times = times

    def repeat(self, count: int, name: str, start: int, body: Callable[[Index, int], int]) -> int:
        for place in range(count):
            start = body(Index(place), start)
        return start

    def loop(self, count: int | None, start: int, rounds: Callable[[int], set[int]]) -> int:
        for _ in range(self.times if count is None else count):
            (start,) = rounds(start)
        return start


@dataclass(frozen=True)
class _Endless(Stage):
    """A stage in place of which it takes, of n times as many products, the same steps n times; of halves, any number.
    What lies before the product `first` is taken once."""

    stage: Stage
    first: int = 0

    @property
    def d(self) -> Format:
        return self.stage.d

    @property
    def accumulator(self) -> Format:
        return self.stage.accumulator

    @property
    def period(self) -> int:
        return 1 if isinstance(self.stage, Halves) else self.stage.period

    @property
    def parts(self) -> tuple[Stage, ...]:
        return (self.stage,)

    def run(self, engine: Engine[Any], span: Span, start: Any) -> Any:
        assert isinstance(engine, _Runner)
        if span.start.offset < self.first:
            return self.stage.run(engine, span, start)
        need(span.count % self.period == 0, "a stage takes whole periods any number of times")
        if not isinstance(self.stage, Halves):
            return engine.loop(None, start, lambda so_far: {self.stage.run(engine, span, so_far)})
        grain, before, leaves = self.stage.grain, engine.taken, []
        most = max(self.stage.most, grain if self.stage.first == "larger" else 2 * grain - 1)
        need(most <= MOST, "there are too many leaves")
        for count in range(1, most + 1):
            engine.taken = []
            leaves.append(self.stage.run(engine, Span.of(count), engine.steps.made("begin")))
            engine.need_all(count)
        engine.taken = before + list(range(span.start.offset, span.start.offset + span.count))
        width = _covered(self.stage).width
        return engine.steps.made("halved", width, _data(self.stage.rounding), tuple(leaves))


def _endless(stage: Stage, alone: bool) -> Stage:
    """The stage with one step in it that is taken any number of times. A split, lanes and the like give each of their
    bodies n times as many products, as all of them are whole periods, and so do multiples; what takes all products
    (`alone`) may also be halves, cut at places after which the last run takes what is left, or a stage for all products
    but the first ones. Raises FaultError."""
    match stage:
        case Chain() | Promoted() | Turns() | Swizzled(body=Chain() | Promoted() | Turns()):
            return _Endless(stage)
        case First() | Whole() if alone or (isinstance(stage, Whole) and stage.head is None):
            return replace(stage, body=_endless(stage.body, False))
        case Rounded():
            return replace(stage, body=_endless(stage.body, alone))
        case Split() | Interleaved() | Lanes(order="sequential"):
            return replace(stage, body=_endless(stage.body, False))
        case Halves() if alone:
            return _Endless(stage)
        case Uneven(body=Chain() | Promoted() | Turns() as body) if alone:
            return replace(stage, body=_Endless(body, stage.at[-1]))
    need(False, f"a stage {type(stage).__name__} is not one step repeated")
    return stage
