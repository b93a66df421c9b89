"""The errors of the kernel."""

from __future__ import annotations


class RuleError(Exception):
    """A side condition of a rule that does not hold; the message says which, and where."""


class OpenLemmaError(RuleError):
    """A lemma about the datapath that a rule needs is not proved: the time ran out, or it is false."""
