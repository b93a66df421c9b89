"""`identify` without a family: the unit of a device is built from its answers, saved as a file, and identified with the
instructions to which it is equal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mmaprobe.cli.options import print_json, progress, say
from mmaprobe.cli.order import kept_device, revealed, title_of
from mmaprobe.queries.order.guess import orders
from mmaprobe.queries.order.probe import UnrevealedError
from mmaprobe.queries.order.structure import tree_of
from mmaprobe.queries.order.text import Outliner, shared
from mmaprobe.queries.order.tree import Leaf, Node, with_products
from mmaprobe.smtmodel import VERSION
from mmaprobe.smtmodel.errors import IncompleteError, MmaprobeError, OutOfTimeError
from mmaprobe.smtmodel.interrupts import begun
from mmaprobe.smtmodel.wording import counted

if TYPE_CHECKING:
    from mmaprobe.queries.building.outcome import Built
    from mmaprobe.queries.building.weights import Weights
    from mmaprobe.queries.compare.neighbours import Divergence
    from mmaprobe.queries.search.distinguish import Options
    from mmaprobe.runner.protocol import Device
    from mmaprobe.smtmodel.signature import Signature
    from mmaprobe.smtmodel.unit import Unit
    from mmaprobe.smtmodel.vectors import Vector

LISTED = 8  # names of equal instructions that are listed


def build(
    device_name: str, asked: Signature, output: Path | None, save: Path | None, device_timeout: float, options: Options,
    as_json: bool,
) -> None:  # fmt: skip
    """Ask an unknown device, say what it computes, and end with the exit code. `output`: where answers are kept."""
    from mmaprobe.queries.compare.steady import ContradictionError

    start = begun()
    deadline = None if options.timeout is None else start + options.timeout
    found: Built | None = None
    order: Order | None = None
    failure: MmaprobeError | None = None
    with kept_device(device_name, device_timeout, asked, output, deadline) as device:
        try:
            found, order = built(device, asked, options, deadline, say)
        except UnrevealedError as error:
            failure = error
        except ContradictionError as error:
            failure = ContradictionError(error.vector, error.first, error.again, device_name)
        own = device.description.get("name", "no name")
        description = {**device.description, "name": own if own == device_name else f"{device_name} ({own})"}
    progress("")
    seconds = time.monotonic() - start
    unit: Unit | None = None
    if found is not None and found.unit is not None:
        unit = _described(found, found.unit, order, description, save, output)
    if found is not None:
        _show(found, unit, order, asked, seconds)
    if unit is not None and save is not None:
        from mmaprobe.queries.building.outcome import text_of
        from mmaprobe.smtmodel.files import write_whole

        write_whole(save, text_of(unit))
        say(f"saved: {save}")
    if as_json:
        print_json(_document(found, unit, order, failure, asked, description, seconds))
    if failure is not None:
        raise failure
    assert found is not None
    sys.exit(3 if found.verdict == "open" or (unit is not None and found.open) else 0 if unit is not None else 1)


def built(
    device: Device, asked: Signature, options: Options, deadline: float | None, tell: Callable[[str], None]
) -> tuple[Built, Order]:
    """The summation order, then the unit; at the end some questions are asked again. `deadline`: of time.monotonic;
    `tell` prints the order. Raises what `_order`, Builder.run and `stand_by` raise."""
    from mmaprobe.queries.building.weights import weighed
    from mmaprobe.queries.order.ends import sentences

    try:
        order, weights = _order(device, asked, deadline)
    except UnrevealedError as error:
        if asked.length > GUESSED:
            raise
        weights = weighed(device.every, asked)
        order = Order(orders(asked.length, asked.addend), len(error.questions) + asked.length + asked.addend)
        tell(f"{error}; {counted(len(order.roots), 'order')} that units are likely to have are tried")
    else:
        order.say(asked, tell)
    for line in sentences(weights, asked.length):
        tell(line)
    return _arithmetic(device, order, asked, options, deadline, weights, tell)


def _arithmetic(
    device: Device,
    order: Order,
    asked: Signature,
    options: Options,
    deadline: float | None,
    weights: Weights,
    tell: Callable[[str], None],
) -> tuple[Built, Order]:
    """The unit of a device whose terms have these weights, and which of the orders it has."""
    from mmaprobe.queries.building.build import Builder
    from mmaprobe.queries.compare.steady import AGAIN_IN_DOUBT, stand_by
    from mmaprobe.runner.protocol import DeviceError

    given: list[tuple[Vector, int]] = []

    def ask(vectors: Sequence[Vector]) -> list[int]:
        answers = []
        for start in range(0, len(vectors), TOGETHER):
            if deadline is not None and time.monotonic() > deadline:
                raise OutOfTimeError(f"the time ran out after {counted(len(given), 'question')} about the arithmetic")
            for vector, d in device.answers(vectors[start : start + TOGETHER]):
                if d is None:
                    raise IncompleteError(f"{device.name}: no answer is recorded to question {vector.id}")
                given.append((vector, d))
                answers.append(d)
        return answers

    found = Builder(order.roots, asked, ask, replace(options, timeout=EACH), deadline, weights).run()
    if not device.steady:
        try:
            stand_by(device.again, given, AGAIN_IN_DOUBT)
        except DeviceError:
            if not device.patience.over:  # else what was found in time is said
                raise
    if found.unit is not None and len(order.roots) > 1:
        order = Order([tree_of(found.unit)], order.questions)
        order.say(asked, tell)
    return found, order


@dataclass(frozen=True)
class Order:
    """The summation trees that a device may have, and the number of questions asked to find them. `width`: products
    that share scale factors, where the order among them was not asked."""

    roots: list[Node | Leaf]
    questions: int
    width: int = 1

    def lines(self) -> list[str]:
        if len(self.roots) > 1:
            return []
        lines = Outliner(self.roots[0]).outline().lines()
        return [*lines, shared(self.width)] if self.width > 1 else lines

    def say(self, asked: Signature, tell: Callable[[str], None]) -> None:
        """Tell the tree, where one is left."""
        if lines := self.lines():
            tell(f"{title_of(asked)}:")
            for line in lines:
                tell(f"  {line}")


def _order(device: Device, asked: Signature, deadline: float | None) -> tuple[Order, Weights]:
    """The summation tree of a device, and the weights of its terms. Raises UnrevealedError, ContradictionError or
    IncompleteError, as `revealed` does."""
    tree = revealed(device, asked, deadline or float("inf"))
    roots = with_products(tree.root, tree.width) if tree.width > 1 else [tree.root]
    return Order(roots, len(tree.questions), tree.width), tree.weights


GUESSED = 64  # products up to which likely orders are tried
TOGETHER = 128  # vectors that a device is asked between two looks at the clock
EACH = 20.0  # seconds for a proof that two candidates are equal


def _described(
    found: Built, unit: Unit, order: Order | None, device: dict[str, Any], save: Path | None, output: Path | None
) -> Unit:
    """The unit with its evidence. `output`: where the answers are."""
    named = names_of(found)
    questions = counted((order.questions if order else 0) + found.questions, "question")
    today = datetime.now(UTC).date().isoformat()
    return replace(
        unit,
        reference="built" if save is None else save.stem,
        about=f"This unit equals {named[0]}, by proof; the device that it was built from was sampled." if named else "",
        source=f"built by mmaprobe {VERSION} from the answers of {device['name']}, {today}",
        evidence=f"{questions}, {counted(found.validated, 'vector')} of validation without a difference, "
        + (found.why or f"which tell it from {counted(found.refuted, 'unit')} that differ in one choice")
        + (f"; not looked through for time: {some_of(found.left)}" if found.left else "")
        + (f"; answers in {output.name}" if output is not None else ""),
    )


def names_of(found: Built) -> list[str]:
    """The instructions and shipped units that are proved equal to the unit."""
    from mmaprobe.queries.building.answers import BUILT

    names = [model.reference for model, _ in found.equal if model.reference != BUILT]
    return sorted(names, key=lambda name: not name.startswith("ieee/"))  # no vendor's, first


def say_names(names: Sequence[str], why: str) -> None:
    """Print the names of the unit found, the reason, and the GPUs that have it."""
    also = f" (also: {some_of(names[1:])})" if names[1:] else ""
    say(f"the unit found is {names[0]}{also}, proved equal {why.removeprefix('proved ')}")
    say_gpus(names)


def sampled(validated: int) -> str:
    """What is known of a device whose unit was found: nothing is proved of it."""
    vectors = counted(validated, "vector")
    return f"the device was sampled: {vectors} of validation without a difference from the unit found"


def say_gpus(names: Sequence[str]) -> None:
    """Print the GPUs that have these units, a line for each architecture."""
    from mmaprobe.smtmodel.gpus import gpus_of

    for arch in dict.fromkeys(name.partition("/")[0] for name in names):
        if gpus := gpus_of(arch):
            say(f"  {arch}: {some_of(gpus)}")


def some_of(names: Sequence[str]) -> str:
    return f"{', '.join(names[:LISTED])}{', ...' if len(names) > LISTED else ''}"


def first_divergence(found: Built, unit: Unit | None) -> Divergence | None:
    """The first intermediate result in which the unit (or, where none was found, the nearest candidate) and the nearest
    instruction diverge, on the smallest input that distinguishes them."""
    from mmaprobe.queries.building.answers import BUILT
    from mmaprobe.queries.compare.neighbours import divergence
    from mmaprobe.smtmodel.dot import Model

    own = unit or found.nearest
    if own is None or found.near is None or found.near_vector is None:
        return None
    return divergence(Model(BUILT, own), found.near[0], found.near_vector.operands)


def _show(found: Built, unit: Unit | None, order: Order | None, asked: Signature, seconds: float) -> None:
    from mmaprobe.cli.show import show_operands
    from mmaprobe.queries.building.answers import BUILT
    from mmaprobe.queries.building.outcome import text_of
    from mmaprobe.smtmodel.display import number_text
    from mmaprobe.smtmodel.vectors import to_hex

    say(
        f"{counted(order.questions if order else 0, 'question')} about the order, "
        f"{found.questions} about the arithmetic, "
        f"{counted(found.validated, 'vector')} of validation, {seconds:.1f} s"
    )
    if found.left:
        say(f"not looked through for time: {some_of(found.left)}")
    if unit is not None:
        if found.verdict == "open":
            say(f"not finished: {found.why}; this unit agrees with every answer so far")
        for line in text_of(unit).splitlines():
            say(f"  {line}")
        names = names_of(found)
        if names:
            say_names(names, next(why for model, why in found.equal if model.reference == names[0]))
        elif found.near is not None:
            model, count = found.near
            say(f"no instruction of the table; the nearest, {model.reference}, differs on {counted(count, 'answer')}")
            if (first := first_divergence(found, unit)) is not None:
                say(f"  they diverge first in {first.stage}, at {first.signal}")
        if found.verdict != "open":
            say(sampled(found.validated))
        names = [model.reference for model in found.open if model.reference != BUILT]
        if drafts := len(found.open) - len(names):
            names.append(counted(drafts, "other draft"))
        for name in names:
            say(f"not decided: the same answers from {name}, and neither a difference nor a proof was found")
        return
    if found.near is not None:
        model, count = found.near
        say(f"the nearest instruction of the table, {model.reference}, differs on {counted(count, 'answer')}")
        if (first := first_divergence(found, None)) is not None:
            say(f"  from the nearest candidate it diverges first in {first.stage}, at {first.signal}")
    say(f"no unit found: {found.why or f'no candidate explains the answers ({found.stage})'}")
    if found.nearest is not None:
        say("  the nearest candidate:")
        for line in text_of(found.nearest).splitlines():
            say(f"    {line}")
        for vector, d, instead in found.unexplained:
            show_operands(asked, vector.operands)
            say(f"  the device gives {to_hex(d, asked.d)}  {number_text(d, asked.d)}")
            say(f"    the candidate {to_hex(instead, asked.d)}  {number_text(instead, asked.d)}")


def _document(
    found: Built | None, unit: Unit | None, order: Order | None, failure: MmaprobeError | None, asked: Signature,
    device: dict[str, Any], seconds: float,
) -> dict[str, Any]:  # fmt: skip
    from mmaprobe.queries.building.answers import BUILT
    from mmaprobe.queries.building.outcome import text_of
    from mmaprobe.smtmodel.vectors import to_hex

    document: dict[str, Any] = {
        "schema": 1,
        "device": device,
        "formats": {side: getattr(asked, side).name for side in "abcd"},
        "length": asked.length,
        "verdict": "open" if found is None else found.verdict,
        "error": str(failure) if failure else None,
        "seconds": round(seconds, 3),
    }
    if found is None:
        return document
    near = found.near
    first = first_divergence(found, unit)
    return document | {
        "unit": None if unit is None else text_of(unit),
        "equal": [{"model": name, "why": why} for name, why in ((m.reference, w) for m, w in found.equal)
                  if name != BUILT],
        "undecided": [model.reference if model.reference != BUILT else text_of(model.unit) for model in found.open],
        "nearest_instruction": None if near is None else {
            "model": near[0].reference, "different_answers": near[1],
            "first_divergence": first and f"{first.stage}: {first.signal}"},
        "summation_order": None if order is None else {"questions": order.questions, "outline": order.lines()},
        "questions": found.questions,
        "validated": found.validated,
        "beside": {"refuted": found.refuted, "not_told": found.unseen},
        "stage": found.stage,
        "left_for_time": found.left,
        "why": found.why or None,
        "nearest": None if found.nearest is None else text_of(found.nearest),
        "unexplained": [
            {**vector.to_json(), "d": to_hex(d, asked.d), "candidate": to_hex(other, asked.d)}
            for vector, d, other in found.unexplained
        ],
    }  # fmt: skip
