"""Where do two machines part in a model? Its products one by one, each on both machines."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from mmaprobe.differences import bound_of, explained, steps_between
from mmaprobe.documents.emulate import Diverged, Divergence, Explained
from mmaprobe.machines import Machine, UnsupportedProductError, machine_of, product_of
from mmaprobe.named import WantedError
from mmaprobe.queries.plans.rules import Shape
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.torch.emulation import Emulation, Seen, Unknown
from mmaprobe.torch.tensors import FORMAT_OF, numbers, patterns

ROWS = 256  # rows and columns of a product of which the bound is evaluated, at most


@dataclass(frozen=True)
class Divergences:
    """What `diverge` returns. `str()` is a table, a notebook shows the page. `document`: all of it as a value;
    `results`: what the model returned on both machines."""

    document: Diverged
    results: tuple[Any, Any] = field(repr=False)

    @property
    def first(self) -> Divergence | None:
        """The first product that differs; None where none does."""
        number = self.document.first
        return None if number is None else self.document.products[number]

    @property
    def svg(self) -> str:
        """The picture, a document of its own."""
        from mmaprobe.reports.diverged import diverged_drawing
        from mmaprobe.reports.drawings.svg import svg_of

        return svg_of(diverged_drawing(self.document))

    def html(self, path: str | Path | None = None) -> str:
        """The page; written to a file, if one is given."""
        from mmaprobe.reports.diverged import diverged_page

        text = diverged_page(self.document)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        from mmaprobe.reports.diverged import diverged_lines

        return "\n".join(diverged_lines(self.document))


@dataclass
class _Run:
    """The results of a model's products on one machine, and the module of each."""

    seen: list[tuple[Seen, Any]]
    where: list[str]


def diverge(
    model: Any, inputs: Any, a: Any, b: Any, *, loss: Callable[[Any], Any] | None = None, bounds: bool = True,
    unknown: Unknown = "error",
) -> Divergences:  # fmt: skip
    """Where two machines part in a model: of each of its products, which results differ and by how much.

    `model`: a module, or a function, which gives the same twice; `inputs`: its arguments, a tuple, a mapping or one
    value; `a`, `b`: machines as for `emulate`, or contexts that it returns; `loss`: of the model's result, whose
    gradients are asked for too; `bounds`: whether differences are compared with proved bounds, which takes seconds for
    each plan and K.

    Shapes: any that the model takes.

    Units: differences are in the result's units and in units in the last place (ulps); `own` ones are those that a
    product makes of the same factors, `carried` ones those between the two runs.

    Raises MmaprobeError: as `emulate`; ParameterError where the model does not ask for the same products twice.

    Source: as for `emulate`; bounds as for `mmaprobe.bound`.
    """
    one, other = (side.machine if isinstance(side, Emulation) else machine_of(side) for side in (a, b))
    rows: list[dict[str, Any]] = []
    found: list[Explained] = []

    def compare(seen: Seen, place: str) -> None:
        rows.append(_own(seen, place, one, other, bounds))
        if not found and rows[-1]["own"]:
            found.extend(_explained(seen, one, other))

    first, results = _ran(model, inputs, loss, one, unknown, compare)
    second, again = _ran(model, inputs, loss, other, unknown, None)
    if [seen.shape for seen, _ in first.seen] != [seen.shape for seen, _ in second.seen]:
        raise ParameterError("model", "it asked for other products the second time: its path depends on their results")
    products = []
    for number, (row, (seen, d), (twin, e)) in enumerate(zip(rows, first.seen, second.seen, strict=True)):
        fmt = FORMATS[seen.asked.d]
        steps = steps_between(patterns(d), patterns(e), fmt)
        norm = float(d.double().norm())
        apart = float((d.double() - e.double()).norm())
        products.append(Divergence(
            number=number, plans=(", ".join(seen.plans), ", ".join(twin.plans)), outputs=d.numel(),
            carried=int((patterns(d) != patterns(e)).sum()), carried_ulps=_whole(steps),
            relative=apart / norm if norm else apart, **row,
        ))  # fmt: skip
    left, right = (_leaves(side) for side in (results, again))
    differ = sum(int((patterns(x) != patterns(y)).sum()) for x, y in zip(left, right, strict=True))
    largest = max((float((x.double() - y.double()).abs().max()) for x, y in zip(left, right, strict=True) if x.numel()),
                  default=0.0)  # fmt: skip
    document = Diverged(
        machines=(one.name, other.name), framework=f"PyTorch {torch.__version__}", products=products,
        first=next((row.number for row in products if row.own), None), explained=found[0] if found else None,
        outputs=sum(x.numel() for x in left), differ=differ, largest=largest,
    )  # fmt: skip
    return Divergences(document, (results, again))


