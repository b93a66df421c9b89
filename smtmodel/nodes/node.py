"""What every node is: a frozen value with operands, evaluated over any carrier; and what travels between nodes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar

from mmaprobe.smtmodel.arithmetic.decode import Term, Unpacked
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.arithmetic.ieee import with_specials
from mmaprobe.smtmodel.arithmetic.rounding import Target, round_and_pack
from mmaprobe.smtmodel.base.values import kept_property
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, all_of, any_of, constant
from mmaprobe.smtmodel.carriers.carrier import Made
from mmaprobe.smtmodel.nodes.index import Index
from mmaprobe.smtmodel.nodes.known import UNKNOWN, Known
from mmaprobe.smtmodel.nodes.trace import Trace


class Value(ABC):
    """A number on its way, rounded or not: `term`, and `is_nan`; what else a node may ask of it is formed when it does.

    `pattern`: of a rounded result.
    """

    def __init__(self, term: Term, is_nan: Bit, pattern: Bits | None = None) -> None:
        self.term, self.is_nan, self.pattern = term, is_nan, pattern

    @property
    def sign(self) -> Bit:
        return self.term.sign

    @property
    @abstractmethod
    def is_zero(self) -> Bit:
        """Whether it counts as zero in an alignment: a zero input, or a sum of such."""

    @property
    @abstractmethod
    def infinities(self) -> tuple[Bit, Bit]:
        """Whether +infinity and -infinity are among what was added; of a single number only one can be."""

    @property
    @abstractmethod
    def negatives(self) -> tuple[Bit, Bit]:
        """Whether all, and whether any, of the numbers added are negative: the sign of an exact zero hangs on it."""

    @property
    def is_sum(self) -> bool:
        """Whether an exact zero has its sign from the numbers added."""
        return True

    @kept_property
    def item(self) -> Unpacked:
        """The number as a term of a sum: one object, by which a trace finds the sum."""
        return Unpacked(self.term, self.is_zero, self.infinities[0] | self.infinities[1], self.is_nan)


class Number(Value):
    """A single number, not a sum. `native`: its pattern as a format has it, as an input or as the processor's own
    instruction computed it; a NaN's is arbitrary."""

    def __init__(self, item: Unpacked, pattern: Bits | None = None, native: tuple[Format, Bits] | None = None) -> None:
        super().__init__(item.term, item.is_nan, pattern)
        self._item, self._native = item, native

    def packed(self, fmt: Format) -> Bits | None:
        """A pattern of the number in a format that holds it, any NaN for a NaN; None where one may not fit. Only where
        the carrier `fuses`."""
        if self._native is not None and (same := _widened(*self._native, fmt)) is not None:
            return same
        term = self.term
        least, most = term.exponent.least - term.fraction, term.exponent.high + term.integer
        if term.significand.width > fmt.precision or least < fmt.emin - fmt.fraction or most > fmt.emax + 1:
            return None
        finite = round_and_pack(term.sign, term.significand, term.exponent.offset(-term.fraction), Target(fmt, "up"))
        return with_specials(finite, self.is_nan, *self.infinities, fmt, fmt.nan)

    @property
    def is_zero(self) -> Bit:
        return self._item.is_zero

    @kept_property
    def infinities(self) -> tuple[Bit, Bit]:
        return self._item.is_infinite & ~self.sign, self._item.is_infinite & self.sign

    @property
    def negatives(self) -> tuple[Bit, Bit]:
        return self.sign, self.sign

    @property
    def is_sum(self) -> bool:
        return False

    @property
    def item(self) -> Unpacked:
        return self._item


