"""`identify --gemm`: which plans a library's matrix product runs, for each K and shape."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from cli.options import print_json, progress, say
from smtmodel.errors import IncompleteError, InputError, MmaprobeError, ParameterError
from smtmodel.wording import counted

if TYPE_CHECKING:
    from queries.order.tree import Leaf, Node
    from queries.plans.library import Mapped, Mapper
    from queries.plans.rules import Shape
    from queries.search.distinguish import Options
    from smtmodel.plans import Plan
    from smtmodel.tiles import Matrix

LISTED = 3  # shapes that are listed
FILES_SECONDS = 120.0  # seconds for trying plans on a recorded product
RECORDED = "recorded:"  # prefix of the files of one product


def map_gemm(
    name: str, formats: str, length: int, shape: str, save: Path | None, options: Options, as_json: bool
) -> NoReturn:
    """Ask the function, print the result, and end with the exit code. Raises MmaprobeError."""
    start = time.monotonic()
    mapper = mapper_of(name, formats, length, shape, options.timeout)
    failure: MmaprobeError | None = None
    try:
        mapper.run()
    except IncompleteError as error:
        failure = error
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


def mapper_of(name: str, formats: str, length: int, shape: str, timeout: float | None) -> Mapper:
    """The Mapper for a function python:FILE.py:FUNCTION, with `timeout` in seconds. Raises MmaprobeError."""
    from queries.order.reveal import UnrevealedError, reveal
    from queries.plans.library import Mapper
    from queries.plans.rules import Shape
    from runner.callable import CallableDevice
    from runner.devices import open_device
    from smtmodel.signature import parse_signature

    asked, start = parse_signature(formats, length), time.monotonic()
    rows, columns = _sides(shape)
    deadline = None if timeout is None else start + timeout
    device = open_device(name, until=deadline)
    if not isinstance(device, CallableDevice):
        raise InputError(f"device {name!r}: --gemm asks a function that multiplies matrices, python:FILE.py:FUNCTION")
    if asked.addend and not device.addend:
        raise ParameterError("--formats", f"{name} takes no addend: give three formats, a,b,d")

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


def plans_of_files(files: str, formats: str, save: Path | None, options: Options, as_json: bool) -> NoReturn:
    """Print the plans that give a recorded product, A.npy,B.npy[,C.npy],D.npy, and end with the exit code. Raises
    MmaprobeError."""
    from cli.simulate import ROUNDED, load_matrix, of_file
    from queries.plans.fitting import plans_of_product
    from smtmodel.numbers import from_numbers
    from smtmodel.plans.plantext import plan_text
    from smtmodel.signature import parse_signature

    paths, start = [Path(name) for name in files.split(",")], time.monotonic()
    if len(paths) not in (3, 4):
        raise ParameterError("--device", "a recorded product is recorded:A.npy,B.npy,D.npy or A.npy,B.npy,C.npy,D.npy")
    tables = [load_matrix(path) for path in paths]
    if tables[0].ndim != 2 or not tables[0].shape[1]:
        raise InputError(f"not a matrix: its shape is {tables[0].shape}", str(paths[0]))
    asked = parse_signature(formats, tables[0].shape[1])
    if asked.addend != (len(paths) == 4):
        raise ParameterError("--formats", "one for each file: a,b,d, or a,b,c,d where C is given")
    kinds = [asked.a, asked.b, *([asked.c] if asked.addend else []), asked.d]
    sides = []
    for path, table, fmt in zip(paths, tables, kinds, strict=True):
        with of_file(str(path), wanted=ROUNDED):
            sides.append(from_numbers(table, fmt))
    a, b, *c, d = sides
    seconds = options.timeout or FILES_SECONDS
    found = plans_of_product(asked, a, b, c[0] if c else None, d, progress, seconds)
    progress("")
    for plan in found.plans:
        say(f"  {plan.reference}: every element looked at, bit for bit")
    if not found.plans:
        best = f"; the best one, {found.best.reference}, gives {found.most}" if found.best is not None else ""
        say(f"no plan tried gives all of the {found.looked} elements looked at{best}")
    looked = f"{counted(found.tried, 'plan')} tried at K = {asked.length}, {counted(found.looked, 'element')} looked at"
    say(f"{looked}; nothing is said of another K or shape; {time.monotonic() - start:.1f} s")
    _save(save, found.plans)
    if as_json:
        print_json({
            "schema": 1, "files": [str(path) for path in paths], "length": asked.length,
            "plans": {plan.reference: plan_text(plan) for plan in found.plans}, "tried": found.tried,
            "looked_at": found.looked, "best": None if found.best is None else found.best.reference,
            "best_agrees": found.most, "seconds": round(time.monotonic() - start, 3),
        })  # fmt: skip
    sys.exit(0 if found.plans else 1)


def _save(path: Path | None, plans: Sequence[Plan]) -> None:
    """Write the first of the plans."""
    from smtmodel.files import write_whole
    from smtmodel.plans.plantext import plan_text

    if path is not None and plans:
        write_whole(path, plan_text(plans[0]))
        say(f"saved: {path}: {plans[0].reference}")


def _sides(text: str) -> tuple[int, int]:
    parts = text.split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() and 0 < int(part) <= 4096 for part in parts):
        raise ParameterError("--shape", f"{text!r}: give M,N, two whole numbers from 1 to 4096")
    return int(parts[0]), int(parts[1])


def _show(found: Mapped, seconds: float) -> None:
    from queries.plans.library import LOOKED

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
    if found.open:
        say(f"nothing is known of {counted(len(found.open), 'random shape')}: {_some(found.open)}")
    say(
        f"{found.right} of {counted(found.checked, 'new random shape')} are as the rules say; "
        f"{counted(found.asked, 'product')} of finite numbers asked, up to {LOOKED} rows and columns of each computed "
        f"again; {seconds:.1f} s"
    )


def _some(shapes: list[Any]) -> str:
    return ", ".join([*map(str, shapes[:LISTED]), *(["..."] if len(shapes) > LISTED else [])])


def _sides_of(shape: Shape) -> list[int]:
    return [shape.rows, shape.columns, shape.length]


def _outline(tree: Node | Leaf | None) -> list[str]:
    from queries.order.text import Outliner

    return ["not revealed"] if tree is None else Outliner(tree).outline().lines()


def _document(name: str, found: Mapped, failure: MmaprobeError | None, seconds: float) -> dict[str, Any]:
    from smtmodel.plans.plantext import plan_text

    return {
        "schema": 1,
        "device": {"name": name},
        "error": None if failure is None else str(failure),
        "rules": [
            {
                "elements": said.rule.text(),
                "plan": None if said.plan is None else said.plan.reference,
                "limits": said.rule.limits(),
                "confirmed": said.confirmed,
                "agree": said.agree,
                "differ": [_sides_of(shape) for shape in said.differ],
            }
            for said in found.rules
        ],
        "plans": {plan.reference: plan_text(plan) for plan in found.plans},
        "checked": found.checked,
        "right": found.right,
        "open": [_sides_of(shape) for shape in found.open],
        "orders": [
            {"shape": _sides_of(shape), "place": list(place), "outline": _outline(tree)}
            for (shape, place), tree in found.orders.items()
        ],
        "products_asked": found.asked,
        "seconds": round(seconds, 3),
    }
