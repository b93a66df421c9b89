"""Plans over formats of a few bits, of which all inputs, or many, are compared with a bound."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mmaprobe.queries.kernel.bounds.forms import Form
from mmaprobe.queries.kernel.bounds.wording import COUNT
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.evaluate.tiles import kind_of
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.gemm import simulate
from mmaprobe.smtmodel.tables.reference import parse_plan_reference, parse_reference

UNIT = """unit: tiny
formats: {a: FACTOR, b: FACTOR, c: SUM, d: SUM}
length: 1
roundings: {r: "round(SUM, nearest_even)"}
steps:
  d: r(exact(a[0] * b[0], c))
"""
SMALL = """plan: small
formats: {a: FACTOR, b: FACTOR, c: SUM, d: SUM}
units: {mma: ./tiny.yaml}
roundings: {r: "round(SUM, nearest_even)"}
steps:
  d: sum(STAGE, START)
"""


def small(folder: Path, factor: str, total: str, start: str, stage: str) -> Plan:
    """A plan of a unit of one product of two numbers of a format, with sums of another one."""
    for name, text in (("tiny", UNIT), ("small", SMALL)):
        changed = text.replace("FACTOR", factor).replace("SUM", total).replace("START", start)
        (folder / f"{name}.yaml").write_text(changed.replace("STAGE", stage))
    return parse_plan_reference(f"plan:{folder / 'small.yaml'}")


WIDE = """unit: tiny
formats: {a: FACTOR, b: FACTOR, c: SUM, d: SUM}
length: LENGTH
roundings: {r: "round(SUM, toward_zero)"}
steps:
  d: r(fused(a[0:LENGTH] * b[0:LENGTH], c, F=3))
"""


def in_tiles(folder: Path, factor: str, total: str, length: int) -> Plan:
    """A plan that has a unit take products in tiles, from c: they are aligned, and cut."""
    text = WIDE.replace("FACTOR", factor).replace("SUM", total).replace("LENGTH", str(length))
    (folder / "tiny.yaml").write_text(text)
    return Plan.chained(parse_reference(str(folder / "tiny.yaml")))


def values_of(fmt: Format) -> NDArray[np.float64]:
    """The number of each pattern; NaN where it is none."""
    every = (exact_value(pattern, fmt) for pattern in range(1 << fmt.width))
    return np.array([np.nan if isinstance(one, str) and one != "-0" else float(one) for one in every])


def compared(plan: Plan, form: Form, k: int, addend: bool = False) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The errors of all inputs of two products, or of a quarter of a million of more, and what a form gives for them;
    where no sum comes near the largest number of the format."""
    drawn, fmt, out = np.random.default_rng(1), plan.a, plan.d
    pairs = np.stack(np.meshgrid(range(1 << fmt.width), range(1 << fmt.width)), -1).reshape(-1, 2)
    sides = [pairs if k == 2 else drawn.integers(0, 1 << fmt.width, (512, k)) for _ in range(2)]
    a, b = sides[0].astype(kind_of(fmt)), sides[1].T.astype(kind_of(fmt))
    c = (drawn.integers(0, 1 << out.width, (len(a), len(sides[1]))) * addend).astype(kind_of(out))
    x, y, s, d = (values_of(own)[side] for own, side in
                  ((fmt, a), (fmt, b), (out, c), (out, simulate(a, b, c, plan, engine="numpy"))))  # fmt: skip
    exact, size = x @ y + s, np.abs(x) @ np.abs(y)
    kinds = {("a", "b"): size, ("c",): np.abs(s), ("exact",): np.abs(exact), (): np.ones_like(s)}
    tops = np.abs(x).max(1, keepdims=True), np.abs(y).max(0, keepdims=True)  # in the bounds of which K is a magnitude
    kinds |= {("a", "b", COUNT): k * tops[0] * tops[1], ("a", COUNT): k * tops[0], ("b", COUNT): k * tops[1]}
    limit, most = np.zeros_like(s), np.nanmax(values_of(out)) / 2
    for atom, value in form.flat().parts.items():
        (names,) = (tuple(factor.name for factor in item) for item in atom)
        limit += float(value) * kinds[names]
    fine = np.isfinite(d) & np.isfinite(exact) & (size + np.abs(s) < most)
    assert fine.sum() > 1000
    return np.abs(d - exact)[fine], limit[fine]
