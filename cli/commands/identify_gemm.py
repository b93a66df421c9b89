"""`identify --gemm`: which plans a library's matrix product runs, for each K and shape."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mmaprobe.cli.options import end_work, print_json, progress, say
from mmaprobe.smtmodel.base.digits import is_digits
from mmaprobe.smtmodel.base.errors import InputError, OutOfTimeError, ParameterError
from mmaprobe.smtmodel.base.interrupts import Interrupted, TimeUp, left, state
from mmaprobe.smtmodel.base.wording import counted, some_of

if TYPE_CHECKING:
    from mmaprobe.cli.question import Question
    from mmaprobe.queries.plans.library import Mapped, MappedRule
    from mmaprobe.queries.plans.rules import Shape
    from mmaprobe.smtmodel.inputs.signature import Signature
    from mmaprobe.smtmodel.plans import Plan

Sides = tuple[int, int, int]  # M, N and K

DEFAULT_SHAPE = "64,64"  # the largest M and N where --shape is not given
LISTED = 3  # shapes that are listed
UNSURE = 6  # rules that are printed though new shapes do not confirm them
LEAST_SHAPES = 16  # the least number of shapes whose common parity of M, N or K is printed
LARGEST_SIDE = 65536  # largest M, N or K: vocabularies have about this many words
IN_EACH = ", in each of 2 or more products of a shape"  # where an element that a plan gives is looked at
ROUND_THEN_ADDED = (
    "plans with one factor for all elements that add it after the rounding or before it are tried: ask the function "
    "without it to find others"
)
RECORDED = "recorded:"  # prefix of the files of one recorded product


def signature_and_spans(question: Question, longest: int) -> tuple[Signature, Sides, Sides]:
    """The signature of the products to ask for, with the largest K; the smallest M, N and K (1 where --shape gives
    none); and the largest M, N and K. Raises click.UsageError and MmaprobeError."""
    from mmaprobe.smtmodel.inputs.signature import parse_signature

    text, length = question.shape, question.length
    if question.formats is None or (length is None and text is None):
        raise click.UsageError("--gemm needs --formats and --length")
    spans = [part.partition("..") for part in (DEFAULT_SHAPE if text is None else text).split(",")]
    sides = [(low if dots else "1", high if dots else low) for low, dots, high in spans]
    known = all(is_digits(one.strip()) and 0 < int(one) <= LARGEST_SIDE for side in sides for one in side)
    if len(sides) not in (2, 3) or not known or any(int(low) > int(high) for low, high in sides):
        wanted = f"M,N or M,N,K, whole numbers from 1 to {LARGEST_SIDE}, or spans LOW..HIGH"
        raise ParameterError("--shape", f"{text!r}: give {wanted}")
    if (len(sides) == 3) is not (length is None):
        raise ParameterError("--length", "K is given once: there, or as the last number of --shape M,N,K")
    (m, rows), (n, columns), (k, products) = (*((int(low), int(high)) for low, high in sides), (1, length or 0))[:3]
    return parse_signature(question.formats, products, longest=longest), (m, n, k), (rows, columns, products)


def map_gemm(question: Question) -> int:
    """Ask a function which plans it runs, at each K and for each shape; gives the exit code. Raises MmaprobeError."""
    from mmaprobe.cli.text.plan_results import save_plan
    from mmaprobe.queries.plans.report import document_of_map
    from mmaprobe.runner.device_plans import mapper_of

    start, (asked, least, most) = time.monotonic(), signature_and_spans(question, LARGEST_SIDE)
    given = "" if question.timeout is None else f" than --timeout {question.timeout:g}"
    try:
        mapper = mapper_of(question.device_name, asked, most[:2], question.timeout, question.device_timeout, progress,
                           least, question.multiple, question.layout, say)  # fmt: skip
    except TimeUp as error:
        raise OutOfTimeError(f"the time was over before a product was asked: give more{given}") from error
    failure = mapper.searched()
    end_work()
    mapped = mapper.findings
    if mapped.asked or failure is None:
        _show(mapped, time.monotonic() - start)
    late = mapper.is_late or isinstance(failure, OutOfTimeError)  # the latter: while the function ran
    if failure is not None and (late or state.interrupted):
        _show_cut(mapped, given)
    besides = _besides(mapped)
    largest = "found for products up to {} x {} x {} (M x N x K): others were not asked".format(*mapper.top.sides)
    save_plan(question.save, [] if besides else mapped.plans, about=largest)
    if question.save and besides:
        say(f"not saved: {besides}; the map that --json prints goes where a plan does: simulate --plan map.json")
    if question.as_json:
        print_json(document_of_map(mapped, question.device_name, time.monotonic() - start, failure, question.layout))
    if failure is not None:
        raise failure
    return 0 if mapped.whole else 3 if mapped.plans else 1


def plans_of_files(question: Question) -> int:
    """Print the plans that give the product recorded:A.npy,B.npy[,C.npy],D.npy, or one in a .npz file, and give the
    exit code. Raises MmaprobeError."""
    from mmaprobe.cli.array_files import ROUNDED, errors_name
    from mmaprobe.cli.product_files import formats_of, patterns_of
    from mmaprobe.cli.text.plan_results import differing, save_plan, say_wrapped, sentences
    from mmaprobe.queries.plans.recorded import Recorded
    from mmaprobe.queries.plans.report import document_of_product
    from mmaprobe.queries.plans.results import plans_of_results

    start, named = time.monotonic(), _recorded_files(question.device_name.removeprefix(RECORDED), question.addend)
    kinds = formats_of(named, question.formats)
    sides = {
        name: patterns_of(path, getattr(kinds, name), wanted=ROUNDED, bias=name == "c") for name, path in named.items()
    }
    with errors_name(", ".join(map(str, named.values())), "A and B", "C"):
        recorded = Recorded.of(kinds, sides["a"], sides["b"], sides.get("c"), [sides["d"]])
    [given] = plans_of_results(recorded, (), progress, left(question.timeout))
    end_work()
    for sentence in sentences(given, recorded, question.timeout):
        say_wrapped(sentence)
    if given.best is not None and not given.products and (where := differing(given.best.plan, recorded)):
        say_wrapped(where)
    several = ", some under several names," if len(given.plans) > given.tried else ""
    tried = f"{counted(given.tried, 'plan')}{several} tried at K = {recorded.length}"
    say(f"{tried}; nothing is said of another K or shape; {time.monotonic() - start:.1f} s")
    save_plan(question.save, given.plans, given, recorded.about, recorded.length)
    if question.as_json:
        print_json(document_of_product(given, [*named.values()], recorded.length, time.monotonic() - start))
    if state.interrupted:
        raise Interrupted
    return 0 if given.plans else 3 if given.untried or not given.tried else 1


def _recorded_files(text: str, c: Path | None) -> dict[str, Path]:
    """The files of a recorded product by a, b, c and d: A,B[,C],D, or one .npz file that has matrices of these names.
    `c`: C, if the text has none. Raises ParameterError or InputError."""
    from mmaprobe.cli.array_files import load

    paths = [Path(name) for name in text.split(",")]
    if len(paths) == 1 and text.endswith(".npz"):
        names = load(paths[0]).keys()
        if {*names} not in ({*"abd"}, {*"abcd"}):
            raise InputError(f"matrices a, b and d are needed, and c if there is one; it has {', '.join(names)}", text)
        named = {name: Path(f"{text}:{name}") for name in "abcd" if name in names}
    elif len(paths) in (3, 4):
        named = dict(zip("abd" if len(paths) == 3 else "abcd", paths, strict=True))
    else:
        ways = "A.npy,B.npy,D.npy (and --c C.npy), A.npy,B.npy,C.npy,D.npy, or FILE.npz with matrices a, b, [c,] d"
        raise ParameterError("--device", f"after recorded: the files of a product are needed, {ways}")
    if c is not None and "c" in named:
        raise ParameterError("--c", f"C is given twice: {named['c']}, and {c}")
    return named if c is None else {"a": named["a"], "b": named["b"], "c": c, "d": named["d"]}


def _besides(mapped: Mapped) -> str:
    """How many elements the plan that gives most of them gives, or how many new shapes it does not give, in words;
    empty if it is the plan of every product."""
    if not mapped.plans or (mapped.whole and len(mapped.plans) == 1):
        return ""
    failed = len({*mapped.differ, *mapped.open})
    new = (
        "" if mapped.gives[mapped.plans[0]] < mapped.observed else f", but not those of {counted(failed, 'new shape')}"
    )
    return f"{_gives(mapped, mapped.plans[0])}{new}"


def _gives(mapped: Mapped, plan: Plan) -> str:
    return f"{plan.reference} gives {mapped.gives[plan]} of {counted(mapped.observed, 'element')} looked at"


def _show(mapped: Mapped, seconds: float) -> None:
    from mmaprobe.cli.text.plan_results import PAIRS, activation_text
    from mmaprobe.queries.plans.asked_products import LOOKED
    from mmaprobe.queries.plans.report import outline_of

    for what, shapes in _missing(mapped).items():
        say(f"{what} in {counted(len(shapes), 'shape')} without a plan{_parity(shapes)}: {some_of(shapes, LISTED)}")
    for (shape, _), tree in sorted(mapped.orders.items(), key=lambda one: one[1] is None)[:1]:  # a revealed one first
        say(f"order of {shape}:")
        for line in outline_of(tree):
            say(f"  {line}")
    left_out, unsure = 0, 0
    for entry in mapped.rules:
        if entry.plan is None:
            continue
        if not entry.confirmed if mapped.fails else entry.agree <= len(entry.differ):
            left_out += 1
            continue
        unsure += not entry.confirmed
        if not entry.confirmed and unsure > UNSURE:
            continue
        say(f"{entry.rule.text()}: {entry.plan.reference}")
        if entry.differ:
            total = counted(entry.agree + len(entry.differ), "new shape")
            say(f"  other results in {len(entry.differ)} of {total}: {some_of(entry.differ, LISTED)}")
        elif entry.confirmed:
            say(f"  {counted(entry.agree, 'random shape')}: bit for bit so; {_lengths(entry)} asked")
        elif entry.agree < entry.wanted:
            say(f"  {counted(entry.agree, 'random shape')}: too few to rely on")
        else:
            say(f"  {counted(entry.agree, 'random shape')}: bit for bit so, but too few of them rule out another plan")
    if unsure > UNSURE:
        say(f"{counted(unsure - UNSURE, 'further rule')} that new shapes do not confirm (--json has them)")
    if mapped.fails:
        where = "elsewhere " if any(entry.confirmed for entry in mapped.rules) else ""
        nearest = "" if mapped.nearest is None else f"; {_gives(mapped, mapped.nearest)}{IN_EACH}"
        say(f"{where}no plan tried gives the results{nearest}")
    if mapped.activation and (mapped.fails or not mapped.plans):
        say(activation_text(mapped.activation))
    if mapped.pairs:
        say(PAIRS)
    if mapped.zero_point:
        lost = f"; {ROUND_THEN_ADDED}" if mapped.fails or not mapped.plans else ""
        say(f"results have a zero point of {mapped.zero_point}, as zeros give it{lost}")
    if mapped.unlike and (mapped.fails or not mapped.plans):
        say(mapped.unlike)
    if left_out:
        why = "not relied on" if mapped.fails else "left out, right in at most half of the new shapes"
        say(f"{counted(left_out, 'rule')} {why} (--json has them)")
    if not mapped.fails and any(entry.plan is None for entry in mapped.rules):
        say("other elements that were looked at: no plan found")
    if mapped.open:
        say(f"nothing is known of {counted(len(mapped.open), 'random shape')}: {some_of(mapped.open, LISTED)}")
    right = f"{mapped.right} of {counted(mapped.checked, 'new random shape')} are as the rules say; "
    say(
        f"{right if mapped.checked else ''}"
        f"{counted(mapped.asked, 'product')} of finite numbers asked, up to {LOOKED} rows and columns of each computed "
        f"again; {seconds:.1f} s"
    )


def _show_cut(mapped: Mapped, given: str) -> None:
    """What a search that was cut short had done, and what it had not. `given`: the end of its last sentence, the
    option with its seconds."""
    from mmaprobe.cli.text.plan_results import percent

    if not mapped.rules and (nearest := mapped.nearest) is not None and mapped.observed:
        share = percent(mapped.gives[nearest], mapped.observed)
        gives = f"{_gives(mapped, nearest)}{IN_EACH} ({share})"
        say(f"the nearest of {counted(len(mapped.gives), 'plan')} tried so far: {gives}")
    if not mapped.asked:
        say("no product was asked")
    left = "a plan for the other elements, rules of M, N and K, and " if not mapped.rules else ""
    part = "the rest of a check" if mapped.checked else "a check"
    more = f"; to go on, give more{given}"
    say(f"not done: {left}{part} of the rules on new random shapes{'' if state.interrupted else more}")


def _lengths(entry: MappedRule) -> str:
    """The K of its range at which a rule was compared with the library, in words."""
    every, asked = entry.rule.lengths, len(entry.lengths)
    if asked < len(every):
        return f"{asked:,} of {len(every):,} K"
    whole = every[-1] - every[0] == len(every) - 1
    return f"every K from {every[0]} to {every[-1]}" if whole and asked > 1 else f"all {asked:,} K"


def _missing(mapped: Mapped) -> dict[str, list[Shape]]:
    """The shapes in whose sums products are missing or occur twice, by a sentence that says which products these
    are."""
    from dataclasses import replace

    texts: dict[str, list[Shape]] = {}
    ends = {shape: len(products) for shape, summed in mapped.left_out.items()
            if (products := summed.left_out) and not summed.instead and products[0] == shape.length - len(products)
            }  # fmt: skip
    step = _step(ends)
    for shape, summed in mapped.left_out.items():
        if count := ends.get(shape):
            which = f"the last {count} products of K are" if count > 1 else "the last product of K is"
            which = f"the last K modulo {step} products are" if step else which
            lines = [f"{which} no part of the sum", *replace(summed, left_out=()).sentences()]
        else:
            lines = summed.sentences()
        for line in lines:
            texts.setdefault(line, []).append(shape)
    return texts


def _parity(shapes: Sequence[Shape]) -> str:
    """The sides, of M, N and K, that are odd in all of many shapes, or even in all of them, in words."""
    sides = {"M": [x.rows for x in shapes], "N": [x.columns for x in shapes], "K": [x.length for x in shapes]}
    alike = [f"{name} {'odd' if every[0] % 2 else 'even'}" for name, every in sides.items()
             if len(shapes) >= LEAST_SHAPES and len({side % 2 for side in every}) == 1]  # fmt: skip
    return f", all of {' and '.join(alike)}" if alike else ""


def _step(ends: Mapping[Shape, int]) -> int | None:
    """The divisor for which the remainder of K is the number of products missing at the end, in each of these shapes;
    None where fewer than three different numbers of products are missing."""
    most = max(ends.values(), default=0)
    steps = range(most + 1, max((shape.length for shape in ends), default=0))
    if len(set(ends.values())) < 3:
        return None
    return next((step for step in steps if all(shape.length % step == count for shape, count in ends.items())), None)
