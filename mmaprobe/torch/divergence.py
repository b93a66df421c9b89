"""The divergence of two machines in a PyTorch model: the model's products one by one, each on both machines."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from mmaprobe.differences import bound_of, steps_apart
from mmaprobe.divergences import Comparison, Divergences, whole_of
from mmaprobe.machines import Machine, machine_of
from mmaprobe.multiplied import Multiplied
from mmaprobe.named import WantedError
from mmaprobe.smtmodel.arithmetic.formats import FORMATS
from mmaprobe.smtmodel.base.errors import ParameterError
from mmaprobe.torch.emulation import Emulation, Unknown
from mmaprobe.torch.tensors import FORMAT_OF, format_of, numbers, patterns


def diverge(
    model: Any, inputs: Any, a: Any, b: Any, *, loss: Callable[[Any], Any] | None = None, bounds: bool = True,
    unknown: Unknown = "error",
) -> Divergences:  # fmt: skip
    """Where two machines diverge in a model: for each of its products, which results differ and by how much.

    `model`: a module or a function that gives the same result twice; `inputs`: its arguments, a tuple, a mapping or one
    value; `a`, `b`: machines as for `emulate`, or contexts that `emulate` returns; `loss`: a function of the model's
    result, whose gradients are computed too; `bounds`: whether differences are compared with proved bounds, which takes
    seconds for each plan and K.

    Shapes: any that the model takes.

    Units: differences are in the result's units and in units in the last place (ulps). An `own` difference arises in a
    product of the same factors; a `carried` difference lies between the two runs.

    Raises MmaprobeError: as `emulate`; ParameterError where the model does not ask for the same products twice.

    Source: as for `emulate`; bounds as for `mmaprobe.bound`.
    """
    one, other = (side.machine if isinstance(side, Emulation) else machine_of(side) for side in (a, b))
    comparison = Comparison(one, other, bounds)
    second: list[Multiplied] = []
    results = _run(model, inputs, loss, one, unknown, comparison.first)
    again = _run(model, inputs, loss, other, unknown, lambda seen: second.append(replace(seen, d=seen.d.copy())))
    leaves = [(numbers(x), numbers(y)) for x, y in zip(_leaves(results), _leaves(again), strict=True)]
    return Divergences(comparison.document(second, f"PyTorch {torch.__version__}", leaves), (results, again))


def _run(
    model: Any, inputs: Any, loss: Any, machine: Machine, unknown: Unknown, listener: Callable[[Multiplied], None]
) -> Any:
    """The value that a model returns on a machine. `listener` receives each product, whose arrays may change
    afterwards."""
    where: list[str] = []
    own = copy.deepcopy(model) if isinstance(model, torch.nn.Module) else model

    def listen(seen: Multiplied) -> None:
        listener(replace(seen, place=where[-1] if where else ""))

    if not callable(own):
        raise WantedError("model", model, "a module or a function")
    given, named = (inputs, {}) if isinstance(inputs, tuple) else ((), inputs) if isinstance(inputs, dict) else (
        (inputs,), {})  # fmt: skip
    with torch.random.fork_rng(devices=[]), _named(own, where):
        torch.manual_seed(0)
        with Emulation(machine, unknown, listener=listen):
            with torch.set_grad_enabled(loss is not None):
                result = own(*given, **named)
            if loss is not None:
                loss(result).backward()
    return result


@contextmanager
def _named(model: Any, where: list[str]) -> Iterator[None]:
    """Within the block, `where` lists the names of the model's modules that are being called, the innermost last."""
    hooks = []

    def leave(*_: Any) -> None:  # the return value of a hook would replace the module's result
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
    """The tensors of numbers in a model's result, in order, those in dataclasses included."""
    leaves, _ = torch.utils._pytree.tree_flatten(result)
    parts = [x for one in leaves for x in (_leaves(vars(one)) if hasattr(one, "__dataclass_fields__") else [one])]
    return [x.detach() for x in parts if isinstance(x, torch.Tensor) and x.dtype in FORMAT_OF]


def assert_same_bits(actual: Any, expected: Any) -> None:
    """Assert that two tensors have the same type, shape and bits. Two NaNs are the same only if their bits are.

    Shapes: the same.

    Units: none; the message counts units in the last place.

    Raises AssertionError, which says how many numbers differ, where first, and by how much.

    Source: none.
    """
    if actual.dtype != expected.dtype or actual.shape != expected.shape:
        raise AssertionError(f"{actual.dtype} {tuple(actual.shape)}, and {expected.dtype} {tuple(expected.shape)}")
    fmt = FORMATS[format_of("actual", actual)]
    x, y = patterns(actual), patterns(expected)
    if (x == y).all():
        return
    place = tuple(int(n) for n in np.argwhere(x != y)[0])
    one, other = (numbers(side)[place] for side in (actual, expected))
    digits = fmt.width // 4
    raise AssertionError(
        f"{int((x != y).sum())} of {x.size} numbers differ, by at most {whole_of(steps_apart(x, y, fmt))} ulps;\n"
        f"the first at {list(place)}: {one} ({int(x[place]):0{digits}x}), expected {other} ({int(y[place]):0{digits}x})"
    )


def assert_within_bound(
    actual: Any, a: Any, b: Any, *, machine: Any = None, unit: Any = None, plan: Any = None
) -> None:
    """Assert that a result, summed in any order, is as near to the exact product as a machine's own results are: within
    the proved bound of the machine's plan, plus half a unit in the last place for rounding to the type of the result.

    Shapes: `a` M x K, `b` K x N, `actual` M x N.

    Units: those of the result.

    Raises AssertionError, which says how many results are beyond the bound, and names the worst; MmaprobeError as
    `matmul`, and where the plan has no bound.

    Source: as for `mmaprobe.bound`.
    """
    how = machine_of(machine, unit=unit, plan=plan)
    rule, fmt = how.rule(format_of("a", a), format_of("b", b)), FORMATS[format_of("actual", actual)]
    x, y = numbers(a.contiguous()), numbers(b.contiguous())
    limit = bound_of(rule, x, y)
    if limit is None:
        raise ParameterError("machine", f"{rule.name} has no bound for these numbers")
    wide, other = x.astype(np.float64), y.astype(np.float64)
    exact, sizes = wide @ other, np.abs(wide) @ np.abs(other)
    given = numbers(actual.contiguous()).astype(np.float64)
    own = np.maximum(np.abs(given) * 2.0 ** -(fmt.fraction + 1), 2.0 ** (fmt.unit - 1))
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
