"""Plans in exact rationals, written from what docs/plans.md says of each stage: it reads their fields, not their code.

Products are lists of places of K; a sum so far is a pattern and the name of its format.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gmpy2 import mpq

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import Constant, Cut, Element, ExactSum, Literal, Node, Product, Relu, Round
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import (
    Chain,
    First,
    Fold,
    Halves,
    Interleaved,
    Lanes,
    Plan,
    Products,
    Promoted,
    Rounded,
    Split,
    Stage,
    Swizzled,
    Turns,
    Uneven,
    Whole,
    Windows,
)
from tests import node_oracle
from tests.node_oracle import ANY_NAN, Value
from tests.oracle import FORMATS, decode, encode, infinity

Places = Sequence[int]
Sum = tuple[int, Format]


def same(pattern: int, source: Format, target: Format) -> int:
    """A number in a format that has it."""
    x = decode(source.name, pattern)
    if x.kind == "nan":
        return FORMATS[target.name].nan
    if x.kind == "inf":
        return infinity(target.name, x.sign)
    found = encode(target.name, x.sign, abs(x.value), "nearest_even")
    assert decode(target.name, found).value == x.value
    return found


def pattern_of(bits: int | None, fmt: Format) -> int:
    assert bits is not None
    return FORMATS[fmt.name].nan if bits == ANY_NAN else bits


@dataclass
class Output:
    """One element of D: a row of A, a column of B, an element of C."""

    plan: Plan
    a: list[int]
    b: list[int]
    c: int

    def result(self) -> int:
        value = self.value(self.plan.result)
        if value.kind == "nan":
            return ANY_NAN
        assert value.bits is not None
        return value.bits

    def value(self, node: Node) -> Value:
        """A node of the plan, outside of its sums."""
        match node:
            case Products():
                start = self.value(node.start)
                bits = 0 if isinstance(node.start, Constant) else start.bits
                fmt = node.stage.accumulator if isinstance(node.start, Constant) else self.format(node.start)
                pattern, fmt = self.sum(node.stage, range(len(self.a)), (pattern_of(bits, fmt), fmt))
                return node_oracle.number(fmt.name, pattern, pattern)
            case Constant():
                return Value("finite", mpq(0), is_zero=True, signs=frozenset({node.negative}))
            case Element():
                return node_oracle.number(self.plan.c.name, self.c, self.c)
            case Literal():
                return node_oracle.number(node.format.name, node.pattern, node.pattern)
            case Round():
                found = node_oracle.rounded(self.value(node.term), node.rounding)
                bits = pattern_of(found.bits, node.rounding.format)
                return node_oracle.number(node.rounding.format.name, bits, bits)
            case ExactSum():
                return node_oracle.exact_sum([self.value(item) for item in node.items])
            case Product():
                return node_oracle.times([self.value(node.left), self.value(node.right)])
            case Cut():
                return node_oracle.cut(self.value(node.term), node)
            case Relu():
                return node_oracle.rectified(self.value(node.term), node)
        raise TypeError(f"no value: {node!r}")

    def format(self, node: Node) -> Format:
        if isinstance(node, Products):
            return node.stage.d
        return node.rounding.format if isinstance(node, Round) else self.plan.c

    def sum(self, stage: Stage, ks: Places, start: Sum) -> Sum:
        match stage:
            case Chain():
                return self.chain(stage, ks, start)
            case Rounded():
                return self.added([self.sum(stage.body, ks, start)], stage.rounding)
            case Promoted():
                size = stage.every
                if stage.share and len(ks) % size:  # as few sums, of more products than an equal share of K
                    sums = -(-len(ks) // size)
                    size = next(n for n in range(stage.share, size + 1, stage.share) if n * sums > len(ks))
                sizes = [size] * (len(ks) // size)
                left = len(ks) - sum(sizes)
                if left and stage.even and sizes:  # the last two together; an odd product more for the second one
                    both = sizes.pop() + left
                    odd = both % 2 if stage.even > 1 else 0
                    half = next(n for n in range(stage.even, both + stage.even, stage.even) if 2 * n + odd >= both)
                    sizes += [min(half, both), max(both - half, 0)]
                elif left and stage.tail is None:
                    sizes.append(left)
                for size in filter(None, sizes):
                    start = self.added([start, self.sum(stage.body, ks[:size], self.zero(stage))], stage.rounding)
                    ks = ks[size:]
                return self.sum(stage.tail, ks, start) if ks and stage.tail is not None else start
            case Turns():
                while ks:
                    last = len(ks) < stage.every and stage.tail is not None
                    body = stage.tail if last and stage.tail is not None else stage.body
                    start, ks = self.sum(body, ks[: stage.every], start), ks[stage.every :]
                return start
            case Swizzled():
                assert len(ks) % stage.grain == 0
                for number in range(stage.ways):
                    mine = [k for n, k in enumerate(ks) if n // stage.grain % stage.ways == number]
                    start = self.sum(stage.body, mine, start) if mine else start
                return start
            case First():
                start = self.sum(stage.head, ks[: stage.number], start)
                return self.sum(stage.body, ks[stage.number :], start) if ks[stage.number :] else start
            case Whole():
                left = len(ks) % stage.number
                if stage.head is not None:
                    left = left or stage.number
                    start = self.sum(stage.head, ks[:left], start)
                    return self.sum(stage.body, ks[left:], start) if ks[left:] else start
                assert stage.tail is not None
                place = len(ks) - left
                start = self.sum(stage.body, ks[:place], start) if place else start
                return self.sum(stage.tail, ks[place:], start) if left else start
            case Lanes():
                return self.lanes(stage, ks, start)
            case Split():
                grain = stage.grain or stage.body.period
                grains = -(-len(ks) // grain)
                size = -(-grains // stage.ways) * grain
                return self.joined(stage, [ks[first : first + size] for first in range(0, len(ks), size)], start)
            case Uneven():
                ends = [*stage.at, len(ks)]
                return self.joined(stage, [ks[i:j] for i, j in zip([0, *stage.at], ends, strict=True)], start)
            case Interleaved():
                turn = stage.ways * stage.grain
                whole = len(ks) // turn * turn
                if whole:
                    lanes = [
                        [k for n, k in enumerate(ks[:whole]) if n // stage.grain % stage.ways == lane]
                        for lane in range(stage.ways)
                    ]
                    start = self.joined(stage, lanes, start)
                if whole == len(ks):
                    return start
                assert stage.tail is not None
                return self.sum(stage.tail, ks[whole:], start)
            case Halves():
                half = -(-len(ks) // 2)
                half = -(-half // stage.grain) * stage.grain
                if stage.first == "smaller":  # as NumPy: n2 = n / 2; n2 -= n2 % 8
                    half = len(ks) // 2
                    half -= half % stage.grain
                if len(ks) <= stage.most or not 0 < half < len(ks):
                    return self.sum(stage.body, ks, start)
                right = self.sum(stage, ks[half:], (0, stage.accumulator))
                return self.added([self.sum(stage, ks[:half], start), right], stage.rounding)
            case Windows():  # the padding that XLA calls "same", and an output for each stride
                parts = [self.sum(stage.body, ks[slice(*one)], (0, stage.body.accumulator) if one[0] else start)
                         for one in self.windows(len(ks), stage.every)]  # fmt: skip
                while len(parts) > stage.every:
                    places = self.windows(len(parts), stage.every)
                    parts = [self.one_by_one(parts[slice(*one)], stage.rounding) for one in places]
                return self.one_by_one(parts, stage.rounding)
        raise TypeError(f"no sum: {stage!r}")

    def one_by_one(self, sums: Sequence[Sum], how: Rounding) -> Sum:
        total = self.added(sums[:1], how)
        for other in sums[1:]:
            total = self.added([total, other], how)
        return total

    @staticmethod
    def windows(count: int, size: int) -> list[tuple[int, int]]:
        """Where windows begin and end: the padded input begins `low` places before the first one."""
        output = (count + size - 1) // size
        low = max(output * size - count, 0) // 2
        return [(max(k * size - low, 0), min((k + 1) * size - low, count)) for k in range(output)]

    @staticmethod
    def zero(stage: Promoted | Split | Uneven | Interleaved | Lanes) -> Sum:
        return 0, stage.body.accumulator

    def lanes(self, stage: Lanes, ks: Places, start: Sum) -> Sum:
        """Whose products each lane takes is written down first; lanes take theirs before they are folded."""
        sums, waiting = [start], list(ks)

        def take(own: dict[int, list[int]]) -> None:
            for lane, products in own.items():
                sums[lane] = self.sum(stage.body, products, sums[lane])

        turns = [step for step in stage.steps if not isinstance(step, Fold)]
        sums += [self.zero(stage) for _ in range(turns[0] - 1)]
        if stage.head:
            short = len(ks) % turns[0] // stage.head * stage.head
            take({lane: [k] for lane, k in enumerate(waiting[:short])})
            waiting = waiting[short:]
        back = stage.order == "backwards"
        whole = len(ks) // stage.unroll * stage.unroll if stage.unroll else len(waiting)
        waiting, later = waiting[:whole], waiting[whole:]
        for step in stage.steps:
            if isinstance(step, Fold):
                folded: dict[int, list[Sum]] = {}
                for lane, value in enumerate(sums):
                    block, within = divmod(lane, step.ways * step.stride)
                    folded.setdefault(block * step.stride + within % step.stride, []).append(value)
                sums = [self.in_order(stage, folded[lane]) for lane in sorted(folded)]
                continue
            turns = turns[1:]
            own: dict[int, list[int]] = {}
            fewer: dict[int, list[int]] = {}  # than a turn's products, in a sum of their own
            turn = step * stage.grain
            while len(waiting) >= turn or (waiting and not turns and stage.tail is None):
                for place, k in enumerate(waiting[:turn]):
                    lane = place // stage.grain
                    given = own if (lane + 1) * stage.grain <= len(waiting) else fewer
                    given.setdefault(lane, []).append(k)
                waiting = waiting[turn:]
            for lane, products in own.items() if back else ():
                for n in range(len(products) * step // stage.unroll):
                    for k in products[n * stage.unroll // step : (n + 1) * stage.unroll // step][::-1]:
                        take({lane: [k]})
            take({} if back else own)
            take(fewer)
            back = False
            waiting, later = [*waiting, *later], []
        return sums[0] if not waiting or stage.tail is None else self.sum(stage.tail, waiting, sums[0])

    def in_order(self, stage: Split | Uneven | Interleaved | Lanes, sums: Sequence[Sum]) -> Sum:
        found = sums[0]
        for other in sums[1:]:
            found = self.added([found, other], stage.rounding)
        return found

    def joined(self, stage: Split | Uneven | Interleaved, parts: Sequence[Places], start: Sum) -> Sum:
        sums = [self.sum(stage.body, part, self.zero(stage) if n else start) for n, part in enumerate(parts)]
        if len(sums) == 1 and sums[0][1] != stage.rounding.format:
            return self.added(sums, stage.rounding)
        if stage.order == "backwards":
            sums = sums[::-1]
        while len(sums) > 1 and stage.order == "pairwise":
            sums = [
                self.added(sums[n : n + 2], stage.rounding) if n + 1 < len(sums) else sums[n]
                for n in range(0, len(sums), 2)
            ]
        return self.in_order(stage, sums)

    def added(self, sums: Sequence[Sum], how: Rounding) -> Sum:
        values = [node_oracle.number(fmt.name, pattern) for pattern, fmt in sums]
        found = node_oracle.rounded(node_oracle.exact_sum(values) if len(values) > 1 else values[0], how)
        return pattern_of(found.bits, how.format), how.format

    def chain(self, stage: Chain, ks: Places, start: Sum) -> Sum:
        model, length = stage.model, stage.model.length
        while ks:
            if len(ks) < length and stage.tail is not None:
                return self.sum(stage.tail, ks, start)
            first, ks = ks[:length], ks[length:]
            c = same(start[0], start[1], model.c)
            bits = node_oracle.evaluate(model.unit, *self.operands(model, first), c)
            start = pattern_of(bits, model.d), model.d
        return start

    def operands(self, model: Model, ks: Places) -> tuple[list[int], list[int]]:
        sides = []
        for given, fmt, how in (
            (self.a, self.plan.a, self.plan.convert_a),
            (self.b, self.plan.b, self.plan.convert_b),
        ):
            found = [given[k] for k in ks]
            if how is not None:
                found = [self.added([(pattern, fmt)], how)[0] for pattern in found]
            sides.append(found + [0] * (model.length - len(ks)))
        return sides[0], sides[1]


def matmul(plan: Plan, a: Sequence[Sequence[int]], b: Sequence[Sequence[int]], c: Sequence[Sequence[int]]) -> list[int]:
    """D, row by row; ANY_NAN for a NaN."""
    columns = [list(column) for column in zip(*b, strict=True)]
    return [
        Output(plan, list(row), column, c[i][j]).result() for i, row in enumerate(a) for j, column in enumerate(columns)
    ]
