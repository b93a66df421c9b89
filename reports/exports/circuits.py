"""A model as a circuit for model checkers: BTOR2, over the words of the term carrier; and AIGER, over the gates into
which certificates translate these words.

Sources: Niemetz, Preiner, Wolf and Biere, "BTOR2, BtorMC and Boolector 3.0", CAV 2018; Biere, Heljanko and Wieringa,
"AIGER 1.9 and Beyond", 2011. Ports are those of `--format verilog`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pysmt.operators as op
from pysmt.fnode import FNode

from mmaprobe.queries.certificates.bitblast import Blaster
from mmaprobe.queries.certificates.gates import TRUE, Gates
from mmaprobe.reports.exports.export import Export
from mmaprobe.reports.exports.verilog import about, evaluated, ports_of, signal_names
from mmaprobe.smtmodel.base.escapes import text_bytes
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.carriers.terms import TermCarrier
from mmaprobe.smtmodel.evaluate.model import Model

RESULT = "d"
_NAMES = {
    op.AND: "and", op.OR: "or", op.NOT: "not", op.IMPLIES: "implies", op.IFF: "iff", op.EQUALS: "eq", op.ITE: "ite",
    op.BV_ADD: "add", op.BV_SUB: "sub", op.BV_MUL: "mul", op.BV_NEG: "neg", op.BV_NOT: "not", op.BV_AND: "and",
    op.BV_OR: "or", op.BV_XOR: "xor", op.BV_LSHL: "sll", op.BV_LSHR: "srl", op.BV_ASHR: "sra", op.BV_CONCAT: "concat",
    op.BV_ULT: "ult", op.BV_ULE: "ulte", op.BV_SLT: "slt", op.BV_SLE: "slte", op.BV_COMP: "eq",
}  # fmt: skip


class Terms:
    """A model evaluated on terms: for each port a symbol, as wide as its elements together; and the word of d."""

    def __init__(self, model: Model) -> None:
        self.model, self.carrier = model, TermCarrier()
        self.ports = {name: self.carrier.symbol(name, fmt.width * count) for name, fmt, count in ports_of(model)}
        elements = [word.extract(low + fmt.width - 1, low) if count > 1 else word
                    for (name, fmt, count), word in zip(ports_of(model), self.ports.values(), strict=True)
                    for low in range(0, fmt.width * count, fmt.width)]  # fmt: skip
        _, evaluation = evaluated(model, elements)
        self.d: FNode = evaluation.d.node
        nodes = ((str(signal.name), signal.value.node) for signal in evaluation.trace)
        named = ((name, node) for name, node in nodes if not (node.is_symbol() or node.is_constant()))
        self.names: dict[FNode, str] = signal_names(named, {*self.ports, RESULT})

    @property
    def order(self) -> Iterator[FNode]:
        """The terms below d, operands first, each once."""
        seen, waiting = set[FNode](), [(self.d, False)]
        while waiting:
            term, done = waiting.pop()
            if done:
                yield term
            elif term not in seen:
                seen.add(term)
                waiting += [(term, True), *((below, False) for below in reversed(term.args()))]


def btor2(model: Model) -> Export:
    """The text of a model in BTOR2: the inputs, a line for each operation, with a signal's name if it is one, and the
    output d."""
    lines, terms = _Lines(), Terms(model)
    for name, word in terms.ports.items():
        lines.of[word.node] = lines.add(f"input {lines.sort(word.width)} {name}")
    for term in terms.order:
        if term not in lines.of:
            lines.of[term] = lines.term(term, terms.names.get(term, ""))
    lines.add(f"output {lines.of[terms.d]} {RESULT}")
    head = [f"; {line}".rstrip() for line in about(model)]
    return Export(text_bytes("\n".join([*head, *lines.text, ""])), about=f"BTOR2, {counted(len(lines.text), 'line')}")


class _Lines:
    """Lines of BTOR2, and for each term the number of its line."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.sorts: dict[int, int] = {}
        self.of: dict[FNode, int] = {}

    def add(self, line: str) -> int:
        self.text.append(f"{len(self.text) + 1} {line}")
        return len(self.text)

    def sort(self, width: int) -> int:
        if width not in self.sorts:
            self.sorts[width] = self.add(f"sort bitvec {width}")
        return self.sorts[width]

    def term(self, term: FNode, name: str) -> int:
        """The number of a term's line; its operands have lines already. A truth value is one bit."""
        width = term.bv_width() if term.is_bv_op() or term.is_bv_constant() or _is_word(term) else 1
        sort, given = self.sort(width), [self.of[below] for below in term.args()]
        kind, end = term.node_type(), f" {name}" if name else ""
        if term.is_constant():
            return self.add(f"constd {sort} {int(term.constant_value())}")
        if kind == op.BV_EXTRACT:
            low, high = int(term.bv_extract_start()), int(term.bv_extract_end())
            return self.add(f"slice {sort} {given[0]} {high} {low}{end}")
        if kind in (op.BV_ZEXT, op.BV_SEXT):
            word = "uext" if kind == op.BV_ZEXT else "sext"
            return self.add(f"{word} {sort} {given[0]} {int(term.bv_extend_step())}{end}")
        if kind not in _NAMES:
            raise NotImplementedError(f"BTOR2 for {op.op_to_str(kind)}")
        while len(given) > 3 or (len(given) == 3 and kind != op.ITE):  # several truth values, two at a time
            given = [self.add(f"{_NAMES[kind]} {sort} {given[0]} {given[1]}"), *given[2:]]
        return self.add(f"{_NAMES[kind]} {sort} {' '.join(map(str, given))}{end}")


