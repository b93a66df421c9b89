"""A model: a unit with its name, from the table of instructions or a unit file, evaluated over any carrier."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from mmaprobe.smtmodel.arithmetic.formats import FORMATS, Format
from mmaprobe.smtmodel.arithmetic.rounding import ResultMode
from mmaprobe.smtmodel.base.htmltext import html_table
from mmaprobe.smtmodel.base.wording import counted, shortened
from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.families.member import Member
from mmaprobe.smtmodel.nodes import Node, Round
from mmaprobe.smtmodel.nodes.node import Context, Flaws
from mmaprobe.smtmodel.nodes.rewriting import rebuilt
from mmaprobe.smtmodel.nodes.trace import Silent, Trace
from mmaprobe.smtmodel.operand import FURTHER, counts_of
from mmaprobe.smtmodel.units.unit import Memo, Unit


@dataclass(frozen=True)
class Model:
    """d = c + sum of a_k * b_k as one unit computes it. `reference`: the model's name on the command line; `a`, `b`,
    `c`, `d`: formats; `length`: the number K of products; `unit`: the expression; `member`: the family and parameters
    of which the unit of an instruction of the table is made (`of`), else None."""

    reference: str
    unit: Unit
    member: Member | None = field(default=None, init=False, compare=False)

    @classmethod
    def of(cls, reference: str, a: Format, b: Format, c: Format, member: Member) -> Model:
        """The model of a family's member, for operands of the formats `a`, `b`, `c`."""
        model = cls(reference, member.unit(a, b, c, reference))
        object.__setattr__(model, "member", member)
        return model

    @classmethod
    def deferred(cls, reference: str, a: Format, b: Format, c: Format, member: Member) -> Model:
        """As `of`, for one of many candidates: its unit is made once it is read, and most candidates are thrown away
        before."""
        model = object.__new__(cls)
        model.__dict__.update(reference=reference, member=member, _formats=(a, b, c))
        return model

    if not TYPE_CHECKING:  # where a type checker sees it, every name is an attribute

        def __getattr__(self, name):
            if name != "unit":
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            unit = self.__dict__["unit"] = self.member.unit(*self._formats, self.reference)
            return unit

    def __hash__(self) -> int:
        return hash(self.reference)

    def __repr__(self) -> str:
        """Two lines: the formats of operands and result, and the expression."""
        from mmaprobe.smtmodel.units.unitfile import step_texts

        texts = step_texts(self.unit)
        return f"{self._head}\n  d: {shortened(texts['d'], 110)}"

    def _repr_html_(self) -> str:
        from mmaprobe.smtmodel.units.unitfile import step_texts

        return html_table(self._head, list(step_texts(self.unit).items()), ("step", "is"))

    @property
    def _head(self) -> str:
        addend = f"{self.c.name} + " if self.addend else ""
        products = counted(self.length, "product")
        return f"{self.reference}: {addend}{products} {self.a.name} * {self.b.name} -> {self.d.name}"

    @property
    def instruction(self) -> str:
        """The name of the instruction or unit file: the reference without changed parameters."""
        return self.reference.partition("@")[0]

    @property
    def a(self) -> Format:
        return self.unit.a

    @property
    def b(self) -> Format:
        return self.unit.b

    @property
    def c(self) -> Format:
        return self.unit.c

    @property
    def d(self) -> Format:
        return self.unit.d

    @property
    def addend(self) -> bool:
        """Whether the model reads c. For a model that does not, a c other than +0 is an error."""
        return self.unit.addend

    def with_addend(self, c: Format) -> Model:
        """The model, which must not read c, with another format of c."""
        assert not self.addend
        return Model(self.reference, replace(self.unit, c=c))

    @property
    def length(self) -> int:
        return self.unit.length

    @property
    def formats(self) -> Mapping[str, Format]:
        """The formats of the operands by name."""
        return self.unit.formats

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """The number of elements of each operand, in the order of OPERANDS."""
        return counts_of(self.formats, self.length, self.scales)

    @property
    def scale(self) -> Format | None:
        """The format of the scale factors; None without scale factors."""
        return self.unit.scale

    @property
    def scales(self) -> int:
        """The number of scale factors on each side."""
        return self.unit.scales

    @property
    def scale_block(self) -> int:
        """The number of products that share a pair of scale factors."""
        return self.unit.scale_block or 1

    @property
    def nan(self) -> int | None:
        """The pattern of a NaN result; None where it is not known."""
        return self.unit.nan

    @property
    def rounding(self) -> ResultMode:
        """The rounding mode of the result."""
        return self.unit.rounding.mode

    @property
    def blocks(self) -> tuple[tuple[int, ...], ...]:
        """The products that each step takes, in the order of the steps."""
        return self.unit.blocks

    def apart(self, other: Model) -> list[tuple[str, str, str]]:
        """The parameters in which another model of the same family differs, each as its name, this model's value and
        the other's; empty for models of different families, or without a family."""
        return [] if self.member is None or other.member is None else self.member.apart(other.member)

    @property
    def any_nan(self) -> Model:
        """The model without a fixed pattern of NaN results: every NaN is the format's quiet NaN. A number that a unit
        writes for NaN stays."""
        if self.nan is None or not self.unit.rounding.keeps_nan:
            return self
        if self.member is not None:
            return Model.of(self.reference, self.a, self.b, self.c, self.member.changed({"nan": None}))
        pattern = self.nan

        def leaf(old: Node, new: Node) -> Node:
            if not isinstance(new, Round) or new.rounding.nan != pattern or not new.rounding.keeps_nan:
                return new
            return replace(new, rounding=replace(new.rounding, nan=None))

        unit = self.unit.with_result(rebuilt(self.unit.result, leaf, {}))
        return Model(self.reference, unit)


