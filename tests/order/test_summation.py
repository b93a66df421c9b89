"""The order of a sum is revealed from answers alone, for every structure of the table and unusual ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from mmaprobe.documents.identify import OrderStep
from mmaprobe.queries.order.reveal import Tree, UnrevealedError, reveal
from mmaprobe.queries.order.text import Outliner
from mmaprobe.queries.order.tree import Node, compact, masked_leaves
from mmaprobe.smtmodel.evaluate.batch import evaluate_batch, evaluate_row
from mmaprobe.smtmodel.evaluate.model import Model
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.families.member import FUNCTIONS
from mmaprobe.smtmodel.inputs.vectors import Vector
from mmaprobe.smtmodel.tables.instructions import INSTRUCTIONS
from mmaprobe.smtmodel.tables.reference import parse_reference, with_parameters
from tests.oracles.family_oracle import IN_WORDS, parameters_of
from tests.search.test_distinguish import result

VOLTA = "volta/mma/m8n8k4.f32.f16.f16.f32"
TURING = "turing/mma/m16n8k8.f32.f16.f16.f32"
AMPERE = "ampere/mma/m16n8k16.f32.f16.f16.f32"
ADA = "ada-lovelace/mma/m16n8k32.f32.e4m3.e4m3.f32"
HOPPER = "hopper/mma/m16n8k32.f16.e4m3.e4m3.f16"
CDNA1, CDNA2, CDNA3 = (f"cdna{n}/mfma/f32_16x16x16{'_' if n == 3 else ''}f16" for n in (1, 2, 3))
EVEN_ODD = "cdna3/mfma/f32_16x16x32_fp8_fp8"


def device(model: Model) -> Callable[[Vector], int]:
    """Answers what a model computes; long sums by the oracle, which is faster for single vectors."""
    return lambda vector: (result if model.length > 8 else evaluate_row)(model, vector.operands)


def arithmetic_free(model: Model) -> Model:
    """The model's formats, length and scale factors with another arithmetic than its own."""
    scales = {} if model.scale is None else {"scale_format": model.scale.name, "scale_block": model.scale_block}
    plain = FUNCTIONS["t-fdpa"](length=model.length, output=model.d.name, fraction_bits=7, **scales)
    return Model.of(model.reference, model.a, model.b, model.c, plain)


@cache
def revealed(reference: str) -> Tree:
    model = parse_reference(reference)
    return reveal(lambda vectors: list(map(device(model), vectors)), arithmetic_free(model))


def structures() -> list[str]:
    """One instruction for every distinct structure in the table."""
    found: dict[tuple[Any, ...], str] = {}
    for reference, row in INSTRUCTIONS.items():
        names = ("length", "block", "block_order", "group", "scale_format", "partials")
        found.setdefault((row.family, *(row.member.values.get(name) for name in names)), reference)
    return list(found.values())


NARROW = "blackwell/tcgen05mma_block_scale/m64n8k64.block16.f32.e2m1.e2m1.ue4m3"


@pytest.mark.parametrize("reference", [name for name in structures() if name != NARROW])
def test_every_structure_of_the_table(reference: str) -> None:
    model, tree = parse_reference(reference), revealed(reference)
    assert model.member is not None
    known, blocks = model.member.family in IN_WORDS, model.blocks
    words = parameters_of(model) if known else {"addend": "after"}
    assert tree.admits(model.unit)
    assert tree.blocks() == blocks
    halves = words.get("grouping") == "even_odd"
    assert tree.parts or not halves
    for products, parts in tree.parts.items():
        assert parts == ((products[::2], products[1::2]) if halves else (products,))
    assert len(blocks[0]) == 1 or not any("one after another)" in line for line in tree.draw())
    if words.get("operation") == "add_mul":
        assert len(blocks[0]) == words["group"]
        assert sum("(added in pairs)" in line for line in tree.draw()) == (words["group"] > 2) * len(blocks)
        assert tree.addend == ("late" if len(blocks) > 1 else "after")
    else:
        assert tree.addend in (words.get("addend", "fused"), None)
    assert all(question.vector.id == number for number, question in enumerate(tree.questions, start=1))


