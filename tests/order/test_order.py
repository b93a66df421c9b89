"""`order`: the summation tree of a device of which nothing is known but its formats."""

from __future__ import annotations

import json
import re
import time
import zlib
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

import mmaprobe
from benchmarks.order import ORDERS, chain_tree, measure
from mmaprobe.cli.main import main
from mmaprobe.queries.compare.steady import AGAIN, ContradictionError
from mmaprobe.queries.order.ends import never_rounded
from mmaprobe.queries.order.nested import Nested
from mmaprobe.queries.order.reveal import Tree, UnrevealedError, reveal
from mmaprobe.queries.order.text import Outliner
from mmaprobe.queries.order.tree import (
    Leaf,
    Node,
    chain_of,
    hidden_leaves,
    in_order,
    leaves_of,
    masked_leaves,
    nodes_of,
)
from mmaprobe.runner.callable import SIDE, CallableDevice
from mmaprobe.runner.device_order import revealed
from mmaprobe.runner.devices import open_device
from mmaprobe.runner.model_device import ModelDevice
from mmaprobe.runner.protocol import DeviceError
from mmaprobe.smtmodel.arithmetic.display import exact_value
from mmaprobe.smtmodel.base.errors import InputError
from mmaprobe.smtmodel.evaluate.batch import evaluate_row
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.numbers import from_numbers, in_f64, type_of
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.inputs.signature import parse_signature, signature_of
from mmaprobe.smtmodel.inputs.vectors import Vector
from mmaprobe.smtmodel.units.unitfile import parse_unit
from tests.oracles.programs import PROGRAMS

pytestmark = pytest.mark.solvers

DEVICES = """
import numpy as np
calls = 0

def chain(a, b, c):
    global calls
    calls += 1
    assert a.shape[1] == b.shape[0] == 40
    for k in range(a.shape[1]):
        c = c + np.outer(a[:, k], b[k])
    return c

def products_first(a, b):
    return np.einsum("ik,kj->ijk", a, b).sum(axis=2, dtype=a.dtype)

def blocks(a, b):
    total = np.zeros((len(a), b.shape[1]), np.float32)
    for start in range(0, a.shape[1], 8):
        block = a[:, start] [:, None] * b[start]
        for k in range(start + 1, start + 8):
            block = block + np.outer(a[:, k], b[k])
        total = total + block
    return total

def fails(a, b):
    raise ZeroDivisionError("no")

def narrow(a, b):
    return (a @ b).astype(np.float16)

def fickle(a, b):
    global calls
    calls += 1
    return a @ b if calls < 3 else np.zeros((len(a), b.shape[1]), a.dtype)

other = 3
"""


