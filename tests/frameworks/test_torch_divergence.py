"""Where two machines part in a model: every product compared, the first difference in few terms."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

import mmaprobe  # noqa: E402
import mmaprobe.torch as mt  # noqa: E402
from mmaprobe.differences import FAR, few_terms, steps_apart  # noqa: E402
from mmaprobe.machines import UnsupportedProductError, machine_of  # noqa: E402
from mmaprobe.queries.plans.rules import Shape  # noqa: E402
from mmaprobe.smtmodel.arithmetic.formats import format_named  # noqa: E402
from mmaprobe.smtmodel.base.errors import ParameterError  # noqa: E402
from tests.frameworks.test_torch_products import tensors  # noqa: E402


class Small(torch.nn.Module):  # type: ignore[misc, unused-ignore]
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = torch.nn.Linear(96, 40), torch.nn.Linear(40, 12)

    def forward(self, x: Any) -> Any:
        return {"logits": self.second(self.first(x).relu())}


def small() -> Any:
    return Small().half()


def test_a_model_parts_where_its_products_do() -> None:
    (x,) = tensors("f16", (24, 96))
    model = small()
    found = mt.diverge(model, x, "H100", "A100")
    document = found.document
    assert [row.module for row in document.products] == ["first", "second"]
    assert document.machines == ("H100", "A100")
    results = []
    for name in ("H100", "A100"):
        with mt.emulate(name) as context:
            results.append(model(x)["logits"])
        assert ", ".join(context.report.products[0].plans) == document.products[0].plans[name == "A100"]
    assert document.differ == int((results[0] != results[1]).sum())
    assert torch.equal(found.results[0]["logits"], results[0])
    first = document.products[0]
    with mt.emulate("H100"):
        one = model.first(x)
    with mt.emulate("A100"):
        other = model.first(x)
    assert first.own == first.carried == int((one != other).sum()) > 0
    assert found.first is first
    assert isinstance(first.bound, float)
    assert 0 < first.bound < 1


def test_the_few_terms_are_evaluated_on_both() -> None:
    (x,) = tensors("f16", (400, 96))
    how = mt.diverge(small(), x, "H100", "MI300X", bounds=False).document.explained
    assert how is not None
    assert len(how.terms) < 8
    a, b = np.zeros((1, 96), np.float16), np.zeros((96, 1), np.float16)
    for term in how.terms:
        a[0, term.place], b[term.place, 0] = float(term.a), float(term.b)
    units = ("hopper/wgmma/m64n8k16.f32.f16.f16", "cdna3/mfma/f32_16x16x16_f16")
    results = [str(mmaprobe.matmul(a, b, unit=unit)[0, 0]) for unit in units]
    assert list(how.results) == results
    assert results[0] != results[1]
    assert any("<-- " in line for line in how.why)


def test_no_term_can_be_left_out() -> None:
    one, other = (machine_of(name).rule("f16", "f16") for name in ("H100", "A100"))
    for seed in range(9):
        rng = np.random.default_rng(seed)
        a, b = (rng.standard_normal(300).astype(np.float16).view("u2") for _ in range(2))
        places = few_terms(one, other, a, b, Shape(1, 1, 300))
        if places is not None:
            break
    assert places is not None
    for left_out in (None, *places):
        x, y = np.zeros((1, 1, 300), "u2"), np.zeros((1, 300, 1), "u2")
        some = [place for place in places if place != left_out]
        x[0, 0, some], y[0, some, 0] = a[some], b[some]
        assert (one.product(x, y) != other.product(x, y)).all() == (left_out is None)
    assert few_terms(one, one, a, b, Shape(1, 1, 300)) is None


def test_a_machine_does_not_part_from_itself() -> None:
    (x,) = tensors("f16", (8, 96))
    found = mt.diverge(small(), (x,), "H100", mt.emulate("H200"), bounds=False)
    assert found.first is None
    assert found.document.differ == 0
    assert str(found).splitlines()[1] == "no product differs"


def test_gradients_are_compared_too() -> None:
    (x,) = tensors("f16", (24, 96))
    found = mt.diverge(small(), x, "H100", "A100", loss=lambda y: y["logits"].float().square().mean(), bounds=False)
    assert [row.backward for row in found.document.products] == [False, False, True, True, True]


def test_a_model_that_goes_another_way_is_refused() -> None:
    calls = []

    def model(x: Any) -> Any:
        calls.append(0)
        return x[: 8 * len(calls)] @ x.T

    (x,) = tensors("f16", (24, 96))
    with pytest.raises(ParameterError, match="its path depends on their results"):
        mt.diverge(model, x, "H100", "A100", bounds=False)


def test_text_page_and_picture(tmp_path: Any) -> None:
    (x,) = tensors("f16", (24, 96))
    found = mt.diverge(small(), x, "H100", "A100", bounds=False)
    lines = str(found).splitlines()
    assert lines[0] == f"H100 and A100, PyTorch {torch.__version__}: 2 matrix products"
    assert lines[1].startswith("the first that differs: 0: first addmm: ")
    page = found.html(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == page
    assert "hopper/wgmma" in page
    ElementTree.fromstring(found.svg)


@pytest.mark.parametrize("fmt", ["f16", "e4m3", "f32"])
def test_steps_are_the_numbers_between(fmt: str) -> None:
    how = format_named(fmt)
    zero, one = (np.array([bits], np.uint32) for bits in (0, 1 << (how.width - 1) | 3))
    assert steps_apart(zero, one, how)[0] == 3
    nan = np.array([how.nan], np.uint32)
    assert steps_apart(nan, nan, how)[0] == 0
    assert steps_apart(nan, zero, how)[0] == FAR


def test_same_bits() -> None:
    a = torch.tensor([1.0, float("nan"), -0.0])
    mt.assert_same_bits(a, a.clone())
    with pytest.raises(AssertionError, match=r"1 of 3 numbers differ, by at most 0 ulps;\nthe first at \[2\]: -0.0"):
        mt.assert_same_bits(a, a.abs())
    with pytest.raises(AssertionError, match="2 of 3 numbers differ, by at most 1 ulps"):
        mt.assert_same_bits(a, torch.nextafter(a, torch.tensor(9.0)))
    with pytest.raises(AssertionError, match=r"torch.float32 \(3,\), and torch.float64"):
        mt.assert_same_bits(a, a.double())


def test_within_a_bound() -> None:
    a, b = tensors("f16", (20, 256), (256, 10))
    exact = a.double() @ b.double()
    mt.assert_within_bound(exact.half(), a, b, machine="H100")
    mt.assert_within_bound(mt.matmul(a, b, machine="A100"), a, b, machine="A100")
    off = exact.half()
    off[3, 4] += 0.25
    with pytest.raises(AssertionError, match=r"1 of 200 results are beyond the bound of .*;\nthe worst at \[3, 4\]"):
        mt.assert_within_bound(off, a, b, machine="H100")
    a[0, 0] = float("inf")
    with pytest.raises(ParameterError, match="has no bound for these numbers"):
        mt.assert_within_bound(off, a, b, machine="H100")
    for given in ((off, a.int(), b), (off, a, b.int()), (off.int(), a, b)):
        with pytest.raises(UnsupportedProductError, match=r"numbers of torch.int32 are in no format"):
            mt.assert_within_bound(*given, machine="H100")
