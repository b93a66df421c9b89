"""A model as an FPCore 2.0 expression: exact sums of reals, each rounded where the unit rounds."""

from __future__ import annotations

from fractions import Fraction

from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.base.escapes import text_bytes
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.nodes import (
    Constant,
    Element,
    ExactSum,
    Literal,
    Node,
    Product,
    Round,
    Scale,
)
from mmaprobe.smtmodel.nodes.fold import Fold
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
    result = writer.of(model.unit.result)
    arguments = [
        _argument(f"{side}{k}", fmt) for side, fmt in (("a", model.a), ("b", model.b)) for k in range(model.length)
    ]
    arguments += [_argument("c", model.c)] if model.addend else []
    lines = [f"(FPCore ({' '.join(arguments)})", f'  :name "{model.reference}"', "  :precision real"]
    if not writer.bound:
        return "\n".join([*lines, f"  {result})", ""])
    bound = [f"({name} {text})" for name, text in writer.bound]
    return "\n".join([*lines, "  (let* (" + "\n         ".join(bound) + ")", f"    {result}))", ""])


class _Writer(Fold[str]):
    """Nodes as expressions. `bound`: the names of results on the way with their expressions, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.bound: list[tuple[str, str]] = []

    def carried(self, value: str) -> str:
        self.bound.append((f"s{len(self.bound)}", value))
        return self.bound[-1][0]

    def formed(self, node: Node) -> str:
        match node:
            case Element():
                if node.subnormals != "keep":
                    raise _other("subnormal inputs that are read as zero")
                return node.operand if node.index is None else f"{node.operand}{node.index.at(self.places)}"
            case Constant():
                return "0"
            case Literal():
                return _number(exact_value(node.pattern, node.format))
            case Product(limit=None):
                return f"(* {self.of(node.left)} {self.of(node.right)})"
            case Scale():
                return f"(* {self.of(node.term)} (* {self.of(node.left)} {self.of(node.right)}))"
            case ExactSum():
                return _sum(self.of_terms(node.items))
            case Round():
                return _rounded(node.rounding, self.of(node.term))
        raise _other(f"a node {node.kind}")


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