def _whole(steps: Any) -> int:
    finite = steps[np.isfinite(steps)]
    return int(finite.max(initial=0))


def _ran(
    model: Any, inputs: Any, loss: Any, machine: Machine, unknown: Unknown,
    compare: Callable[[Seen, str], None] | None,
) -> tuple[_Run, Any]:  # fmt: skip
    run = _Run([], [])
    own = copy.deepcopy(model) if isinstance(model, torch.nn.Module) else model

    def listen(seen: Seen) -> None:
        if compare is not None:
            compare(seen, run.where[-1] if run.where else "")
        kept = seen.d.clone()
        run.seen.append((Seen(seen.operator, seen.backward, seen.asked, seen.shape, seen.plans, None, None, None, None),
                         kept))  # fmt: skip

    if not callable(own):
        raise WantedError("model", model, "a module or a function")
    given, named = (inputs, {}) if isinstance(inputs, tuple) else ((), inputs) if isinstance(inputs, dict) else (
        (inputs,), {})  # fmt: skip
    with torch.random.fork_rng(devices=[]), _named(own, run.where):
        torch.manual_seed(0)
        with Emulation(machine, unknown, listener=listen):
            with torch.set_grad_enabled(loss is not None):
                result = own(*given, **named)
            if loss is not None:
                loss(result).backward()
    return run, result


@contextmanager
def _named(model: Any, where: list[str]) -> Iterator[None]:
    """While it runs, the names of a model's modules that are being called, the innermost last."""
    hooks = []

    def leave(*_: Any) -> None:  # what a hook returns would be the module's result
        where.pop()

    if isinstance(model, torch.nn.Module):
        for name, module in model.named_modules():
            hooks.append(module.register_forward_pre_hook(lambda *_, name=name: where.append(name)))
            hooks.append(module.register_forward_hook(leave, always_call=True))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _leaves(result: Any) -> list[Any]:
    """The tensors of numbers in what a model returns."""
    found, _ = torch.utils._pytree.tree_flatten(result)
    parts = [x for one in found for x in (_leaves(vars(one)) if hasattr(one, "__dataclass_fields__") else [one])]
    return [x.detach() for x in parts if isinstance(x, torch.Tensor) and x.dtype in FORMAT_OF]


def _own(seen: Seen, place: str, one: Machine, other: Machine, bounds: bool) -> dict[str, Any]:
    """What the product itself does: both machines on the first one's factors."""
    asked, fmt = seen.asked, FORMATS[seen.asked.d]
    x, y = patterns(seen.a), patterns(seen.b)
    twin, _ = product_of(other, asked, x, y, None if seen.c is None else numbers(seen.c))
    d, e = patterns(seen.d), twin.view(f"u{twin.itemsize}")
    steps = steps_between(d, e, fmt)
    differ = d != e
    with np.errstate(all="ignore"):
        apart = np.abs(numbers(seen.d).astype(np.float64) - twin.astype(np.float64))
    row: dict[str, Any] = {
        "module": place, "operator": seen.operator, "backward": seen.backward, "formats": (asked.a, asked.b, asked.d),
        "shape": seen.shape, "own": int(differ.sum()), "own_ulps": _whole(steps),
        "own_largest": float(np.nanmax(apart, initial=0.0)),
    }  # fmt: skip
    if bounds:
        row["bound"] = _share(seen, one, other, differ) if differ.any() else 0.0
    return row


def _share(seen: Seen, one: Machine, other: Machine, differ: Any) -> float | None:
    """The largest |difference of the sums| over both bounds, in the first block that differs."""
    block = int(np.argwhere(differ)[0][0])
    rows = np.unique(np.argwhere(differ[block])[:, 0])[:ROWS]
    columns = np.unique(np.argwhere(differ[block][rows])[:, 1])[:ROWS]
    x, y = numbers(seen.a)[block][rows], numbers(seen.b)[block][:, columns]
    shares = []
    sums = []
    for machine in (one, other):
        rule = machine.rule(seen.asked.a, seen.asked.b, fast=seen.asked.fast)
        limit = bound_of(rule, np.ascontiguousarray(x), np.ascontiguousarray(y))
        if limit is None or rule.convert is not None:
            return None
        bits = (np.ascontiguousarray(side).view(f"u{side.itemsize}")[None] for side in (x, y))
        found = rule.product(*bits)[0]
        sums.append(found.view(f"f{found.itemsize}").astype(np.float64))
        shares.append(limit)
    apart, whole = np.abs(sums[0] - sums[1]), shares[0] + shares[1]
    return float(np.max(np.divide(apart, whole, out=np.zeros_like(apart), where=whole > 0)))


