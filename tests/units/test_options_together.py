"""Which options of a node are refused beside one another, and that the table of nodes says so."""

from __future__ import annotations

from itertools import combinations

import pytest

from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.units.unitfile import parse_unit
from mmaprobe.smtmodel.units.written import NODES

FILE = """unit: u
formats: {{a: f16, b: f16, c: f32, d: f32}}
length: 4
steps:
  d: {step}
"""
#: calls that take options, and a value of each option that says something
CALLS = {
    "product": "round(exact(product(a[0], b[0]{}), a[1] * b[1], a[2] * b[2], a[3] * b[3], c), f32, nearest_even)",
    "fused": "round(fused(a[0:4] * b[0:4], c{}), f32, nearest_even)",
    "grid": "round(grid(a[0:4] * b[0:4], c{}), f32, nearest_even)",
    "round": "round(exact(a[0:4] * b[0:4], c), f32, nearest_even{})",
    "relu": "round(relu(round(exact(a[0:4] * b[0:4], c), f32, nearest_even){}), f32, nearest_even)",
}
VALUES = {
    "product": {"normalised": "true", "limit": "9"},
    "fused": {"F": "[5, 6]", "carry": "1", "rounding": "up", "sticky": "true", "zeros": "-9", "least": "-9",
              "floors": "[none, -9]", "reach": "[none, 9]"},
    "grid": {"rounding": "up", "frame": "1", "floors": "[none, -9]", "reach": "[none, 9]"},
    "round": {"overflow": "saturate", "subnormals": "flush_after", "zero": "positive", "nan": "0x7fffffff"},
    "relu": {"nan": "zero", "zero": "signed"},
}  # fmt: skip
NEEDED = {"fused": {"F": "6"}, "grid": {"F": "[5, 6]"}}
REFUSED = {"fused": {("F", "carry"), ("carry", "sticky"), ("rounding", "sticky")}}


def is_refused(node: str, options: dict[str, str]) -> bool:
    given = "".join(f", {name}={value}" for name, value in (NEEDED.get(node, {}) | options).items())
    try:
        parse_unit(FILE.format(step=CALLS[node].format(given)), "u.yaml")
    except InputError:
        return True
    return False


@pytest.mark.parametrize("node", CALLS)
def test_options_that_are_refused_together(node: str) -> None:
    values = VALUES[node]
    named = {one.name for one in NODES[node].options if one.by_name}
    assert named == values.keys() | NEEDED.get(node, {}).keys()
    assert not any(is_refused(node, {name: value}) for name, value in values.items())
    pairs = [pair for pair in combinations(values, 2) if is_refused(node, {name: values[name] for name in pair})]
    assert set(pairs) == REFUSED.get(node, set())


def test_the_table_says_which_options_are_refused_together() -> None:
    """In the line of the one that is refused, of the words with which it is refused."""
    meanings = {one.name: one.meaning for one in NODES["fused"].options}
    for pair in REFUSED["fused"]:
        step = CALLS["fused"].format("".join(f", {name}={value}" for name, value in (
            NEEDED["fused"] | {name: VALUES["fused"][name] for name in pair}).items()))  # fmt: skip
        with pytest.raises(InputError) as refused:
            parse_unit(FILE.format(step=step), "u.yaml")
        option, why = str(refused.value).rpartition("expression: ")[2].split(": ", 1)
        assert option in pair
        assert why in meanings[option]
        (other,) = set(pair) - {option}
        assert f" {'toward_zero' if other == 'rounding' else other}" in why