@pytest.fixture(scope="module")
def devices(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("devices") / "mine.py"
    path.write_text(DEVICES)
    return str(path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["order", *arguments], standalone_mode=True)


def document(*arguments: str) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def outline(device: str, formats: str, length: int) -> list[str]:
    found: list[str] = document("--device", device, "--formats", formats, "--length", str(length))["outline"]
    return found


# -- trees


@pytest.mark.parametrize("name", ORDERS)
def test_orders_of_libraries_and_units(name: str) -> None:
    questions, _ = measure(name, 64)
    assert questions <= 64 * 9


def test_questions_of_long_sums_grow_like_k_log_k() -> None:
    few, many = (measure("in pairs", length)[0] for length in (128, 512))
    assert many < 4 * few * 9 / 7 * 1.1


@pytest.mark.parametrize(
    ("model", "formats", "length", "expected"),
    [
        ("x86/amx/tdpbf16ps", "bf16,bf16,f32,f32", 32,
         ["added", "├─ c", "└─ added", "   ├─ 0,2..30 (added one after another)",
          "   └─ 1,3..31 (added one after another)"]),
        ("x86/avx512/vdpbf16ps", "bf16,bf16,f32,f32", 2, ["added", "├─ added", "│  ├─ c", "│  └─ 1", "└─ 0"]),
        ("ieee/fma/f32@length=80", "f32,f32,f32,f32", 80, ["c, 0-79 (added one after another)"]),
        ("turing/mma/m16n8k8.f32.f16.f16.f32@length=64,block=8", "f16,f16,f32,f32", 64,
         ["one step after another", "├─ c",
          "└─ 8 times, each 8 products further: the sum so far and these, added in one step, "
           "aligned to the largest term",
          "   └─ 0-7"]),
        ("turing/mma/m16n8k8.f32.f16.f16.f32@length=1", "f16,f16,f32,f32", 1, ["added", "├─ c", "└─ 0"]),
    ],
)  # fmt: skip
def test_models(model: str, formats: str, length: int, expected: list[str]) -> None:
    assert outline(f"model:{model}", formats, length) == expected


def test_a_sum_in_few_bits_is_counted_in_groups() -> None:
    """2^8 units are all that bf16 counts."""
    bf16 = pytest.importorskip("ml_dtypes").bfloat16

    def ask(vectors: Any) -> list[int]:
        a, b = (np.array([side(v) for v in vectors], dtype=np.uint16).view(bf16)
                for side in (lambda v: v.operands.a, lambda v: v.operands.b))  # fmt: skip
        terms = a * b
        total = terms[:, 599]
        for k in range(599):
            total = total + terms[:, k]
        return [int(d) for d in total.view(np.uint16)]

    asked = parse_signature("bf16,bf16,bf16", 600)
    with np.errstate(over="ignore", invalid="ignore"):
        tree = reveal(ask, asked, addend=False)
    _, *terms = tree.outline().lines()
    assert terms == ["├─ 599", "└─ 0-598 (added one after another)"]
    assert len(tree.questions) < 1.7 * 600  # 3 for each group of every mask before


def test_what_is_hidden_in_a_group_tells_of_the_others() -> None:
    """Masks on 0 and another leaf of a tree; one on 7 spares fewer than one that hides as much of its own group."""
    root = chain_of([0, 1, 2, Node("binary", (3, 9)), Node("fused", (4, 5, 10)), Node("fused", (6, 7)), 8, 11])
    pairs = [(0, leaf) for leaf in range(1, 12)]
    spares = {pair: frozenset(range(12)) - hidden for pair, hidden in
              zip(pairs, hidden_leaves(root, pairs), strict=True)}  # fmt: skip
    table = masked_leaves(root)
    assert all(len(spares[pair]) == 12 - table[pair] for pair in pairs)
    groups = [range(4), range(4, 8), range(8, 12)]
    asked: list[Any] = []

    def left(hides: Any) -> dict[Any, int]:
        def counts(some: Any) -> list[int]:
            asked.extend(some)
            return [len(hides[pair] & {*group}) for pair, group in some]

        return Nested(counts, groups, pairs, 0).left()

    assert left(spares) == {pair: len(spares[pair]) for pair in pairs}
    assert len(asked) < 3 * len(pairs)
    found = left(spares | {(0, 5): spares[0, 5] - {8, 11, 1, 2}})
    assert {pair: len(spares[pair]) for pair in pairs if pair != (0, 5)} == found


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (["c", 0, 1, 2], ["c, 0-2 (added one after another)"]),
        ([0, 1, 2, "c"], ["added", "├─ c", "└─ 0-2 (added one after another)"]),
        ([2, 1, 0], ["added", "├─ added", "│  ├─ 1", "│  └─ 2", "└─ 0"]),
        ([*range(9)][::-1], ["one step after another", "└─ 8, 7 .. 0 (added one after another)"]),
        (["c", 0, 2, 4, 6, 1, 3, 5, 7], ["c, 0,2..6, 1,3..7 (added one after another)"]),
        (["c", 1, 0, 5, 4], ["c, 1, 0, 5, 4 (added one after another)"]),
        (
            ["c", *(k + at for k in range(0, 40, 4) for at in (3, 0, 1, 2)), 41, 40],
            [
                "one step after another",
                "├─ c",
                "├─ 10 times, each 4 products further: the sum so far and these, one after another",
                *("│  ├─ 3", "│  ├─ 0", "│  ├─ 1", "│  └─ 2"),
                *("├─ 41", "└─ 40"),
            ],
        ),
    ],
)
def test_a_chain_is_drawn_in_its_own_order(order: list[Leaf], expected: list[str]) -> None:
    drawn = Outliner(in_order(chain_tree(order))).outline().lines()
    assert drawn == expected


# -- both ends


def ends(device: str, formats: str, length: int) -> dict[str, Any]:
    return document("--device", device, "--formats", formats, "--length", str(length))


@pytest.mark.parametrize(
    ("formats", "told"),
    [
        ("e2m1,e2m1,e4m3", "each fits e4m3, so that rounding it first would change nothing"),  # 6 * 6 = 36
        ("e2m1,e3m2,e4m3", ""),  # 3 * 7 = 21 has five digits
        ("e4m3,e4m3,f16", "none has more bits than f16, so that rounding it first would change only those that "
         "overflow there or are subnormal"),  # 448 * 448
        ("int8,int8,int16", "each fits int16, so that rounding it first would change nothing"),
    ],
)  # fmt: skip
def test_what_is_said_of_products_that_are_not_asked(formats: str, told: str) -> None:
    asked = parse_signature(formats, 2, longest=2)
    a, b, d = (
        {value for pattern in range(1 << fmt.width) if isinstance(value := exact_value(pattern, fmt), Fraction)}
        for fmt in (asked.a, asked.b, asked.d)
    )
    assert told.startswith("each fits") is ({x * y for x in a for y in b} <= d)
    assert never_rounded(asked) == told


