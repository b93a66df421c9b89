"""Models of several architectures, and ways to run them, have the machine's products, as many as PyTorch counts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.utils.flop_counter import FlopCounterMode  # noqa: E402

import mmaprobe.torch as mt  # noqa: E402
from mmaprobe.machines import UnsupportedProductError  # noqa: E402
from tests.frameworks.test_torch_products import tensors  # noqa: E402

F = torch.nn.functional


class Gated(torch.nn.Module):  # type: ignore[misc, unused-ignore]
    """A decoder layer: queries that share keys, rotated, and a gated perceptron."""

    def __init__(self) -> None:
        super().__init__()
        linear = partial(torch.nn.Linear, bias=False)
        self.q, self.k, self.v, self.o = linear(32, 32), linear(32, 16), linear(32, 16), linear(32, 32)
        self.gate, self.up, self.down = linear(32, 56), linear(32, 56), linear(56, 32)
        self.norm = torch.nn.RMSNorm(32)

    def forward(self, x: Any) -> Any:
        y = self.norm(x)
        q, k, v = (side(y).unflatten(-1, (-1, 8)).transpose(1, 2) for side in (self.q, self.k, self.v))
        turn = torch.arange(x.shape[1], dtype=x.dtype)[:, None] * torch.ones(8, dtype=x.dtype)
        q, k = (side * turn.cos() + side.roll(1, -1) * turn.sin() for side in (q, k))
        found = F.scaled_dot_product_attention(q.contiguous().transpose(1, 2).contiguous().transpose(1, 2), k, v,
                                               is_causal=True, enable_gqa=True)  # fmt: skip
        x = x + self.o(found.transpose(1, 2).view(x.shape))  # heads are a view of a place's numbers
        y = self.norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Wide(torch.nn.Module):  # type: ignore[misc, unused-ignore]
    """Down and up again: strided, grouped, dilated, depthwise and transposed convolutions."""

    def __init__(self) -> None:
        super().__init__()
        conv = torch.nn.Conv2d
        self.first, self.down = conv(3, 8, 3, padding=1), conv(8, 16, 3, stride=2, padding=1, groups=2)
        self.deep = conv(16, 16, 3, padding="same", dilation=2, groups=16, padding_mode="reflect")
        self.up, self.last = torch.nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1, groups=2), conv(16, 4, 1)
        self.norm = torch.nn.GroupNorm(4, 16)

    def forward(self, x: Any) -> Any:
        high = F.silu(self.first(x))
        low = F.gelu(self.norm(self.deep(self.down(high))))
        return self.last(torch.cat([self.up(low), high], 1))


class Scan(torch.nn.Module):  # type: ignore[misc, unused-ignore]
    """A state space whose steps depend on the input."""

    def __init__(self, width: int = 12, states: int = 6) -> None:
        super().__init__()
        self.states, self.rate = states, torch.nn.Parameter(-torch.rand(width, states))
        self.enter, self.leave = torch.nn.Linear(width, 2 * width), torch.nn.Linear(width, width)
        self.sides, self.near = torch.nn.Linear(width, 1 + 2 * states), torch.nn.Conv1d(width, width, 4, groups=width)

    def forward(self, x: Any) -> Any:
        a, gate = self.enter(x).chunk(2, -1)
        a = F.silu(self.near(F.pad(a.mT, (3, 0)))).mT
        step, b, c = self.sides(a).split([1, self.states, self.states], -1)
        step, h, found = F.softplus(step), x.new_zeros(*a.shape[::2], self.states), []
        for t in range(x.shape[1]):
            h = h * (step[:, t, :, None] * self.rate).exp() + torch.einsum("bw,bn->bwn", a[:, t] * step[:, t], b[:, t])
            found.append(torch.einsum("bwn,bn->bw", h, c[:, t]))
        return self.leave(torch.stack(found, 1) * F.silu(gate))


MODELS: dict[str, tuple[Callable[[], Any], tuple[int, ...]]] = {
    "gated": (Gated, (2, 7, 32)),
    "wide": (Wide, (2, 3, 8, 8)),
    "wide, no image": (Wide, (0, 3, 8, 8)),
    "scan": (Scan, (2, 5, 12)),
    "LSTM, projected": (partial(torch.nn.LSTM, 6, 5, num_layers=2, proj_size=3, bidirectional=True), (4, 3, 6)),
    "GRU": (partial(torch.nn.GRU, 6, 5, num_layers=2), (4, 3, 6)),
    "weights of a norm": (lambda: torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(6, 5)), (4, 6)),
}


@pytest.mark.parametrize("name", MODELS)
def test_models_forward_and_backward(name: str) -> None:
    torch.manual_seed(0)
    make, shape = MODELS[name]
    model, (x,) = make().double(), tensors("f64", shape)
    if name == "wide":
        x = x.to(memory_format=torch.channels_last)

    def step() -> list[Any]:
        found = model(x)
        found = found[0] if isinstance(found, tuple) else found
        return [found, *torch.autograd.grad(found.square().sum(), list(model.parameters()))]

    expected = step()
    with mt.emulate("H100") as context:
        found = step()
    for one, other in zip(found, expected, strict=True):
        assert one.shape == other.shape
        assert torch.allclose(one, other, rtol=1e-9, atol=1e-9)
    assert expected[0].stride() == found[0].stride()
    assert not context.report.unknown
    assert sum(row.backward for row in context.report.products) >= sum(
        not row.backward for row in context.report.products
    )


A, B, W = tensors("f64", (6, 10), (10, 7), (10, 10))
LAYER = torch.nn.Linear(10, 3).double()


def doubly() -> list[Any]:
    x = W.clone().requires_grad_()
    (one,) = torch.autograd.grad((x @ x).sum(), x, create_graph=True)
    return [one, *torch.autograd.grad(one.square().sum(), x)]


def checkpointed() -> list[Any]:
    x = A.clone().requires_grad_()
    return list(torch.autograd.grad(torch.utils.checkpoint.checkpoint(LAYER, x, use_reentrant=False).sum(), x))


def scripted() -> list[Any]:
    layer = torch.jit.script(LAYER)
    return [layer(A), layer(A), layer(A)]


@cache
def exported() -> Any:
    return torch.export.export(LAYER, (A,)).module()


def linearized() -> list[Any]:
    found, function = torch.func.linearize(lambda x: (x @ B).tanh(), A)
    return [found, function(A), function(2 * A)]


def recorded() -> list[Any]:
    graph = make_fx(lambda x: F.conv2d((x @ W)[None, None], x.new_ones(2, 1, 3, 3)))(A)
    return [graph(A), graph(2 * A)]


USES: dict[str, Callable[[], list[Any]]] = {
    "out of another shape": lambda: [torch.mm(A, B, out=A.new_empty(0)), torch.mm(A, B, out=A.new_empty(7, 6).T)],
    "part of a matrix as out": lambda: (lambda o: [torch.mm(A, B, out=o[1:7, 1:8]), o])(A.new_zeros(9, 9)),
    "in place": lambda: [A.new_ones(6, 7).addmm_(A, B, beta=2), A.new_ones(1, 6, 7).baddbmm_(A[None], B[None])],
    "vmap": lambda: [torch.vmap(torch.vmap(torch.dot, (None, 1)), (0, None))(A, B), torch.vmap(lambda x: x @ B)(A)],
    "gradients of functions": lambda: list(torch.func.grad(lambda x, y: (x @ y).tanh().sum(), (0, 1))(A, B)),
    "Jacobians": lambda: [torch.func.jacrev(lambda x: (x @ W).tanh())(A[0]), torch.func.hessian(
        lambda x: (x @ W).tanh().sum())(A[0])],
    "forward derivatives": lambda: list(torch.func.jvp(lambda x: x @ W, (A,), (A,))),
    "gradients twice": doubly,
    "checkpoint": checkpointed,
    "einsum": lambda: [torch.einsum(e, *sides) for e, sides in (
        ("ij,jk->ki", (A, B)), ("...j,jk", (A, B)), ("ij,kj,lj->ikl", (A, A, A)), ("ii->i", (W,)),
        ("ij,ij->", (A, A)))],
    "TorchScript": scripted,
    "exported": lambda: [exported()(A)],
    "exported here": lambda: [torch.export.export(LAYER, (A,)).module()(2 * A)],
    "linearized": linearized,
    "recorded": recorded,
    "fused scalars": lambda: [torch.addmm(A.new_ones(7), A, B, alpha=-2.5, beta=3), torch.addmv(A[:, 0], A, B[:, 0],
                                                                                                  alpha=0.3)],
    "torch.cond": lambda: [torch.cond(A.sum() > 1e9, lambda x: x @ B + 1, lambda x: x @ B, (A,))],
    "zero sizes": lambda: [A[:0] @ B, A[:, :0] @ B[:0], torch.addmm(A.new_ones(7), A[:, :0], B[:0]),
                           A[:, :0] @ B[:0, 0]],
    "negated views": lambda: [torch._neg_view(A) @ B, A.conj() @ B],
}  # fmt: skip


#: by PyTorch: not at all, both branches, or what is recorded too
UNCOUNTED = ("checkpoint", "torch.cond", "exported here", "linearized", "recorded")


@pytest.mark.filterwarnings("ignore:`torch.jit", "ignore:Attempted to insert a get_attr Node")  # torch.func.linearize
@pytest.mark.parametrize("name", USES)
def test_ways_to_use_products(name: str) -> None:
    expected = USES[name]()
    with FlopCounterMode(display=False) as counter:
        if name not in UNCOUNTED:
            USES[name]()
    with mt.emulate("H100") as context:
        found = USES[name]()
    for one, other in zip(found, expected, strict=True):
        assert (one.shape, one.stride()) == (other.shape, other.stride())
        assert torch.allclose(one, other, rtol=1e-12, atol=1e-12)
    products = context.report.products
    count = sum(2 * row.count * row.shape[0] * row.shape[1] * row.shape[2] * row.shape[3] for row in products)
    assert count >= max(1, counter.get_total_flops()) or name == "zero sizes"  # vectors are not in it
    assert not any("mm" in one or "dot" in one or "mv" in one for one in context.report.native)


@pytest.mark.filterwarnings("ignore:flex_attention called")
def test_operators_that_call_functions() -> None:
    from torch._higher_order_ops.map import map as mapped
    from torch._higher_order_ops.scan import scan
    from torch._higher_order_ops.while_loop import while_loop
    from torch.nn.attention.flex_attention import flex_attention

    (x, w), (q,) = tensors("f32", (3, 4), (4, 4)), tensors("f32", (1, 2, 16, 16))
    uses: list[tuple[Callable[[], Any], Callable[[], Any], int]] = [
        (lambda: mapped(lambda y, w: y @ w, x[:, None], w), lambda: (x @ w)[:, None], 3),
        (lambda: while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y @ w), (torch.tensor(0), x))[1],
         lambda: x @ w @ w @ w, 3),
        (lambda: scan(lambda c, y: (c @ w + y, c.clone()), torch.zeros(4), x, dim=0)[0],
         lambda: (x[0] @ w + x[1]) @ w + x[2], 3),
        (lambda: flex_attention(q, q, q, score_mod=lambda s, b, h, i, j: s * 2),
         lambda: F.scaled_dot_product_attention(q, q, q, scale=0.5), 2),
    ]  # fmt: skip
    for use, expected, count in uses:
        with mt.emulate("H100") as context:
            found = use()
        assert torch.allclose(found, expected(), atol=1e-4)
        assert sum(row.count for row in context.report.products) == count


def test_threads_that_start_inside_are_inside() -> None:
    early = ThreadPoolExecutor(1)
    early.submit(int).result()
    with mt.emulate("H100") as outer:
        with mt.emulate("A100") as inner:
            one = threading.Thread(target=torch.mm, args=(A, B))
            one.start()
            one.join()
        late = ThreadPoolExecutor(1)
        for pool in (early, late, late):
            pool.submit(torch.mm, A, B).result()

        async def product() -> Any:
            return await asyncio.to_thread(torch.mm, A, B)

        asyncio.run(product())
    counts = [sum(row.count for row in context.report.products) for context in (outer, inner)]
    assert counts == [4, 1]
    early.submit(torch.mm, A, B).result()
    late.submit(torch.mm, A, B).result()  # its thread runs on
    assert [sum(row.count for row in context.report.products) for context in (outer, inner)] == counts
    assert threading.Thread.start.__qualname__ == "Thread.start"
    assert ThreadPoolExecutor.submit.__qualname__ == "ThreadPoolExecutor.submit"


IMAGE = A[None, None]
WRONG: dict[str, Callable[[], Any]] = {
    "no matrix": lambda: torch.mm(A[None], B),
    "sides": lambda: torch.mm(A, A),
    "batches": lambda: torch.bmm(A[None], B.expand(2, 10, 7)),
    "vectors": lambda: torch.dot(A[0], B[0]),
    "c too long": lambda: torch.addmm(A.new_ones(8), A, B),
    "c of more dimensions": lambda: torch.addmm(A.new_ones(1, 6, 7), A, B),
    "c of more matrices": lambda: torch.baddbmm(A.new_ones(2, 6, 7), A[None], B[None]),
    "c of another type": lambda: torch.addmm(torch.ones(7), A, B),
    "c of integers": lambda: torch.addmm(torch.ones(7).long(), A, B),
    "c that is unused": lambda: torch.addmm(A.new_ones(8), A, B, beta=0),
    "out of another type": lambda: torch.mm(A, B, out=torch.empty(6, 7)),
    "channels": lambda: F.conv2d(IMAGE, A.new_ones(2, 3, 2, 2)),
    "a bias": lambda: F.conv2d(IMAGE, A.new_ones(2, 1, 2, 2), A.new_ones(3)),
    "a kernel": lambda: F.conv2d(IMAGE, A.new_ones(2, 1, 9, 9)),
    "a stride": lambda: F.conv2d(IMAGE, A.new_ones(2, 1, 2, 2), stride=0),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_pytorch_refuses_it_refuses_inside(name: str) -> None:
    with pytest.raises((RuntimeError, IndexError)) as expected:
        WRONG[name]()
    with pytest.raises(type(expected.value)) as found, mt.emulate("H100"):
        WRONG[name]()
    assert str(found.value) == str(expected.value)


@pytest.mark.filterwarnings("ignore:`torch.jit")
def test_what_onednn_would_multiply_unseen_is_refused_by_name() -> None:
    layer = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU()).eval()
    layer = torch.jit.optimize_for_inference(torch.jit.script(layer))
    with pytest.raises(UnsupportedProductError, match="to_mkldnn"), mt.emulate("H100"):
        layer(tensors("f32", (1, 3, 6, 6))[0])
