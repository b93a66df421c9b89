"""Functions whose results depend on their place in a product: only places alike are used, and no device is said to
contradict itself for it."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from mmaprobe.queries.compare.steady import ContradictionError
from mmaprobe.queries.order.reveal import Tree
from mmaprobe.runner.callable import CallableDevice, PlacesError
from mmaprobe.runner.device_order import revealed
from mmaprobe.smtmodel.evaluate.operands import Operands
from mmaprobe.smtmodel.inputs.signature import parse_signature
from mmaprobe.smtmodel.inputs.vectors import Vector

Place = Callable[[int, int, np.ndarray], bool]


def multiplication(backwards: Place) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Products in f32, added in order, or backwards where `backwards` says so of a row, a column and their products."""

    def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        x, y = np.asarray(a, np.float32), np.asarray(b, np.float32)
        d = np.zeros((len(x), y.shape[1]), np.float32)
        for row, column in np.argwhere(np.any(x != 0, 1)[:, None] & np.any(y != 0, 0)):
            products = x[row] * y[:, column]
            total = np.float32(0)
            for product in products[::-1] if backwards(row, column, products) else products:
                total = total + product
            d[row, column] = total
        return d

    return multiply


def answer(device: CallableDevice, vector: Vector) -> int | None:
    [(_, d)] = device.answers([vector])
    return d


def order(backwards: Place, formats: str = "bf16,bf16,f32") -> tuple[Tree, CallableDevice]:
    device = CallableDevice(multiplication(backwards), "f", (12, 12))
    return revealed(device, parse_signature(formats, 7), time.monotonic() + 60, lambda _: None, ends=True), device


@pytest.mark.parametrize("formats", ["bf16,bf16,f32", "f16,f16,f32", "f32,f32,f32"])
def test_other_orders_at_other_places_are_seen_in_all_formats(formats: str) -> None:
    """Of factors near 1 with few bits every sum is exact, in any order."""
    every, plain = order(lambda row, column, _: False, formats)
    tree, device = order(lambda row, column, _: column > 7, formats)
    assert tree.outline().lines() == every.outline().lines()
    assert "row 0, column 0 and those that answer alike" in device.description["places"]
    assert "places" not in plain.description
    device = CallableDevice(multiplication(lambda row, column, _: column > 7), "f", (12, 12))
    asked = parse_signature(formats, 7)
    answer(device, Vector(asked, Operands((0,) * 7, (0,) * 7, 0)))
    assert "places" in device.description  # before a question is asked twice


def test_a_place_that_differs_for_few_inputs_is_left_out_once_it_shows() -> None:
    """Only powers of two are added backwards there: the search begins anew without these places."""
    every, _ = order(lambda row, column, _: False)
    tree, device = order(
        lambda row, column, products: column % 3 == 1 and set(np.abs(np.frexp(products)[0])) <= {0, 0.5}
    )
    assert tree.outline().lines() == every.outline().lines()
    assert "places" in device.description


def test_an_input_that_is_asked_twice_says_which_places_differ() -> None:
    device = CallableDevice(multiplication(lambda row, column, p: column == 1 and p[0] == 2.0**70), "f", (4, 4))
    asked = parse_signature("bf16,bf16,f32", 3)
    vector = Vector(asked, Operands((0x6280, 0xE280, 0x3F80), (0x3F80,) * 3, 0), id=1)  # 2^70 - 2^70 + 1
    assert [answer(device, vector) for _ in range(2)] == [0x3F800000, 0]  # as places differ
    device = CallableDevice(device.function, "f", (4, 4))
    with device.strict():
        assert answer(device, vector) == 0x3F800000
        with pytest.raises(PlacesError, match=r"f: one input gives 1 at row 0, column 0 and 0 at row 0, column 1"):
            answer(device, vector)
        assert [answer(device, vector) for _ in range(5)] == [0x3F800000] * 5


def test_places_are_an_error_in_the_search_for_an_order_alone() -> None:
    """What asks the function afterwards goes on where an input shows that places differ."""
    device = CallableDevice(multiplication(lambda row, column, p: column % 3 == 1 and p[0] == 2.0**70), "f", (12, 12))
    asked = parse_signature("bf16,bf16,f32", 7)
    revealed(device, asked, time.monotonic() + 60, lambda _: None)
    zeros = (0,) * 4
    vector = Vector(asked, Operands((0x6280, 0xE280, 0x3F80, *zeros), (0x3F80,) * 3 + zeros, 0), id=1)
    assert {answer(device, vector) for _ in range(12)} == {0, 0x3F800000}


def test_a_function_that_changes_its_answers_contradicts_itself() -> None:
    calls = [0]

    def changing(row: int, column: int, products: np.ndarray) -> bool:
        calls[0] += 1
        return calls[0] % 7 == 0

    with pytest.raises(ContradictionError, match="contradicts itself"):
        order(changing)
