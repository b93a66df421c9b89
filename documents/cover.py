"""The document of `cover`."""

from __future__ import annotations

from collections.abc import Sequence

from mmaprobe.documents.parts import ABSENT, Document, Part, Vector
from mmaprobe.documents.prove import Certificate


class OutOfReach(Part):
    """A condition that no input reaches."""

    condition: str
    """the step, the quantity and its case; `differs from NAME=VALUE`: not the result of the unit with this parameter
    changed"""
    rule: str  #: the rule of inference that proves this; of a change `equal`
    why: str  #: the grounds of the proof: what the solvers answered, or the rules of rewriting


class Conditions(Part):
    """The conditions of one kind: reached, out of reach, or open."""

    reached: Sequence[str]  #: the conditions that a vector reaches
    out_of_reach: Sequence[OutOfReach]  #: the conditions proved to be reached by no input
    open: Sequence[str]  #: the conditions neither reached nor proved to be out of reach


class Cover(Document):
    """Vectors that reach the conditions of a unit's datapath."""

    model: str  #: the unit
    complete: bool  #: whether every condition is reached, or proved to be out of reach
    conditions: Conditions  #: conditions of single inputs and steps
    pairs: Conditions  #: conditions of two cases of a step together
    changes: Conditions  #: changes of one parameter that a vector shows by its result
    vectors: Sequence[Vector]  #: `d` is the unit's result; `reaches`: the conditions for which the vector was chosen
    seconds: float  #: the duration in seconds
    certificates: Sequence[Certificate] = ABSENT  #: with --certificate: the certificates written
    certificate_error: str = ABSENT  #: why a certificate could not be written
