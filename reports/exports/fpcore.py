"""A model as an FPCore 2.0 expression: exact sums of reals, each rounded where the unit rounds."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.escapes import text_bytes
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import (
    Constant,
    Each,
    Element,
    ExactSum,
    Literal,
    Node,
    Product,
    Repeat,
    Round,
    Running,
    Scale,
)
from mmaprobe.smtmodel.nodes.round import Rounding

MODES = {
    "nearest_even": "nearestEven",
    "nearest_away": "nearestAway",
    "toward_zero": "toZero",
    "up": "toPositive",
    "down": "toNegative",
}
NAMES = {"f16": "binary16", "f32": "binary32", "f64": "binary64"}
NOTE = "the sign of a zero and the pattern of a NaN are not said: FPCore's reals have neither"


def exported(model: Model) -> tuple[bytes, str, str]:
    """The text of a model's core; what it does not say; and what it is."""
    text = core(model)
    return text_bytes(text), NOTE, f"FPCore, {counted(text.count('cast'), 'rounding')}; {NOTE}"


def core(model: Model) -> str:
    """The FPCore of a model. Raises ParameterError for arithmetic that it has no words for: aligned sums, rounding to
    odd, flushed subnormals, formats that are not IEEE 754's."""
    if model.scale is not None or model.unit.more:
        raise _other("operands beside a, b and c")
    writer = _Writer()
    result = writer.text(model.unit.result, {}, {})
    arguments = [
        _argument(f"{side}{k}", fmt) for side, fmt in (("a", model.a), ("b", model.b)) for k in range(model.length)
    ]
    arguments += [_argument("c", model.c)] if model.addend else []
    lines = [f"(FPCore ({' '.join(arguments)})", f'  :name "{model.reference}"', "  :precision real"]
    if not writer.bound:
        return "\n".join([*lines, f"  {result})", ""])
    bound = [f"({name} {text})" for name, text in writer.bound]
    return "\n".join([*lines, "  (let* (" + "\n         ".join(bound) + ")", f"    {result}))", ""])


@dataclass
class _Writer:
    """`bound`: the names of results on the way with their expressions, in order."""

    bound: list[tuple[str, str]] = field(default_factory=list)

    def text(self, node: Node, places: dict[int, int], running: dict[int, str]) -> str:
        """A node as an expression. `places`: the loop variables; `running`: the names of results so far, by level."""
        if isinstance(node, Element):
            if node.subnormals != "keep":
                raise _other("subnormal inputs that are read as zero")
            return node.operand if node.index is None else f"{node.operand}{node.index.at(places)}"
        if isinstance(node, Constant):
            return "0"
        if isinstance(node, Literal):
            return _number(exact_value(node.pattern, node.format))
        if isinstance(node, Running):
            return running[node.level]
        if isinstance(node, Product) and node.limit is None:
            return f"(* {self.text(node.left, places, running)} {self.text(node.right, places, running)})"
        if isinstance(node, Scale):
            one, two, three = (self.text(part, places, running) for part in node.operands)
            return f"(* {one} (* {two} {three}))"
        if isinstance(node, ExactSum):
            return _sum([text for item in node.items for text in self._terms(item, places, running)])
        if isinstance(node, Round):
            return _rounded(node.rounding, self.text(node.term, places, running))
        if isinstance(node, Repeat):
            so_far = self.text(node.start, places, running)
            for place in node.places:
                text = self.text(node.body, {**places, node.level: place}, {**running, node.level: so_far})
                so_far = f"s{len(self.bound)}"
                self.bound.append((so_far, text))
            return so_far
        raise _other(f"a node {node.kind}")

    def _terms(self, node: Node, places: dict[int, int], running: dict[int, str]) -> list[str]:
        if not isinstance(node, Each):
            return [self.text(node, places, running)]
        return [self.text(node.body, {**places, node.level: place}, running) for place in node.places]


def _other(what: str) -> ParameterError:
    return ParameterError("--format", f"fpcore has no words for {what}")


def _sum(terms: list[str]) -> str:
    *rest, last = terms
    for term in reversed(rest):
        last = f"(+ {term} {last})"
    return last


def _number(value: Fraction | str) -> str:
    if isinstance(value, str):
        raise _other(f"the number {value}")
    places = value.denominator.bit_length() - 1
    return str(value.numerator) if places == 0 else f"(digits {value.numerator} -{places} 2)"


def _precision(fmt: Format) -> str:
    """A format's precision. Raises ParameterError for one whose numbers are not those of IEEE 754 of that width."""
    if fmt.specials != "ieee" or fmt.bias != (1 << fmt.exponent - 1) - 1 or not fmt.subnormals:
        raise _other(f"the format {fmt.name}")
    return NAMES.get(fmt.name, f"(float {fmt.exponent} {1 + fmt.exponent + fmt.fraction})")


def _argument(name: str, fmt: Format) -> str:
    return f"(! :precision {_precision(fmt)} {name})"


def _rounded(how: Rounding, text: str) -> str:
    if how.mode not in MODES:
        raise _other(f"rounding {how.mode}")
    nearest = how.mode.startswith("nearest")
    if how.subnormals != "keep" or not (how.overflow == "ieee" or (nearest and how.overflow == "infinity")):
        raise _other("subnormal results that become zero, or results beyond the range that are not IEEE 754's")
    return f"(! :precision {_precision(how.format)} :round {MODES[how.mode]} (cast (! :precision real {text})))"