def test_fused_products_are_told_from_rounded_ones(devices: str) -> None:
    fused = ends("model:ieee/fma/f32@length=6", "f32,f32,f32,f32", 6)
    assert (fused["products_fused"], fused["products_rounded"], fused["starts_from"]) == ([*range(6)], [], "c")
    rounded = ends(f"python:{devices}:chain", "f64,f64,f64,f64", 40)
    assert (rounded["products_fused"], rounded["products_rounded"]) == ([], [*range(40)])
    amx = ends("model:x86/amx/tdpbf16ps", "bf16,bf16,f32,f32", 32)
    assert "only those that overflow there or are subnormal" in amx["products_not_told"]
    assert amx["starts_from"].startswith("+0 (or the first product")
    told = ends("model:ieee/fma/f32.f16.f16.f32@length=3", "f16,f16,f32,f32", 3)["products_not_told"]
    assert told == "each fits f32, so that rounding it first would change nothing"
    first = ends(f"python:{devices}:blocks", "f32,f32,f32", 48)
    assert first["starts_from"].startswith("+0")
    assert first["outline"][1].startswith("├─ 0-7")


def ends_of_unit(folder: Path, text: str, formats: str) -> dict[str, Any]:
    """The document about a unit of three products."""
    (folder / "unit.yaml").write_text(text)
    return ends(f"model:{folder / 'unit.yaml'}", formats, 3)


ONE_ROUNDED = """
unit: one-rounded
formats: {a: A, b: B, c: D, d: D}
length: 3
roundings: {r: 'round(D, nearest_even)'}
steps: {x: 'r(exact(a[0] * b[0], c))', y: 'r(exact(a[1] * b[1], x))', d: 'r(exact(r(a[2] * b[2]), y))'}
"""


@pytest.mark.parametrize(
    ("a", "b", "d", "said"),
    [
        ("f16", "f16", "f32", "each fits f32"),
        ("e4m3", "e5m2", "bf16", "each fits bf16"),
        ("bf16", "bf16", "f32", "none has more bits than f32"),
        ("e4m3", "e4m3", "f16", "none has more bits than f16"),
        ("e5m4_ieee", "e5m4_ieee", "e5m8_ieee", "none with a bit below the last place of e5m8_ieee"),
        ("bf16", "f32", "f32", ""),
        ("f32", "bf16", "f32", ""),
        ("f16", "bf16", "bf16", ""),
        ("e5m4_ieee", "e5m4_ieee", "e5m7_ieee", ""),
    ],
)
def test_products_that_fit_are_no_others(tmp_path: Path, a: str, b: str, d: str, said: str) -> None:
    """Products of numbers of 8 and 24 bits have 32, those of two of 5 bits have 10; bf16's overflow f32."""
    text = re.sub(r"\b[ABD]\b", lambda letter: {"A": a, "B": b, "D": d}[letter[0]], ONE_ROUNDED)
    found = ends_of_unit(tmp_path, text, f"{a},{b},{d},{d}")
    if said:
        assert found["products_not_told"].startswith(said)
    else:
        assert (found["products_fused"], found["products_rounded"]) == ([0, 1], [2])


OF_EITHER_START = """
unit: rounded
formats: {a: f16, b: f16, c: f32, d: f32}
length: 3
roundings: {r: 'round(f32, MODE)'}
steps: {s: 'repeat(k in range(START, 3), FIRST, r(exact(acc, a[k] * b[k])))', d: 'r(exact(s, c))'}
"""


@pytest.mark.parametrize(
    ("mode", "start", "first", "said"),
    [
        ("down", "0", "+0", "the first product (or +0, as terms that cancel give -0)"),
        ("down", "1", "r(a[0] * b[0])", "the first product (or +0, as terms that cancel give -0)"),
        ("nearest_even", "0", "+0", "+0 (or the first product, if every zero sum is +0 here)"),
        ("nearest_even", "1", "r(a[0] * b[0])", "the first product"),
    ],
)
def test_a_start_that_changes_no_sum_is_not_ruled_out(
    tmp_path: Path, mode: str, start: str, first: str, said: str
) -> None:
    """Rounded down, +0 and -0 are -0, as are -0 and -0."""
    text = OF_EITHER_START.replace("MODE", mode).replace("START", start).replace("FIRST", first)
    assert ends_of_unit(tmp_path, text, "f16,f16,f32,f32")["starts_from"] == said


def test_factors_without_a_negative_zero_show_the_start(tmp_path: Path) -> None:
    """The pattern of -0 is the NaN of e4m3fnuz: products that are -0 are those of -1 and +0."""
    text = OF_EITHER_START.replace("MODE", "nearest_even").replace("START", "1").replace("FIRST", "r(a[0] * b[0])")
    fnuz = re.sub(r"{a: \w+, b: \w+", "{a: e4m3fnuz, b: e4m3fnuz", text)
    assert ends_of_unit(tmp_path, fnuz, "e4m3fnuz,e4m3fnuz,f32,f32")["starts_from"] == "the first product"


ALIGNED = """
unit: aligned
formats: {a: A, b: A, c: C, d: D}
length: 3
roundings: {r: 'round(D, nearest_even)'}
steps: {d: 'r(fused(a[0:3] * b[0:3], c, F=14))'}
"""


