"""Nodes, frozen values with operands that any carrier evaluates, and the values passed between nodes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar, Literal, TypeVar

from mmaprobe.smtmodel.arithmetic.decode import Term, Unpacked
from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.arithmetic.ieee import round_term, with_specials
from mmaprobe.smtmodel.arithmetic.rounding import Target
from mmaprobe.smtmodel.base.values import kept_property
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, all_of, any_of, choose, constant, truth
from mmaprobe.smtmodel.carriers.carrier import Made
from mmaprobe.smtmodel.nodes.index import Index
from mmaprobe.smtmodel.nodes.known import UNKNOWN, Known
from mmaprobe.smtmodel.nodes.trace import Stage, Trace


class Value(ABC):
    """The value of a node, rounded or not: `term` and `is_nan`; the other properties are formed at their first use.

    `pattern`: the pattern of a rounded result.
    """

    def __init__(self, term: Term, is_nan: Bit, pattern: Bits | None = None) -> None:
        self.term, self.is_nan, self.pattern = term, is_nan, pattern

    @property
    def sign(self) -> Bit:
        return self.term.sign

    @property
    @abstractmethod
    def is_zero(self) -> Bit:
        """Whether the value counts as zero in an alignment: a zero input, or a sum of zero inputs alone."""

    @property
    @abstractmethod
    def infinities(self) -> tuple[Bit, Bit]:
        """Two truth values: whether +infinity, and whether -infinity, is among the numbers added. A single number is at
        most one of them."""

    @property
    def is_infinite(self) -> Bit:
        """Whether an infinity is among the numbers added."""
        return self.infinities[0] | self.infinities[1]

    @property
    @abstractmethod
    def negatives(self) -> tuple[Bit, Bit]:
        """Whether all, and whether any, of the numbers added are negative: they decide the sign of an exact zero."""

    @property
    def is_sum(self) -> bool:
        """Whether the numbers added, not the term, decide the sign of an exact zero."""
        return True

    @property
    def finite_sign(self) -> Bit:
        """The sign of the value where it is finite. A sum's term lacks that of a zero sum, which is negative where all
        numbers added are."""
        return choose(self.term.significand.any(), self.sign, self.negatives[0]) if self.is_sum else self.sign

    @property
    def number_sign(self) -> Bit:
        """The sign of the value as a number: also of an infinity, which a sum's term lacks."""
        plus, minus = self.infinities
        return choose(plus | minus, minus, self.finite_sign)

    @kept_property
    def item(self) -> Unpacked:
        """The value as a term of a sum; always one object, by which a trace recognises the sum."""
        return Unpacked(self.term, self.is_zero, self.is_infinite, self.is_nan)


class Number(Value):
    """A single number, not a sum. `native`: format and pattern of an input, or of a result of the processor's own
    instruction; a NaN's pattern is arbitrary."""

    is_sum = False

    def __init__(self, item: Unpacked, pattern: Bits | None = None, native: tuple[Format, Bits] | None = None) -> None:
        super().__init__(item.term, item.is_nan, pattern)
        self._item, self._native = item, native

    def packed(self, fmt: Format) -> Bits | None:
        """The number's pattern in a format, for a NaN the pattern of any NaN; None where the format may not hold the
        number. Called only where the carrier `fuses`."""
        if self._native is not None and (same := _widened_pattern(*self._native, fmt)) is not None:
            return same
        term = self.term
        least, most = term.exponent.least - term.fraction, term.exponent.high + term.integer
        if term.significand.width > fmt.precision or least < fmt.unit or most > fmt.emax + 1:
            return None
        return with_specials(round_term(term, Target(fmt, "up")), self.is_nan, *self.infinities, fmt, fmt.nan)

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
    def item(self) -> Unpacked:
        return self._item


def _widened_pattern(own: Format, pattern: Bits, fmt: Format) -> Bits | None:
    """A number's pattern in a wider format, formed with zeros behind the fraction or by the processor; None for other
    formats. A finite format (`Format.finite`) lacks only the patterns of infinities and NaNs."""
    f32 = FORMATS["f32"]
    if own == fmt:
        return pattern
    if own.is_within(fmt) or own.is_within(fmt.finite):
        return pattern.extract(own.field_width, own.padding).pad(fmt.fraction - own.fraction + fmt.padding)
    if fmt == FORMATS["f64"] and (single := _widened_pattern(own, pattern, f32)) is not None:
        return Bits(pattern.carrier, fmt.width, pattern.carrier.widened(single.node))
    return None