def _widened(own: Format, pattern: Bits, fmt: Format) -> Bits | None:
    """A number's pattern in a wider format, by zeros behind its fraction or by the processor; None for other formats.
    What is finite (`Format.finite`) has none of the patterns that a format with infinities and NaNs has besides."""
    f32 = FORMATS["f32"]
    if own == fmt:
        return pattern
    if own.is_within(fmt) or own.is_within(fmt.finite):
        return pattern.extract(own.field_width, own.padding).pad(fmt.fraction - own.fraction + fmt.padding)
    if fmt == FORMATS["f64"] and (single := _widened(own, pattern, f32)) is not None:
        return Bits(pattern.carrier, fmt.width, pattern.carrier.widened(single.node))
    return None


class Total(Value):
    """A sum: its finite part, and what was added. A NaN, infinities and signs among these decide the result, and it
    counts as zero where all of them do."""

    def __init__(self, term: Term, values: Sequence[Value]) -> None:
        super().__init__(term, any_of([value.is_nan for value in values]))
        self._values = tuple(values)

    @kept_property
    def is_zero(self) -> Bit:
        return all_of([value.is_zero for value in self._values])

    @kept_property
    def infinities(self) -> tuple[Bit, Bit]:
        positive, negative = zip(*(value.infinities for value in self._values), strict=True)
        return any_of(positive), any_of(negative)

    @kept_property
    def negatives(self) -> tuple[Bit, Bit]:
        every, some = zip(*(value.negatives for value in self._values), strict=True)
        return all_of(every), any_of(some)


class Changed(Value):
    """Another value with its finite part replaced; the numbers that were added stay the same. `zeros`: where it counts
    as zero besides; `nans`: where it is a NaN besides; `infinite`: where it is infinite besides, with its sign."""

    def __init__(
        self, value: Value, term: Term, zeros: Sequence[Bit] = (), nans: Sequence[Bit] = (), infinite: Bit | None = None
    ) -> None:
        super().__init__(term, any_of([value.is_nan, *nans]))
        self._value, self._zeros, self._infinite = value, tuple(zeros), infinite

    @kept_property
    def is_zero(self) -> Bit:
        return any_of([self._value.is_zero, *self._zeros])

    @kept_property
    def infinities(self) -> tuple[Bit, Bit]:
        positive, negative = self._value.infinities
        if self._infinite is None:
            return positive, negative
        besides = self._infinite & ~(positive | negative)
        return positive | (besides & ~self._value.sign), negative | (besides & self._value.sign)

    @property
    def negatives(self) -> tuple[Bit, Bit]:
        return self._value.negatives

    @property
    def is_sum(self) -> bool:
        return self._value.is_sum


_NO_LEVELS: frozenset[int] = frozenset()
Shared = dict[Hashable, Value]
_OWN: dict[tuple[Any, ...], object] = {}  # of `Node.own`


