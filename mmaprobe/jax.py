"""JAX computes as another machine does, on the host: `pip install mmaprobe[jax]`.

    from mmaprobe.jax import emulate
    with emulate("H100") as machine:
        logits = model(params, tokens)
    print(machine)

`dot_general` is one product as a unit, a plan or a machine computes it; `emulate` is a context in which every product
of functions compiled inside is computed so. Both work under jit, grad and vmap. `diverge` says where two machines part
in a function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mmaprobe.divergences import Comparison, Divergences
from mmaprobe.documents.emulate import Emulated
from mmaprobe.machines import Machine, ProductRequest, UnsupportedProductError, machine_of, product_of
from mmaprobe.multiplied import Multiplied, Tally, bits_of
from mmaprobe.named import WantedError, choice_of
from mmaprobe.runner.gpu.cuda_product import product_here
from mmaprobe.smtmodel.base.errors import IncompleteError, MissingError
from mmaprobe.smtmodel.base.wording import install_command
from mmaprobe.smtmodel.evaluate.numbers import format_of

try:
    import jax
    import jax.numpy as jnp
except ModuleNotFoundError as error:
    raise MissingError(f"mmaprobe.jax needs JAX: {install_command('jax')}") from error

__all__ = ["Divergences", "Emulation", "diverge", "dot_general", "emulate"]

Dimensions = tuple[tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]]
Numbers = NDArray[Any]


def _format(array: Any) -> str:
    name = format_of(np.dtype(array.dtype))
    if name is None:
        raise UnsupportedProductError(f"numbers of {array.dtype} are in no format that a unit takes")
    return name.name


def _product(machine: Machine, kind: Any, a: Numbers, b: Numbers, listen: Callable[..., None] | None = None) -> Numbers:
    """The products of matrices (... x M x K and ... x K x N), on the host."""
    a, b = np.asarray(a), np.asarray(b)
    wanted = format_of(np.dtype(kind))
    if wanted is None:
        raise UnsupportedProductError(f"no result is rounded to {kind}")
    asked = ProductRequest(_format(a), _format(b), wanted.name)
    batch = a.shape[:-2]
    x, y = a.reshape(prod(batch), *a.shape[-2:]), b.reshape(prod(batch), *b.shape[-2:])
    gpu = product_here(0) if jax.default_backend() == "gpu" else None
    d, after = product_of(machine, asked, bits_of(x), bits_of(y), None, by=None if gpu is None else gpu.each)
    if listen is not None:
        listen(machine, asked, (bits_of(x), bits_of(y), bits_of(d)), after)
    return np.asarray(d.reshape(*batch, a.shape[-2], b.shape[-1]), kind)


def _called(machine: Machine, kind: Any, a: Any, b: Any, listen: Callable[..., None] | None = None) -> Any:
    """The products of `_product`, called from code that JAX compiles."""
    shape = jax.ShapeDtypeStruct((a.shape[0], a.shape[1], b.shape[2]), kind)

    def call(x: Any, y: Any) -> Numbers:
        return _product(machine, kind, x, y, listen)

    return jax.pure_callback(call, shape, a, b, vmap_method="broadcast_all")


def _as_matrices(lhs: Any, rhs: Any, dimensions: Dimensions, multiply: Callable[[Any, Any], Any]) -> Any:
    """dot_general by products of matrices: batch dimensions first, then rows, then columns."""
    (left, right), (left_batch, right_batch) = dimensions
    rows, columns = _free(lhs, left, left_batch), _free(rhs, right, right_batch)
    blocks, m, n, k = _matrices_of(lhs, rhs, dimensions)
    batch = [lhs.shape[n] for n in left_batch]
    whole = [*batch, *(lhs.shape[n] for n in rows), *(rhs.shape[n] for n in columns)]
    x = jnp.transpose(lhs, (*left_batch, *rows, *left)).reshape(blocks, m, k)
    y = jnp.transpose(rhs, (*right_batch, *right, *columns)).reshape(blocks, k, n)
    return multiply(x, y).reshape(whole)


def _free(side: Any, summed: Sequence[int], batch: Sequence[int]) -> list[int]:
    """The dimensions of a side that the result keeps, batches apart."""
    return [n for n in range(side.ndim) if n not in (*summed, *batch)]


def _matrices_of(lhs: Any, rhs: Any, dimensions: Dimensions) -> tuple[int, int, int, int]:
    """How many products of matrices a dot_general is, and their M, N and K."""
    (left, right), (left_batch, right_batch) = dimensions
    m = prod(lhs.shape[one] for one in _free(lhs, left, left_batch))
    n = prod(rhs.shape[one] for one in _free(rhs, right, right_batch))
    return prod(lhs.shape[n] for n in left_batch), m, n, prod(lhs.shape[n] for n in left)


def dot_general(
    lhs: Any, rhs: Any, dimension_numbers: Dimensions, *, machine: Any = None, unit: Any = None, plan: Any = None,
    convert: str | None = None, preferred_element_type: Any = None,
) -> Any:  # fmt: skip
    """jax.lax.dot_general, bit for bit as a unit, a plan or a machine computes it.

    Shapes: those of jax.lax.dot_general.

    Units: one of `machine` (a GPU such as "H100", or the path of a map), `unit` and `plan`; `convert` as for
    `mmaprobe.matmul`. The result has the type `preferred_element_type`, to which it is rounded once; without it that of
    `lhs`. Gradients are products of the same machine, the incoming one rounded to the type of the factor in whose place
    it stands.

    Raises MmaprobeError: names that are not known; UnsupportedProductError for formats without a rule.

    Source: that of the unit or the plan; of a GPU, what the report of `emulate` says.
    """
    how = machine_of(machine, unit=unit, plan=plan, convert=convert)
    lhs, rhs = jnp.asarray(lhs), jnp.asarray(rhs)
    how.rule(_format(lhs), _format(rhs))
    kind = jnp.dtype(preferred_element_type or lhs.dtype)

    def forward(a: Any, b: Any) -> Any:
        return _called(how, kind, a, b)

    def kept(a: Any, b: Any) -> Any:
        return forward(a, b), (a, b)

    def gradients(sides: Any, grad: Any) -> Any:
        a, b = sides
        of_a = _called(how, a.dtype, grad.astype(a.dtype), jnp.swapaxes(b, 1, 2))
        of_b = _called(how, b.dtype, jnp.swapaxes(a, 1, 2), grad.astype(b.dtype))
        return of_a, of_b

    multiply = jax.custom_vjp(forward)
    multiply.defvjp(kept, gradients)
    return _as_matrices(lhs, rhs, dimension_numbers, multiply)


# -- the context


class Emulation:
    """What `emulate` returns: a context. `report`: which plan stood for which product that ran inside, as a value;
    `str()` of the context shows it as a table."""

    def __init__(
        self, machine: Machine, unknown: Literal["error", "native"] = "error",
        listener: Callable[[Multiplied], None] | None = None,
    ) -> None:  # fmt: skip
        self.machine, self.unknown = machine, unknown
        self._tally = Tally(machine, f"JAX {jax.__version__}", listener)
        self._saved: list[tuple[Any, Any, Any]] = []

    def __enter__(self) -> Emulation:
        from jax.interpreters import mlir

        for name, primitive in _primitives().items():
            for table in _tables():
                self._saved.append((table, primitive, table.get(primitive)))
                table.pop(primitive, None)
            native = next(one for table, known, one in reversed(self._saved) if known is primitive and one is not None)
            rule = {"dot_general": (self._dot, _shape_of_dot),
                    "conv_general_dilated": (self._convolution, _shape_of_convolution)}.get(name)  # fmt: skip
            lowered = self._refused(name, native.rule) if rule is None else self._emulated(*rule, native.rule)
            mlir.register_lowering(primitive, lowered)
        jax.clear_caches()
        return self

    def __exit__(self, *error: object) -> None:
        jax.effects_barrier()
        for table, primitive, entry in reversed(self._saved):
            if entry is None:
                table.pop(primitive, None)
            else:
                table[primitive] = entry
        self._saved.clear()
        jax.clear_caches()

    @property
    def report(self) -> Emulated:
        """Which plan computed each product, and which operations JAX computed by choice."""
        return self._tally.document

    def __str__(self) -> str:
        return str(self._tally)

    def _emulated(self, function: Callable[..., Any], shape_of: Callable[..., Any], native: Any) -> Any:
        """The lowering of a primitive by a function. Integers, and by choice products without a rule, keep JAX's own
        lowering."""
        from jax.interpreters import mlir

        own = mlir.lower_fun(function, multiple_results=False)

        def lowered(ctx: Any, *args: Any, **params: Any) -> Any:
            sides = ctx.avals_in[:2]
            if not all(jnp.issubdtype(side.dtype, jnp.floating) for side in sides):
                if any(jnp.issubdtype(side.dtype, jnp.complexfloating) for side in sides):
                    self._not_known("a product of complex numbers")
                return native(ctx, *args, **params)
            try:
                asked = ProductRequest(_format(sides[0]), _format(sides[1]), "")
                self._tally.plans_of(asked, shape_of(*sides, params))
            except (UnsupportedProductError, IncompleteError) as error:
                self._not_known(str(error))
                return native(ctx, *args, **params)
            return own(ctx, *args, **params)

        return lowered

    def _refused(self, name: str, native: Any) -> Any:
        def lowered(ctx: Any, *args: Any, **params: Any) -> Any:
            self._not_known(name)
            return native(ctx, *args, **params)

        return lowered

    def _not_known(self, what: str) -> None:
        if self.unknown == "error":
            raise UnsupportedProductError(f"{what}: not emulated; unknown='native' computes it as it is")
        self._tally.unknown[what] += 1

    def _listener(self, operator: str) -> Callable[..., None]:
        def listen(machine: Machine, asked: ProductRequest, sides: tuple[Numbers, ...], after: str) -> None:
            a, b, d = sides
            shape = (len(a), a.shape[1], b.shape[2], a.shape[2])
            self._tally.add(operator, False, asked, shape, False, after, lambda: {"a": a, "b": b, "c": None, "d": d})

        return listen

    def _dot(self, lhs: Any, rhs: Any, *, dimension_numbers: Any, preferred_element_type: Any, **_: Any) -> Any:
        kind = jnp.dtype(preferred_element_type or lhs.dtype)
        listen = self._listener("dot_general")
        return _as_matrices(lhs, rhs, dimension_numbers, lambda a, b: _called(self.machine, kind, a, b, listen))

    def _convolution(self, lhs: Any, rhs: Any, *, preferred_element_type: Any, **params: Any) -> Any:
        kind = jnp.dtype(preferred_element_type or lhs.dtype)
        listen = self._listener("conv_general_dilated")
        named = {name: params[name] for name in _CONVOLUTION}
        shape = jax.ShapeDtypeStruct(_convolution_of(lhs, rhs, named), kind)
        machine = self.machine

        def call(x: Any, y: Any) -> Numbers:
            return _convolved(lambda a, b: _product(machine, kind, a, b, listen), np.asarray(x), np.asarray(y), **named)

        return jax.pure_callback(call, shape, lhs, rhs, vmap_method="sequential")


#: parameters of the primitive that are arguments of jax.lax.conv_general_dilated
_CONVOLUTION = ("window_strides", "padding", "lhs_dilation", "rhs_dilation", "dimension_numbers",
                "feature_group_count", "batch_group_count")  # fmt: skip


def _convolution_of(lhs: Any, rhs: Any, params: Mapping[str, Any]) -> tuple[int, ...]:
    """The shape of a convolution's result."""

    def native(a: Any, b: Any) -> Any:
        return jax.lax.conv_general_dilated(a, b, **{name: params[name] for name in _CONVOLUTION})

    sides = (jax.ShapeDtypeStruct(side.shape, side.dtype) for side in (lhs, rhs))
    return tuple(jax.eval_shape(native, *sides).shape)


