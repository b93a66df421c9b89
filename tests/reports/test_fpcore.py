"""FPCore: what is written, read by a small evaluator of its own, gives the unit's results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from math import ceil, floor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.reports.exports.fpcore import core, plan_core
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.base.errors import InputError, ParameterError
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.tables.reference import parse_plan_reference, parse_reference
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.cpu import Inputs

WRITTEN = ["ieee/fma/f32@length=4", "ieee/fma/f16@output_rounding=up", "arm/sme/fmopa-f16f32", "arm/neon/bfmmla-ebf",
           "arm/neon/fdot.f16.e5m2.e5m2", "arm/neon/fdot.f32.e5m2.e5m2@downscale=5", "power10/mma/xvf16ger2pp",
           "riscv/v/vfwmaccbf16", "cdna1/mfma/f32_32x32x8f16"]  # fmt: skip
REFUSED = {
    "hopper/mma/m16n8k16.f32.f16.f16.f32": "a node fused",
    "arm/neon/bfdot": "subnormal inputs",
    "arm/neon/fdot.f32.e4m3.e4m3": "the format e4m3",
    "ieee/fma/f32@output_rounding=to_odd": "rounding to_odd",
    "arm/neon/fdot.f32.e5m2.e5m2@overflow=saturate": "beyond the range",
}
PRECISIONS = {"binary16": (5, 16), "binary32": (8, 32), "binary64": (11, 64)}

ROUND = str.maketrans("[]", "()")  # brackets of either kind mean the same
Expression = Any  # a symbol, or a list of expressions


def parsed(text: str) -> Expression:
    def read(words: Iterator[str]) -> Iterator[Expression]:
        for word in words:
            if word == ")":
                return
            yield list(read(words)) if word == "(" else word

    (found,) = read(iter(re.findall(r'"[^"]*"|[()]|[^\s()]+', text.translate(ROUND))))
    return found


def cast(value: Fraction, precision: Expression, mode: str) -> Fraction | str:
    """IEEE 754 rounding in rationals."""
    exponents, width = PRECISIONS[precision] if isinstance(precision, str) else map(int, precision[1:])
    digits, emax = width - exponents, (1 << exponents - 1) - 1
    if value == 0:
        return value
    size, exponent = abs(value), 0
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    exponent -= size < Fraction(2) ** exponent
    unit = Fraction(2) ** (max(exponent, 1 - emax) - digits + 1)
    whole, rest = divmod(size, unit)
    rest /= unit
    up = {"nearestEven": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and whole % 2 == 1), "toZero": False,
          "toPositive": rest > 0 < value, "toNegative": rest > 0 > value}[mode]  # fmt: skip
    result = (whole + up) * unit
    if result >= Fraction(2) ** (emax + 1):
        if mode == "toZero" or mode == ("toNegative" if value > 0 else "toPositive"):
            result = Fraction(2) ** (emax + 1) - Fraction(2) ** (emax - digits + 1)
        else:
            return "infinite"
    return result if value > 0 else -result


def value_of(
    given: Expression, names: Mapping[str, Any], precision: Expression = "real", mode: str = "nearestEven"
) -> Any:
    if isinstance(given, str):
        return names[given] if given in names else Fraction(given)
    head, *rest = given
    if head == "!":
        properties = dict(zip(rest[:-1:2], rest[1:-1:2], strict=True))
        return value_of(rest[-1], names, properties.get(":precision", precision), properties.get(":round", mode))
    if head == "let*":
        for name, text in rest[0]:
            names = {**names, name: value_of(text, names, precision, mode)}
        return value_of(rest[1], names, precision, mode)
    if head == "let":
        return value_of(rest[1], {**names, **{x: value_of(text, names, precision, mode) for x, text in rest[0]}})
    if head == "for":
        ((counter, times),), ((so_far, start, update),), body = rest
        found = value_of(start, names)
        for number in range(int(value_of(times, names))):
            found = value_of(update, {**names, counter: Fraction(number), so_far: found})
        return value_of(body, {**names, so_far: found})
    if head == "if":
        _, left, right = rest[0]
        sides = value_of(left, names), value_of(right, names)
        return value_of(rest[1 + (not (sides[0] < sides[1] if rest[0][0] == "<" else sides[0] == sides[1]))], names)
    if head == "ref":
        return names[rest[0]][int(value_of(rest[1], names))]
    if head == "digits":
        return int(rest[0]) * Fraction(int(rest[2])) ** int(rest[1])
    values = [value_of(one, names, precision, mode) for one in rest]
    if any(isinstance(value, str) for value in values):
        return "infinite"
    if head == "cast":
        return cast(values[0], precision, mode)
    assert precision == "real"
    return {"+": lambda: values[0] + values[1], "*": lambda: values[0] * values[1], "-": lambda: values[0] - values[1],
            "/": lambda: values[0] / values[1], "fmin": lambda: min(values), "ceil": lambda: Fraction(ceil(values[0])),
            "floor": lambda: Fraction(floor(values[0]))}[head]()  # fmt: skip


@pytest.mark.parametrize("name", WRITTEN)
def test_the_expression_gives_the_results(name: str) -> None:
    model = parse_reference(name)
    run = CliRunner().invoke(main, ["export", name, "--format", "fpcore"])
    assert run.exit_code == 0, run.output
    head, arguments, *properties, body = parsed(run.stdout)
    assert (head, properties[:2], properties[2:]) == ("FPCore", [":name", f'"{name}"'], [":precision", "real"])
    symbols = [argument[-1] for argument in arguments]
    assert symbols == [f"{side}{k}" for side in "ab" for k in range(model.length)] + ["c"]
    vectors, checked = Inputs(model, 58).vectors(250), 0
    for a, b, c, d in zip(*(side.tolist() for side in vectors), evaluate_batch(model, *vectors).tolist(), strict=True):
        formats = [model.a] * model.length + [model.b] * model.length + [model.c]
        values = [exact_value(pattern, fmt) for pattern, fmt in zip([*a, *b, c], formats, strict=True)]
        if any(isinstance(value, str) for value in values):
            continue
        found, wanted = value_of(body, dict(zip(symbols, values, strict=True))), exact_value(d, model.d)
        assert found == wanted or (found == "infinite" and isinstance(wanted, str))
        checked += 1
    assert checked > 100


@pytest.mark.parametrize(("name", "why"), REFUSED.items())
def test_what_has_no_words(name: str, why: str) -> None:
    run = CliRunner().invoke(main, ["export", name, "--format", "fpcore"])
    assert run.exit_code == 2
    assert why in run.output


FORMATS = "formats: {a: f16, b: f16, c: f32, d: f32}\nunits: {dot: arm/sme/fmopa-f16f32, fma: ieee/fma/f32.f16.f16.f32}"
STEPS = {
    "plan:loop/fma": (1, 5),
    "plan:openblas/sgemm": (5,),
    "sum(dot, c)": (1, 2, 7),
    "sum(chain(dot, tail=fma), c)": (1, 2, 7),
    "out(sum(split(3, dot, r, grain=4), c))": (3, 9, 13),
    "sum(split(2, promote(4, dot, r), r), +0)": (3, 8, 19),
    "r(exact(sum(promote(6, fma, r, tail=dot), +0), c))": (5, 6, 13),
    "sum(turns(4, promote(2, fma, r)), c)": (3, 9),
    "r(exact(sum(dot, +0), product(number(0x40000000, f32), c)))": (4, 5),
}


def plan_of(step: str, folder: Path) -> str:
    if step.startswith("plan:"):
        return step
    fmt, text = ("f16", FORMATS.replace("d: f32", "d: f16")) if "out(" in step else ("f32", FORMATS)
    rounding = f"roundings: {{r: 'round(f32, nearest_even)', out: 'round({fmt}, toward_zero)'}}"
    rounding = rounding if "out(" in step else "roundings: {r: 'round(f32, nearest_even)'}"
    (path := folder / "own.yaml").write_text(f"plan: own\n{text}\n{rounding}\nsteps:\n  d: {step}\n")
    return str(path)


@pytest.mark.parametrize("step", STEPS)
def test_a_plan_for_every_k_gives_the_results_at_each(step: str, tmp_path: Path) -> None:
    name = plan_of(step, tmp_path)
    run = CliRunner().invoke(main, ["export", name, "--format", "fpcore"])
    assert run.exit_code == 0, run.output
    _, arguments, *_, body = parsed(run.stdout)
    assert arguments[:2] == [["A", "K"], ["B", "K"]]
    for k in STEPS[step]:
        model, checked = parse_reference(f"{'' if ':' in name else 'plan:'}{name}@length={k}"), 0
        vectors = Inputs(model, 58).vectors(63)
        for a, b, c, d in zip(*(x.tolist() for x in vectors), evaluate_batch(model, *vectors).tolist(), strict=True):
            sides = [[exact_value(pattern, model.a) for pattern in side] for side in (a, b)]
            values = {"A": sides[0], "B": sides[1], "c": exact_value(c, model.c), "K": Fraction(k)}
            if any(isinstance(value, str) for value in (*sides[0], *sides[1], values["c"])):
                continue
            found, wanted = value_of(body, values), exact_value(d, model.d)
            if found != "infinite":
                assert found == (0 if wanted == "-0" else wanted), (k, a, b, c)
                checked += 1
        assert checked > 30


@pytest.mark.parametrize("step", STEPS)
def test_a_plan_that_is_written_is_read_at_each_k(step: str, tmp_path: Path) -> None:
    name = plan_of(step, tmp_path)
    (path := tmp_path / "plan.fpcore").write_text(plan_core(parse_plan_reference(name)))
    for k in STEPS[step]:
        model = parse_reference(f"{'' if ':' in name else 'plan:'}{name}@length={k}")
        again = parse_reference(f"{path}@length={k}")
        assert again.length == k
        vectors = Inputs(model, 5).vectors(300)
        found, wanted = (evaluate_batch(one, *vectors).tolist() for one in (again, model))
        numbers = [[str(exact_value(d, model.d)).replace("-0", "0") for d in side] for side in (found, wanted)]
        assert numbers[0] == numbers[1]


DOT = """(FPCore dotprod ((A n) (B n))
 :precision binary32
 (for ([i n])
  ([prod 0 (+ prod (* (ref A i) (ref B i)))])
  prod))"""


def test_a_loop_of_others(tmp_path: Path) -> None:
    """FPBench's own dot product, each operator rounded."""
    (path := tmp_path / "dot.fpcore").write_text(DOT)
    model = parse_reference(f"{path}@length=3")
    same = """unit: same
formats: {a: f32, b: f32, c: none, d: f32}
length: 3
roundings: {r: round(f32)}
steps: {d: "r(exact(r(exact(r(exact(+0, r(a[0] * b[0]))), r(a[1] * b[1]))), r(a[2] * b[2])))"}
"""
    assert model.unit.result == parse_unit(same, "same.yaml").result


