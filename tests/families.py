"""A family for tests: few candidates, of which four pairs need a solver."""

from __future__ import annotations

from mmaprobe.hypotheses.family import Family, build_family
from mmaprobe.smtmodel.base.yamlfile import read_yaml

LITTLE = """
id: little
formats: {a: f16, b: f16, c: f32, d: f32}
length: 2
parameters:
  block: 2
  fraction_bits: [23, 24]
  carry_bits: [exact, 1, 2, 3, 4, 5]
"""


def little_family() -> Family:
    return build_family(read_yaml(LITTLE, "little.yaml"))