def _shape_of_dot(lhs: Any, rhs: Any, params: Mapping[str, Any]) -> tuple[int, int, int, int]:
    return _matrices_of(lhs, rhs, params["dimension_numbers"])


def _shape_of_convolution(lhs: Any, rhs: Any, params: Mapping[str, Any]) -> tuple[int, int, int, int]:
    """Groups, and M, N and K of the product of patches and weights."""
    numbers, groups = params["dimension_numbers"], params["feature_group_count"] * params["batch_group_count"]
    found = _convolution_of(lhs, rhs, params)
    images, *places = (found[n] for n in (numbers.out_spec[0], *numbers.out_spec[2:]))
    out, *own = (rhs.shape[n] for n in numbers.rhs_spec)
    return groups, images * prod(places), out // groups, prod(own)


def _primitives() -> dict[str, Any]:
    """The primitives that multiply matrices, by name: those that are emulated, and others."""
    from jax import lax
    from jax.extend.core import primitives
    from jax.lax import linalg

    by_name = {"dot_general": lax.dot_general_p, "conv_general_dilated": lax.conv_general_dilated_p, "fft": lax.fft_p}
    for name in ("cholesky", "lu", "qr", "svd", "eigh", "eig", "triangular_solve", "householder_product", "schur",
                 "tridiagonal_solve", "ragged_dot_general"):  # fmt: skip
        for place in (linalg, primitives, lax):
            if (one := getattr(place, f"{name}_p", None)) is not None:
                by_name[name] = one
    tables = _tables()
    return {name: one for name, one in by_name.items() if any(one in table for table in tables)}


