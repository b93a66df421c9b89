"""The unit with which a device computes, built from its answers within a time limit."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mmaprobe.documents.identify import Outline
from mmaprobe.queries.building.build import Builder
from mmaprobe.queries.building.outcome import Built
from mmaprobe.queries.building.weights import Weights, weights_of_device
from mmaprobe.queries.compare.steady import AGAIN_IN_DOUBT, stand_by
from mmaprobe.queries.order.ends import sentences
from mmaprobe.queries.order.likely_orders import likely_orders
from mmaprobe.queries.order.probe import UnrevealedError
from mmaprobe.queries.order.structure import tree_of
from mmaprobe.queries.order.text import Outliner, shared_text, title_of
from mmaprobe.queries.order.tree import Leaf, Node, with_products
from mmaprobe.queries.search.distinguish import Options
from mmaprobe.runner.device_order import revealed
from mmaprobe.runner.protocol import Device, DeviceError
from mmaprobe.smtmodel.base.errors import IncompleteError, OutOfTimeError
from mmaprobe.smtmodel.base.wording import counted
from mmaprobe.smtmodel.evaluate.operands import check_plain
from mmaprobe.smtmodel.inputs.signature import Signature
from mmaprobe.smtmodel.inputs.vectors import Vector

GUESSED = 64  # the most products for which likely orders are tried if questions do not reveal the order
TOGETHER = 128  # vectors sent to a device between two looks at the clock
EACH = 20.0  # seconds for the proof that two candidates are equal


def built(
    device: Device,
    asked: Signature,
    options: Options,
    deadline: float | None,
    tell: Callable[[str], None],
    progress: Callable[[str], None],
) -> tuple[Built, Orders]:
    """The unit of a device and the device's possible summation orders. The orders are found first, then the arithmetic;
    at the end some questions are asked again. `deadline`: of time.monotonic; `tell` gets the order in words, `progress`
    texts now and then. Raises the errors of `check_plain`, `_orders`, Builder.run and `stand_by`."""
    check_plain(asked)
    try:
        order, weights = _orders(device, asked, deadline, progress)
    except UnrevealedError as error:
        if asked.length > GUESSED:
            raise
        weights = weights_of_device(device.every, asked)
        order = Orders(likely_orders(asked.length, asked.addend), len(error.questions) + asked.length + asked.addend)
        tell(f"{error}; {counted(len(order.roots), 'order')} that units are likely to have are tried")
    else:
        order.say(asked, tell)
    for line in sentences(weights, asked.length):
        tell(line)
    return _arithmetic(device, order, asked, options, deadline, weights, tell)


def _arithmetic(
    device: Device,
    order: Orders,
    asked: Signature,
    options: Options,
    deadline: float | None,
    weights: Weights,
    tell: Callable[[str], None],
) -> tuple[Built, Orders]:
    """The unit of a device with these possible orders and these weights of its terms, and the orders that remain."""

    answered: list[tuple[Vector, int]] = []  # some of these are asked again
    count = 0

    def ask(vectors: Sequence[Vector]) -> list[int]:
        nonlocal count
        answers = []
        for start in range(0, len(vectors), TOGETHER):
            if deadline is not None and time.monotonic() > deadline:
                raise late()
            try:
                for vector, d in device.answers(vectors[start : start + TOGETHER]):
                    if d is None:
                        raise IncompleteError(f"{device.name}: no answer is recorded to question {vector.id}")
                    if not device.steady:
                        answered.append((vector, d))
                    count += 1
                    answers.append(d)
            except DeviceError as error:
                if device.patience.over:  # the time ran out within an answer; the findings so far are reported
                    raise late() from error
                raise
        return answers

    def late() -> OutOfTimeError:
        return OutOfTimeError(f"the time ran out after {counted(count, 'question')} about the arithmetic")

    outcome = Builder(order.roots, asked, ask, replace(options, timeout=EACH), deadline, weights).run()
    if not device.steady:
        try:
            stand_by(device.again, answered, AGAIN_IN_DOUBT)
        except DeviceError:
            if not device.patience.over:  # else the findings so far are reported
                raise
    if outcome.unit is not None and len(order.roots) > 1:
        order = Orders([tree_of(outcome.unit)], order.questions)
        order.say(asked, tell)
    return outcome, order


@dataclass(frozen=True)
class Orders:
    """The summation trees that a device may have, and the number of questions asked to find these. `width`: how many
    products share scale factors if the order within such groups was not asked, else 1."""

    roots: list[Node | Leaf]
    questions: int
    width: int = 1

    def lines(self) -> list[str]:
        """The tree as an outline; empty if several trees are possible."""
        if len(self.roots) > 1:
            return []
        lines = Outliner(self.roots[0]).outline().lines()
        return [*lines, shared_text(self.width)] if self.width > 1 else lines

    def document(self) -> Outline:
        """The orders as part of a document."""
        return Outline(questions=self.questions, outline=self.lines())

    def say(self, asked: Signature, tell: Callable[[str], None]) -> None:
        """Tell the tree if a single tree is possible."""
        if lines := self.lines():
            tell(f"{title_of(asked)}:")
            for line in lines:
                tell(f"  {line}")


def _orders(
    device: Device, asked: Signature, deadline: float | None, progress: Callable[[str], None]
) -> tuple[Orders, Weights]:
    """The summation tree of a device, and the weights of its terms. Raises the errors of `revealed`."""
    tree = revealed(device, asked, deadline or float("inf"), progress)
    roots = with_products(tree.root, tree.width) if tree.width > 1 else [tree.root]
    return Orders(roots, len(tree.questions), tree.width), tree.weights