LOOPS = {
    "(for ([i n]) ([s 0 (+ s (ref A (+ i 1)))]) s)": "2: A has places 0 to 3, not 4",
    "(for ([i (/ n 3)]) ([s 0 (+ s (ref A i))]) s)": "2: a loop has 0 to 4096 turns, not 4/3",
    "(for ([i 4000]) ([s 0 (for ([j 4000]) ([t s t]) t)]) s)": "2: its loops have more than 65536 turns",
    "(for ([i (ref A 0)]) ([s 0 s]) s)": "2: a count is computed from K",
    "(for ([i n] [j n]) ([s 0 s]) s)": "2: a loop is (for",
    "(if (< (ref A 0) 0) (ref A 0) 0)": "2: a count is computed from K",
    "(if n (ref A 0) 0)": "2: a condition is one of",
    "(ref C 0)": "2: (ref TENSOR PLACE) is wanted",
    "(ref A (/ 1 0))": "2: a count is computed",
}


@pytest.mark.parametrize("body", LOOPS)
def test_faults_of_loops_name_their_line(body: str, tmp_path: Path) -> None:
    (path := tmp_path / "dot.fpcore").write_text(f"(FPCore ((A n) (B n))\n {body})")
    with pytest.raises(InputError, match=re.escape(LOOPS[body])):
        parse_reference(f"{path}@length=4")


