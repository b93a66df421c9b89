"""The symbolic carrier: operations become pysmt terms of QF_BV."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import count
from types import MappingProxyType
from typing import Literal

from mmaprobe.smtmodel.base.errors import OutOfTimeError
from mmaprobe.smtmodel.base.interrupts import check_clock
from mmaprobe.smtmodel.carriers.algebra import Bit, Bits, select
from mmaprobe.smtmodel.carriers.carrier import Carrier

# pysmt loads these for algebraic numbers and fractions, which no query has; they take most of its time and memory
_UNUSED = [name for name in ("z3", "gmpy2") if name not in sys.modules]
sys.modules.update(dict.fromkeys(_UNUSED))  # type: ignore[arg-type]
try:
    import pysmt.operators as op
    from pysmt.environment import Environment
    from pysmt.fnode import FNode, FNodeContent
    from pysmt.formula import FormulaManager
    from pysmt.typing import BOOL, BVType, PySMTType
finally:
    for _name in _UNUSED:
        del sys.modules[_name]

Maximum = Literal["select", "relational"]


_TRUTHS = {*op.BOOL_CONNECTIVES, op.BOOL_CONSTANT, op.EQUALS, op.BV_ULT, op.BV_ULE, op.BV_SLT, op.BV_SLE}
_OTHERS = {op.FUNCTION, *op.QUANTIFIERS}  # the kinds of terms that no query of mmaprobe has
_VECTORS = {op.BV_CONSTANT, *op.BV_OPERATORS} - _TRUTHS


class _Term(FNode):  # type: ignore[misc]
    """A term that computes its width and type in few steps, since every operation needs these, and caches its symbols.
    pysmt walks over all subterms for these, and keeps the symbols of every term for ever."""

    _symbols: frozenset[FNode] | None = None  # set by the first `get_free_variables`, with those of all subterms

    def bv_width(self) -> int:
        node: FNode = self
        kind, args, payload = node._content
        while kind == op.ITE:
            node = args[1]
            kind, args, payload = node._content
        if kind == op.SYMBOL:
            return int(payload[1].width)
        return int(payload[1] if kind == op.BV_CONSTANT else payload[0])

    def get_type(self) -> PySMTType:
        node: FNode = self
        while node.node_type() == op.ITE:
            node = node.arg(1)
        if node.node_type() in _TRUTHS:
            return BOOL
        return BVType(node.bv_width()) if node.node_type() in _VECTORS else FNode.get_type(node)

    def get_free_variables(self) -> frozenset[FNode]:
        waiting: list[_Term] = [self]
        while waiting:
            node = waiting[-1]
            if node._symbols is not None:
                waiting.pop()
            elif node.node_type() in _OTHERS:
                node._symbols = FNode.get_free_variables(node)
            elif missing := [arg for arg in node.args() if arg._symbols is None]:
                waiting += missing
            else:
                node._symbols = _united(node)
        assert self._symbols is not None
        return self._symbols


def _united(node: _Term) -> frozenset[FNode]:
    """The symbols of the operands of a term, or the term itself if it is a symbol. If one operand has all symbols, its
    set is shared."""
    if node.is_symbol():
        return frozenset((node,))
    symbols = frozenset[FNode]()
    for arg in node.args():
        symbols_of_arg: frozenset[FNode] = arg._symbols
        if not symbols_of_arg <= symbols:
            symbols = symbols_of_arg if symbols <= symbols_of_arg else symbols | symbols_of_arg
    return symbols


class _Terms(FormulaManager):  # type: ignore[misc]
    """Builds each term once. A new term raises OutOfTimeError after the deadline (of time.monotonic), and
    KeyboardInterrupt in a thread whose work is unwanted. Widths are not checked here, for which pysmt would walk over
    every term: the algebra checks widths, a test checks whole queries, and every solver checks the text that it
    reads."""

    deadline: float | None = None

    def create_node(self, node_type: int, args: tuple[FNode, ...], payload: object = None) -> FNode:
        # a tuple equals the key, an FNodeContent, and is quicker to make
        term = self.formulae.get((node_type, args, payload))
        if term is None:
            if self.deadline is not None and time.monotonic() > self.deadline:
                raise OutOfTimeError("the time ran out while terms were built")
            check_clock()
            content = FNodeContent(node_type, args, payload)
            term = self.formulae[content] = _Term(content, self._next_free_id)
            self._next_free_id += 1
        return term


class Terms(Environment):  # type: ignore[misc]
    """pysmt's tables of terms. pysmt's objects that walk over terms are made at their first use, since making all of
    these takes longer than building most queries."""

    FormulaManagerClass = _Terms
    SimplifierClass = SubstituterClass = HRSerializerClass = QuantifierOracleClass = TheoryOracleClass = staticmethod(
        lambda environment: None
    )
    FreeVarsOracleClass = SizeOracleClass = AtomsOracleClass = TypesOracleClass = SimplifierClass
    simplifier = cached_property(Environment.SimplifierClass)
    substituter = cached_property(Environment.SubstituterClass)
    serializer = cached_property(Environment.HRSerializerClass)
    qfo = cached_property(Environment.QuantifierOracleClass)
    theoryo = cached_property(Environment.TheoryOracleClass)
    fvo = cached_property(Environment.FreeVarsOracleClass)
    sizeo = cached_property(Environment.SizeOracleClass)
    ao = cached_property(Environment.AtomsOracleClass)
    typeso = cached_property(Environment.TypesOracleClass)


_BINARY = {
    "add": op.BV_ADD,
    "sub": op.BV_SUB,
    "mul": op.BV_MUL,
    "and": op.BV_AND,
    "or": op.BV_OR,
    "xor": op.BV_XOR,
}
_SHIFT = {"shl": op.BV_LSHL, "lshr": op.BV_LSHR, "ashr": op.BV_ASHR}
_COMPARE = {"eq": op.EQUALS, "ult": op.BV_ULT, "ule": op.BV_ULE, "slt": op.BV_SLT, "sle": op.BV_SLE}


class TermCarrier(Carrier):
    """Lowers operations to pysmt terms in `environment` (by default a new one).

    `maximum`, `signs_apart` and `in_rows` choose between lowerings with the same meaning (tests prove these equal).
    `maximum`: "select", a balanced tree of comparisons; "relational", a fresh symbol m with m >= every value and
    m = some value, for staged proofs: the constraints that define m are collected in `definitions` and belong in every
    query. `signs_apart`: positive and negative magnitudes are summed separately, and the two sums are subtracted, for
    proofs of sign symmetry. `in_rows`: a product is the sum of rows, one for each bit of the right factor, as in a
    multiplier. `prefix`: the beginning of the names of all symbols.
    """

    def __init__(
        self,
        environment: Environment | None = None,
        maximum: Maximum = "select",
        prefix: str = "",
        signs_apart: bool = False,
        in_rows: bool = False,
    ) -> None:
        self.environment = environment or Terms()
        self.manager = self.environment.formula_manager
        self.maximum, self.signs_apart, self.in_rows = maximum, signs_apart, in_rows
        self.prefix = prefix
        self.addends: list[FNode] = []  # the signed terms of sums, further cut-points of proofs besides the signals
        self.undefined_words: list[FNode] = []  # free symbols besides the inputs
        self._maxima: dict[FNode, frozenset[FNode]] = {}
        #: symbol of a relational maximum -> the terms of the maximum, which contain neither this nor a later symbol
        self.maxima: Mapping[FNode, frozenset[FNode]] = MappingProxyType(self._maxima)
        self._known: dict[frozenset[FNode], FNode] = {}
        self._make = self.manager.create_node

    @contextmanager
    def until(self, deadline: float | None) -> Iterator[None]:
        """A block in which a new term after the deadline (of time.monotonic; None: no deadline) raises
        OutOfTimeError."""
        before, self.manager.deadline = self.manager.deadline, deadline
        try:
            yield
        finally:
            self.manager.deadline = before

    @property
    def definitions(self) -> list[FNode]:
        """The constraints that define the symbols of relational maxima."""
        return [self.define_maximum(symbol, sorted(v, key=FNode.node_id)) for symbol, v in self.maxima.items()]

    def define_maximum(self, symbol: FNode, terms: Sequence[FNode]) -> FNode:
        """The constraint that a symbol is the largest of some terms as unsigned numbers."""
        bounds = [self.manager.BVULE(term, symbol) for term in terms]
        reached = self.manager.Or([self.manager.Equals(term, symbol) for term in terms])
        return self.manager.And([*bounds, reached])

    def symbol(self, name: str, width: int) -> Bits:
        """A free variable of `width` bits."""
        return Bits(self, width, self.manager.Symbol(self.prefix + name, BVType(width)))

    def constant(self, value: int, width: int) -> FNode:
        return self.manager.create_node(op.BV_CONSTANT, (), (value, width))

    def truth(self, value: bool) -> FNode:
        return self.manager.Bool(value)

    def binary(self, operation: str, left: FNode, right: FNode, width: int) -> FNode:
        if operation == "mul" and self.in_rows:
            return self._in_rows(left, right, width)
        if operation == "mul" and right.node_id() < left.node_id():
            left, right = right, left  # the two orders of a product are one term
        return self._make(_BINARY[operation], (left, right), (width,))

    def _in_rows(self, left: FNode, right: FNode, width: int) -> FNode:
        """The product of the factors without their zero extensions, as a sum of rows. The sum of the first k rows, of n
        bits each, is below 2^(n + k). Its term has n + k bits, so a sum of rows never wraps, whatever a proof
        substitutes for the term."""
        one, other = (term.arg(0) if term.is_bv_zext() else term for term in (left, right))
        wide = self._vector(one, one.bv_width())
        total = Bits(self, wide.width, value=0)
        for place, bit in enumerate(map(self._vector(other, other.bv_width()).bit, range(other.bv_width()))):
            row = select(bit, wide.pad(place), Bits(self, wide.width + place, value=0))
            total = total.zext(wide.width + place + 1) + row.zext(wide.width + place + 1) if place else row
        return (total.zext(width) if total.width < width else total.truncate(width)).node

    def invert(self, value: FNode, width: int) -> FNode:
        return self._make(op.BV_NOT, (value,), (width,))

    def negate(self, value: FNode, width: int) -> FNode:
        return self._make(op.BV_NEG, (value,), (width,))

    def shift(self, operation: str, value: FNode, amount: FNode, width: int) -> FNode:
        return self._make(_SHIFT[operation], (value, amount), (width,))

    def shift_constant(self, operation: str, value: FNode, amount: int, width: int) -> FNode:
        # wiring rather than a barrel shifter
        if operation == "shl":
            kept = self._make(op.BV_EXTRACT, (value,), (width - amount, 0, width - amount - 1))
            return self._make(op.BV_CONCAT, (kept, self.constant(0, amount)), (width,))
        kept = self._make(op.BV_EXTRACT, (value,), (width - amount, amount, width - 1))
        return self._make(op.BV_ZEXT if operation == "lshr" else op.BV_SEXT, (kept,), (width, amount))

    def extract(self, value: FNode, high: int, low: int, width: int) -> FNode:
        while value.is_bv_concat() or value.is_bv_extract():
            # an extract of one part of a concatenation is a term of this part alone
            if value.is_bv_extract():
                start = value.bv_extract_start()
                value, low, high = value.arg(0), low + start, high + start
                continue
            split = value.arg(1).bv_width()
            if low >= split:
                value, low, high = value.arg(0), low - split, high - split
            elif high < split:
                value = value.arg(1)
            else:
                break
        if high - low + 1 == value.bv_width():
            return value
        return self._make(op.BV_EXTRACT, (value,), (high - low + 1, low, high))

    def concat(self, high: FNode, low: FNode, high_width: int, low_width: int) -> FNode:
        return self._make(op.BV_CONCAT, (high, low), (high_width + low_width,))

    def zext(self, value: FNode, width: int, to: int) -> FNode:
        return self._make(op.BV_ZEXT, (value,), (to, to - width))

    def sext(self, value: FNode, width: int, to: int) -> FNode:
        return self._make(op.BV_SEXT, (value,), (to, to - width))

    def compare(self, operation: str, left: FNode, right: FNode, width: int) -> FNode:
        return self._make(_COMPARE[operation], (left, right))

    def select(self, condition: FNode, then: FNode, otherwise: FNode, width: int) -> FNode:
        if condition.is_not():
            return self._make(op.ITE, (condition.arg(0), otherwise, then))
        return self._make(op.ITE, (condition, then, otherwise))

    def logic(self, operation: str, left: FNode, right: FNode) -> FNode:
        if operation == "and":
            return self.manager.And(left, right)
        if operation == "or":
            return self.manager.Or(left, right)
        flips = left.is_not() ^ right.is_not()
        same = self.manager.Iff(*(side.arg(0) if side.is_not() else side for side in (left, right)))
        return same if flips else self.manager.Not(same)

    def logic_not(self, value: FNode) -> FNode:
        return self.manager.Not(value)

    def test_bit(self, value: FNode, index: int, width: int) -> FNode:
        bit = self.extract(value, index, index, width)
        if bit.is_ite() and bit.arg(1).is_bv_constant() and bit.arg(2).is_bv_constant():
            if bit.arg(1) == bit.arg(2):
                return self.truth(bool(bit.arg(1).constant_value()))
            return bit.arg(0) if bit.arg(1).constant_value() else self.logic_not(bit.arg(0))
        return self.manager.Equals(bit, self.constant(1, 1))

    def leading_zeros(self, value: FNode, width: int, result_width: int) -> FNode:
        """The count of leading zeros, in logarithmic depth: the count of the upper half, or of the lower half if the
        upper half is zero. The vector is extended to a power of two by a one, which stops the count at `width`, and
        zeros."""
        filler = (1 << result_width) - width
        padded = self.manager.BVConcat(value, self.constant(1 << (filler - 1), filler))
        return self._leading_zeros(padded, 1 << result_width)

    def _leading_zeros(self, value: FNode, width: int) -> FNode:
        """The leading zeros of a nonzero vector whose width is a power of two, at least 2."""
        half = width // 2
        high, low = self.extract(value, width - 1, half, width), self.extract(value, half - 1, 0, width)
        empty = self.compare("eq", high, self.constant(0, half), half)
        upper_bit = self.select(empty, self.constant(1, 1), self.constant(0, 1), 1)
        if half == 1:
            return upper_bit
        counts = [self._leading_zeros(part, half) for part in (high, low)]
        rest = self.select(empty, counts[1], counts[0], half.bit_length() - 1)
        return self.manager.BVConcat(upper_bit, rest)

    def max_of(self, values: Sequence[FNode], width: int) -> FNode:
        if self.maximum == "relational":
            return self._relational_max(values, width)
        return super().max_of(values, width)

    def _relational_max(self, values: Sequence[FNode], width: int) -> FNode:
        key = frozenset(values)
        if key not in self._known:  # one symbol for the same terms in any order
            symbol = self._new_symbol("maximum", len(self._maxima), width)
            self._known[key], self._maxima[symbol] = symbol, key
        return self._known[key]

    def undefined(self, width: int) -> FNode:
        self.undefined_words.append(self._new_symbol("undefined", len(self.undefined_words), width))
        return self.undefined_words[-1]

    def _new_symbol(self, kind: str, number: int, width: int) -> FNode:
        """A symbol with an unused name."""
        names = (f"{self.prefix}{kind}{place}" for place in count(number))
        return self.manager.Symbol(next(name for name in names if name not in self.manager.symbols), BVType(width))

    def sum_of(self, signs: Sequence[FNode], magnitudes: Sequence[FNode], widths: Sequence[int], width: int) -> FNode:
        terms = [
            (self._bit(sign), self._vector(*vector)) for sign, *vector in zip(signs, magnitudes, widths, strict=True)
        ]
        if self.signs_apart:
            return self._signs_apart(terms, width)
        total = Bits(self, width, value=0)
        for sign, magnitude in terms:
            mask = sign.bits(1).sext(width)
            addend = (magnitude.zext(width) ^ mask) + sign.bits(width)
            self.addends.append(addend.node)
            total = total + addend
        return total.node

    def _bit(self, node: FNode) -> Bit:
        """A truth node as a value of the algebra, a constant if the node is a constant."""
        return Bit(self, value=node.is_true()) if node.is_bool_constant() else Bit(self, node)

    def _vector(self, node: FNode, width: int) -> Bits:
        """A node as a vector of the algebra, a constant if the node is a constant."""
        return Bits(self, width, value=node.constant_value()) if node.is_bv_constant() else Bits(self, width, node)

    def _signs_apart(self, terms: Sequence[tuple[Bit, Bits]], width: int) -> FNode:
        largest = sum((1 << magnitude.width) - 1 for _, magnitude in terms).bit_length()
        # two sums that cannot wrap have fewer bits than the result; their difference is never the result's least number
        room = max(largest, 1) if largest < width else width
        zero = Bits(self, room, value=0)
        sides = [zero, zero]
        for sign, magnitude in terms:
            wide = magnitude.zext(room)
            sides = [sides[0] + select(sign, zero, wide), sides[1] + select(sign, wide, zero)]
        self.addends += [side.node for side in sides]
        return (sides[0].zext(width) - sides[1].zext(width)).node