ORDERS = [
    f"{VOLTA}@block_order=0-3:1-2",
    f"{VOLTA}@block_order=3:1:0:2",
    f"{TURING}@block_order=4-5-6-7:0-1-2-3",
    f"{TURING}@block_order=0-5:2-7:1-4:3-6",
    f"{TURING}@block_order=6-7:4-5:2-3:0-1,family=emulated-fp8",
    f"{TURING}@block=4,block_order=interleaved_pairs",
    f"{TURING}@block=4,family=emulated-fp8",
    f"{TURING}@family=emulated-fp8",
    f"{TURING}@block=2,fraction_bits=exact,block_order=6-7:4-5:2-3:0-1",
    f"{TURING}@fraction_bits=exact,block_order=4-6-1-3:0-2-5-7",
    f"{TURING}@align_rounding=sticky,block=4",
    f"{TURING}@block=4,align_rounding=nearest_even,output_rounding=down",
    f"{TURING}@block=4,fraction_bits=exact,output_rounding=up",
    f"{TURING}@fraction_bits=exact,block=2,output_rounding=toward_zero",
    f"{AMPERE}@block_order=3-7-11-15:2-6-10-14:1-5-9-13:0-4-8-12",
    f"{ADA}@block=8",
    f"{HOPPER}@block_order=contiguous,block=8",
    f"{CDNA3}@block_order=8-9-10-11-12-13-14-15:0-1-2-3-4-5-6-7",
    f"{EVEN_ODD}@length=16,block=8",
    "ieee/fma/f32@length=6",
    "ieee/fma/f16@length=5",
]


@pytest.mark.parametrize("reference", ORDERS)
def test_unusual_orders(reference: str) -> None:
    model, tree = parse_reference(reference), revealed(reference)
    assert tree.admits(model.unit)
    assert tree.blocks() == tuple(tuple(sorted(block)) for block in model.blocks)
    assert tree.addend in (parameters_of(model).get("addend", "fused"), None)
    if "block_order" in parameters_of(model):
        contiguous = with_parameters(model, {"block_order": "contiguous"})
        assert tree.admits(contiguous.unit) == (tree.blocks() == contiguous.blocks)


def test_partial_sums_in_index_order() -> None:
    tree = revealed(f"{TURING}@block=4,partials=normalised")
    assert (tree.blocks(), tree.addend) == (((0, 1, 2, 3), (4, 5, 6, 7)), "late")
    assert sum("(added one after another)" in line for line in tree.draw()) == 2
    assert tree.admits(parse_reference(f"{TURING}@block=4,partials=normalised").unit)
    assert not tree.admits(parse_reference(f"{TURING}@block=4").unit)
    assert not tree.admits(parse_reference(f"{TURING}@partials=normalised").unit)
    assert "├─ c" in "\n".join(tree.draw())
    assert any(line.endswith("4-7 (added one after another)") for line in tree.draw())


# -- candidates

CANDIDATES = [
    *(f"{TURING}@block={block}" for block in (1, 2, 4, 8)),
    *(f"{TURING}@block={block},family=emulated-fp8" for block in (1, 2, 4, 8)),
    *(f"{TURING}@block={block},fraction_bits=exact" for block in (2, 4, 8)),
    *(f"{TURING}@block={block},partials=normalised" for block in (2, 4, 8)),
    f"{TURING}@block=4,block_order=interleaved_pairs",
    f"{TURING}@block_order=4-5-6-7:0-1-2-3",
    f"{TURING}@block_order=3-2-1-0:7-6-5-4",
    f"{TURING}@block=4,fraction_bits=exact,family=emulated-fp8",
    *(f"cdna3/mfma/f32_32x32x8_f16@block={block}" for block in (4, 8)),
    "cdna3/mfma/f32_32x32x8_f16@family=gtr-fdpa",
    "cdna2/mfma/f32_32x32x8f16",
    "cdna2/mfma/f32_32x32x8f16@group=2",
    "cdna1/mfma/f32_32x32x8f16",
]