class Total(Value):
    """A sum: its finite part, and the values added. NaNs, infinities and signs among these values decide the result;
    the sum counts as zero where all values count as zero."""

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
    """A value with another finite part and the same numbers added. It counts as zero where the old value does or a bit
    of `zeros` is set; it is a NaN where the old value is one or a bit of `nans` is set; it is infinite, with the old
    value's sign, where `infinite` is set."""

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


FLAGS = ("zero", "infinite", "NaN", "negative")  # truth values of a term that a sum reads; "negative": `negatives`
Site = tuple["Node", tuple[int, ...]]  # a node, and the values of the loop variables on which it depends
Flaw = tuple[Site, str]  # one of FLAGS of a node's value is inverted
Flaws = Mapping[Flaw, Bit]  # for each flaw, whether it occurs


class Flawed(Value):
    """A value with flags inverted; `flips`: for each of FLAGS, the bit that inverts it."""

    def __init__(self, value: Value, flips: Sequence[Bit]) -> None:
        zero, infinite, nan, negative = flips
        super().__init__(value.term, value.is_nan ^ nan, value.pattern)
        self._value, self._zero, self._infinite, self._negative = value, zero, infinite, negative

    @kept_property
    def is_zero(self) -> Bit:
        return self._value.is_zero ^ self._zero

    @kept_property
    def infinities(self) -> tuple[Bit, Bit]:
        plus, minus = self._value.infinities
        gained, kept = self._infinite & ~(plus | minus), ~self._infinite
        return (plus & kept) | (gained & ~self.sign), (minus & kept) | (gained & self.sign)

    @kept_property
    def negatives(self) -> tuple[Bit, Bit]:
        every, some = self._value.negatives
        return every ^ self._negative, some ^ self._negative

    @property
    def is_sum(self) -> bool:
        return self._value.is_sum


_NO_LEVELS: frozenset[int] = frozenset()
Shared = dict[Hashable, Value]
_OWN: dict[tuple[Any, ...], object] = {}  # the one object for each value of `Node.own`


@dataclass
class Context:
    """One evaluation: the inputs, the values of loop variables and running sums, and the signals so far.

    `patterns` and `formats` by operand (a, b, c, scale_a, scale_b); missing trailing elements are zero. `names`:
    prefixes of the nodes' signals; `titles`: names of nodes as terms of a sum, for names that are neither place nor
    prefix. `shared`: by `Node.key`, the values of nodes that depend on inputs alone; several units share them on the
    same inputs. `flaws`: the flags that are inverted.
    """

    patterns: Mapping[str, Sequence[Bits]]
    formats: Mapping[str, Format]
    names: Mapping[Node, str]
    trace: Trace = field(default_factory=Trace)
    titles: Mapping[Node, str] = field(default_factory=dict)
    shared: Shared | None = None
    flaws: Flaws = field(default_factory=dict)
    wholes: dict[Hashable, Unpacked | None] = field(default_factory=dict)  # all elements or products, by `Element.way`
    places: dict[int, int] = field(default_factory=dict)  # the loop variable's value, by level
    running: dict[int, Value] = field(default_factory=dict)
    scopes: list[dict[tuple[Node, int | None], Value]] = field(default_factory=lambda: [{}])
    opened: dict[int, int] = field(default_factory=dict)  # the scope of each level's loop
    ranges: list[int] = field(default_factory=list)  # the levels of the ranges of terms being formed, outermost first

    def value(self, node: Node, keep: int | None = None) -> Value:
        """The value of a node, formed once even if several nodes read it. `keep`: the number of bits of a sum to form,
        with one sticky bit below; None: all bits, as of a number, which is formed once for all its readers."""
        keep = None if keep is not None and node.is_number else keep
        free = node.free
        scope = self.scopes[max([self.opened[level] for level in free]) if free else 0]
        key = (node, keep)
        value = scope.get(key)
        if value is None:
            value = self._formed(node, keep)
            if self.flaws:
                value = self._flawed(value, self._site(node))
            scope[key] = value
            if self.trace.keeps:
                self.trace.visit(self._site(node), self.prefix(node), node.place(self), value.item, value)
        return value

    def _site(self, node: Node) -> Site:
        return node, tuple(self.places[level] for level in sorted(node.free))

    def _flawed(self, value: Value, site: Site) -> Value:
        """The value with the flaws at its site."""
        flips = [self.flaws.get((site, flag)) for flag in FLAGS]
        if all(flip is None for flip in flips):
            return value
        no = truth(value.sign.carrier, False)
        return Flawed(value, [no if flip is None else flip for flip in flips])

    def _formed(self, node: Node, keep: int | None) -> Value:
        if self.shared is None:
            return node.evaluate(self, keep)
        key = node.key(self)
        if key is None and not node.free and not self.trace.keeps:
            key = node, keep  # without loop variables it depends on inputs alone; no signals are kept
        if key is None:
            return node.evaluate(self, keep)
        value = self.shared.get(key)
        if value is None:
            value = self.shared[key] = node.evaluate(self, keep)
        return value

    def formed(self, key: Hashable, function: Callable[..., Made], *inputs: Any) -> Made:
        """function(*inputs) through `Carrier.formed`; a direct call where signals are kept, since the function records
        them."""
        if self.trace.keeps:
            return function(*inputs)
        return self.patterns["c"][0].carrier.formed(key, function, *inputs)

    def iteration(self, level: int, place: int) -> _Iteration:
        """A block in which the loop variable of a level is `place`; values that depend on it are formed anew."""
        return _Iteration(self, level, place)

    def pattern(self, operand: str, at: int) -> Bits:
        """The pattern of an element of an operand; zero where the element is missing."""
        patterns = self.patterns[operand]
        if at < len(patterns):
            return patterns[at]
        return constant(self.patterns["c"][0].carrier, 0, self.formats[operand].width)

    def at(self, index: Index) -> int:
        """The place of an index in the current iteration."""
        return index.at(self.places)

    def name(self, node: Node) -> str:
        """The name of a node's signals; in a range of terms, with the term's place."""
        name = self.names.get(node, node.kind)
        return name and name + "".join(f"[{self.places[level]}]" for level in self.ranges if level in node.free)

    def prefix(self, node: Node) -> str:
        """The prefix of a node's signals, where signals are kept."""
        if not self.trace.keeps:
            return ""
        name = self.name(node)
        return self.trace.prefix + (f"{name}." if name else "")

    def step(self, node: Node, item: Unpacked) -> Number:
        """The number that a node computes; its term is recorded as the signal of the node's step."""
        with self.within(self.prefix(node)):
            self.trace.term(Stage.STEP, item.term)
        return Number(item)

    def within(self, prefix: str) -> _Within:
        """A block in which the names of signals begin with `prefix`."""
        return _Within(self.trace, prefix)