@pytest.mark.parametrize(
    ("a", "c", "d", "said"),
    [
        (
            "f16",
            "f16",
            "f16",
            "products rounded before they are added, added to +0 first, or cut where terms are aligned: 0-2",
        ),
        (
            "f32",
            "bf16",
            "f32",
            "products: none with a bit below the last place of f32 suits the question whether they are rounded",
        ),
    ],
)
def test_products_that_lose_bits_are_not_all_rounded(tmp_path: Path, a: str, c: str, d: str, said: str) -> None:
    """An aligned sum cuts them. Products of f32 have many bits below those of f32, but c in bf16 has no such bits."""
    file = tmp_path / "unit.yaml"
    file.write_text(re.sub(r"\b[ACD]\b", lambda letter: {"A": a, "C": c, "D": d}[letter[0]], ALIGNED))
    assert f"  {said}" in run("--device", f"model:{file}").stderr.splitlines()


def test_the_text_says_both_ends() -> None:
    result = run("--device", "model:ieee/fma/f32@length=6", "--formats", "f32,f32,f32,f32", "--length", "6")
    assert result.exit_code == 0
    assert result.stdout == ""
    shown = result.stderr.splitlines()
    assert shown[:2] == ["summation order of c and 6 products (f32 * f32, c in f32, results in f32):",
                        "  c, 0-5 (added one after another)"]  # fmt: skip
    assert "  starts from: c" in shown
    assert "  products not rounded to the result's format before they are added: 0-5" in shown


# -- files