@cache
def shown(reference: str) -> tuple[object, ...]:
    """What the arithmetic can show: units under a mask at every pair of leaves, and what looks inside of a step."""
    model = parse_reference(reference)
    model, words = with_parameters(model, {"output_rounding": "nearest_even"}), parameters_of(model)
    rows = []
    for pair in combinations(range(9), 2):
        a, b, c = [0x0400] * 8, [0x0400] * 8, (127 - 28) << 23  # units of 2^-28
        for leaf, sign in zip(pair, (0, 1), strict=True):
            if leaf == 8:
                c = sign << 31 | (127 + 30) << 23
            else:
                a[leaf], b[leaf] = sign << 15 | 0x7800, 0x7800  # a mask of 2^30
        rows.append((a, b, c))
    left = tuple(int(d) & 0x7FFFFFFF for d in evaluate_batch(model, *zip(*rows, strict=True)))
    return left, words.get("addend") == "late", words.get("grouping") == "even_odd"


@pytest.mark.parametrize("reference", CANDIDATES)
def test_candidates_are_admitted_that_give_the_same_answers(reference: str) -> None:
    tree = revealed(reference)
    admitted = {other for other in CANDIDATES if tree.admits(parse_reference(other).unit)}
    assert admitted == {other for other in CANDIDATES if shown(other) == shown(reference)}


def test_other_parameters_do_not_count() -> None:
    tree = revealed(AMPERE)
    for change in ("fraction_bits=13", "carry_bits=3", "product=normalised", "exponent_floor=none", "nan=7fc00000"):
        assert tree.admits(parse_reference(f"{AMPERE}@{change}").unit)
    assert not tree.admits(parse_reference(TURING).unit)


def test_order_inside_a_block_does_not_matter() -> None:
    tree = revealed(f"{TURING}@block=4")
    assert tree.admits(parse_reference(f"{TURING}@block_order=3-1-0-2:7-4-6-5").unit)
    assert not tree.admits(parse_reference(f"{TURING}@block_order=7-4-6-5:3-1-0-2").unit)


@pytest.mark.parametrize("change", ["fraction_bits=30,late_fraction_bits=24", "fraction_bits=30,family=gtr-fdpa"])
def test_units_lost_in_a_later_step_say_nothing_of_groups(change: str) -> None:
    reference = f"cdna3/mfma/f32_32x32x8_f16@late_rounding=toward_zero,output_rounding=up,{change}"
    tree = revealed(reference)
    assert tree.admits(parse_reference(reference).unit)
    assert all(parts in ((products,), (products[::2], products[1::2])) for products, parts in tree.parts.items())


# -- what cannot be revealed


def test_a_range_too_narrow_is_said() -> None:
    with pytest.raises(UnrevealedError, match=r"too narrow \(needs 2\^33 .* has 2\^16\)") as caught:
        revealed("blackwell/tcgen05mma/m64n8k32.f32.e3m2.e3m2")
    assert caught.value.exit_code == 3
    with pytest.raises(UnrevealedError, match=r"too narrow: a mask at .* hides numbers or not by their size") as caught:
        revealed(NARROW)
    assert caught.value.questions
    with pytest.raises(UnrevealedError, match="too narrow"):  # cut so far down that some units are kept
        revealed("ada-lovelace/mma/m16n8k16.f32.e4m3.e4m3.f32@fraction_bits=32")


def test_a_narrow_range_may_look_exact_and_says_how_far_it_reaches() -> None:
    reference = "blackwell/tcgen05mma/m64n8k32.f16.e4m3.e3m2"
    tree = revealed(reference)
    assert isinstance(tree.root, Node)
    assert tree.root.kind == "exact"
    assert tree.admits(parse_reference(reference).unit)
    assert not tree.admits(parse_reference(f"{reference}@fraction_bits=13").unit)
    assert any("within the 25 places" in line for line in tree.draw())


@pytest.mark.parametrize("answer", [0, 0x80000000, 0x7FFFFFFF, 0x7F800000, 0x3F800000])
def test_a_device_that_always_answers_the_same(answer: int) -> None:
    with pytest.raises(UnrevealedError, match=r"zeros give|do not add up exactly"):
        reveal(lambda vectors: [answer] * len(vectors), parse_reference(VOLTA))


BF16 = "ampere/mma/m16n8k16.f32.bf16.bf16.f32"


@pytest.mark.parametrize("change", ["exponent_floor=90", "fraction_bits=1", "carry_bits=0"])
def test_units_that_are_not_counted(change: str) -> None:
    """A zero term hides every unit, the running sum hides it, the sum wraps."""
    with pytest.raises(UnrevealedError, match="so that nothing can be counted: 2\\^"):
        revealed(f"{BF16}@{change}")