def _tables() -> list[Any]:
    """JAX's tables of lowerings: one for all platforms, and one for the platform in use, such as cpu or cuda."""
    from jax._src.interpreters import mlir
    from jax.extend.backend import get_backend

    backend, known = get_backend(), mlir._platform_specific_lowerings
    named = (backend.platform, *backend.platform_version.lower().split())
    return [mlir._lowerings, *(known[name] for name in ("cpu", "cuda", "rocm") if name in named)]


def _convolved(
    multiply: Callable[[Numbers, Numbers], Numbers], x: Numbers, w: Numbers, *, window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]], lhs_dilation: Sequence[int], rhs_dilation: Sequence[int],
    dimension_numbers: Any, feature_group_count: int, batch_group_count: int,
) -> Numbers:  # fmt: skip
    """A convolution as patches times weights: K runs over the channels of a group and the places of the kernel."""
    x, w = x.transpose(dimension_numbers.lhs_spec), w.transpose(dimension_numbers.rhs_spec)
    x = _padded(_spread(x, lhs_dilation), padding)
    groups = feature_group_count * batch_group_count
    out, own, *kernel = w.shape
    axes = tuple(range(2, x.ndim))
    spans = [d * (k - 1) + 1 for d, k in zip(rhs_dilation, kernel, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(x, spans, axes)
    steps = tuple(slice(None, None, step) for step in (*window_strides, *rhs_dilation))
    windows = windows[(slice(None), slice(None), *steps)]
    places = windows.shape[2 : 2 + len(kernel)]
    if batch_group_count > 1:  # a group of images has features of its own
        windows = windows.reshape(batch_group_count, -1, *windows.shape[1:])
    else:
        windows = windows.reshape(windows.shape[0], groups, own, *windows.shape[2:]).swapaxes(0, 1)
    n = windows.shape[1]
    order = (0, 1, *range(3, 3 + len(kernel)), 2, *range(3 + len(kernel), windows.ndim))
    patches = windows.transpose(order).reshape(groups, n * prod(places), own * prod(kernel))
    weights = w.reshape(groups, out // groups, -1).swapaxes(1, 2)
    d = multiply(patches, weights).reshape(groups, n, *places, out // groups)
    d = np.moveaxis(d, -1, 1)  # groups, features of a group, images, places
    d = d.reshape(out, n, *places).swapaxes(0, 1)
    return np.ascontiguousarray(d.transpose(np.argsort(dimension_numbers.out_spec)))


def _spread(x: Numbers, dilation: Sequence[int]) -> Numbers:
    if all(step == 1 for step in dilation):
        return x
    sizes = [max(0, (size - 1) * step + 1) for size, step in zip(x.shape[2:], dilation, strict=True)]
    spread = np.zeros((*x.shape[:2], *sizes), x.dtype)
    spread[(slice(None), slice(None), *(slice(None, None, step) for step in dilation))] = x
    return spread


def _padded(x: Numbers, padding: Sequence[tuple[int, int]]) -> Numbers:
    """Zeros on both sides of each dimension of places; a negative number of zeros cuts places off."""
    cut = tuple(
        slice(max(0, -low), size + min(0, high)) for (low, high), size in zip(padding, x.shape[2:], strict=True)
    )
    x = x[(slice(None), slice(None), *cut)]
    return np.pad(x, [(0, 0), (0, 0), *((max(0, low), max(0, high)) for low, high in padding)])


def emulate(
    machine: Any = None, *, unit: Any = None, plan: Any = None, convert: str | None = None,
    batched: Any = None, unknown: Literal["error", "native"] = "error", **formats: Any,
) -> Emulation:  # fmt: skip
    """A context in which dot_general and convolutions of what JAX compiles and runs are computed as a machine does.

    Arguments as for `mmaprobe.torch.emulate`. Compiled functions are compiled again inside, and again outside.

    Shapes: any; K of a convolution is that of its channels and places.

    Units: products are rounded once to the type that JAX gives them.

    Raises MmaprobeError: names that are not known; inside, UnsupportedProductError for a product without a rule, and
    for decompositions and Fourier transforms, unless `unknown` is native.

    Source: what `report` says of each plan: recorded, inferred or given.
    """
    choice_of("unknown", unknown, ("error", "native"))
    return Emulation(machine_of(machine, unit=unit, plan=plan, convert=convert, batched=batched, **formats), unknown)


def diverge(
    function: Callable[..., Any], inputs: Any, a: Any, b: Any, *, bounds: bool = True,
    unknown: Literal["error", "native"] = "error",
) -> Divergences:  # fmt: skip
    """Where two machines part in a function: of each of its products, which results differ and by how much.

    `function`: what computes a model's result, its loss or, with jax.grad, its gradients; `inputs`: its arguments, a
    tuple, or one value, of arrays; `a`, `b`: machines as for `emulate`, or contexts that it returns; `bounds`,
    `unknown` as for mmaprobe.torch.diverge. It runs operation by operation, uncompiled (jax.disable_jit), so that
    products have an order.

    Shapes: any that the function takes.

    Units: as for mmaprobe.torch.diverge.

    Raises MmaprobeError: as `emulate`; ParameterError where the function does not ask for the same products twice.

    Source: as for `emulate`; bounds as for `mmaprobe.bound`.
    """
    if not callable(function):
        raise WantedError("function", function, "a function")
    one, other = (side.machine if isinstance(side, Emulation) else machine_of(side) for side in (a, b))
    comparison, second = Comparison(one, other, bounds), list[Multiplied]()
    results = _ran(function, inputs, Emulation(one, unknown, comparison.first))
    again = _ran(function, inputs, Emulation(other, unknown, second.append))
    leaves = [
        (np.asarray(x), np.asarray(y))
        for x, y in zip(*(jax.tree_util.tree_leaves(side) for side in (results, again)), strict=True)
        if format_of(np.asarray(x).dtype) is not None
    ]
    return Divergences(comparison.document(second, f"JAX {jax.__version__}", leaves), (results, again))


def _ran(function: Callable[..., Any], inputs: Any, context: Emulation) -> Any:
    given = jax.tree_util.tree_map(jnp.asarray, inputs if isinstance(inputs, tuple) else (inputs,))
    with context, jax.disable_jit():  # NumPy's arrays would be multiplied by NumPy
        return jax.block_until_ready(function(*given))