class _Iteration:
    """The block of `Context.iteration`; a generator would take three times as long."""

    __slots__ = ("_context", "_level", "_place")

    def __init__(self, context: Context, level: int, place: int) -> None:
        self._context, self._level, self._place = context, level, place

    def __enter__(self) -> None:
        context, level = self._context, self._level
        assert level not in context.opened  # nested loops have different levels
        context.places[level], context.opened[level] = self._place, len(context.scopes)
        context.scopes.append({})

    def __exit__(self, *_: object) -> None:
        self._context.scopes.pop()
        del self._context.places[self._level], self._context.opened[self._level]


class _Within:
    """The block of `Context.within`."""

    __slots__ = ("_before", "_prefix", "_trace")

    def __init__(self, trace: Trace, prefix: str) -> None:
        self._trace, self._prefix, self._before = trace, prefix, trace.prefix

    def __enter__(self) -> None:
        self._trace.prefix = self._prefix

    def __exit__(self, *_: object) -> None:
        self._trace.prefix = self._before


@dataclass(frozen=True)
class Variant:
    """Another value of a parameter, as a slightly different unit might have it. `parameter`: the name of a field, or of
    a change of the whole node."""

    parameter: str
    old: object
    new: object


class Node:
    """One step of a unit: a frozen dataclass (eq=False), equal to another by structure.

    `kind` is the node's word in unit files; `source` names the publication of its arithmetic. Node is no ABC, since
    isinstance of an ABC takes a fifth more time.
    """

    kind: ClassVar[str]
    source: ClassVar[str]
    #: the exact value, with nothing rounded or cut off: the operands' sum or product, or the first operand; None:
    #: another
    without_loss: ClassVar[Literal["sum", "product", "operand"] | None] = None
    #: whether the value is infinite or NaN exactly if the operand is: `explain` then names the operand's reason
    passes_specials: ClassVar[bool] = False
    #: operands added after digests were published: left out of the node's text (`structure`) where they are None
    later: ClassVar[frozenset[str]] = frozenset()

    @kept_property
    def operands(self) -> tuple[Node, ...]:
        """The nodes whose values the node reads: the nodes in its fields, in their order."""
        every = (value if type(value) is tuple else (value,) for value in self._fields)
        return tuple(one for each in every for one in each if isinstance(one, Node))

    @abstractmethod
    def evaluate(self, context: Context, keep: int | None) -> Value:
        """The value of the node. Callers use `Context.value`, which evaluates each node once."""

    @abstractmethod
    def sentence(self) -> str:
        """The node's operation, in words that follow its name."""

    @property
    def known_from(self) -> tuple[Node, ...]:
        """The nodes whose facts `known` reads."""
        return self.operands

    def known(self, knowledge: Knowledge, operands: Sequence[Known]) -> Known:
        """The facts of the node's value, derived from the facts of each term of each node in `known_from`. A class that
        does not override this method states no facts."""
        return UNKNOWN

    def variants(self) -> Iterator[Variant]:
        """Plausible other values of the node's parameters, one at a time; some combinations are impossible."""
        return iter(())

    @classmethod
    def nodes_around(cls, node: Node) -> Iterator[Node]:
        """A node within nodes of this kind, where other units have the bare node; `identify` tries these, and their
        variants, if nothing else explains an answer."""
        return iter(())

    def varied(self, variant: Variant) -> Node:
        """The node with a variant's new value, if the parameter, or the parameter's value for an operand, has the old
        one; else the node itself. Raises ParameterError."""
        if variant.parameter not in self.field_names():
            return self
        given = getattr(self, variant.parameter)
        several = isinstance(given, tuple) and not isinstance(variant.old, tuple)
        changed = tuple(variant.new if x == variant.old else x for x in given) if several else variant.new
        if not several and given != variant.old:
            return self
        return replace(self, **{variant.parameter: changed})  # type: ignore[type-var]

    def terms(self, context: Context) -> Iterator[tuple[str, Value]]:
        """The node's terms in a sum, with names where signals are kept: the node itself, unless it is a range of
        terms."""
        named = context.trace.keeps
        name = named and (context.titles.get(self) or self.place(context) or context.name(self))
        yield name or "", context.value(self)

    def place(self, context: Context) -> str:
        """The node's place among the inputs, such as a[3], where this is the best name for it; else empty."""
        return ""

    def key(self, context: Context) -> Hashable:
        """A key for a value that depends on inputs alone, equal for nodes with the same value; else None."""
        return None

    def places_of_terms(self, context: Context) -> list[str]:
        """The places of the node's terms, in the order of `terms`."""
        return [self.place(context)]

    @property
    def count(self) -> int:
        """The number of the node's terms in a sum."""
        return 1

    @property
    def is_number(self) -> bool:
        """Whether the value is a single number, a possible factor of a product, and not a sum."""
        return False

    @property
    def never_below_zero(self) -> bool:
        """Whether the value is never below zero."""
        return False

    @property
    def is_addend(self) -> bool:
        """Whether the node is the input c."""
        return False

    @property
    def factors(self) -> tuple[Node, Node] | None:
        """The two factors of an exact product; None for other nodes."""
        return None

    @property
    def summands(self) -> tuple[Node, ...]:
        """The summands of an exact sum; for another node, the node itself."""
        return (self,)

    @property
    def bits_of_terms(self) -> tuple[int, ...]:
        """For each term, in order, the number of bits kept below the largest exponent; () if all bits are kept."""
        return ()

    @property
    def binds(self) -> int | None:
        """The level of a loop, whose variable the operands read; None if the node is no loop."""
        return None

    @kept_property
    def free(self) -> frozenset[int]:
        """The levels of the surrounding loops on whose variables the node depends."""
        levels = _NO_LEVELS
        for operand in self.operands:
            free = operand.free
            if free and free is not levels:
                levels = levels | free if levels else free
        return levels - {self.binds} if self.binds in levels else levels

    @kept_property
    def continued(self) -> frozenset[int]:
        """The levels of the surrounding loops whose results so far the node reads."""
        return frozenset().union(*(operand.continued for operand in self.operands))

    @classmethod
    @cache
    def field_names(cls) -> tuple[str, ...]:
        """The names of the operands and parameters."""
        return tuple(item.name for item in fields(cls))  # type: ignore[arg-type]

    @kept_property
    def own(self) -> object:
        """One object for all nodes of the same kind with the same parameters and the same numbers of terms in their
        operands: the same function maps their terms to their values."""
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
        """The fields alone: hashes differ between processes."""
        return {name: getattr(self, name) for name in self.field_names()}

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other) or self._hash != hash(other) or self._fields != other._fields:
            return False
        other.__dict__["_fields"] = self._fields  # shared from now on: compared once, not on every path
        return True


