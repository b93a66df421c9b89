"""Queries as SMT-LIB 2.6 text: the input of a solver's process, the output of `--smt2`, and the store's key.

The text is deterministic: terms are numbered in the order of a depth-first walk from the assertions, and the inputs
keep their names. pysmt's own printer keeps no such order, and fails on terms deeper than Python's stack.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pysmt.operators as op
from pysmt.fnode import FNode

_OPERATORS = {
    op.AND: "and",
    op.OR: "or",
    op.NOT: "not",
    op.IMPLIES: "=>",
    op.IFF: "=",
    op.EQUALS: "=",
    op.ITE: "ite",
    op.BV_ADD: "bvadd",
    op.BV_SUB: "bvsub",
    op.BV_MUL: "bvmul",
    op.BV_NEG: "bvneg",
    op.BV_NOT: "bvnot",
    op.BV_AND: "bvand",
    op.BV_OR: "bvor",
    op.BV_XOR: "bvxor",
    op.BV_LSHL: "bvshl",
    op.BV_LSHR: "bvlshr",
    op.BV_ASHR: "bvashr",
    op.BV_CONCAT: "concat",
    op.BV_ULT: "bvult",
    op.BV_ULE: "bvule",
    op.BV_SLT: "bvslt",
    op.BV_SLE: "bvsle",
}
_TRUTHS = frozenset({op.AND, op.OR, op.NOT, op.IMPLIES, op.IFF, op.EQUALS, op.BV_ULT, op.BV_ULE, op.BV_SLT, op.BV_SLE})
_DEPTH = 12  # a term nested deeper gets a name of its own, for parsers that recurse


@dataclass(frozen=True)
class Query:
    """The question whether an assignment to `inputs`, and to the symbols that the assertions define, meets every
    assertion.

    `inputs` are bit-vector symbols, in the order in which they are declared and their values asked for. `definitions`
    are names for terms, which only the epilogue reads. `logic` and `epilogue` (raw SMT-LIB after the assertions) are
    for checks against the solvers' floating-point theory.
    """

    inputs: tuple[FNode, ...]
    assertions: tuple[FNode, ...]
    definitions: tuple[tuple[str, FNode], ...] = ()
    epilogue: str = ""
    logic: str = "QF_BV"

    @cached_property
    def text(self) -> str:
        return _Printer(self).text()


class _Printer:
    def __init__(self, query: Query) -> None:
        self.query = query
        self.lines: list[str] = []
        # keyed by identity, since each term exists once, and pysmt's own hash is slow
        self.names: dict[int, tuple[str, int]] = {}  # text and nesting depth
        self.uses: dict[int, int] = {}
        self.symbols: list[FNode] = []

    def text(self) -> str:
        query = self.query
        roots = [*query.assertions, *(term for _, term in query.definitions)]
        self._count(roots)
        self._declare()
        asserted = [self._term(root) for root in query.assertions]
        named = [(name, self._term(term), self._sort(term)) for name, term in query.definitions]
        self.lines += [f"(define-fun {name} () {sort} {text})" for name, text, sort in named]
        self.lines += [f"(assert {text})" for text in asserted]
        wanted = " ".join(symbol.symbol_name() for symbol in query.inputs)
        head = [f"(set-logic {query.logic})", "(set-option :produce-models true)"]
        tail = [query.epilogue] if query.epilogue else []
        tail += ["(check-sat)", f"(get-value ({wanted}))"] if wanted else ["(check-sat)"]
        return "\n".join([*head, *self.lines, *tail, ""])

    def _count(self, roots: Sequence[FNode]) -> None:
        stack, known = list(roots), self.uses
        while stack:
            node = stack.pop()
            uses = known[id(node)] = known.get(id(node), 0) + 1
            if uses == 1:
                kind, args, _ = node._content  # pysmt's accessors are slow
                stack.extend(args)
                if kind == op.SYMBOL:
                    self.symbols.append(node)

    def _declare(self) -> None:
        symbols = set(self.symbols) - set(self.query.inputs)
        ordered = [*self.query.inputs, *sorted(symbols, key=lambda symbol: symbol.symbol_name())]
        for symbol in ordered:
            self.lines.append(f"(declare-const {symbol.symbol_name()} {self._sort(symbol)})")

    def _sort(self, node: FNode) -> str:
        if _is_truth(node):
            return "Bool"
        return f"(_ BitVec {node.bv_width()})"

    def _term(self, root: FNode) -> str:
        stack, names = [root], self.names
        while stack:
            node = stack[-1]
            if id(node) in names:
                stack.pop()
                continue
            args = node._content.args
            missing = [child for child in args if id(child) not in names]
            if missing:
                missing.reverse()
                stack += missing
                continue
            stack.pop()
            text, depth = self._applied(node)
            if args and (depth >= _DEPTH or self.uses[id(node)] > 1):
                name = f"t{len(names)}"
                self.lines.append(f"(define-fun {name} () {self._sort(node)} {text})")
                text, depth = name, 0
            names[id(node)] = (text, depth)
        return names[id(root)][0]

    def _applied(self, node: FNode) -> tuple[str, int]:
        kind, args, _ = node._content
        if kind == op.SYMBOL:
            return node.symbol_name(), 0
        if kind == op.BV_CONSTANT:
            return f"#b{node.constant_value():0{node.bv_width()}b}", 0
        if kind == op.BOOL_CONSTANT:
            return str(node.constant_value()).lower(), 0
        texts, depths = zip(*[self.names[id(child)] for child in args], strict=True)
        depth, joined = 1 + max(depths), " ".join(texts)
        if kind == op.BV_EXTRACT:
            return f"((_ extract {node.bv_extract_end()} {node.bv_extract_start()}) {joined})", depth
        if kind in (op.BV_ZEXT, op.BV_SEXT):
            name = "zero_extend" if kind == op.BV_ZEXT else "sign_extend"
            return f"((_ {name} {node.bv_extend_step()}) {joined})", depth
        return f"({_OPERATORS[kind]} {joined})", depth


def _is_truth(node: FNode) -> bool:
    while node.node_type() == op.ITE:
        node = node.arg(1)
    if node.is_symbol():
        return bool(node.symbol_type().is_bool_type())
    return node.node_type() in _TRUTHS or node.is_bool_constant()


_VALUE = re.compile(r"\(\s*([^\s()]+)\s+#([bx])([0-9a-fA-F]+)\s*\)")


def parse_values(text: str) -> dict[str, int]:
    """The values of a `get-value` answer by name, from binary and hexadecimal literals."""
    return {name: int(digits, 2 if base == "b" else 16) for name, base, digits in _VALUE.findall(text)}