@dataclass
class Context:
    """One evaluation: the inputs, the values of loop variables and running sums, and the signals so far.

    `patterns` and `formats` by operand (a, b, c, scale_a, scale_b); missing trailing elements are zero. `names`: what a
    node's signals begin with; `titles`: what a node is called as a term of a sum, where not by its place or name.
    `shared`, by units on the same inputs: the values of what depends on inputs alone, by `Node.key`.
    """

    patterns: Mapping[str, Sequence[Bits]]
    formats: Mapping[str, Format]
    names: Mapping[Node, str]
    trace: Trace = field(default_factory=Trace)
    titles: Mapping[Node, str] = field(default_factory=dict)
    shared: Shared | None = None
    wholes: dict[Hashable, Unpacked | None] = field(default_factory=dict)  # of all elements or products, by their kind
    places: dict[int, int] = field(default_factory=dict)  # value of the variable of each level
    running: dict[int, Value] = field(default_factory=dict)
    scopes: list[dict[tuple[Node, int | None], Value]] = field(default_factory=lambda: [{}])
    opened: dict[int, int] = field(default_factory=dict)  # the scope of each level
    ranges: list[int] = field(default_factory=list)  # the levels of ranges of terms around what is formed

    def value(self, node: Node, keep: int | None = None) -> Value:
        """The value of a node, formed once where it is shared. `keep`: how many bits of a sum are needed, with
        one sticky bit below; None asks for every bit."""
        free = node.free
        scope = self.scopes[max([self.opened[level] for level in free]) if free else 0]
        key = (node, keep)
        value = scope.get(key)
        if value is None:
            value = scope[key] = self._formed(node, keep)
            if self.trace.keeps:
                self.trace.visit(node, self.prefix(node), node.place(self), value.item)
        return value

    def _formed(self, node: Node, keep: int | None) -> Value:
        if self.shared is None:
            return node.evaluate(self, keep)
        key = node.key(self)
        if key is None and not node.free and not self.trace.keeps:
            key = node, keep  # of the inputs alone as well; the signals within are not asked for
        if key is None:
            return node.evaluate(self, keep)
        value = self.shared.get(key)
        if value is None:
            value = self.shared[key] = node.evaluate(self, keep)
        return value

    def formed(self, key: Hashable, function: Callable[..., Made], *inputs: Any) -> Made:
        """function(*inputs), as `Carrier.formed` has it, unless signals are kept, which it leaves."""
        if self.trace.keeps:
            return function(*inputs)
        return self.patterns["c"][0].carrier.formed(key, function, *inputs)

    def iteration(self, level: int, place: int) -> _Iteration:
        """Within it, the loop variable of a level has this value, and what hangs on it is formed anew."""
        return _Iteration(self, level, place)

    def pattern(self, operand: str, at: int) -> Bits:
        """An element of an operand; zero where it is missing."""
        patterns = self.patterns[operand]
        if at < len(patterns):
            return patterns[at]
        return constant(self.patterns["c"][0].carrier, 0, self.formats[operand].width)

    def at(self, index: Index) -> int:
        """The number that an index stands for here."""
        return index.at(self.places)

    def name(self, node: Node) -> str:
        """What a node's signals are called; those of a term in a range have its place with them."""
        name = self.names.get(node, node.kind)
        return name and name + "".join(f"[{self.places[level]}]" for level in self.ranges if level in node.free)

    def prefix(self, node: Node) -> str:
        """What the names of a node's signals begin with, where they are kept."""
        if not self.trace.keeps:
            return ""
        name = self.name(node)
        return self.trace.prefix + (f"{name}." if name else "")

    def within(self, prefix: str) -> _Within:
        """Within it, names of signals begin with this."""
        return _Within(self.trace, prefix)


class _Iteration:
    """Of `Context.iteration`; no generator, which takes three times as long."""

    __slots__ = ("_context", "_level", "_place")

    def __init__(self, context: Context, level: int, place: int) -> None:
        self._context, self._level, self._place = context, level, place

    def __enter__(self) -> None:
        context, level = self._context, self._level
        assert level not in context.opened  # loops within loops have levels of their own
        context.places[level], context.opened[level] = self._place, len(context.scopes)
        context.scopes.append({})

    def __exit__(self, *_: object) -> None:
        self._context.scopes.pop()
        del self._context.places[self._level], self._context.opened[self._level]


class _Within:
    """Of `Context.within`."""

    __slots__ = ("_before", "_prefix", "_trace")

    def __init__(self, trace: Trace, prefix: str) -> None:
        self._trace, self._prefix, self._before = trace, prefix, trace.prefix

    def __enter__(self) -> None:
        self._trace.prefix = self._prefix

    def __exit__(self, *_: object) -> None:
        self._trace.prefix = self._before


@dataclass(frozen=True)
class Variant:
    """Another value of a parameter, which a unit that is a little different might have. `parameter` is a field's name,
    or says what becomes of the node."""

    parameter: str
    old: object
    new: object