@dataclass(frozen=True)
class Evaluation:
    """The result pattern (`model.d.width` bits) and the trace of the evaluation."""

    d: Bits
    trace: Trace


def evaluate(
    model: Model,
    a: Sequence[Bits],
    b: Sequence[Bits],
    c: Bits,
    *rest: Sequence[Bits],
    memo: Memo | None = None,
    traced: bool = True,
    flaws: Flaws | None = None,
) -> Evaluation:
    """Evaluate a model over the carrier of the inputs, patterns of `a.width`, `b.width` and `c.width` bits.

    If there are fewer products than the model's length, the missing ones at the end are zero. `rest`: the further
    operands, in the order of `FURTHER`, each in the width of its format; all scale factors are needed (`model.scales`
    on each side). `memo`, for many models on the same inputs: values that several models form alike are formed once;
    the trace lacks the signals of values taken from `memo`. `traced`: signals are kept. `flaws`: flags of values that
    are negated. Raises ValueError for a wrong number of elements of a further operand.
    """
    given = tuple(map(len, rest)) + (0,) * (len(FURTHER) - len(rest))
    if given != (wanted := model.counts[-len(FURTHER) :]):
        names = ", ".join(row.name for row in FURTHER)
        raise ValueError(f"{model.reference} takes {wanted} of {names}, and {given} are given")
    trace = Trace() if traced else Silent()
    return Evaluation(*model.unit.evaluate(a, b, c, *rest, trace=trace, memo=memo, flaws=flaws))


def pattern_of(node: Node, *patterns: Bits) -> Bits:
    """The result of an expression over `Given` nodes whose last node is a rounding, for bit vectors of any carrier."""
    f32 = FORMATS["f32"]
    zero = Bits(patterns[0].carrier, f32.width, value=0)  # +0 and -0 have c's carrier and format
    result = Context({"given": patterns, "c": (zero,)}, {"c": f32}, {}, Silent()).value(node).pattern
    assert result is not None
    return result