def test_recorded_questions_are_answered_again(tmp_path: Path) -> None:
    file, common = tmp_path / "seen.jsonl", ("--formats", "f16,f16,f32,f32", "--length", "8")
    first = document("--device", "model:turing/mma/m16n8k8.f32.f16.f16.f32", *common, "-o", str(file))
    again = document("--device", f"recorded:{file}", *common)
    assert again["steps"] == first["steps"] == [{"kind": "fused", "terms": ["c", *range(8)], "steps": []}]
    assert len(file.read_text().splitlines()) == first["questions"]
    rows = file.read_text().splitlines()
    file.write_text("\n".join(rows[: len(rows) // 2]))
    cut = run("--device", f"recorded:{file}", *common)
    assert cut.exit_code == 3
    assert "no answer is recorded" in cut.stderr


def test_the_drawing(tmp_path: Path) -> None:
    file = tmp_path / "tree.svg"
    document("--device", "model:x86/amx/tdpbf16ps", "--formats", "bf16,bf16,f32,f32", "--length", "32",
             "--svg", str(file))  # fmt: skip
    text = file.read_text()
    assert text.count("<rect") == 2 + 5  # the paper and a pattern beside the boxes
    assert "0,2..30 (added one after another)" in text


# -- what goes wrong


@pytest.mark.parametrize(
    ("name", "formats", "code", "message"),
    [
        ("fails", "f32,f32,f32", 3, "ZeroDivisionError: no"),
        ("narrow", "f32,f32,f32", 3, "elements of float16, not of float32 (f32)"),
        ("products_first", "f32,f32,f32,f32", 2, "takes no addend: give three formats, a,b,d"),
        ("other", "f32,f32,f32", 2, "unknown function"),
        ("chain", "f32,f32", 2, "give a,b,c,d"),
        ("chain", "f32,f32,f31", 2, "did you mean"),
        ("chain", "f32,f32,ue8m0", 2, "scale factors"),
    ],
)
def test_errors(devices: str, name: str, formats: str, code: int, message: str) -> None:
    result = run("--device", f"python:{devices}:{name}", "--formats", formats, "--length", "16")
    assert (result.exit_code, message in result.stderr) == (code, True), result.stderr


def test_instructions_have_their_own_formats_and_length() -> None:
    given = ("--formats", "bf16,bf16,f32,f32", "--length", "32")
    first, own = (document("--device", "model:x86/amx/tdpbf16ps", *more) for more in (given, ()))
    assert {**own, "seconds": 0, "produced": 0} == {**first, "seconds": 0, "produced": 0}
    for more in ([], ["--length", "32"], ["--formats", "bf16,bf16,f32,f32"]):
        device = "command:./none" if not more else "model:x86/amx/tdpbf16ps"
        found = run("--device", device, *more)
        assert (found.exit_code, "give --formats and --length" in found.stderr) == (2, True)


def test_a_plan_without_an_addend() -> None:
    """Its c is no leaf; asked all the same, it says what to do."""
    plan = "model:plan:cublas/plain@length=16"
    assert document("--device", plan)["formats"] == {"a": "f16", "b": "f16", "d": "f16"}
    for formats, code, says in (
        ("f16,f16,f16,f16", 2, "takes no addend: give three formats, a,b,d"),
        ("f16,f16,f32", 2, "takes other formats than those asked for (f16 f16 f16, not f16 f16 f32)"),
    ):
        result = run("--device", plan, "--formats", formats, "--length", "16")
        assert (result.exit_code, says in result.stderr) == (code, True), result.stderr


def test_a_plan_has_its_own_formats() -> None:
    """And the length that is asked for; a function is told what to give."""
    whole = document("--device", "model:plan:cublas/split-k@length=32")
    given = document("--device", "model:plan:cublas/split-k", "--length", "32")
    assert {**given, "seconds": 0, "produced": 0} == {**whole, "seconds": 0, "produced": 0}
    for words, says in (
        (["--device", "model:plan:cublas/split-k"], "--device model:plan:cublas/split-k --length 64"),
        (["--device", "model:plan:cublas/split-k@length=16", "--length", "32"], "takes 16 products"),
        (
            ["--device", "python:mine.py:matmul", "--length", "32"],
            "for example --formats f32,f32,f32 --length 64 (a, b",
        ),
    ):
        result = run(*words)
        assert (result.exit_code, says in result.stderr) == (2, True), result.stderr


def test_a_device_that_contradicts_itself(devices: str) -> None:
    result = run("--device", f"python:{devices}:fickle", "--formats", "f32,f32,f32", "--length", "16")
    assert result.exit_code == 3


def test_where_ranges_are_too_narrow_what_was_seen_is_said() -> None:
    result = run("--device", "model:blackwell/tcgen05mma/m64n8k32.f32.e3m2.e3m2", "--formats", "e3m2,e3m2,f32,f32",
                 "--length", "32")  # fmt: skip
    assert result.exit_code == 3
    assert "too narrow" in result.stderr


def one_by_one(a: Any, b: Any) -> Any:
    """A product of matrices whose sums are formed one product after another, in every place."""
    total = np.zeros((a.shape[0], b.shape[1]), dtype=a.dtype)
    for k in range(a.shape[1]):
        total = total + np.outer(a[:, k], b[k])
    return total


def test_places_that_answer_otherwise_are_not_told() -> None:
    def edged(a: Any, b: Any) -> Any:
        total = one_by_one(a[:, ::-1], b[::-1])
        total[:48, :40] = one_by_one(a, b)[:48, :40]
        return total

    asked, found = parse_signature("f32,f32,f32", 16), []
    for function in (one_by_one, edged):
        with CallableDevice(function, "edged") as device:
            tree: Tree = reveal(
                lambda v, device=device: [d or 0 for _, d in device.answers(v)],  # type: ignore[misc]
                asked,
                addend=False,
            )
        found.append((tree.outline().lines(), "places" in device.description))
    assert found == [(found[0][0], False), (found[0][0], True)]
    shown = [mmaprobe.order(function, "f32,f32,f32", 16) for function in (one_by_one, edged)]
    assert [("places" not in order.document.device, "places" in str(order)) for order in shown] == [
        (True, False),
        (False, True),
    ]


def test_a_function_that_fails_names_the_question() -> None:
    def broken(a: Any, b: Any) -> Any:
        raise ArithmeticError("no")

    question = Vector(parse_signature("f32,f32,f32", 2), Operands((), (), 0), id="first")
    with CallableDevice(broken, "broken") as device, pytest.raises(DeviceError) as caught:
        list(device.answers([question]))
    assert caught.value.vector is question


def test_a_function_answers_many_questions_in_one_call(devices: str) -> None:
    calls: list[tuple[int, ...]] = []

    def counted(a: Any, b: Any) -> Any:
        calls.append((*a.shape, *b.shape))
        return one_by_one(a, b)

    asked = parse_signature("f32,f32,f32", 128)
    with CallableDevice(counted, "counted") as device:
        tree: Tree = reveal(lambda v: [d or 0 for _, d in device.answers(v)], asked, addend=False)
    assert set(calls) == {(SIDE, 128, 128, SIDE)}
    assert len(calls) < len(tree.questions) / 8
    with pytest.raises(InputError, match=r"a function of \(a, b, c\), or"):
        CallableDevice(lambda: None, "none")
    with pytest.raises(InputError, match=r"python:FILE\.py:FUNCTION"):
        open_device("python:x")
    with pytest.raises(DeviceError), open_device(f"python:{devices}:fails") as device:
        reveal(lambda vectors: [d or 0 for _, d in device.answers(vectors)], asked, addend=False)


@pytest.mark.parametrize(("factor", "shown"), [(0.7, True), (-0.3, True), (0.0, False)])
def test_a_factor_that_is_no_power_of_two(factor: float, shown: bool) -> None:
    def scaled(a: Any, b: Any) -> Any:
        return np.float32(factor) * one_by_one(a, b)

    with CallableDevice(scaled, "scaled") as device, pytest.raises(UnrevealedError) as caught:
        reveal(
            lambda vectors: [d or 0 for _, d in device.answers(vectors)],
            parse_signature("f32,f32,f32", 4),
            addend=False,
        )
    assert ("a factor that is no power of two" in str(caught.value)) == shown


@pytest.mark.parametrize("formats", ["e4m3,e4m3,f32", "f32,f32,f32"])
@pytest.mark.parametrize("scale", [1.5, -1.5])
def test_blocks_with_scales_that_are_no_powers_of_two(scale: float, formats: str) -> None:
    """The scale is named: of FP8 a product was said to count too much or too little for the formats."""

    def scaled(a: Any, b: Any) -> Any:
        a, b = (np.asarray(side).astype(np.float32) for side in (a, b))
        total = np.zeros((len(a), b.shape[1]), np.float32)
        for place in range(0, a.shape[1], 8):
            part = one_by_one(a[:, place : place + 8], b[place : place + 8])
            total += part * np.float32(scale if place % 16 else 0.5)
        return total

    with CallableDevice(scaled, "scaled") as device, pytest.raises(UnrevealedError) as caught:
        reveal(lambda asked: [d or 0 for _, d in device.answers(asked)], parse_signature(formats, 32), addend=False)
    why = "product 8 counts 1.5 times, product 0 0.5 times; an order is found if these factors are powers of two"
    assert why in str(caught.value)


@pytest.mark.parametrize("formats", ["f32,f32,f32", "f16,f16,f16", "bf16,bf16,bf16"])
@pytest.mark.parametrize("factor", [0.7, -1.5, 0.3, 40])
def test_a_tree_beside_a_factor(formats: str, factor: float) -> None:
    asked = parse_signature(formats, 40)

    def scaled(a: Any, b: Any) -> Any:
        a, b = (side.astype(np.float32) for side in (a, b))
        parts = [one_by_one(a[:, k : k + 7], b[k : k + 7]) for k in range(0, 40, 7)]
        return (np.float32(factor) * sum(parts[1:], start=parts[0])).astype(type_of(asked.d))

    with CallableDevice(scaled, "scaled") as device, np.errstate(over="ignore"):
        tree: Tree = reveal(lambda v: [d or 0 for _, d in device.answers(v)], asked, addend=False, any_factor=True)
    assert set(leaves_of(tree.root)) == set(range(40))
    runs = {tuple(leaves_of(node)) for node in nodes_of(tree.root)}
    assert {tuple(range(k, min(k + 7, 40))) for k in range(0, 40, 7)} <= {tuple(sorted(run)) for run in runs}
    assert all(node.kind == "binary" for node in nodes_of(tree.root))


def test_a_constant_is_no_sum() -> None:
    with pytest.raises(UnrevealedError, match="do not add up exactly"):
        reveal(lambda vectors: [0] * len(vectors), parse_signature("f32,f32,f32", 16), addend=False)


@pytest.mark.parametrize(
    ("steps", "lines"),
    [
        ("o(exact(c, o(exact(o(exact(a[0] * b[0], a[1] * b[1])), o(exact(a[2] * b[2], a[3] * b[3]))))))",
         ["added", "├─ c", "└─ 0-3 (added in pairs)"]),
        ("repeat(k in range(4), c, o(exact(acc, a[k] * b[k])))", ["c, 0-3 (added one after another)"]),
        ("o(fused(a[0:4] * b[0:4], c, F=26, sticky=true))",
         ["added in one step, aligned to the largest term", "├─ c", "└─ 0-3"]),
    ],
)  # fmt: skip
def test_what_a_mask_leaves_behind_hides_nothing(steps: str, lines: list[str]) -> None:
    """A rounding to odd, and a sticky bit, keep a trace of what a mask swallows: units are counted beside it."""
    text = f"""unit: x
formats: {{a: bf16, b: bf16, c: f32, d: f32}}
length: 4
roundings: {{o: "round(f32, to_odd)"}}
steps: {{d: "{steps}"}}
"""
    unit = parse_unit(text, "x.yaml")
    model = Model("x", unit)
    tree = reveal(lambda vectors: [evaluate_row(model, vector.operands) for vector in vectors], model)
    assert tree.outline().lines() == lines
    assert len(tree.questions) < 60


@pytest.mark.parametrize(
    ("name", "lines", "most"),
    [
        ("npu-tree-f16-16", ["added", "├─ c", "└─ 0-15 (added in pairs)"], 450),
        ("npu-tree-bf16-8", ["added", "├─ c", "└─ 0-7 (added in pairs)"], 250),
        ("odd-f16-tree-4", ["added", "├─ c", "└─ 0-3 (added in pairs)"], 200),
        ("tree-widths-4", ["added", "├─ c", "└─ 0-3 (added in pairs)"], 200),
        ("saturating-e4m3-8", ["c, 0-7 (added one after another)"], 200),
        (
            "group-odd-e4m3-16",
            [
                "added in one step without loss",
                "├─ c",
                "└─ 2 alike, each 8 products further; the first:",
                "   └─ added in one step without loss",
                "      └─ 0-7",
            ],
            300,
        ),
    ],
)
def test_units_are_counted_beside_traces_that_fill_a_narrow_result(name: str, lines: list[str], most: int) -> None:
    """Truncating steps leave a trace of the mask in every sum, and the result holds few bits beside it. Results in e4m3
    of sums in f32: only a mask larger than every result hides a unit. Sums in f16 below a result in bf16: no sum holds
    the result's largest mask, and the answers under it fit no tree."""
    unit = PROGRAMS[name]
    asked = parse_signature(unit.formats, unit.length)

    def answer(vector: Vector) -> int:
        return unit.result(vector.operands.a, vector.operands.b, vector.operands.c)

    tree = reveal(lambda vectors: list(map(answer, vectors)), asked)
    assert tree.outline().lines() == lines
    assert len(tree.questions) < most


@pytest.mark.parametrize(
    ("d", "terms"),
    [
        (
            "r(exact(c, r(exact(a[0] * b[0], a[1] * b[1], r(exact(a[2] * b[2], a[3] * b[3]))))))",
            [[2, 3], [0, 1], ["c"]],
        ),
        (
            "r(exact(c, r(exact(r(exact(a[0] * b[0], a[1] * b[1])), a[2] * b[2], a[3] * b[3]))))",
            [[0, 1], [2, 3], ["c"]],
        ),
    ],
)
def test_steps_without_loss_of_which_masks_hide_as_many_leaves(d: str, terms: list[list[Leaf]]) -> None:
    """A mask at 0 and 1 hides two leaves of both, one at 0 and 2 three of both."""
    text = f"""unit: x
formats: {{a: bf16, b: bf16, c: f32, d: f32}}
length: 4
roundings: {{r: "round(f32, nearest_even)"}}
steps: {{d: "{d}"}}
"""
    unit = parse_unit(text, "x.yaml")
    model = Model("x", unit)
    tree = reveal(lambda vectors: [evaluate_row(model, vector.operands) for vector in vectors], model)
    assert [step.terms for step in tree.steps()] == terms
    assert [step.kind for step in tree.steps()] == ["binary", "exact", "binary"]


@pytest.mark.parametrize(
    ("name", "first", "shown"),
    [
        ("fdot-fp8-scaled-4", "added in one step without loss", ["it multiplies every product by 2^-9"]),
        ("fmopa-fp8-f16-8", "added in one step without loss", ["it multiplies every product by 2^-4"]),
        ("c-halved-4", "c, 0-3 (added one after another)", ["it multiplies c by 2^-1"]),
        ("xvf64gernn-3", "c, 0-2 (added one after another)", ["it subtracts the products at 0,2 and c"]),
    ],
)
def test_terms_that_are_subtracted_or_scaled(name: str, first: str, shown: list[str]) -> None:
    """The powers of two at leaves are chosen so that the device adds what is meant; earlier questions stay as asked."""
    unit = PROGRAMS[name]

    def answer(vector: Vector) -> int:
        return unit.result(vector.operands.a, vector.operands.b, vector.operands.c)

    tree = reveal(lambda vectors: list(map(answer, vectors)), parse_signature(unit.formats, unit.length), ends=True)
    assert tree.outline().lines()[0] == first
    assert tree.ends is not None
    assert [line for line in tree.ends.lines() if line.startswith("it ")] == shown
    assert tree.ends.start == "c"
    assert not tree.ends.fused + tree.ends.rounded
    assert all(answer(question.vector) == question.d for question in tree.questions)


def _taken(a: Any, b: Any, c: Any, pairs: Sequence[tuple[int, int]]) -> Any:
    for k, other in pairs:
        c = c + a[:, k : k + 1].astype(np.float32) * b[other : other + 1].astype(np.float32)
    return c


ONCE = [(k, k) for k in range(6)]


@pytest.mark.parametrize(
    ("taken", "first", "shown"),
    [
        (lambda a, b, c: _taken(a, b, c, ONCE), "c, 0-5", []),
        (lambda a, b, c: _taken(a, b, c, [*ONCE, (3, 3)]), "c, 0-2,4-5", ["product k = 3 is added twice"]),
        (lambda a, b, c: _taken(a, b, c, [*ONCE[:2], (3, 3), *ONCE[3:]]), "c, 0-1,4-5",
         ["product k = 2 is not in the sum", "product k = 3 is added twice"]),
        (lambda a, b, c: _taken(a, b, c, [*ONCE[:4], (4, 3), (5, 5)]), "c, 0-3,5",
         ["product k = 4 is taken with the factor of B of the product before"]),
        (lambda a, b, c: _taken(np.where(np.arange(6) == 4, np.roll(a, -1, 0), a), b, c, ONCE), "c, 0-3,5",
         ["product k = 4 is taken with the next row of A"]),
    ],
)  # fmt: skip
def test_products_that_are_not_added_once(taken: Any, first: str, shown: list[str]) -> None:
    """The tree is of the others."""
    asked = parse_signature("f16,f16,f32,f32", 6)
    with CallableDevice(taken, "taken") as device:
        tree = revealed(device, asked, time.monotonic() + 60, lambda text: None, ends=True)
    assert tree.outline().lines() == [f"{first} (added one after another)"]
    assert tree.ends is not None
    assert [line for line in tree.ends.lines() if line.startswith("product ")] == shown


def test_a_vector_at_a_time_shows_what_is_added_twice(tmp_path: Path) -> None:
    text = """unit: x
formats: {a: f16, b: f16, c: f32, d: f32}
length: 4
roundings: {r: "round(f32, nearest_even)"}
steps:
  s: r(exact(c, a[0] * b[0]))
  t: r(exact(s, a[1] * b[1], a[2] * b[2]))
  d: r(exact(t, a[2] * b[2], a[3] * b[3]))
"""
    (tmp_path / "x.yaml").write_text(text)
    device = ModelDevice(str(tmp_path / "x.yaml"))
    tree = revealed(device, signature_of(device.model), time.monotonic() + 60, lambda text: None, ends=True)
    assert tree.ends is not None
    assert "product k = 2 is added twice" in tree.ends.lines()


@pytest.mark.parametrize("place", range(1, 62, 6))
def test_a_device_that_changes_late_contradicts_itself(place: int) -> None:
    """At the end two neighbours have changed places, which few questions show."""
    length = 64

    class Changing(CallableDevice):
        def again(self, vectors: Sequence[Vector]) -> list[int | None]:
            places = list(range(length))
            places[place : place + 2] = place + 1, place
            if len(vectors) > AGAIN:  # at the end, not after the first masks
                self.function = lambda a, b: one_by_one(a[:, places], b[places])
            return super().again(vectors)

    asked = parse_signature("f32,f32,f32", length)
    with Changing(one_by_one, "changing") as device, pytest.raises(ContradictionError):
        revealed(device, asked, time.monotonic() + 300, lambda text: None, ends=True)


def test_an_order_that_is_drawn_anew_is_found_out_early() -> None:
    """By the first masks, which are asked again at once."""
    chance, asked = np.random.default_rng(1), 0

    def drawn(a: Any, b: Any) -> Any:
        nonlocal asked
        asked += 1
        places = chance.permutation(a.shape[1])
        return one_by_one(a[:, places], b[places])

    formats = parse_signature("f32,f32,f32", 512)
    with CallableDevice(drawn, "drawn") as device, pytest.raises(ContradictionError):
        revealed(device, formats, time.monotonic() + 300, lambda text: None, ends=True)
    assert asked < 32


def test_an_order_that_depends_on_the_numbers_is_no_order() -> None:
    """Three pairs of leaves say so, before every pair is asked."""
    asked = 0

    def by_content(vectors: Sequence[Vector]) -> list[int]:
        nonlocal asked
        asked += len(vectors)
        results = []
        for operands in (vector.operands for vector in vectors):
            left, right = (np.array(side, np.uint32).view(np.float32) for side in (operands.a, operands.b))
            places = np.random.default_rng(zlib.crc32(left.tobytes())).permutation(len(left))
            results.append(int(np.cumsum((left * right)[places], dtype=np.float32)[-1].view(np.uint32)))
        return results

    with pytest.raises(UnrevealedError, match="as in no order of additions; the order may depend on the numbers"):
        reveal(by_content, parse_signature("f32,f32,f32", 256), addend=False)
    assert asked < 256 * 255 // 4


def test_what_is_asked_again_ends_with_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    class Slow(CallableDevice):
        asked: int = 0

        def again(self, vectors: Sequence[Vector]) -> list[int | None]:
            if len(vectors) <= AGAIN:  # after the first masks, not at the end
                return super().again(vectors)
            self.asked += len(vectors)
            monkeypatch.setattr("mmaprobe.runner.device_order.time.monotonic", lambda: float("inf"))
            return super().again(vectors)

    with Slow(one_by_one, "slow") as device:
        tree = revealed(device, parse_signature("f32,f32,f32", 64), 1e9, lambda text: None, ends=True)
    assert device.asked == SIDE < len(tree.questions)


def test_answers_to_larger_masks_do_not_count_for_smaller_ones() -> None:
    """Sums in f16 overflow at the masks that results in e5m2 would not show; the widest smaller masks suffice."""
    asked = parse_signature("f16,f16,e5m2", 20)

    @np.errstate(all="ignore")
    def ask(vectors: Sequence[Vector]) -> list[int]:
        a, b = (
            in_f64(np.array([getattr(vector.operands, side) for vector in vectors], np.uint64), asked.a)
            for side in "ab"
        )
        total = np.zeros(len(vectors), np.float16)
        for product in (a * b).T:
            total = (total + product).astype(np.float16)
        return list(map(int, from_numbers(total.astype(np.float32), asked.d, "nearest_even")))

    tree = reveal(ask, asked, addend=False)
    assert tree.outline().lines() == ["0-19 (added one after another)"]
    assert (tree.span.mask, tree.span.unit) == (asked.d.emax, asked.d.unit)