class Node:
    """One step of a unit: a frozen dataclass (eq=False), equal to another by structure.

    `kind` is its word in unit files; `source` says where its arithmetic is published. No ABC: asking what kind a node
    is takes a fifth of the time.
    """

    kind: ClassVar[str]
    source: ClassVar[str]

    @property
    @abstractmethod
    def operands(self) -> tuple[Node, ...]:
        """The nodes that it reads."""

    @abstractmethod
    def evaluate(self, context: Context, keep: int | None) -> Value:
        """Its value; asked through `Context.value`, which keeps it."""

    @abstractmethod
    def sentence(self) -> str:
        """What it does, in words, after its name."""

    @property
    def known_from(self) -> tuple[Node, ...]:
        """The nodes from which follows what is known of its value."""
        return self.operands

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        """What is known of its value, from what is known of each term of each node of `known_from`: nothing, unless a
        kind of node says it."""
        return UNKNOWN

    def variants(self) -> Iterator[Variant]:
        """Plausible other values of its parameters, one at a time; impossible combinations are among them."""
        return iter(())

    @classmethod
    def around(cls, node: Node) -> Iterator[Node]:
        """The nodes of this kind that a unit may have around one that another unit has alone: what `identify` tries,
        with their variants, where nothing else explains an answer."""
        return iter(())

    def varied(self, variant: Variant) -> Node:
        """The node with another value where a parameter, or one for an operand, has the old one; else itself. Raises
        ParameterError."""
        if variant.parameter not in self.field_names():
            return self
        given = getattr(self, variant.parameter)
        several = isinstance(given, tuple) and not isinstance(variant.old, tuple)
        changed = tuple(variant.new if x == variant.old else x for x in given) if several else variant.new
        if not several and given != variant.old:
            return self
        return replace(self, **{variant.parameter: changed})  # type: ignore[type-var]

    def terms(self, context: Context) -> Iterator[tuple[str, Value]]:
        """What it adds to a sum, with names where signals are kept: itself, unless it stands for a range of terms."""
        named = context.trace.keeps
        name = named and (context.titles.get(self) or self.place(context) or context.name(self))
        yield name or "", context.value(self)

    def place(self, context: Context) -> str:
        """Its place among the inputs, where that names it best."""
        return ""

    def key(self, context: Context) -> Hashable:
        """A key that nodes with the same value have in common where this value depends on inputs alone; else None."""
        return None

    def places_of_terms(self, context: Context) -> list[str]:
        """The place of each of its terms, as `terms` has them."""
        return [self.place(context)]

    @property
    def count(self) -> int:
        """The number of terms that it stands for in a sum."""
        return 1

    @property
    def is_number(self) -> bool:
        """Whether its value is one number, which can be a factor of a product, and no sum."""
        return False

    @property
    def factors(self) -> tuple[Node, Node] | None:
        """The numbers whose exact product it is, if it is one."""
        return None

    @property
    def summands(self) -> tuple[Node, ...]:
        """What it is the exact sum of: itself, unless it is a sum."""
        return (self,)

    @property
    def binds(self) -> int | None:
        """The level of the loop variable that it gives to its operands, if it does."""
        return None

    @kept_property
    def free(self) -> frozenset[int]:
        """The levels of loops that it depends on."""
        found = _NO_LEVELS
        for operand in self.operands:
            free = operand.free
            if free and free is not found:
                found = found | free if found else free
        return found - {self.binds} if self.binds in found else found

    @classmethod
    @cache
    def field_names(cls) -> tuple[str, ...]:
        """The names of its operands and parameters."""
        return tuple(item.name for item in fields(cls))  # type: ignore[arg-type]

    @kept_property
    def own(self) -> object:
        """What nodes have in common which are of one kind, with the same parameters, and take as many terms from each
        operand: their values are one function of what these terms are."""
        parts: list[Any] = [type(self)]
        for name in self.field_names():
            value = getattr(self, name)
            each = value if type(value) is tuple else (value,)
            parts.append(tuple(x.count if isinstance(x, Node) else x for x in each))
        return _OWN.setdefault(tuple(parts), object())

    @kept_property
    def _fields(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.field_names())

    @kept_property
    def _hash(self) -> int:
        return hash((self.kind, self._fields))

    def __getstate__(self) -> dict[str, object]:
        """Its fields: in another process, which this may go to, hashes are others."""
        return {name: getattr(self, name) for name in self.field_names()}

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other) or self._hash != hash(other) or self._fields != other._fields:
            return False
        other.__dict__["_fields"] = self._fields  # so that what is shared below is not compared on every path
        return True