@dataclass(frozen=True, eq=False)
class Unary(Node):
    """A node with one operand; its place is the operand's."""

    term: Node

    def place(self, context: Context) -> str:
        return self.term.place(context)

    def varied(self, variant: Variant) -> Node:
        """As in `Node`; for a variant of the node's own kind, which leaves the node out, the operand."""
        return self.term if variant.parameter == self.kind else super().varied(variant)


def kinds(base: type[Node] = Node) -> Iterator[type[Node]]:
    """Every class of nodes."""
    for kind in base.__subclasses__():
        yield kind
        yield from kinds(kind)


def others(parameter: str, old: object, values: Iterable[object]) -> Iterator[Variant]:
    """Variants of a parameter: all values but the old one."""
    return (Variant(parameter, old, new) for new in values if new != old)


def near(value: int) -> tuple[int, ...]:
    """Integers near a value, the nearest first."""
    return value - 1, value + 1, value - 2, value + 2


@dataclass
class Knowledge:
    """The facts of the nodes of one unit. `formats`: the operands' formats, by name; `unsigned`: the operands without
    an element -0; `running`: facts of the running results of the surrounding loops, by level. `fits`: the facts hold on
    finite inputs without overflow; else on all inputs. `given`: facts of the elements of an operand besides the facts
    of its format."""

    formats: Mapping[str, Format]
    unsigned: frozenset[str] = frozenset()
    running: Mapping[int, Known] = field(default_factory=dict)
    fits: bool = False
    given: Mapping[str, Known] = field(default_factory=dict)
    _found: dict[Node, Known] = field(default_factory=dict)  # of nodes that read results so far
    _plain: dict[Node, Known] = field(default_factory=dict)  # of all others, shared by all loops

    def of(self, node: Node) -> Known:
        """The facts of a node's value."""
        if not node.free and node not in self._plain:  # operands first: nodes may be nested deeply
            for below in walk(node, self._plain):
                if not below.free:
                    self._of(below)
        return self._of(node)

    def _of(self, node: Node) -> Known:
        found = self._found if node.continued else self._plain
        if node not in found:
            found[node] = node.known(self, [known for term in node.known_from for known in self._terms(term)])
        return found[node]

    def _terms(self, item: Node) -> list[Known]:
        return [self._of(item)] * item.count

    def within(self, level: int, so_far: Known) -> Knowledge:
        """The same knowledge inside a loop at `level`; `so_far`: the facts of the loop's running result."""
        running = {**self.running, level: so_far}
        return Knowledge(self.formats, self.unsigned, running, self.fits, self.given, _plain=self._plain)


