"""Translation of bit-vector terms to gates and to CNF (Tseitin): a SAT solver's proof can then be checked without an
SMT solver.

A bit vector is a list of literals, lowest first; a truth value is a list of one literal. Terms are visited operands
first, and literals are numbered in this order, so that a query always gives the same CNF.

The bit-blasting of solvers cannot be used: merging the lemmas into one proof (merging.py) needs the literals of every
term, which solvers do not give.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import StringIO

import pysmt.operators as op
from pysmt.environment import Environment
from pysmt.fnode import FNode

from mmaprobe.queries.certificates.gates import FALSE, TRUE, Clause, Gates

Literals = list[int]
WIDEST, WIDEST_PRODUCT, MOST_GATES = 1 << 16, 1 << 12, 1 << 25


@dataclass(frozen=True)
class Cnf:
    """A formula in conjunctive normal form."""

    variables: int
    clauses: tuple[Clause, ...]

    @property
    def text(self) -> str:
        """The formula in DIMACS format."""
        lines = [f"p cnf {self.variables} {len(self.clauses)}"]
        lines += [" ".join(map(str, clause)) + " 0" for clause in self.clauses]
        return "\n".join(lines) + "\n"


def bits_of(value: int, width: int) -> Literals:
    """The literals of a constant."""
    return [TRUE if value >> place & 1 else FALSE for place in range(width)]


class Blaster:
    """Translates terms of one environment into literals of one circuit; equal terms share their literals, equal gates
    their outputs."""

    def __init__(self) -> None:
        self.gates = Gates()
        self.memo: dict[FNode, Literals] = {}

    def bits(self, root: FNode) -> Literals:
        """The literals of a term, lowest first. Raises NotImplementedError for an unknown operator, or for terms that
        are too large."""
        stack = [root]
        while stack:
            node = stack[-1]
            if node in self.memo:
                stack.pop()
                continue
            missing = [child for child in node.args() if child not in self.memo]
            if missing:
                stack.extend(reversed(missing))
                continue
            stack.pop()
            self._check_size(node)
            self.memo[node] = self._leaf(node) if not node.args() else self._apply(node)
        return self.memo[root]

    def truth(self, term: FNode) -> int:
        """The literal of a Boolean term."""
        (literal,) = self.bits(term)
        return literal

    def cnf(self, assertions: Sequence[FNode]) -> Cnf:
        """The formula of every gate so far, with each assertion as a clause of one literal."""
        units = [(self.truth(assertion),) for assertion in assertions]
        return Cnf(self.gates.count, (*self.gates.clauses(), *dict.fromkeys(units)))

    def _check_size(self, node: FNode) -> None:
        """Raises NotImplementedError for terms larger than any of this project: their formula would take all memory."""
        is_number = node.is_bv_op() or node.is_bv_constant() or (node.is_symbol() and node.symbol_type().is_bv_type())
        wide = node.bv_width() if is_number else 1
        if wide > (WIDEST_PRODUCT if node.is_bv_mul() else WIDEST) or self.gates.count > MOST_GATES:
            raise NotImplementedError(f"bit-blasting of {wide} bits, after {self.gates.count} gates")

    def _leaf(self, node: FNode) -> Literals:
        if node.is_bool_constant():
            return [TRUE if node.constant_value() else FALSE]
        if node.is_bv_constant():
            return bits_of(node.constant_value(), node.bv_width())
        if not node.is_symbol():
            raise NotImplementedError(f"bit-blasting of {node}")
        width = 1 if node.symbol_type().is_bool_type() else node.bv_width()
        return [self.gates.fresh() for _ in range(width)]

    def _apply(self, node: FNode) -> Literals:
        kind = node.node_type()
        arguments = [self.memo[child] for child in node.args()]
        if kind == op.BV_EXTRACT:
            low, high = int(node.bv_extract_start()), int(node.bv_extract_end())
            return arguments[0][low : high + 1]
        if kind == op.BV_ZEXT:
            return arguments[0] + [FALSE] * int(node.bv_extend_step())
        if kind == op.BV_SEXT:
            return arguments[0] + arguments[0][-1:] * int(node.bv_extend_step())
        if kind not in _RULES:
            raise NotImplementedError(f"bit-blasting of {op.op_to_str(kind)}")
        return _RULES[kind](self.gates, *arguments)


_UNREAD = re.compile(r";[^\n]*|\|[^|]*\|")  # comments and names in bars, whose brackets do not count


def cnf_of_text(text: str) -> Cnf:
    """The formula of a query in SMT-LIB, read by pysmt's parser. Raises ValueError for a text that is cut short, on
    which the parser would not end, and the parser's own errors."""
    read = _UNREAD.sub(" ", text)
    if read.count("(") != read.count(")"):
        raise ValueError("a bracket is not closed")
    from pysmt.smtlib.parser import SmtLibParser

    script = SmtLibParser(Environment()).get_script(StringIO(text))
    return Blaster().cnf([command.args[0] for command in script.commands if command.name == "assert"])


