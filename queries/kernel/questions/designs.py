"""A design in hardware compared with a model: a problem whose right side is evaluated by the design's netlist."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from mmaprobe.queries.kernel.naming import model_text
from mmaprobe.queries.kernel.questions.problem import Problem, evaluate_on
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.carriers.algebra import Bits
from mmaprobe.smtmodel.designs.design import RESULT, Design
from mmaprobe.smtmodel.evaluate.model import Evaluation
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.nodes.trace import Silent, Trace
from mmaprobe.smtmodel.operand import OPERANDS

MULTIPLICATION = "$mul"
NO_DESIGN = Design("", "", ())


@dataclass(frozen=True)
class Designed(Problem):
    """A model compared with a design that should give the same results. `left` and `right` are both the model, whose
    formats the design takes. If the design leaves bits undefined, the two agree if they agree for all values of these
    bits, and differ if they differ for a simulator's choice. Raises ParameterError for a design whose ports do not
    fit."""

    design: Design = NO_DESIGN

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.left != self.right:
            raise ParameterError("design", "it is compared with one model")
        model, design = self.left, self.design
        wanted = {row.name: model.formats[row.name].width * count
                  for row, count in zip(OPERANDS, model.counts, strict=True) if count}  # fmt: skip
        wanted[RESULT] = model.d.width
        design.check()
        if unknown := [name for name, _ in design.ports if name not in wanted]:
            raise ParameterError(design.module, f"{model.reference} has no {unknown[0]}")
        for name, bits in wanted.items():
            if design.width(name) != bits and (name != "c" or model.addend or design.width(name)):
                raise ParameterError(design.module, f"{name} has {bits} bits, and its port {design.width(name)}")

    @property
    def in_rows(self) -> bool:
        """Whether terms write products as sums of rows: a design without multiplication cells adds rows itself."""
        return all(cell.kind != MULTIPLICATION for cell in self.design.parsed.cells)

    @property
    def sides(self) -> tuple[str, str]:
        return "the unit", f"the design {self.design.module}"

    @property
    def stated(self) -> str:
        return f"d of {model_text(self.left)} = d of the design {self.design.module}"

    @property
    def digest(self) -> str:
        """A short digest of the design's netlist, 12 hexadecimal digits."""
        return hashlib.sha256(self.design.netlist.encode()).hexdigest()[:12]

    def evaluate(self, operands: Operands[Bits], traced: bool = True) -> tuple[Evaluation, Evaluation]:
        result = self.design.result(operands.sides, operands.c.carrier)
        return evaluate_on(self.left, operands, traced), Evaluation(result, Trace() if traced else Silent())