@dataclass(frozen=True, eq=False)
class Unary(Node):
    """A node that reads one other, whose place it has."""

    term: Node

    @property
    def operands(self) -> tuple[Node, ...]:
        return (self.term,)

    def place(self, context: Context) -> str:
        return self.term.place(context)


def kinds(base: type[Node] = Node) -> Iterator[type[Node]]:
    """Every class of nodes."""
    for kind in base.__subclasses__():
        yield kind
        yield from kinds(kind)


def others(parameter: str, old: object, values: Iterable[object]) -> Iterator[Variant]:
    """A parameter's other values."""
    return (Variant(parameter, old, new) for new in values if new != old)


def near(value: int) -> tuple[int, ...]:
    """The numbers beside a number, the nearest first."""
    return value - 1, value + 1, value - 2, value + 2


@dataclass
class Knowledge:
    """What is known of the nodes of one unit. `formats`: those of its operands, by name. `unsigned`: operands of which
    no element is -0. `running`: of the results so far of the loops around, by level. `fits`: on inputs that are
    finite, where nothing overflows; else on all inputs. `given`: what is known of the elements of an operand besides
    its format."""

    formats: Mapping[str, Format]
    unsigned: frozenset[str] = frozenset()
    running: Mapping[int, Known] = field(default_factory=dict)
    fits: bool = False
    given: Mapping[str, Known] = field(default_factory=dict)
    _found: dict[Node, Known] = field(default_factory=dict)

    def of(self, node: Node) -> Known:
        """What is known of a node."""
        if node not in self._found and not node.free:  # from below: steps may be deep within one another
            for below in walk(node):
                if not below.free:
                    self._of(below)
        return self._of(node)

    def _of(self, node: Node) -> Known:
        if node not in self._found:
            self._found[node] = node.known(self, [known for term in node.known_from for known in self._terms(term)])
        return self._found[node]

    def _terms(self, item: Node) -> list[Known]:
        return [self._of(item)] * item.count

    def within(self, level: int, so_far: Known) -> Knowledge:
        """The same within a loop, of whose results so far this is known."""
        return Knowledge(self.formats, self.unsigned, {**self.running, level: so_far}, self.fits, self.given)


class Terminal(Node):
    """A node that reads no other: an input, or a number that is given."""

    @property
    def operands(self) -> tuple[Node, ...]:
        return ()

    @property
    def is_number(self) -> bool:
        return True


def walk(node: Node) -> Iterator[Node]:
    """Every node below, each once, operands first."""
    found: dict[Node, None] = {}
    waiting = [(node, iter(node.operands))]
    while waiting:
        current, operands = waiting[-1]
        for operand in operands:
            if operand not in found:
                waiting.append((operand, iter(operand.operands)))
                break
        else:
            found[current] = None
            waiting.pop()
    return iter(found)


def structure(node: Node) -> str:
    """A text that two nodes have in common if and only if they are equal; what is shared is in it once."""
    numbers: dict[Node, int] = {}

    def text(value: object) -> str:
        if isinstance(value, Node):
            return f"#{numbers[value]}"
        if isinstance(value, range):  # equal ones may have other ends
            return repr(range(value[0], value[-1] + 1, value.step)) if value else "range(0)"
        return f"({', '.join(map(text, value))})" if isinstance(value, tuple) else repr(value)

    lines = []
    for found in walk(node):
        lines.append(f"#{len(numbers)} {found.kind} {text(found._fields)}")
        numbers[found] = len(numbers)
    return "\n".join(lines)