@pytest.mark.parametrize(
    ("text", "length", "why"),
    [
        (DOT, "", "a core with tensors is a model for a number of products"),
        (DOT, "@length=0", "at most 4096"),
        (DOT, "@length=5000", "at most 4096"),
        ("(FPCore (a0 b0) (* a0 b0))", "@length=1", "has its own number of products"),
        ("(FPCore ((A n) (B m)) (ref A 0))", "@length=1", "two tensors of one dimension"),
        ("(FPCore ((A n) (A n)) (ref A 0))", "@length=1", "is there twice"),
        ("(FPCore ((A n) (B n) x y) (ref A 0))", "@length=1", "one argument beside"),
        ("(FPCore ((A n) (B n)) :precision real (ref A 0))", "@length=1", "is read by a cast"),
    ],
)
def test_what_tensors_need(text: str, length: str, why: str, tmp_path: Path) -> None:
    (path := tmp_path / "own.fpcore").write_text(text)
    with pytest.raises(InputError, match=why):
        parse_reference(f"{path}{length}")


def test_an_expression_has_no_parameters(tmp_path: Path) -> None:
    (path := tmp_path / "own.fpcore").write_text("(FPCore (a0 b0) :precision binary32 (* a0 b0))")
    with pytest.raises(ParameterError, match="an expression takes no block=4"):
        parse_reference(f"{path}@block=4")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("plan:loop/pairwise", "the stage halve"),
        ("plan:loop/lanes", "the stage interleave"),
        ("plan:multiword/markidis", "a stage that is no unit"),
        ("plan:cublas/plain", "a node fused"),
    ],
)
def test_plans_that_have_no_words(name: str, why: str) -> None:
    run = CliRunner().invoke(main, ["export", name, "--format", "fpcore"])
    assert run.exit_code == 2
    assert why in run.output


