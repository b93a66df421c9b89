"""The document of `order`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mmaprobe.documents.identify import Order
from mmaprobe.documents.parts import ABSENT
from mmaprobe.queries.order.reveal import Tree
from mmaprobe.smtmodel.inputs.signature import Signature


def document_of(
    tree: Tree | None, asked: Signature, device: Mapping[str, Any], questions: int, seconds: float, error: object = None
) -> Order:
    """The document that `order` prints. `tree`: None if the order was not revealed, for the reason `error`; `device`:
    the name of the device and its own description."""
    formats = {"a": asked.a.name, "b": asked.b.name, "d": asked.d.name}
    document = Order(
        device=device,
        formats=formats | ({"c": asked.c.name} if asked.addend else {}),
        length=asked.length,
        revealed=tree is not None,
        error=str(error) if error else None,
        questions=questions,
        seconds=round(seconds, 3),
        steps=ABSENT if tree is None else tree.steps(),
        outline=ABSENT if tree is None else tree.outline().lines(),
        places=ABSENT if tree is None else tree.places,
    )
    return document if tree is None or tree.ends is None else tree.ends.add_to(document)
