"""The formats and the number of products of a device, which are known before the device is asked."""

from __future__ import annotations

from collections.abc import Mapping

from mmaprobe.smtmodel.arithmetic.formats import Format, format_named
from mmaprobe.smtmodel.base.digits import is_digits
from mmaprobe.smtmodel.base.errors import NotModelledError, ParameterError, check_number
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.operand import NO_ADDEND
from mmaprobe.smtmodel.units.unit import LONGEST, Unit, operand_formats


class Signature(Model):
    """A model without arithmetic or reference, for vectors that name no model. `addend`: whether the device takes c; if
    not, c is zero in every vector. `more`: the formats of further operands by name."""

    def __init__(
        self, a: Format, b: Format, c: Format, d: Format, length: int, addend: bool = True,
        scale: Format | None = None, scale_block: int = 1, more: tuple[tuple[str, Format], ...] = (),
    ) -> None:  # fmt: skip
        fields: dict[str, object] = {
            "reference": "",
            "member": None,
            "_formats": (a, b, c, d),
            "_length": length,
            "_addend": addend,
        }
        fields |= {"_scale": scale, "_scale_block": scale_block, "_more": more}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    _formats: tuple[Format, Format, Format, Format]
    _length: int
    _addend: bool
    _scale: Format | None
    _scale_block: int
    _more: tuple[tuple[str, Format], ...]

    @property
    def unit(self) -> Unit:
        raise NotModelledError("formats alone have no arithmetic")

    @property
    def _all(self) -> tuple[object, ...]:
        return *self._formats, self._length, self._addend, self._scale, self._scale_block, self._more

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Signature) and self._all == other._all

    def __hash__(self) -> int:
        return hash(self._all)

    def __repr__(self) -> str:
        return f"Signature({', '.join(fmt.name for fmt in self._formats)}, {self._length})"

    @property
    def a(self) -> Format:
        return self._formats[0]

    @property
    def b(self) -> Format:
        return self._formats[1]

    @property
    def c(self) -> Format:
        return self._formats[2]

    @property
    def d(self) -> Format:
        return self._formats[3]

    @property
    def addend(self) -> bool:
        return self._addend

    @property
    def of_integers(self) -> bool:
        """Whether both factors are integers, whose sums are exact while they stay within their format."""
        return self.a.is_integer and self.b.is_integer

    def with_addend(self, c: Format) -> Signature:
        assert not self.addend
        return Signature(self.a, self.b, c, self.d, self._length, False, self._scale, self._scale_block, self._more)

    @property
    def length(self) -> int:
        return self._length

    @property
    def formats(self) -> Mapping[str, Format]:
        return operand_formats(self.a, self.b, self.c, self.scale, self._more)

    @property
    def scale(self) -> Format | None:
        return self._scale

    @property
    def scales(self) -> int:
        return 0 if self._scale is None else self._length // self._scale_block

    @property
    def scale_block(self) -> int:
        return self._scale_block

    @property
    def nan(self) -> int | None:
        return None


def signature_of(model: Model) -> Signature:
    """The signature of a model: its formats, length, scale factors, and whether it reads c."""
    if isinstance(model, Signature):
        return model
    return Signature(
        model.a, model.b, model.c, model.d, model.length, model.addend, model.scale, model.scale_block, model.unit.more
    )


def parse_signature(formats: str, length: int, scale: str | None = None, longest: int = LONGEST) -> Signature:
    """The signature of formats written as `a,b,c,d`, or as `a,b,d` or `a,b,none,d` for a device without an addend.
    `scale`: FORMAT/BLOCK for scale factors that BLOCK products share; `longest`: the largest length. Raises
    UnknownNameError or ParameterError."""
    names = [name.strip() for name in formats.split(",")]
    if len(names) == 4 and names[2] == NO_ADDEND:
        del names[2]
    if len(names) not in (3, 4):
        raise ParameterError("formats", f"{formats!r}: give a,b,c,d, or a,b,d for a device without an addend")
    check_number("length", length, (1, longest))
    fmts = [format_named(name) for name in names]
    for place, (name, fmt) in enumerate(zip(names, fmts, strict=True)):
        if not (fmt.signed or (fmt.is_integer and place < 2)):  # factors may be unsigned integers
            kind = "factors, not of c or of results" if fmt.is_integer else "scale factors, not of operands or results"
            raise ParameterError("formats", f"{name} is unsigned, a format of {kind}")
    a, b, *rest = fmts
    factor, block = (None, 1) if scale is None else _scale(scale, length)
    return Signature(a, b, rest[0], rest[-1], length, len(names) == 4, factor, block)


def _scale(text: str, length: int) -> tuple[Format, int]:
    name, _, block = text.partition("/")
    fmt = format_named(name.strip())
    if fmt.signed:
        raise ParameterError("scale", f"{name} has a sign: it is not a format of scale factors; ue8m0 and ue4m3 are")
    if not is_digits(block.strip()) or int(block) < 1 or length % int(block):
        raise ParameterError("scale", f"{text!r}: give FORMAT/BLOCK, where BLOCK products share a factor and divide K")
    return fmt, int(block)