def read(folder: Path, text: str) -> Model:
    (path := folder / "read.fpcore").write_text(text, encoding="utf-8")
    return parse_reference(str(path))


@pytest.mark.parametrize("name", [*WRITTEN, "plan:loop/pairwise@length=6"])
def test_what_is_written_is_read_again(name: str, tmp_path: Path) -> None:
    """All results but the sign of a zero and the pattern of a NaN, which the expression leaves out."""
    model = parse_reference(name)
    again = read(tmp_path, core(model))
    vectors = Inputs(model, 8).vectors(300)
    found, wanted = (evaluate_batch(one, *vectors).tolist() for one in (again, model))
    values = [[exact_value(d, model.d) for d in side] for side in (found, wanted)]
    assert values[0] == values[1]


def test_a_core_with_names_of_its_own(tmp_path: Path) -> None:
    """Operators outside `real` round; factors are numbered in the order of the products."""
    text = """; two products
    (FPCore dot (x0 y0 x1 y1 (! :precision binary64 z))
      :name "two" :precision binary32
      (! :precision binary64 (+ (cast (+ (* x0 y0) (* x1 y1))) z)))"""
    unit = read(tmp_path, text).unit
    assert [unit.a.name, unit.b.name, unit.c.name, unit.d.name] == ["f32", "f32", "f64", "f64"]
    same = """unit: two
formats: {a: f32, b: f32, c: f64, d: f64}
length: 2
roundings: {r: round(f32), s: round(f64)}
steps: {d: "s(exact(s(s(exact(s(a[0] * b[0]), s(a[1] * b[1])))), c))"}
"""
    assert unit.result == parse_unit(same, "same.yaml").result


@pytest.mark.parametrize(
    "value", ["1", "-3", "1/3", "0.1", "(digits 1 -149 2)", "(digits 1 -1074 2)", "(digits 1 1024 2)"]
)
def test_numbers(value: str, tmp_path: Path) -> None:
    text = f"(FPCore (a0 b0) :precision binary64 (! :precision real (+ (* a0 b0) {value})))"
    rounded = text.replace("(! ", "(! :precision binary64 (cast (! ").replace(")))", ")))))")
    if value in ("1/3", "0.1", "(digits 1 1024 2)"):
        with pytest.raises(InputError, match="no number of f64"):
            read(tmp_path, rounded)
        return
    wanted = value_of(parsed(value), {})
    model = read(tmp_path, rounded)
    zero = np.zeros((1, 1), dtype=np.uint64)
    (d,) = evaluate_batch(model, zero, zero, zero[0]).tolist()
    assert exact_value(d, model.d) == wanted


