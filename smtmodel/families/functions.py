"""The families of published units, each a function from its own parameters to an expression.

A function's parameters are groups of parameters (smtmodel/families/parts.py), and single parameters. Algorithms are
those of Xie et al. 2026.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from mmaprobe.smtmodel.arithmetic.rounding import Mode
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.smtmodel.families.parameters import check_parameter
from mmaprobe.smtmodel.families.parts import (
    Alignment,
    IeeeResult,
    Inputs,
    Late,
    Partials,
    Products,
    Result,
    Scales,
    SmallAddend,
    Steps,
    StepSums,
    Sums,
)
from mmaprobe.smtmodel.families.sketch import Expression, Sketch, StepProducts
from mmaprobe.smtmodel.nodes import Constant, ExactSum, FusedSum, GridSum, Node, Round, Scale
from mmaprobe.smtmodel.nodes.element import power_of_two


def t_fdpa(
    steps: Steps, inputs: Inputs, products: Products, alignment: Alignment, sums: Sums, result: Result, scales: Scales
) -> Expression:
    """Products and addend in one truncated sum, rounded; steps are chained (Algorithm 7)."""
    sketch = Sketch(steps, inputs, products, scales, random=result.random)
    return sketch.expression(sketch.chained(sketch.c, _fused_step(sketch, alignment, sums, result)))


def st_fdpa(
    steps: Steps, inputs: Inputs, products: Products, alignment: Alignment, sums: Sums, result: Result, scales: Scales
) -> Expression:
    """T-FDPA of products with scale factors (Algorithm 8)."""
    scales.needed()
    return t_fdpa(steps, inputs, products, alignment, sums, result, scales)


def gst_fdpa(
    steps: Steps,
    inputs: Inputs,
    products: Products,
    alignment: Alignment,
    sums: Sums,
    result: Result,
    scales: Scales,
    group: int = 1,
) -> Expression:
    """ST-FDPA of groups of products, each summed exactly before it is scaled (Algorithm 9)."""
    scales.needed()
    for name, size in (("block", steps.block), ("scale block", scales.scale_block)):
        if size % group:
            raise ParameterError("group", f"{group} does not divide the {name} {size}")
    sketch = Sketch(steps, inputs, products, scales, group, result.random)
    return sketch.expression(sketch.chained(sketch.c, _fused_step(sketch, alignment, sums, result)))


def emulated_fp8(
    steps: Steps, inputs: Inputs, products: Products, alignment: Alignment, sums: Sums, result: Result, scales: Scales
) -> Expression:
    """T-FDPA from +0, the addend added to its result by IEEE 754 (recorded results of H100, H200 and B200)."""
    sketch = Sketch(steps, inputs, products, scales, random=result.random)
    total = sketch.chained(Constant(), _fused_step(sketch, alignment, sums, result))
    sketch.named(total, "", "products")
    sketch.titles[sketch.c] = "c"
    last = replace(result.rounding, mode="nearest_even", overflow="ieee", zero="ieee")
    return sketch.expression(sketch.named(Round(ExactSum((total, sketch.c)), last), "after"))


def tr_fdpa(
    steps: Steps, inputs: Inputs, products: Products, alignment: Alignment, late: Late, result: Result, scales: Scales
) -> Expression:
    """The addend joins the finished, truncated sum of products (Algorithm 10)."""
    sketch = Sketch(steps, inputs, products, scales, random=result.random)

    def total(step: StepProducts) -> Node:
        return sketch.named(alignment.sum(sketch.terms(step)), f"{step.prefix}products", "products")

    return sketch.expression(sketch.chained(sketch.c, _late_step(sketch, total, alignment, late, result)))


def gtr_fdpa(
    steps: Steps, inputs: Inputs, products: Products, alignment: Alignment, late: Late, result: Result, scales: Scales
) -> Expression:
    """TR-FDPA of even and odd products, summed separately and then together (Algorithm 11)."""
    if steps.block % 2:
        raise ParameterError("block", f"{steps.block}: even and odd products need an even number of them")
    sketch, bits = Sketch(steps, inputs, products, scales, random=result.random), late.bits(alignment)

    def total(step: StepProducts) -> Node:
        halves = [alignment.sum(sketch.terms(replace(step, places=step.places[side::2]))) for side in (0, 1)]
        for half, name in zip(halves, ("even", "odd"), strict=True):
            sketch.named(half, f"{step.prefix}{name}", name)
        whole = FusedSum(tuple(halves), bits, late.late_rounding, zeros=alignment.zeros, least=alignment.least)
        return sketch.named(whole, f"{step.prefix}join", "products")

    return sketch.expression(sketch.chained(sketch.c, _late_step(sketch, total, alignment, late, result)))


def e_fdpa(
    steps: Steps,
    inputs: Inputs,
    products: Products,
    result: Result,
    partials: Partials = "unnormalised",
    downscale: int = 0,
) -> Expression:
    """Products and addend in one exact sum, rounded; steps are chained (Algorithm 6). The sum of a step's products may
    be divided by a power of two, 2^downscale, before the addend joins (Arm's FP8)."""
    sketch = Sketch(steps, inputs, products, Scales(), random=result.random)
    step = _fused_step(sketch, Alignment(), Sums(partials=partials), result)
    check_parameter("downscale", downscale)
    if downscale and partials == "normalised":
        raise ParameterError("downscale", "products that are added two at a time are not scaled")

    def scaled(at: StepProducts, start: Node) -> Node:
        total: Node = sketch.named(ExactSum(sketch.terms(at)), f"{at.prefix}products", "products")
        half = downscale // 2  # for 127, a single factor would be subnormal in f32
        total = Scale(total, power_of_two(half - downscale), power_of_two(-half))
        return result.rounded(ExactSum((total, start)))

    return sketch.expression(sketch.chained(sketch.c, scaled if downscale else step))


def rvbna(
    steps: Steps,
    inputs: Inputs,
    products: Products,
    alignment: Alignment,
    result: Result,
    step_sums: StepSums = "rounded",
) -> Expression:
    """The aligned sum of a step's products, rounded, then added to the result before and rounded again (RISC-V's bulk
    normalisation). Parameters can make the sums exact, or leave them unrounded until the addition (RISC-V's matrix
    extension)."""
    sketch = Sketch(steps, inputs, products, Scales(), random=result.random)

    def step(at: StepProducts, start: Node) -> Node:
        total = sketch.named(alignment.sum(sketch.terms(at)), f"{at.prefix}products", "products")
        if step_sums == "rounded":
            total = sketch.named(result.rounded(total), f"{at.prefix}sum", "sum")
        return result.rounded(ExactSum((start, total)))

    return sketch.expression(sketch.chained(sketch.c, step))


def grid_fdpa(
    steps: Steps,
    inputs: Inputs,
    products: Products,
    alignment: Alignment,
    result: Result,
    group: int = 2,
    late_fraction_bits: int = 26,
    late_rounding: Mode = "down",
    late_small_addend: SmallAddend = "cut",
) -> Expression:
    """Groups of a step's products, each aligned at its own largest exponent; their sums and the addend are then put on
    one grid, the largest of their units (RDNA4). The addend counts with the exponent of a normal number."""
    if steps.block % group:
        raise ParameterError("group", f"{group} does not divide the block {steps.block}")
    if alignment.exact or alignment.fraction_bits == "exact":
        raise ParameterError("fraction_bits", "sums that are put on a grid need truncated sums of products")
    sketch, bits = Sketch(steps, inputs, products, Scales(), random=result.random), alignment.fraction_bits
    least = result.rounding.format.emin

    def step(at: StepProducts, start: Node) -> Node:
        parts = [at.places[k : k + group] for k in range(0, steps.block, group)]
        sums = [alignment.sum(sketch.terms(replace(at, places=places))) for places in parts]
        for number, total in enumerate(sums):
            sketch.named(total, f"{at.prefix}group{number}", "products")
        reach = (*(None for _ in sums), 0) if late_small_addend == "cut" else ()
        keeps, floors = (*(bits for _ in sums), late_fraction_bits), (*(None for _ in sums), least)
        whole = GridSum((*sums, start), keeps, late_rounding, floors=floors, reach=reach)
        return result.rounded(sketch.named(whole, f"{at.prefix}grid"))

    return sketch.expression(sketch.chained(sketch.c, step))


def fma_chain(length: int, inputs: Inputs, result: IeeeResult) -> Expression:
    """IEEE fused multiply-adds, one after another (Algorithm 4)."""
    sketch = Sketch(Steps(length, 1), inputs, Products(), Scales(), random=result.random)
    return sketch.expression(sketch.chained(sketch.c, _fused_step(sketch, Alignment(), Sums(), result)))


def ftz_addmul(length: int, inputs: Inputs, result: IeeeResult, group: int = 1) -> Expression:
    """Products rounded one by one and added in pairs, each group to the addend (Algorithms 1 and 2)."""
    if length % group or group & (group - 1):
        raise ParameterError("group", f"{group}: pairs need a power of two that divides the length {length}")
    sketch = Sketch(Steps(length, group), inputs, Products(), Scales(), random=result.random)

    def step(at: StepProducts, start: Node) -> Node:
        layer, name = [result.rounded(product) for product in sketch.each(at)], "multiplied"
        for level in range(len(layer).bit_length()):
            for position, node in enumerate(layer):
                sketch.named(node, f"{at.prefix}{name}[{position}]")
            if len(layer) > 1:
                pairs = zip(layer[::2], layer[1::2], strict=True)
                layer, name = [result.rounded(ExactSum(pair)) for pair in pairs], f"pair{level}"
        return result.rounded(ExactSum((start, layer[0])))

    return sketch.expression(sketch.chained(sketch.c, step))


def _fused_step(
    sketch: Sketch, alignment: Alignment, sums: Sums, result: IeeeResult
) -> Callable[[StepProducts, Node], Node]:
    """A step that adds the running result to its products: all at once, or two terms at a time, each sum rounded."""
    sums.check(alignment)
    sketch.scales.check(sketch.steps, alignment)

    def at_once(step: StepProducts, start: Node) -> Node:
        return result.rounded(alignment.sum((*sketch.terms(step), start), sums.carry_bits))

    def running(step: StepProducts, start: Node) -> Node:
        total, *terms = *sketch.each(step), start
        for number, term in enumerate(terms, start=1):
            if number > 1:
                sketch.titles[total] = "running"
            total = sketch.named(result.rounded(alignment.sum((total, term))), f"{step.prefix}partial{number}")
        return total

    return at_once if sums.partials == "unnormalised" else running


def _late_step(
    sketch: Sketch, total: Callable[[StepProducts], Node], alignment: Alignment, late: Late, result: IeeeResult
) -> Callable[[StepProducts, Node], Node]:
    """A step that adds the running result to its finished sum of products."""
    late.bits(alignment)
    sketch.scales.check(sketch.steps, alignment)

    def step(at: StepProducts, start: Node) -> Node:
        total_term = sketch.named(late.sum(total(at), start, alignment), f"{at.prefix}late")
        return result.rounded(late.cut(total_term, result.rounding.format))

    return step


class Family(NamedTuple):
    """A function with its description. `fixed`: parameters of other families with one value in all of this family's
    units."""

    name: str
    about: str
    source: str
    function: Callable[..., Expression]
    fixed: Mapping[str, Any] = {}


_IEEE = {"zero_sign": "ieee", "overflow": "ieee"}

FAMILIES = (
    Family("t-fdpa", "fused sums of products and addend, aligned and truncated, steps chained", "Algorithm 7", t_fdpa),
    Family("st-fdpa", "T-FDPA of products with scale factors", "Algorithm 8", st_fdpa),
    Family("gst-fdpa", "fused sums of groups, each exact and scaled", "Algorithm 9", gst_fdpa),
    Family("emulated-fp8", "T-FDPA steps chained from +0, the addend added to the finished sum",
           "recorded results of H100, H200 and B200", emulated_fp8),
    Family("tr-fdpa", "the addend joins the finished, aligned sum of products", "Algorithm 10", tr_fdpa),
    Family("gtr-fdpa", "TR-FDPA with even and odd products summed separately", "Algorithm 11", gtr_fdpa),
    Family("e-fdpa", "exact sums of products and addend, each rounded once", "Algorithm 6", e_fdpa),
    Family("rvbna", "aligned sums of a step's products, each rounded before the addend joins",
           "RISC-V bulk normalisation", rvbna),
    Family("grid-fdpa", "groups of products, each aligned on its own, then put on one grid with the addend",
           "ROCm/rocm-systems, pull request 12120", grid_fdpa),
    Family("fma-chain", "IEEE fused multiply-adds, one after another", "Algorithm 4", fma_chain,
           {"block": 1, **_IEEE}),
    Family("ftz-addmul", "products rounded one by one and added in pairs", "Algorithms 1 and 2", ftz_addmul, _IEEE),
)  # fmt: skip
