"""`identify --gemm`: which plans a library's matrix product runs, for each K and shape."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from mmaprobe.cli.options import print_json, progress, say
from mmaprobe.smtmodel.base.digits import is_digits
from mmaprobe.smtmodel.base.errors import IncompleteError, InputError, MmaprobeError, ParameterError
from mmaprobe.smtmodel.base.interrupts import TimeUp
from mmaprobe.smtmodel.base.wording import counted

if TYPE_CHECKING:
    from mmaprobe.documents.identify import IdentifyGemm
    from mmaprobe.queries.order.tree import Leaf, Node
    from mmaprobe.queries.plans.library import Mapped, Mapper
    from mmaprobe.queries.plans.rules import Shape
    from mmaprobe.queries.search.distinguish import Options
    from mmaprobe.smtmodel.evaluate.tiles import Matrix
    from mmaprobe.smtmodel.plans import Plan

LISTED = 3  # shapes that are listed
RECORDED = "recorded:"  # prefix of the files of one product


def map_gemm(
    name: str, formats: str, length: int, shape: str, save: Path | None, device_timeout: float, options: Options,
    as_json: bool,
) -> NoReturn:  # fmt: skip
    """Ask the function, print the result, and end with the exit code. Raises MmaprobeError."""
    start = time.monotonic()
    mapper = mapper_of(name, formats, length, shape, options.timeout, device_timeout)
    failure: MmaprobeError | None = None
    try:
        try:
            mapper.run()
        except IncompleteError as error:
            failure = error
        mapper.look_for_missing()
    except TimeUp:  # between two looks at the clock
        failure = failure or mapper.late()
    progress("")
    found = mapper.found
    if found.asked or failure is None:
        _show(found, time.monotonic() - start)
    _save(save, found.plans)
    if as_json:
        print_json(_document(name, found, failure, time.monotonic() - start))
    if failure is not None:
        raise failure
    whole = found.rules and all(said.plan for said in found.rules) and not found.differ and not found.open
    sys.exit(0 if whole else 3 if found.plans else 1)


def mapper_of(
    name: str, formats: str, length: int, shape: str, timeout: float | None, device_timeout: float = 60.0
) -> Mapper:
    """The Mapper for a function python:FILE.py:FUNCTION, with `timeout` seconds in all and `device_timeout` for one
    call. Raises MmaprobeError."""
    from mmaprobe.queries.order.reveal import UnrevealedError, reveal
    from mmaprobe.queries.plans.library import Mapper
    from mmaprobe.queries.plans.rules import Shape
    from mmaprobe.runner.callable import CallableDevice
    from mmaprobe.runner.devices import open_device
    from mmaprobe.runner.protocol import check_asked
    from mmaprobe.smtmodel.inputs.signature import parse_signature

    asked, start = parse_signature(formats, length), time.monotonic()
    rows, columns = _sides(shape)
    deadline = None if timeout is None else start + timeout
    device = open_device(name, device_timeout, until=deadline)
    if not isinstance(device, CallableDevice):
        raise InputError(f"device {name!r}: --gemm asks a function that multiplies matrices, python:FILE.py:FUNCTION")
    check_asked(device, asked)

    def order(shape: Shape, place: tuple[int, int], until: float | None) -> Node | Leaf | None:
        part = CallableDevice(device.function, name, (shape.rows, shape.columns), place)
        given = parse_signature(formats, shape.length)

        def every(vectors: Any) -> list[int]:
            if until is not None and time.monotonic() > until:
                raise IncompleteError("the time for this order ran out")
            return [d for d in part.every(vectors) if d is not None]

        try:
            return reveal(lambda vector: every([vector])[0], given, ask_all=every, addend=given.addend).root
        except UnrevealedError:
            return None

    def multiply(a: Matrix, b: Matrix, c: Matrix) -> Matrix:
        return device.product(asked, a, b, c)

    return Mapper(asked, multiply, order, Shape(rows, columns, length), 1, deadline, progress)


def plans_of_files(files: str, formats: str | None, save: Path | None, options: Options, as_json: bool) -> NoReturn:
    """Print the plans that give a recorded product, A.npy,B.npy[,C.npy],D.npy, and end with the exit code. Raises
    MmaprobeError."""
    from mmaprobe.cli.array_files import ROUNDED
    from mmaprobe.cli.product_files import formats_of, patterns_of
    from mmaprobe.cli.text.plan_results import most_given, names_of, sentences
    from mmaprobe.documents.identify import IdentifyProduct
    from mmaprobe.documents.parts import ABSENT
    from mmaprobe.queries.plans.recorded import Recorded
    from mmaprobe.queries.plans.results import SECONDS, plans_of_results
    from mmaprobe.smtmodel.evaluate.tiles import product_shape
    from mmaprobe.smtmodel.inputs.signature import Signature
    from mmaprobe.smtmodel.plans.gemm import addend
    from mmaprobe.smtmodel.plans.plantext import plan_text

    paths, start = [Path(name) for name in files.split(",")], time.monotonic()
    if len(paths) not in (3, 4):
        raise ParameterError("--device", "a recorded product is recorded:A.npy,B.npy,D.npy or A.npy,B.npy,C.npy,D.npy")
    named = dict(zip("abd" if len(paths) == 3 else "abcd", paths, strict=True))
    kinds = formats_of(named, formats)
    own = {"a": kinds.a, "b": kinds.b, "c": kinds.c, "d": kinds.d}
    sides = {name: patterns_of(path, own[name], wanted=ROUNDED) for name, path in named.items()}
    shape = product_shape(sides["a"], sides["b"], least=1)
    asked = Signature(kinds.a, kinds.b, kinds.c, kinds.d, sides["a"].shape[1], kinds.addend)
    c = addend(sides["c"], shape) if kinds.addend else None
    recorded = Recorded(asked, sides["a"], sides["b"], c, (sides["d"],))
    [found] = plans_of_results(recorded, (), progress, options.timeout or SECONDS)
    progress("")
    for sentence in sentences(found):
        say(f"  {sentence}")
    tried = f"{counted(found.tried, 'plan')} tried at K = {asked.length}"
    say(f"{tried}; nothing is said of another K or shape; {time.monotonic() - start:.1f} s")
    if found.products and save is not None and found.plans:
        say(f"not saved: a plan file adds every product once, and {names_of(found)[0]} is of what is summed here")
    else:
        _save(save, found.plans)
    if as_json:
        print_json(
            IdentifyProduct(
                files=[str(path) for path in paths],
                length=asked.length,
                plans={plan.reference: plan_text(plan) for plan in found.plans},
                tried=found.tried,
                untried=found.untried,
                looked_at=found.looked,
                best=None if found.best is None else found.best.plan.reference,
                best_agrees=most_given(found),
                left_out=found.left_out,
                twice=found.products.twice or ABSENT,
                instead=found.products.instead or ABSENT,
                seconds=round(time.monotonic() - start, 3),
            )
        )
    sys.exit(0 if found.plans else 3 if found.untried else 1)


def _save(path: Path | None, plans: Sequence[Plan]) -> None:
    """Write the first of the plans."""
    from mmaprobe.smtmodel.base.files import write_whole
    from mmaprobe.smtmodel.plans.plantext import plan_text

    if path is not None and plans:
        write_whole(path, plan_text(plans[0]))
        say(f"saved: {path}: {plans[0].reference}")


def _sides(text: str) -> tuple[int, int]:
    parts = text.split(",")
    if len(parts) != 2 or not all(is_digits(part.strip()) and 0 < int(part) <= 4096 for part in parts):
        raise ParameterError("--shape", f"{text!r}: give M,N, two whole numbers from 1 to 4096")
    return int(parts[0]), int(parts[1])


def _show(found: Mapped, seconds: float) -> None:
    from mmaprobe.queries.plans.library import LOOKED

    for (shape, _), tree in list(found.orders.items())[:1]:
        say(f"order of {shape}:")
        for line in _outline(tree):
            say(f"  {line}")
    untested = 0
    for said in found.rules:
        if said.plan is None:
            continue
        if not said.agree + len(said.differ):
            untested += 1
            continue
        say(f"{said.rule.text()}: {said.plan.reference}")
        if said.differ:
            total = said.agree + len(said.differ)
            say(
                f"  another kernel runs on {len(said.differ)} of {counted(total, 'random shape')}: {_some(said.differ)}"
            )
        elif said.confirmed:
            say(f"  {counted(said.agree, 'random shape')}: bit for bit so")
        elif said.agree < said.wanted:
            say(f"  {counted(said.agree, 'random shape')}: too few to rely on")
        else:
            say(f"  {counted(said.agree, 'random shape')}: bit for bit so, but too few show that another plan is wrong")
    if untested:
        say(f"{counted(untested, 'more rule')}, which no random shape tests (--json has them)")
    if any(said.plan is None for said in found.rules):
        say("other elements that were looked at: no plan found")
    for what, shapes in _missing(found).items():
        say(f"{what} in {counted(len(shapes), 'shape')} without a plan: {_some(shapes)}")
    if found.open:
        say(f"nothing is known of {counted(len(found.open), 'random shape')}: {_some(found.open)}")
    say(
        f"{found.right} of {counted(found.checked, 'new random shape')} are as the rules say; "
        f"{counted(found.asked, 'product')} of finite numbers asked, up to {LOOKED} rows and columns of each computed "
        f"again; {seconds:.1f} s"
    )


def _missing(found: Mapped) -> dict[str, list[Shape]]:
    """The shapes in whose sums products are missing, or twice, by which these are, in words."""
    from dataclasses import replace

    texts: dict[str, list[Shape]] = {}
    for shape, summed in found.left_out.items():
        products, rest = summed.left_out, replace(summed, left_out=())
        if products and not summed.instead and products[0] == shape.length - len(products):
            which = f"the last {len(products)} products of K are" if products[1:] else "the last product of K is"
            lines = [f"{which} no part of the sum", *rest.sentences()]
        else:
            lines = summed.sentences()
        for line in lines:
            texts.setdefault(line, []).append(shape)
    return texts


def _some(shapes: list[Any]) -> str:
    return ", ".join([*map(str, shapes[:LISTED]), *(["..."] if len(shapes) > LISTED else [])])


def _sides_of(shape: Shape) -> list[int]:
    return [shape.rows, shape.columns, shape.length]


def _outline(tree: Node | Leaf | None) -> list[str]:
    from mmaprobe.queries.order.text import Outliner

    return ["not revealed"] if tree is None else Outliner(tree).outline().lines()


def _document(name: str, found: Mapped, failure: MmaprobeError | None, seconds: float) -> IdentifyGemm:
    from mmaprobe.documents.identify import IdentifyGemm, LeftOut, OrderAt, Rule
    from mmaprobe.documents.parts import ABSENT
    from mmaprobe.smtmodel.plans.plantext import plan_text

    return IdentifyGemm(
        device={"name": name},
        error=None if failure is None else str(failure),
        rules=[
            Rule(
                elements=said.rule.text(),
                plan=None if said.plan is None else said.plan.reference,
                limits=said.rule.limits(),
                confirmed=said.confirmed,
                agree=said.agree,
                differ=[_sides_of(shape) for shape in said.differ],
            )
            for said in found.rules
        ],
        plans={plan.reference: plan_text(plan) for plan in found.plans},
        checked=found.checked,
        right=found.right,
        open=[_sides_of(shape) for shape in found.open],
        left_out=[
            LeftOut(
                shape=_sides_of(shape),
                products=what.left_out,
                twice=what.twice or ABSENT,
                instead=what.instead or ABSENT,
            )
            for shape, what in found.left_out.items()
        ],
        orders=[
            OrderAt(shape=_sides_of(shape), place=place, outline=_outline(tree))
            for (shape, place), tree in found.orders.items()
        ],
        products_asked=found.asked,
        seconds=round(seconds, 3),
    )