FAULTS = {
    "(FPCore (a0 b0)": "1: a bracket is not closed",
    "(FPCore (a0 b0) (* a0 b0)))": "1: a bracket is closed",
    "(FPCore [a0 b0) (* a0 b0))": "1: a bracket is closed",
    "(* a b)": "one (FPCore ...) is wanted",
    "(FPCore (a0 b0)\n (/ a0 b0))": "2: units have no words for /",
    "(FPCore (a0 b0)\n :pre (< a0 b0)\n (* a0 b0))": "2: :pre has no place",
    "(FPCore (a0 b0) :precision binary80 (* a0 b0))": "a precision is real",
    "(FPCore (a0 b0) :round up (* a0 b0))": "a rounding is one of",
    "(FPCore (a0 b0) :precision real (* a0 b0))": "an argument is a name with a precision that is not real",
    "(FPCore (a0 b0) (! :precision real (* a0 b0)))": "the result is not rounded",
    "(FPCore ((! :precision binary16 a0) (! :precision binary16 b0)) (! :precision real (let* ("
    "(x (! :precision binary32 (* a0 b0))) (y (! :precision binary32 x))) (* x y))))": "the result is not rounded",
    "(FPCore (x y z) (+ x (+ y z)))": "are no factors of products",
    "(FPCore (a0 b1) (* a0 b1))": "each element of a is to have one of b",
    "(FPCore (a1 b1) (* a1 b1))": "numbered from 0",
    "(FPCore (a0 b0) (* a0 q))": "neither an argument",
    "(FPCore (a0 b0) (* a0 1e999999999))": "neither an argument",
    "(FPCore (x y) (+ (* x y) (* y x)))": "factor of two products",
    "(FPCore (a0 b0) (fma a0 b0))": "fma takes 3",
    "(FPCore (a0 b0 c) (! :precision real (* a0 (+ b0 c))))": "the product of a sum",
    "(FPCore (a0 a0) (* a0 a0))": "is there twice",
    "(FPCore (a0 b0) :precision binary32 :precision binary64 (* a0 b0))": "is given twice",
    "(" * 300: "nested more than",
}  # fmt: skip


@pytest.mark.parametrize("text", FAULTS)
def test_faults_name_their_line(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=re.escape(FAULTS[text])):
        read(tmp_path, text)


def test_commands_take_a_core(tmp_path: Path) -> None:
    (path := tmp_path / "own.fpcore").write_text(core(parse_reference("ieee/fma/f32@length=2")))
    run = CliRunner().invoke(main, ["prove", str(path), "ieee/fma/f32@length=2"])
    assert run.exit_code == 0, run.output
    assert "equal: proved" in run.output
    missing = CliRunner().invoke(main, ["show", str(tmp_path / "none.fpcore")])
    assert missing.exit_code == 2
    assert "no such file" in missing.output


CLAIM = """id: mine
terms: 2
inputs: {format: f16, a: [-2, 2], b: [-2, 2], c: zero}
parts: {one: chain.fpcore@length=2}
claim: error(one) <= 2**-9 * magnitude_sum()
"""


def test_a_claim_names_expressions_and_its_certificate_holds_their_units(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder := tmp_path / "claim").mkdir()
    (folder / "chain.fpcore").write_text(
        "(FPCore ((A K) (B K) c) :precision binary16 (for ([i K]) ([sum c (fma (ref A i) (ref B i) sum)]) sum))"
    )
    (folder / "claim.yaml").write_text(CLAIM)
    monkeypatch.chdir(tmp_path)  # the files are looked for beside the claim
    run = CliRunner().invoke(main, ["verify", "claim/claim.yaml", "--certificate", "proof"])
    assert (run.exit_code, "mine: holds" in run.output) == (0, True), run.output
    for path in folder.iterdir():
        path.unlink()
    checked = CliRunner().invoke(main, ["check", "proof"])
    assert (checked.exit_code, "unit-1.yaml: chain: 2 products" in checked.output) == (0, True), checked.output
    (folder / "half.fpcore").write_text("(FPCore (x0 y0 x1 y1 z) :precision binary16 (fma x1 y1 (fma x0 y0 z)))")
    stated = tmp_path / "proof" / "claim.yaml"
    stated.write_text(stated.read_text().replace("./unit-1.yaml", str(folder / "half.fpcore")))
    checked = CliRunner().invoke(main, ["check", "proof"])
    assert (checked.exit_code, "names a file that is not in the folder" in checked.output) == (1, True), checked.output


def test_the_name_of_a_file_is_one_string(tmp_path: Path) -> None:
    (tmp_path / 'a"b\\c.yaml').write_text(UNQUOTED)
    written = CliRunner().invoke(main, ["export", str(tmp_path / 'a"b\\c.yaml'), "--format", "fpcore"])
    assert written.exit_code == 0, written.output
    (tmp_path / "core.fpcore").write_text(written.stdout)
    read = CliRunner().invoke(main, ["show", str(tmp_path / "core.fpcore")])
    assert "d: r(exact(a[0] * b[0], c))" in read.stdout, read.output


UNQUOTED = """unit: x
formats: {a: f16, b: f16, c: f16, d: f16}
length: 1
steps: {d: "round(exact(a[0] * b[0], c), f16)"}
"""
