"""Proved bounds beside those of published analyses: writes benchmarks/published_bounds.md.

python -m benchmarks.published_bounds

The published ones are of models of the arithmetic, and to first order: n additions in the unit, each of relative error
u_FMA, and a rounding of each block's result (Blanchard et al. 2020, section 3); p words of u_low each, of whose
products those are left out that are no larger than the last ones kept (Fasi et al. 2023).
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from statistics import median

from benchmarks.plan_bounds import read_records
from mmaprobe.queries.kernel.bounds.forms import EXACT, Form
from mmaprobe.queries.plans.bound import bound_of_plan
from mmaprobe.queries.plans.bound_samples import ErrorOfPlan
from mmaprobe.queries.properties.bound import error_of
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.queries.tactics.settling import Settled
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.arithmetic.formats import Format
from mmaprobe.smtmodel.plans.plan import Plan
from mmaprobe.smtmodel.tables.reference import parse_plan_reference

PAGE = Path(__file__).parent / "published_bounds.md"
UNITS = Path(__file__).parent / "bounds.md"
SIZES, SEARCHED = (1024, 8192, 65536), 1024
U32, U16, CUT = Fraction(1, 1 << 24), Fraction(1, 1 << 11), Fraction(1, 1 << 23)

#: a unit -> the products of a block, the unit roundoff within it, and that of its result where it is a narrower one
BLOCKS: dict[str, tuple[int, Fraction, Fraction]] = {
    "volta/mma/m8n8k4.f32.f16.f16.f32": (4, CUT, Fraction(0)),
    "volta/mma/m8n8k4.f16.f16.f16.f16": (4, CUT, U16),
    "ampere/mma/m16n8k16.f32.f16.f16.f32": (8, CUT, Fraction(0)),
    "hopper/mma/m16n8k16.f32.f16.f16.f32": (16, CUT, Fraction(0)),
    "cdna3/mfma/f32_32x32x8_f16": (8, CUT, Fraction(0)),
    "ieee/fma/f32.f16.f16.f32": (1, U32, Fraction(0)),
}
F16, BF16, TF32 = U16, Fraction(1, 1 << 8), Fraction(1, 1 << 11)
AMPERE = "ampere/mma/m16n8k16.f32.f16.f16.f32"
#: an algorithm -> its words, their unit roundoff, and that of the sums
WORDS: dict[str, tuple[int, Fraction, Fraction]] = {
    f"markidis@unit={AMPERE},products=3,split=nearest_even": (2, F16, CUT),
    f"ootomo-yokota@unit={AMPERE}": (2, F16, U32),
    "multiword@unit=ampere/mma/m16n8k8.f32.tf32.tf32.f32": (2, TF32, CUT),
    "plan:triton/bf16x3": (2, BF16, CUT),
    "plan:triton/bf16x6": (3, BF16, CUT),
    "plan:triton/tf32x3": (2, TF32, CUT),
}

HEAD = """# Proved bounds beside published analyses

Written by `python -m benchmarks.published_bounds`. Bounds of |d - exact| as shares of sum |a_k b_k|, c = 0, without
what subnormal numbers add. Proved: for the arithmetic as it is, each a theorem of `mmaprobe prove --property
error-bound`. Published: of a model of it, to first order. reached: the largest share that an input has, evaluated bit
for bit, for K = 1024; a bound below it is no bound.

## One product

Blanchard, Higham, Lopez, Mary, Pranesh 2020, section 3: a block of b products and an addend has b additions of relative
error u_FMA, and its result, where that is narrower, a rounding of u. So n products have n u_FMA + (n / b) u. For f32
u_FMA is 2^-24. These units truncate, so that it is 2^-23 here: with 2^-24 the bound would be 6.1e-5 for n = 1024, and
twice that is reached on Volta.

| unit | n | published | proved | reached |
|---|---|---|---|---|
"""
MULTIWORD = """
Where a unit aligns many products in one step, that step counts about once, not b times: the proved bounds are below
those of the model. With results in f16 the second order counts, which is left out of the published ones: at n = 65536
they say 8, where an error may be larger.

