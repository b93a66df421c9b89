"""Plans in exact rationals, written from what docs/plans.md says of each stage: it reads their fields, not their code.

Products are lists of places of K; a sum so far is a pattern and the name of its format.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from gmpy2 import mpq

from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.nodes import (
    Constant,
    Cut,
    Element,
    ExactSum,
    Literal,
    Node,
    Product,
    Quotient,
    Recombined,
    Relu,
    Residue,
    Round,
    Scale,
)
from mmaprobe.smtmodel.nodes.given import Given
from mmaprobe.smtmodel.nodes.round import Rounding
from mmaprobe.smtmodel.plans import Chain, Fold, Parted, Plan, Products, Stage
from mmaprobe.smtmodel.plans.joins import Add, Compensate, Only, Promote, Through, Tree
from mmaprobe.smtmodel.plans.partitions import (
    All,
    At,
    Equal,
    First,
    Halves,
    Interleaved,
    Lanes,
    Runs,
    Swizzled,
    Whole,
    Windows,
)  # fmt: skip
from mmaprobe.smtmodel.plans.stages import Partition, Then
from mmaprobe.smtmodel.plans.words import Gathered, LargestOf, Scaled, SharedOf
from tests.oracles import node_oracle
from tests.oracles.node_oracle import ANY_NAN, Value
from tests.oracles.oracle import FORMATS, decode, encode, infinity

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
    side: str = "a"  # whose words are read
    words: dict[tuple[str, int, int], Value] = field(default_factory=dict)  # of a side, by node and element

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
            case Scale():
                return node_oracle.times([self.value(operand) for operand in node.operands])
            case Residue():
                own = self.value(node.term)
                return node_oracle.nearest(int(own.exact), node.modulus) if own.kind == "finite" else node_oracle.NAN
            case Recombined():
                return node_oracle.recombined([self.value(item) for item in node.items], node.moduli)
            case SharedOf() | LargestOf():
                return self.gathered(node)
        raise TypeError(f"no value: {node.kind}")

    def format(self, node: Node) -> Format:
        if isinstance(node, Products):
            return node.stage.d
        return node.rounding.format if isinstance(node, Round) else self.plan.c

    def sum(self, stage: Stage, ks: Places, start: Sum) -> Sum:
        if isinstance(stage, Chain):
            return self.chain(stage, ks, start)
        if isinstance(stage, Then):
            for body in stage.bodies:
                start = self.sum(body, ks, start)
            return start
        assert isinstance(stage, Parted)
        match stage.partition:
            case Lanes():
                return self.lanes(stage, stage.partition, ks, start)
            case Halves() if isinstance(stage.join, Tree):
                return self.halved(stage, stage.partition, ks, start)
            case First(number=number):
                assert stage.head is not None
                start, ks = self.sum(stage.head, ks[:number], start), ks[number:]
                parts, left = ([ks] if ks else []), ks[:0]
            case Whole(number=number) if stage.head is not None:
                first = len(ks) % number or number
                start, ks = self.sum(stage.head, ks[:first], start), ks[first:]
                parts, left = ([ks] if ks else []), ks[:0]
            case _:
                parts, left = self.parts(stage, stage.partition, ks)
        match stage.join:
            case Through():
                for part in parts:
                    start = self.sum(stage.body, part, start)
            case Promote(rounding=how):
                for part in parts:
                    start = self.added([start, self.sum(stage.body, part, self.zero(stage))], how)
            case Compensate(rounding=how, by="kahan"):
                carried: Sum | None = None
                for part in parts:
                    own = self.sum(stage.body, part, self.zero(stage))
                    own = own if carried is None else self.added([own, carried], how)
                    total = self.added([start, own], how)
                    carried = self.minus(own, self.minus(total, start, how), how)
                    start = total
            case Compensate(rounding=how):
                lost = list[Sum]()
                for part in parts:
                    own = self.sum(stage.body, part, self.zero(stage))
                    start, less = self.two_sum(start, own, how)
                    lost.append(less)
                start = self.added([start, self.one_by_one(lost, how)], how) if lost else start
            case Only(rounding=how):
                (part,) = parts
                start = self.added([self.sum(stage.body, part, start)], how)
            case Add():
                start = self.joined(stage, stage.join, parts, start) if parts else start
            case Tree(rounding=how):
                assert isinstance(stage.partition, Windows)
                sums = [self.added([self.sum(stage.body, part, self.zero(stage) if n else start)], how)
                        for n, part in enumerate(parts)]  # fmt: skip
                while len(sums) > stage.partition.every:
                    places = self.windows(len(sums), stage.partition.every)
                    sums = [self.one_by_one(sums[slice(*one)], how) for one in places]
                start = self.one_by_one(sums, how)
        return self.sum(stage.tail, left, start) if left and stage.tail is not None else start

    def parts(self, stage: Parted, partition: Partition, ks: Places) -> tuple[list[Places], Places]:
        """The products of each part, and those left over."""
        match partition:
            case All():
                return [ks], ks[:0]
            case Runs():
                return self.runs(partition, ks, stage.tail is not None)
            case Swizzled(ways=ways, grain=grain):
                assert len(ks) % grain == 0
                passes = [[k for n, k in enumerate(ks) if n // grain % ways == number] for number in range(ways)]
                return [one for one in passes if one], ks[:0]
            case Whole(number=number):
                place = len(ks) - len(ks) % number
                return ([ks[:place]] if place else []), ks[place:]
            case Equal(ways=ways):
                grain = partition.grain or stage.body.period
                grains = -(-len(ks) // grain)
                if partition.tiles == "even":  # of run n, those of which n / ways lies among the tiles before it
                    runs = [[k for at, k in enumerate(ks) if at // grain * ways // grains == number]
                            for number in range(ways)]  # fmt: skip
                    return [run for run in runs if run], ks[:0]
                size = -(-grains // ways) * grain
                return [ks[first : first + size] for first in range(0, len(ks), size)], ks[:0]
            case At(at=at):
                return [ks[i:j] for i, j in zip([0, *at], [*at, len(ks)], strict=True)], ks[:0]
            case Interleaved(ways=ways, grain=grain):
                place = len(ks) // (ways * grain) * ways * grain
                lanes = [[ks[n] for n in range(place) if n // grain % ways == lane] for lane in range(ways)]
                return (lanes if place else []), ks[place:]
            case Halves():
                return self.leaves(partition, ks), ks[:0]
            case Windows(every=every):
                return [ks[slice(*one)] for one in self.windows(len(ks), every)], ks[:0]
        raise TypeError(f"no parts: {partition!r}")

    @staticmethod
    def runs(partition: Runs, ks: Places, tail: bool) -> tuple[list[Places], Places]:
        size = partition.every
        if partition.share and len(ks) % size:  # as few sums, of more products than an equal share of K
            sums = -(-len(ks) // size)
            size = next(n for n in range(partition.share, size + 1, partition.share) if n * sums > len(ks))
        sizes = [size] * (len(ks) // size)
        left = len(ks) - sum(sizes)
        if left and partition.even and sizes:  # the last two together; an odd product more for the second one
            both = sizes.pop() + left
            odd = both % 2 if partition.even > 1 else 0
            half = next(n for n in range(partition.even, both + partition.even, partition.even) if 2 * n + odd >= both)
            sizes += [min(half, both), max(both - half, 0)]
        elif left and not tail:
            sizes.append(left)
        parts = list[Places]()
        for size in filter(None, sizes):
            parts.append(ks[:size])
            ks = ks[size:]
        return parts, ks

    def first_half(self, partition: Halves, count: int) -> int:
        """The products of the first half; 0 where there are no halves."""
        half = -(-count // 2)
        half = -(-half // partition.grain) * partition.grain
        if partition.first == "smaller":  # as NumPy: n2 = n / 2; n2 -= n2 % 8
            half = count // 2
            half -= half % partition.grain
        return half if count > partition.most and half < count else 0

    def leaves(self, partition: Halves, ks: Places) -> list[Places]:
        half = self.first_half(partition, len(ks))
        return [*self.leaves(partition, ks[:half]), *self.leaves(partition, ks[half:])] if half else [ks]

    def halved(self, stage: Parted, partition: Halves, ks: Places, start: Sum) -> Sum:
        assert stage.rounding is not None
        if (half := self.first_half(partition, len(ks))) == 0:
            found = self.sum(stage.body, ks, start)
            return found if stage.body.d == stage.d else self.added([found], stage.rounding)
        left = self.halved(stage, partition, ks[:half], start)
        return self.added([left, self.halved(stage, partition, ks[half:], self.zero(stage))], stage.rounding)

    def two_sum(self, one: Sum, other: Sum, how: Rounding) -> tuple[Sum, Sum]:
        """The rounded sum, and what it loses, by the six operations of Knuth's 2Sum."""
        total = self.added([one, other], how)
        second = self.minus(total, one, how)
        first = self.minus(total, second, how)
        return total, self.added([self.minus(one, first, how), self.minus(other, second, how)], how)

    def minus(self, one: Sum, other: Sum, how: Rounding) -> Sum:
        pattern, fmt = other
        return self.added([one, (pattern ^ fmt.sign_bit, fmt)], how)

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
    def zero(stage: Parted) -> Sum:
        return 0, stage.body.accumulator

    def lanes(self, stage: Parted, cut: Lanes, ks: Places, start: Sum) -> Sum:
        """Whose products each lane takes is written down first; lanes take theirs before they are folded."""
        sums, waiting = [start], list(ks)

        def take(own: dict[int, list[int]]) -> None:
            for lane, products in own.items():
                sums[lane] = self.sum(stage.body, products, sums[lane])

        turns = [step for step in cut.steps if not isinstance(step, Fold)]
        sums += [self.zero(stage) for _ in range(turns[0] - 1)]
        if cut.head:
            short = len(ks) % turns[0] // cut.head * cut.head
            take({lane: [k] for lane, k in enumerate(waiting[:short])})
            waiting = waiting[short:]
        back = cut.order == "backwards"
        whole = len(ks) // cut.unroll * cut.unroll if cut.unroll else len(waiting)
        waiting, later = waiting[:whole], waiting[whole:]
        for step in cut.steps:
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
            turn = step * cut.grain
            while len(waiting) >= turn or (waiting and not turns and stage.tail is None):
                for place, k in enumerate(waiting[:turn]):
                    lane = place // cut.grain
                    given = own if (lane + 1) * cut.grain <= len(waiting) else fewer
                    given.setdefault(lane, []).append(k)
                waiting = waiting[turn:]
            for lane, products in own.items() if back else ():
                for n in range(len(products) * step // cut.unroll):
                    for k in products[n * cut.unroll // step : (n + 1) * cut.unroll // step][::-1]:
                        take({lane: [k]})
            take({} if back else own)
            take(fewer)
            back = False
            waiting, later = [*waiting, *later], []
        return sums[0] if not waiting or stage.tail is None else self.sum(stage.tail, waiting, sums[0])

    def in_order(self, stage: Parted, sums: Sequence[Sum]) -> Sum:
        assert stage.rounding is not None
        found = sums[0]
        for other in sums[1:]:
            found = self.added([found, other], stage.rounding)
        return found

    def joined(self, stage: Parted, join: Add, parts: Sequence[Places], start: Sum) -> Sum:
        sums = [self.sum(stage.body, part, self.zero(stage) if n else start) for n, part in enumerate(parts)]
        if len(sums) == 1 and sums[0][1] != join.rounding.format:
            return self.added(sums, join.rounding)
        if join.order == "backwards":
            sums = sums[::-1]
        while len(sums) > 1 and join.order == "pairwise":
            sums = [
                self.added(sums[n : n + 2], join.rounding) if n + 1 < len(sums) else sums[n]
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
            a, b, *factors = self.operands(stage, first)
            bits = node_oracle.evaluate(model.unit, a, b, c, *factors)
            start = pattern_of(bits, model.d), model.d
        return start

    def operands(self, stage: Chain, ks: Places) -> list[list[int]]:
        """What the unit reads: words of a, of b, and the factors of their blocks, if they have any."""
        plan, model = self.plan, stage.model
        sides, factors = list[list[int]](), list[list[int]]()
        for side, given, fmt, how, word in (
            ("a", self.a, plan.a, plan.convert_a, stage.a),
            ("b", self.b, plan.b, plan.convert_b, stage.b),
        ):
            self.side = side
            found = [given[k] for k in ks]
            if isinstance(word, Scaled):
                word, factor = word.element, word.factor
                assert factor is not None
                firsts = [k for k in ks if k % model.scale_block == 0]
                own = [pattern_of(self.word(factor, k).bits, factor.rounding.format) for k in firsts]
                factors.append(own + [0] * (model.scales - len(own)))
            if word is not None:
                found = [pattern_of(self.word(word, k).bits, word.rounding.format) for k in ks]
            elif how is not None:
                taken = model.a if side == "a" else model.b
                found = [same(self.added([(pattern, fmt)], how)[0], how.format, taken) for pattern in found]
            sides.append(found + [0] * (model.length - len(ks)))
        return [*sides, *factors]

    def word(self, node: Node, k: int) -> Value:
        """A word, or a part of one, of the k-th element of the side whose words are read."""
        place = self.side, id(node), k
        if place not in self.words:
            self.words[place] = self.new_word(node, k)
        return self.words[place]

    def new_word(self, node: Node, k: int) -> Value:
        match node:
            case Given():
                own, fmt = (self.a, self.plan.a) if self.side == "a" else (self.b, self.plan.b)
                return node_oracle.number(fmt.name, own[k], own[k])
            case Literal():
                return node_oracle.number(node.format.name, node.pattern, node.pattern)
            case Round():
                found = node_oracle.rounded(self.word(node.term, k), node.rounding)
                bits = pattern_of(found.bits, node.rounding.format)
                return node_oracle.number(node.rounding.format.name, bits, bits)
            case ExactSum():
                return node_oracle.exact_sum([self.word(item, k) for item in node.items])
            case Product():
                return node_oracle.times([self.word(x, k) for x in (node.left, node.right)])
            case Residue():
                own = self.word(node.term, k)
                return node_oracle.nearest(int(own.exact), node.modulus) if own.kind == "finite" else node_oracle.NAN
            case Quotient():
                return node_oracle.divided(self.word(node.left, k), self.word(node.right, k))
            case SharedOf() | LargestOf():
                return self.gathered(node, k)
        raise TypeError(f"no part of a word: {node.kind}")

    def gathered(self, node: Gathered, k: int = 0) -> Value:
        """What all elements of a side give, or those of the block with the k-th one."""
        side, fmt = (self.a, self.plan.a) if node.operand == "a" else (self.b, self.plan.b)
        if node.block:
            side = [own for place, own in enumerate(side) if place // node.block == k // node.block]
        values = [node_oracle.number(fmt.name, pattern) for pattern in side]
        return node_oracle.shared(values, node) if isinstance(node, SharedOf) else node_oracle.largest(values)


def matmul(plan: Plan, a: Sequence[Sequence[int]], b: Sequence[Sequence[int]], c: Sequence[Sequence[int]]) -> list[int]:
    """D, row by row; ANY_NAN for a NaN."""
    columns = [list(column) for column in zip(*b, strict=True)]
    return [
        Output(plan, list(row), column, c[i][j]).result() for i, row in enumerate(a) for j, column in enumerate(columns)
    ]