def _is_word(term: FNode) -> bool:
    return term.is_ite() and not term.get_type().is_bool_type()


def aiger(model: Model) -> Export:
    """A model in AIGER's binary format: AND gates and inverters, with a name for each bit of a port."""
    terms, blaster = Terms(model), Blaster()
    inputs = {name: blaster.bits(word.node) for name, word in terms.ports.items()}
    outputs = blaster.bits(terms.d)
    graph = _Ands(blaster.gates, [bit for bits in inputs.values() for bit in bits])
    results = [graph.literal(bit) for bit in outputs]
    count, ands = len(graph.inputs), graph.ands
    lines = [f"aig {count + len(ands)} {count} 0 {len(results)} {len(ands)}", *map(str, results)]
    content = text_bytes("\n".join([*lines, ""]))
    content += b"".join(_difference(2 * (count + 1 + place) - left) + _difference(left - right)
                        for place, (left, right) in enumerate(ands))  # fmt: skip
    bits = [f"{name}[{place}]" for name, word in inputs.items() for place in range(len(word))]
    symbols = [f"i{place} {name}" for place, name in enumerate(bits)]
    symbols += [f"o{place} {RESULT}[{place}]" for place in range(len(results))]
    content += text_bytes("\n".join([*symbols, "c", *about(model), ""]))
    return Export(content, about=f"AIGER, {counted(len(ands), 'gate')}")


class _Ands:
    """A circuit of AND gates over AIGER's literals: a literal is twice a variable's number, plus 1 for its
    complement."""

    def __init__(self, gates: Gates, inputs: list[int]) -> None:
        self.gates, self.inputs = gates, inputs
        self.known = {TRUE: 1, **{bit: 2 * place for place, bit in enumerate(inputs, start=1)}}
        self.ands: list[tuple[int, int]] = []
        self.table: dict[tuple[int, int], int] = {}

    def literal(self, wanted: int) -> int:
        """The literal of the output of a gate, after the literals of the gates below it."""
        waiting = [abs(wanted)]
        while waiting:
            variable = waiting[-1]
            if variable in self.known:
                waiting.pop()
                continue
            kind, inputs = self.gates.definitions[variable]
            if missing := [abs(bit) for bit in inputs if abs(bit) not in self.known]:
                waiting += missing
                continue
            waiting.pop()
            self.known[variable] = self._gate(kind, [self._of(bit) for bit in inputs])
        return self._of(wanted)

    def _of(self, bit: int) -> int:
        return self.known[abs(bit)] ^ int(bit < 0)

    def _gate(self, kind: str, inputs: list[int]) -> int:
        first, *rest = inputs
        if kind == "and":
            for other in rest:
                first = self._and(first, other)
            return first
        if kind == "xor":
            return self._or(self._and(first, rest[0] ^ 1), self._and(first ^ 1, rest[0]))
        if kind == "mux":
            return self._or(self._and(first, rest[0]), self._and(first ^ 1, rest[1]))
        x, y, z = inputs
        return self._or(self._and(x, y), self._and(z, self._or(x, y)))

    def _or(self, left: int, right: int) -> int:
        return self._and(left ^ 1, right ^ 1) ^ 1

    def _and(self, left: int, right: int) -> int:
        left, right = max(left, right), min(left, right)
        if right == 0 or left == right ^ 1:
            return 0
        if right == 1 or left == right:
            return left
        if (left, right) not in self.table:
            self.ands.append((left, right))
            self.table[left, right] = 2 * (len(self.inputs) + len(self.ands))
        return self.table[left, right]


def _difference(number: int) -> bytes:
    """A number in groups of seven bits, the lowest first, a byte each; all bytes but the last have the highest bit
    set."""
    found = bytearray()
    while number >= 128:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])