def test_answers_that_fit_no_tree() -> None:
    model = parse_reference(VOLTA)

    def odd(vector: Vector) -> int:
        """As if 0 and 1 were added first, and 1 and 2 as well."""
        a, b, c = vector.operands.a, vector.operands.b, vector.operands.c
        pair = [k for k, x in enumerate(a) if x & 0x7FFF > 0x5000]
        left = a if pair not in ([0, 1], [1, 2]) else tuple(x if k not in pair else 0 for k, x in enumerate(a))
        return evaluate_row(model, Operands(left, b, c))

    with pytest.raises(UnrevealedError) as caught:
        reveal(lambda vectors: list(map(odd, vectors)), model)
    assert len(caught.value.questions) > 10


def test_a_mask_that_leaves_nan_is_no_count() -> None:
    model = parse_reference(VOLTA)
    ask = device(model)

    def broken(vector: Vector) -> int:
        return 0x7FFFFFFF if sum(x & 0x7FFF > 0x5000 for x in vector.operands.a) == 2 else ask(vector)

    with pytest.raises(UnrevealedError, match="no number of units came back, but nan"):
        reveal(lambda vectors: list(map(broken, vectors)), model)


# -- cost, text and JSON


def test_few_questions() -> None:
    most = {VOLTA: 30, TURING: 55, AMPERE: 110, ADA: 140, EVEN_ODD: 215, CDNA1: 70, CDNA2: 80}
    assert {name: len(revealed(name).questions) for name in most if len(revealed(name).questions) > most[name]} == {}


def test_every_pair_asked_gives_the_same_tree() -> None:
    model = parse_reference(f"{TURING}@block_order=0-5:2-7:1-4:3-6")
    tree = reveal(lambda vectors: list(map(device(model), vectors)), model, thorough=True)
    assert np.array_equal(masked_leaves(tree.root), masked_leaves(revealed(model.reference).root))


def test_scale_blocks_stand_for_their_products() -> None:
    tree = revealed("blackwell/tcgen05mma_block_scale/m64n8k64.block32.f32.e2m1.e2m1.ue8m0")
    assert (tree.width, tree.blocks()) == (32, (tuple(range(64)),))
    assert any("share scale factors" in line for line in tree.draw())


def test_drawing() -> None:
    assert revealed(AMPERE).draw()[:4] == [
        "added in one step, aligned to the largest term",
        "├─ added in one step, aligned to the largest term",
        "│  ├─ c",
        "│  └─ 0-7",
    ]
    assert "│  ├─ 0,2..14 (summed first)" in revealed(EVEN_ODD).draw()
    assert "│  ├─ c (joins the finished sum)" in revealed(EVEN_ODD).draw()
    assert "│  │  │  └─ 0-3 (added in pairs)" in revealed(CDNA2).draw()
    assert revealed("ieee/fma/f32@length=6").draw()[0] == "c, 0-5 (added one after another)"
    assert "without loss" in revealed(CDNA1).draw()[0]
    assert compact([0, 1, 4, 5, 8, 9]) == "0-1,4-5,8-9"


def test_a_sum_of_its_own_that_a_step_adds_is_one_line() -> None:
    """32 products in a chain, to which a chain of 16 and a sum of two are added."""

    def chain(first: int, *others: int) -> Node | int:
        total: Node | int = first
        for k in others:
            total = Node("binary", (total, k))
        return total

    root = Node("binary", (Node("binary", (chain(*range(32)), chain(*range(32, 48)))), chain(48, 49)))
    assert Outliner(root).outline().lines() == [
        "one step after another",
        "├─ 0-31 (added one after another)",
        "├─ a sum of its own, added",
        "│  └─ 32-47 (added one after another)",
        "└─ a sum of its own, added",
        "   ├─ 48",
        "   └─ 49",
    ]


def test_what_is_said_of_a_tree() -> None:
    tree = revealed(CDNA3)
    assert [list(block) for block in tree.blocks()] == [list(range(8)), list(range(8, 16))]
    assert tree.addend == "late"
    assert [step.kind for step in tree.steps()] == ["fused", "fused"]
    assert tree.steps()[-1] == OrderStep(kind="fused", terms=[8, 9, 10, 11, 12, 13, 14, 15], steps=[0])
