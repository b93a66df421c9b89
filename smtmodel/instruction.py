"""One row of the instruction table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from smtmodel.accumulator import Accumulator
from smtmodel.formats import Format
from smtmodel.recordings import RECORDED

Origin = Literal["published model", "inferred"]


@dataclass(frozen=True)
class Instruction:
    """One matrix instruction. `shape` is (M, N, K); formats by name; `source`, `origin`: of its parameters;
    `emulated`: run on another unit."""

    arch: str
    unit: str
    name: str
    shape: tuple[int, int, int]
    a: str
    b: str
    c: str
    accumulator: Accumulator
    source: str
    origin: Origin
    emulated: bool = False

    @property
    def reference(self) -> str:
        return f"{self.arch}/{self.unit}/{self.name}"

    @property
    def length(self) -> int:
        """The number of products."""
        return self.accumulator.length

    @property
    def d(self) -> Format:
        """The format of the result."""
        return self.accumulator.output_format

    @property
    def scale(self) -> Format | None:
        """The format of the scale factors, if there are any."""
        return self.accumulator.scale

    @property
    def scales(self) -> int:
        """The number of scale factors on each side."""
        return self.accumulator.scales

    @property
    def recorded(self) -> Mapping[str, int]:
        """The number of recorded results of this instruction by GPU; empty where there are none."""
        return RECORDED.get(self.reference, {})

    @property
    def evidence(self) -> str:
        """How firmly it is known: "recorded: H100 500 rows, ...", or the origin of its parameters."""
        rows = [f"{gpu} {count} rows" for gpu, count in self.recorded.items()]
        return f"recorded: {', '.join(rows)}" if rows else self.origin
