"""One row of the instruction table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from mmaprobe.smtmodel.arithmetic.formats import Format, format_named
from mmaprobe.smtmodel.families.member import FUNCTIONS, Member
from mmaprobe.smtmodel.families.parameters import FAMILY
from mmaprobe.smtmodel.tables.recordings import RECORDED
from mmaprobe.smtmodel.tables.sources import Source

if TYPE_CHECKING:
    from mmaprobe.smtmodel.evaluate.model import Model

Origin = Literal["published model", "simulator's routine", "inferred"]
Call = tuple[str, dict[str, Any]]  # a family's name, and the arguments of its function


@dataclass(frozen=True)
class Instruction:
    """One matrix instruction. `shape` is (M, N, K). `a`, `b`, `c`: names of formats. `family`, `values`: the name and
    the arguments of the function that makes the instruction's unit. `source`, `origin`: who published the arguments,
    and how the arguments are known. `emulated`: a unit for other input formats runs the instruction."""

    arch: str
    unit: str
    name: str
    shape: tuple[int, int, int]
    a: str
    b: str
    c: str
    family: str
    values: Mapping[str, Any] = field(hash=False)
    source: Source
    origin: Origin
    emulated: bool = False

    @property
    def reference(self) -> str:
        return f"{self.arch}/{self.unit}/{self.name}"

    @property
    def member(self) -> Member:
        return FUNCTIONS[self.family](**self.values)

    @cached_property
    def _parameters(self) -> Mapping[str, Any]:
        return FUNCTIONS[self.family].completed(self.values)

    def changed(self, model: Model) -> set[str]:
        """The names of the parameters (and FAMILY, if the families differ) in which a model differs from this
        instruction."""
        assert model.member is not None
        own, theirs = ({FAMILY: member.family, **member.values} for member in (self.member, model.member))
        return {name for name in own | theirs if own.get(name, ...) != theirs.get(name, ...)}

    def source_of(self, parameters: Collection[str]) -> str:
        """The publications of some parameters; names that are not parameters of the family are ignored."""
        return self.source.of([name for name in parameters if name == FAMILY or name in self._parameters])

    @property
    def length(self) -> int:
        """The number of products."""
        return int(self.values["length"])

    @property
    def d(self) -> Format:
        """The format of the result."""
        return format_named(self._parameters["output"])

    @property
    def scale(self) -> Format | None:
        """The format of the scale factors; None for an instruction without scale factors."""
        name = self.values.get("scale_format")
        return None if name is None else format_named(name)

    @property
    def scales(self) -> int:
        """The number of scale factors on each side."""
        return 0 if self.scale is None else int(self.length // self._parameters["scale_block"])

    @property
    def recorded(self) -> Mapping[str, int]:
        """The number of recorded results of this instruction by GPU; empty if no GPU has recorded results."""
        return RECORDED.get(self.reference, {})

    @property
    def evidence(self) -> str:
        """The evidence for the instruction: "recorded: H100 500 rows, ...", or the origin of its parameters."""
        rows = [f"{gpu} {count} rows" for gpu, count in self.recorded.items()]
        return f"recorded: {', '.join(rows)}" if rows else self.origin
