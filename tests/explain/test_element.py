"""`explain --element`: what the steps of one element lose is what its result lacks, and the command says so."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.queries.plans.bound_samples import exact_element
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.evaluate.batch import evaluate_row
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import from_numbers
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.explain.losses import ElementLosses, Loss, element_losses, losses
from mmaprobe.smtmodel.plans import Plan
from mmaprobe.smtmodel.plans.lowering import unit_of_plan
from mmaprobe.smtmodel.plans.plan_files import plans
from mmaprobe.smtmodel.tables.reference import parse_plan_reference
from mmaprobe.smtmodel.units.unit import TRACED
from tests.oracles.oracle import decode, encode
from tests.plans.test_plans import plan_of

#: with whether each adds c
PLANS = {
    "plan:cublas/plain": False, "plan:cublas/split-k-f16": False, "plan:deepgemm/fp8": False,
    "plan:pytorch/cpu-bf16-amx": False, "plan:loop/lanes": True, "plan:cutlass/fp8-fast": True,
    "cdna3/mfma/f32_32x32x8_f16": True, "hopper/mma/m16n8k32.f32.e4m3.e4m3.f32": True,
}  # fmt: skip


def element(plan: Plan, k: int) -> Operands[int]:
    rng = np.random.default_rng(11)
    sides = [
        from_numbers(np.ldexp(rng.standard_normal(count), rng.integers(-4, 5, count)), fmt, "nearest_even").tolist()
        if fmt.name != "none"
        else [0]
        for count, fmt in ((k, plan.a), (k, plan.b), (1, plan.c))
    ]
    return Operands(tuple(sides[0]), tuple(sides[1]), sides[2][0])


def value(fmt: str, pattern: int) -> Fraction:
    return decode(fmt, pattern).value


@pytest.mark.parametrize("name", PLANS)
def test_losses_add_up(name: str) -> None:
    plan, k = parse_plan_reference(name), 150
    given = element(plan, k)
    model = Model(name, unit_of_plan(plan, k))
    found, result = losses(model, given)
    assert result == evaluate_row(model, given)
    products = (value(plan.a.name, x) * value(plan.b.name, y) for x, y in zip(given.a, given.b, strict=True))
    exact = sum(products, value(plan.c.name, given.c) if PLANS[name] else Fraction(0))
    losing = [one.cut + one.rounded for one in found]
    assert sum(lost != 0 for lost in losing) > 1
    assert exact + sum(losing) == exact + (found[-1].total or 0) == value(plan.d.name, result)


#: what they multiply the sum by, and c: 1 of each where they are not named; a plan that does not read c adds none
FACTORS = {"plan:cutlass/linear-combination": (Fraction(3, 2), Fraction(1, 2))}
SHIPPED = [f"plan:{name}" for name in plans() if name != "ozaki/fp8-14"]  # whose sums are too many for one expression


def exact_sum(plan: Plan, given: Operands[int], factors: tuple[Fraction, Fraction]) -> Fraction:
    products = [value(plan.a.name, x) * value(plan.b.name, y) for x, y in zip(given.a, given.b, strict=True)]
    return factors[0] * sum(products, Fraction(0)) + (factors[1] * value(plan.c.name, given.c) if plan.addend else 0)


def lost_by(name: str, plan: Plan, given: Operands[int]) -> ElementLosses:
    model = Model(name, unit_of_plan(plan, len(given.a)))
    return element_losses(model, given, exact_element(plan, given.a, given.b, given.c))


@pytest.mark.parametrize("name", SHIPPED)
def test_the_last_total_is_the_element_less_the_exact_result(name: str) -> None:
    """Of every plan that ships: also with words, conversions, scale factors of blocks and residues. What words lose is
    said once, and each sum of their products is compared with what it would be without rounding."""
    plan = parse_plan_reference(name)
    given = element(plan, 3)
    found, exact = lost_by(name, plan, given), exact_sum(plan, given, FACTORS.get(name, (Fraction(1), Fraction(1))))
    assert found.steps[-1].total == value(plan.d.name, found.result) - exact
    assert not any(step.word for step in found.steps)
    if found.words is not None:  # what is added to the words' loss is no more than each step can lose
        rounding = [abs(step.cut + step.rounded) for step in found.steps]
        assert abs(found.steps[-1].total - found.words) <= 2 * sum(rounding)
    else:
        assert "-ii-" in name  # residues: rounding finds a multiple of the modulus
        assert all(step.total is None for step in found.steps[:-1])


@pytest.mark.parametrize("step", ["sum(muladd, +0)", "sum(split(2, muladd, r, grain=1), c)"])
def test_a_rounded_product_has_its_place(step: str) -> None:
    """Also one of a converted factor; and the sum that adds it."""
    plan = plan_of(step, **{"{a: f16, b: f16": "{a: f32, b: f32", "mma: volta/mma/m8n8k4.f32.f16.f16.f32":
                            "muladd: ieee/muladd/f32"})  # fmt: skip
    given = element(plan, 6)
    given = Operands(given.a, (*given.b[:2], 0, *given.b[3:]), given.c)
    found, _ = losses(Model("p", unit_of_plan(plan, 6, TRACED)), given)
    products = [step.products for step in found]
    assert products[:12] == [None if k == 2 else (k, k) for k in range(6) for _ in ("the product", "its sum")]
    assert not any(products[12:])


def test_sums_of_words_are_compared_with_what_they_are_meant_to_be() -> None:
    """The first sum of bf16x3 is that of a's second words by b's first ones, the second one adds the reverse."""
    plan = parse_plan_reference("plan:triton/bf16x3")
    given = element(plan, 24)
    words = []
    for fmt, side in ((plan.a.name, given.a), (plan.b.name, given.b)):
        numbers = [value(fmt, pattern) for pattern in side]
        first = [nearest(number) for number in numbers]
        words.append((first, [nearest(number - word) for number, word in zip(numbers, first, strict=True)]))
    (a0, a1), (b0, b1) = words
    sums = [sum(x * y for x, y in zip(*pair, strict=True)) for pair in ((a1, b0), (a0, b1), (a0, b0))]
    found = {step.step: step for step in lost_by("triton", plan, given).steps}
    for place in range(3):
        last = [step for name, step in found.items() if name.startswith(f"last.then{place}.")][-1]
        assert last.total == last.value - sum(sums[: place + 1])


def nearest(number: Fraction) -> Fraction:
    return value("bf16", encode("bf16", int(number < 0), abs(number), "nearest_even"))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_rectified_element_is_compared_with_the_rectified_sum(sign: int) -> None:
    plan = plan_of("r(relu(product(number(0x3fc00000, f32), r(exact(sum(mma, +0), c)))))")
    given = Operands((0x3C01, 0x3C00), (0x3C00, 0x0C01), 0x3F800000 if sign > 0 else 0xC0400001)
    exact = max(exact_sum(plan, given, (Fraction(3, 2), Fraction(3, 2))), Fraction(0))
    found = lost_by("rectified", plan, given)
    assert (exact > 0) == (sign > 0)
    assert found.steps[-1].total == value(plan.d.name, found.result) - exact


def test_nothing_is_said_of_a_total_where_the_element_is_infinite() -> None:
    plan = plan_of("sum(mma, c)")
    found = lost_by("infinite", plan, Operands((0x7C00,), (0x3C00,), 0))
    assert (found.words, list(found.steps)) == (None, [])


def test_steps_are_named_by_part_and_tile() -> None:
    plan = plan_of("sum(split(2, promote(8, mma, r), z), c)")
    model = Model("named", unit_of_plan(plan, 43))
    names = [step.step for step in losses(model, element(plan, 43))[0]]
    assert len(set(names)) == len(names)
    assert {"part0.chunk[0].tile[0]", "part0.chunk[2].tile[1]", "part1.chunk[1].tile[0]"} <= set(names)
    tails = [name for name in names if name.startswith("part1.last")]
    assert len(tails) == 1
    short = plan_of("sum(lanes(fma, r, 2, fold(2, 1), grain=4), c)")  # the last lane has a turn of two
    names = [step.step for step in losses(Model("short", unit_of_plan(short, 14)), element(short, 14))[0]]
    assert len(set(names)) == len(names) == 15


def test_a_product_is_lost_where_it_is_cut() -> None:
    plan = plan_of("sum(mma, +0)")
    given = Operands((0x3C00, 0, 0, 0, 0, 0x0001), (0x3C00, 0, 0, 0, 0, 0x0400), 0)  # 2^-38 beside 1
    found, _ = losses(Model("cut", unit_of_plan(plan, 8)), given)
    lost = -(Fraction(2) ** -38)
    assert found == [
        Loss("tile[0]", (0, 0), 1, Fraction(0), Fraction(0), Fraction(1), FORMATS["f32"], Fraction(0)),
        Loss("tile[1]", (5, 5), 1, lost, Fraction(0), Fraction(1), FORMATS["f32"], lost),
    ]


def test_the_command(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for name, shape in (("a", (5, 40)), ("b", (40, 3)), ("c", (5, 3))):
        np.save(tmp_path / f"{name}.npy", rng.standard_normal(shape).astype(np.float16))
    files = [str(tmp_path / f"{name}.npy") for name in "abc"]

    def run(*arguments: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(main, ["explain", *arguments])
        return result.exit_code, result.stdout, result.stderr

    simulated = CliRunner().invoke(
        main, ["simulate", *files, "-o", str(tmp_path / "d.npy"), "--plan", "plan:cutlass/linear-combination"]
    )
    assert simulated.exit_code == 0
    code, out, _ = run("plan:cutlass/linear-combination", *files, "--element", "4,2", "--json")
    document = json.loads(out)
    assert (code, document["length"]) == (0, 40)
    assert int(document["d"], 16) == np.load(tmp_path / "d.npy").view(np.uint16)[4, 2]
    np.save(tmp_path / "bias.npy", np.load(files[2])[4:])
    biased = run(
        "plan:cutlass/linear-combination", *files[:2], str(tmp_path / "bias.npy"), "--element", "4,2", "--json"
    )
    assert json.loads(biased[1])["d"] == document["d"]
    code, out, _ = run("plan:cublas/plain", *files[:2], "--element", "0,0")
    assert code == 0
    assert "tile[1]" in out
    assert "rounded steps lose bits" in out
    for name, shape in (("long-a", (1, 4100)), ("long-b", (4100, 1))):  # more products than questions are asked about
        np.save(tmp_path / f"{name}.npy", np.ones(shape, np.float16))
    code, out, _ = run(
        "plan:cublas/split-k", *(str(tmp_path / f"long-{name}.npy") for name in "ab"), "--element", "0,0"
    )
    assert (code, out.splitlines()[-1]) == (0, "d = 6c01  2^12 + 2^2 = 4100")
    empty = str(tmp_path / "empty.npy")
    np.save(empty, np.ones((0, 0), np.float16))
    for arguments, message in (
        ((*files, "--element", "5,0"), "outside the product"),
        ((*files, "--element", "5"), "a row and a column"),
        ((files[0], "--element", "0,0"), "takes two matrix files"),
        ((files[0], files[0], "--element", "0,0"), "cannot be multiplied"),
        ((*files[:2], files[0], "--element", "0,0"), "not that of the product"),
        (tuple(files), "matrix files go with --element"),
        ((empty, empty, "--element", "0,0"), "(0, 0) cannot be multiplied: K = 0, without a product"),
    ):
        code, _, err = run("plan:cublas/plain", *arguments)
        assert code == 2
        assert message in err


def test_products_with_others_between_are_counted(tmp_path: Path) -> None:
    """A swizzled step adds every other pair."""
    file = tmp_path / "swizzled.yaml"
    file.write_text(
        "plan: swizzled\nformats: {a: f16, b: f16, c: f32, d: f32}\nunits: {mma: hopper/mma/m16n8k16.f32.f16.f16.f32}\n"
        'steps: {d: "sum(turns(32, swizzle(2, mma, grain=2)), c)"}\n'
    )
    rng = np.random.default_rng(1)
    for name, shape in (("a", (1, 40)), ("b", (40, 1))):
        np.save(tmp_path / f"{name}.npy", rng.standard_normal(shape).astype(np.float16))
    files = [str(tmp_path / f"{name}.npy") for name in "ab"]
    done = CliRunner().invoke(main, ["explain", str(file), *files, "--element", "0,0"])
    rows = {line.split()[0]: line for line in done.stdout.splitlines()[2:]}
    assert "  16 of 0-29  " in rows["pass0"]
    assert "  16 of 2-31  " in rows["pass1"]
    assert "  4 of 34-39  " in rows["last.pass1.tail"]