## Products of words

Fasi, Higham, Lopez, Mary, Mikaitis 2023: p words on each side leave u_low^p of a number each, and products of words
that are left out no more than (p - 1) u_low^p; n products of p words and the sums of their p^2 products at most have
(n + p^2) u. Together (p + 1) u_low^p + (n + p^2) u. This is of products that are summed apart: where one accumulator
takes all products of words, as in `multiword` below, three products of words have 3 n additions, and errors can be
larger.

| algorithm | p | n | published | proved | reached |
|---|---|---|---|---|---|
"""

MEDIANS = """
## Bounds over the largest errors that are known

Medians of the bound over the largest error that was found, for the input that has it.

| bounds | number | median |
|---|---|---|
"""


def share(form: Form) -> Fraction:
    """The coefficients of sum |a b| and of |exact|, which is no larger."""
    found = Fraction(0)
    for atom, value in form.flat().parts.items():
        (item,) = atom
        if tuple(factor.name for factor in item) in (("a", "b"), (EXACT,)):
            found += value
    return found


def row(plan: Plan, settle: Settled, size: int) -> tuple[Fraction, Fraction | None]:
    """The share that is proved, and the one that is reached."""
    form = error_of(bound_of_plan(plan, size, settle)).merged()
    near = ErrorOfPlan(plan, form).nearest(size)[0] if size <= SEARCHED else None
    if near is None:
        return share(form), None
    magnitudes = sum(abs(number_of(x, plan.a) * number_of(y, plan.b)) for x, y in zip(near.a, near.b, strict=True))
    return share(form), near.error / magnitudes


def number_of(pattern: int, fmt: Format) -> Fraction:
    value = exact_value(int(pattern), fmt)
    return value if isinstance(value, Fraction) else Fraction(0)


def number(value: Fraction | None) -> str:
    return "" if value is None else f"{float(value):.3g}"


def medians() -> str:
    """How much larger bounds are than the largest error that is known."""
    ratios = [float(line.split("|")[-2]) for line in UNITS.read_text(encoding="utf-8").splitlines()
              if line.startswith("| `") and line.split("|")[-2].strip()]  # fmt: skip
    plans = {name: [size["nearest"]["ratio"] for size in found["sizes"] if size["nearest"]]
             for name, found in read_records().items()}  # fmt: skip
    words = ("multiword/", "triton/", "xla/", "x3", "x6")
    own = [ratio for name, found in plans.items() if any(word in name for word in words) for ratio in found]
    others = [ratio for name, found in plans.items() if not any(word in name for word in words) for ratio in found]
    lines = [f"| {what} | {len(every)} | {1 / median(every):.2f} |\n"
             for what, every in (("units ([bounds](bounds.md))", ratios), ("plans of one product", others),
                                 ("plans in words", own))]  # fmt: skip
    return "".join(lines)


def main() -> None:
    settle, lines = Settled(Options(timeout=60.0), False), [HEAD]
    for name, (block, inner, outer) in BLOCKS.items():
        plan = parse_plan_reference(name)
        for size in SIZES:
            proved, reached = row(plan, settle, size)
            published = size * inner + Fraction(size, block) * outer
            lines.append(f"| `{name}` | {size} | {number(published)} | {number(proved)} | {number(reached)} |\n")
            print(lines[-1], end="", flush=True)
    lines.append(MULTIWORD)
    for name, (words, low, high) in WORDS.items():
        plan = parse_plan_reference(name)
        for size in SIZES:
            proved, reached = row(plan, settle, size)
            published = (words + 1) * low**words + (size + words * words) * high
            cells = (f"`{name}`", words, size, number(published), number(proved), number(reached))
            lines.append("| " + " | ".join(map(str, cells)) + " |\n")
            print(lines[-1], end="", flush=True)
    lines.append(MEDIANS)
    lines.append(medians())
    PAGE.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