def _explained(seen: Seen, one: Machine, other: Machine) -> list[Explained]:
    """The element with the largest difference, in few terms."""
    twin, _ = product_of(other, seen.asked, patterns(seen.a), patterns(seen.b),
                         None if seen.c is None else numbers(seen.c))  # fmt: skip
    steps = steps_between(patterns(seen.d), twin.view(f"u{twin.itemsize}"), FORMATS[seen.asked.d])
    places = np.argwhere(steps > 0)
    place = places[int(np.argmax(steps[tuple(places.T)]))] if len(places) else np.zeros(3, int)
    block, row, column = (int(x) for x in place)
    left, right = (machine.rule(seen.asked.a, seen.asked.b, fast=seen.asked.fast) for machine in (one, other))
    if (left.plan.a.name, right.plan.a.name) != (seen.asked.a, seen.asked.a):
        return []  # a rule that rounds its inputs has patterns of another format
    a, b = np.ascontiguousarray(patterns(seen.a)[block, row]), np.ascontiguousarray(patterns(seen.b)[block, :, column])
    found = explained(left, right, a, b, (block, row, column), Shape(*seen.shape[1:]))
    return [] if found is None else [found]


def assert_same_bits(found: Any, expected: Any) -> None:
    """Two tensors have the same type, shape and bits: any NaN is the same as itself alone.

    Shapes: the same.

    Units: none; the message counts units in the last place.

    Raises AssertionError, which says how many numbers differ, where first, and by how much.

    Source: none.
    """
    if found.dtype != expected.dtype or found.shape != expected.shape:
        raise AssertionError(f"{found.dtype} {tuple(found.shape)}, and {expected.dtype} {tuple(expected.shape)}")
    if found.dtype not in FORMAT_OF:
        raise UnsupportedProductError(f"numbers of {found.dtype} are in no format that is known here")
    x, y = patterns(found), patterns(expected)
    if (x == y).all():
        return
    fmt = FORMATS[FORMAT_OF[found.dtype]]
    place = tuple(int(n) for n in np.argwhere(x != y)[0])
    one, other = (numbers(side)[place] for side in (found, expected))
    digits = fmt.width // 4
    raise AssertionError(
        f"{int((x != y).sum())} of {x.size} numbers differ, by at most {_whole(steps_between(x, y, fmt))} ulps;\n"
        f"the first at {list(place)}: {one} ({int(x[place]):0{digits}x}), expected {other} ({int(y[place]):0{digits}x})"
    )


def assert_within_bound(found: Any, a: Any, b: Any, *, machine: Any = None, unit: Any = None, plan: Any = None) -> None:
    """A result is as near to the exact product as a machine's own is, whatever the order of its sums: within the proved
    bound of its plan, and half a unit in the last place for the rounding to the type of the result.

    Shapes: `a` M x K, `b` K x N, `found` M x N.

    Units: those of the result.

    Raises AssertionError, which says how many are beyond the bound, and the worst of them; MmaprobeError as `matmul`,
    and where the plan has no bound.

    Source: as for `mmaprobe.bound`.
    """
    how = machine_of(machine, unit=unit, plan=plan)
    rule = how.rule(FORMAT_OF[a.dtype], FORMAT_OF[b.dtype])
    x, y = numbers(a.contiguous()), numbers(b.contiguous())
    limit = bound_of(rule, x, y)
    if limit is None:
        raise ParameterError("machine", f"{rule.name} has no bound for these numbers")
    wide, other = x.astype(np.float64), y.astype(np.float64)
    exact, sizes = wide @ other, np.abs(wide) @ np.abs(other)
    fmt = FORMATS[FORMAT_OF[found.dtype]]
    given = numbers(found.contiguous()).astype(np.float64)
    own = np.maximum(np.abs(given) * 2.0 ** -(fmt.fraction + 1), 2.0 ** (fmt.emin - fmt.fraction - 1))
    limit = limit + own + sizes * ((a.shape[1] + 4) * 2.0**-53)
    apart = np.abs(given - exact)
    if (beyond := ~(apart <= limit)).any():
        share = np.where(beyond, apart / limit, 0)
        place = tuple(int(n) for n in np.unravel_index(np.argmax(share), share.shape))
        raise AssertionError(
            f"{int(beyond.sum())} of {beyond.size} results are beyond the bound of {rule.name};\n"
            f"the worst at {list(place)}: {given[place]}, exactly {exact[place]}: "
            f"{apart[place]:.3g} apart, the bound is {limit[place]:.3g}"
        )