def _each(rule: Callable[[Gates, int, int], int]) -> Callable[..., Literals]:
    return lambda gates, left, right: [rule(gates, a, b) for a, b in zip(left, right, strict=True)]


def _negate(gates: Gates, value: Literals) -> Literals:
    return gates.add([-bit for bit in value], [FALSE] * len(value), TRUE)


def _multiply(gates: Gates, left: Literals, right: Literals) -> Literals:
    """Multiplication by shift and add. The operand with fewer bits that are not constant zeros gives the rows, one for
    each of these bits."""
    if sum(bit != FALSE for bit in left) < sum(bit != FALSE for bit in right):
        left, right = right, left
    width = len(left)
    total: Literals = [FALSE] * width
    for place, bit in enumerate(right):
        if bit != FALSE:
            row = [gates.conjunction((bit, other)) for other in left[: width - place]]
            total = total[:place] + gates.add(total[place:], row)
    return total


def _shift(gates: Gates, value: Literals, amount: Literals, fill: int, left: bool) -> Literals:
    """A barrel shifter; an amount of the width or more gives copies of `fill`."""
    width = len(value)
    stages = (width - 1).bit_length()
    for stage in range(min(stages, len(amount))):
        step = 1 << stage
        moved = [fill] * step + value[:-step] if left else value[step:] + [fill] * step
        value = [gates.mux(amount[stage], then, stay) for then, stay in zip(moved[:width], value, strict=True)]
    beyond = gates.disjunction(amount[stages:])
    return [gates.mux(beyond, fill, bit) for bit in value]


def _equal(gates: Gates, left: Literals, right: Literals) -> int:
    return gates.conjunction([-gates.xor(a, b) for a, b in zip(left, right, strict=True)])


def _less(gates: Gates, left: Literals, right: Literals, or_equal: bool) -> int:
    """left < right, unsigned: the carry out of right - left (- 1)."""
    less = TRUE if or_equal else FALSE
    for a, b in zip(left, right, strict=True):
        less = gates.gate("maj", (-a, b, less))
    return less


def _signed_less(gates: Gates, left: Literals, right: Literals, or_equal: bool) -> int:
    return _less(gates, [*left[:-1], -left[-1]], [*right[:-1], -right[-1]], or_equal)


def _joined(arguments: Sequence[Literals]) -> Literals:
    return [literal for argument in arguments for literal in argument]


def _choose(gates: Gates, condition: Literals, then: Literals, otherwise: Literals) -> Literals:
    return [gates.mux(condition[0], a, b) for a, b in zip(then, otherwise, strict=True)]


_RULES: dict[int, Callable[..., Literals]] = {
    op.AND: lambda gates, *inputs: [gates.conjunction(_joined(inputs))],
    op.OR: lambda gates, *inputs: [gates.disjunction(_joined(inputs))],
    op.NOT: lambda gates, value: [-value[0]],
    op.IMPLIES: lambda gates, left, right: [gates.disjunction((-left[0], right[0]))],
    op.IFF: lambda gates, left, right: [-gates.xor(left[0], right[0])],
    op.EQUALS: lambda gates, left, right: [_equal(gates, left, right)],
    op.ITE: _choose,
    op.BV_ADD: lambda gates, left, right: gates.add(left, right),
    op.BV_SUB: lambda gates, left, right: gates.add(left, [-bit for bit in right], TRUE),
    op.BV_MUL: _multiply,
    op.BV_NEG: _negate,
    op.BV_NOT: lambda gates, value: [-bit for bit in value],
    op.BV_AND: _each(lambda gates, a, b: gates.conjunction((a, b))),
    op.BV_OR: _each(lambda gates, a, b: gates.disjunction((a, b))),
    op.BV_XOR: _each(lambda gates, a, b: gates.xor(a, b)),
    op.BV_LSHL: lambda gates, value, amount: _shift(gates, value, amount, FALSE, True),
    op.BV_LSHR: lambda gates, value, amount: _shift(gates, value, amount, FALSE, False),
    op.BV_ASHR: lambda gates, value, amount: _shift(gates, value, amount, value[-1], False),
    op.BV_CONCAT: lambda gates, high, low: low + high,
    op.BV_ULT: lambda gates, left, right: [_less(gates, left, right, False)],
    op.BV_ULE: lambda gates, left, right: [_less(gates, left, right, True)],
    op.BV_SLT: lambda gates, left, right: [_signed_less(gates, left, right, False)],
    op.BV_SLE: lambda gates, left, right: [_signed_less(gates, left, right, True)],
}