class Terminal(Node):
    """A node without operands: an input or a constant."""

    is_number = True


def walk(node: Node, without: Container[Node] = ()) -> Iterator[Node]:
    """The node and all nodes below it, each once, operands first; `without`: nodes to leave out."""
    nodes: dict[Node, None] = {}
    waiting = [(node, iter(node.operands))]
    while waiting:
        current, operands = waiting[-1]
        for operand in operands:
            if operand not in nodes and operand not in without:
                waiting.append((operand, iter(operand.operands)))
                break
        else:
            nodes[current] = None
            waiting.pop()
    return iter(nodes)


Kind = TypeVar("Kind", bound=Node)


def of_kind(node: Node, kind: type[Kind] | tuple[type[Kind], ...]) -> Iterator[Kind]:
    """The nodes of a kind among the node and all nodes below it, operands first."""
    return (part for part in walk(node) if isinstance(part, kind))


def structure(node: Node, spelled: Callable[[object], str] = repr) -> str:
    """A text that is the same for two nodes exactly if they are equal; shared nodes are written once. `spelled`: the
    function for the text of a parameter (for the stages of plans, which hold models, `identity_text`)."""
    numbers: dict[Node, int] = {}

    def text(value: object) -> str:
        if isinstance(value, Node):
            return f"#{numbers[value]}"
        if isinstance(value, range):  # equal ranges may be spelled with different ends
            return repr(range(value[0], value[-1] + 1, value.step)) if value else "range(0)"
        return f"({', '.join(map(text, value))})" if isinstance(value, tuple) else spelled(value)

    lines = []
    for part in walk(node):
        each = zip(part.field_names(), part._fields, strict=True)
        given = tuple(value for name, value in each if value is not None or name not in part.later)
        lines.append(f"#{len(numbers)} {part.kind} {text(given)}")
        numbers[part] = len(numbers)
    return "\n".join(lines)
