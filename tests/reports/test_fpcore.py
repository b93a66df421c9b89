"""FPCore: what is written, read by a small evaluator of its own, gives the unit's results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import pytest
from click.testing import CliRunner

from mmaprobe.cli.main import main
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch
from mmaprobe.smtmodel.tables.reference import parse_reference
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

Expression = Any  # a symbol, or a list of expressions


def parsed(text: str) -> Expression:
    def read(words: Iterator[str]) -> Iterator[Expression]:
        for word in words:
            if word == ")":
                return
            yield list(read(words)) if word == "(" else word

    (found,) = read(iter(re.findall(r'"[^"]*"|[()]|[^\s()]+', text)))
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


def value_of(given: Expression, names: Mapping[str, Any], precision: Expression = "real", mode: str = "") -> Any:
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
    if head == "digits":
        return int(rest[0]) * Fraction(int(rest[2])) ** int(rest[1])
    values = [value_of(one, names, precision, mode) for one in rest]
    if any(isinstance(value, str) for value in values):
        return "infinite"
    if head == "cast":
        return cast(values[0], precision, mode)
    assert precision == "real"
    return {"+": lambda: values[0] + values[1], "*": lambda: values[0] * values[1]}[head]()


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
