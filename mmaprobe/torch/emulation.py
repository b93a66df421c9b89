"""`with emulate(...)`: matrix products of the code inside are computed as a machine computes them.

A dispatch mode sees the operators below autograd, so that gradients are products like others. Operators that consist of
others are taken apart first. An unknown operator that multiplies matrices is an error, or native by choice.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, Literal

import torch
from torch._higher_order_ops.scan import generic_scan
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode_stack,
    is_traceable_wrapper_subclass,
)
from torch.utils._pytree import tree_map_only

from mmaprobe.documents.emulate import Emulated
from mmaprobe.machines import Machine, ProductRequest, UnsupportedProductError, machine_of
from mmaprobe.multiplied import Multiplied, Tally
from mmaprobe.named import choice_of
from mmaprobe.smtmodel.base.errors import IncompleteError, ParameterError
from mmaprobe.torch import convolution
from mmaprobe.torch.products import BACKWARD, Backward, product
from mmaprobe.torch.scaled import Blocked, blocked, packed, scaled_sums, scales_of
from mmaprobe.torch.tensors import FORMAT_OF, TYPE_OF, format_of, layout_of, numbers, patterns
from mmaprobe.torch.threads import followed

Unknown = Literal["error", "native"]

#: words of operators that multiply matrices, in one way or another
_WORDS = (
    r"\w*mm|mv|addmv|dot|vdot|matmul|gemm|conv[123]?d?|convolution|linear|lstm|gru|rnn|attention|cdist|pdist|euclidean|"
    r"trilinear|inverse|inv|pinv|pinverse|cholesky|lu|ldl|solve|lstsq|qr|svd|svdvals|eig|eigh|eigvals|eigvalsh|geqrf|"
    r"orgqr|ormqr|det|slogdet|logdet|householder|matrix|fft|fft2|fftn|ifft|rfft|c2c|c2r|r2c|tensorsolve|tensorinv|"
    r"corrcoef|cov|to_mkldnn|transformer|multi_head|combination|triangular|spsolve|tridiagonal"
)
_MULTIPLIES = re.compile(rf"(?:.*_)?(?:{_WORDS})(?:_.*)?")
_DO_NOT = re.compile(r"\w*(slice_inverse|(batch|layer|group|instance|rms)_norm\w*|_fftfreq|matrix_norm|_check_errors)")
#: namespaces of operators whose names say what they do
_SPACES = ("aten", "prim", "prims", "profiler", "mmaprobe", "c10d", "_c10d_functional", "_c10d_functional_autograd")


@dataclass(frozen=True)
class Products:
    """What multiplies for one operator."""

    context: Emulation
    operator: str
    backward: bool

    def __call__(
        self, a: Any, b: Any, c: Any = None, alpha: float = 1.0, beta: float = 1.0, d: str | None = None,
        fast: bool = False,
    ) -> Any:  # fmt: skip
        """alpha * a @ b + beta * c of blocks (blocks x M x K, blocks x K x N), rounded to the format `d`. Raises
        ParameterError for sides that do not fit."""
        if a.shape[0] != b.shape[0]:
            raise ParameterError("a and b", f"batches of {a.shape[0]} and {b.shape[0]} matrices")
        if c is not None and c.dtype not in (a.dtype, TYPE_OF[d or format_of("a", a)]):
            raise ParameterError("c", f"numbers of {c.dtype}, those of a and b being {a.dtype}")
        asked = ProductRequest(format_of("a", a), format_of("b", b), d or format_of("a", a), alpha, beta, fast,
                      layout=layout_of(a, b))  # fmt: skip
        return self.context.multiplied(self.operator, self.backward, asked, a, b, c)

    def blocks(self, given: Blocked) -> Any:
        """The sums of a product with scale factors of blocks, in f32."""
        return self.context.multiplied(self.operator, self.backward, given.asked, given.a, given.b, None, given.scales)


class Emulation(TorchDispatchMode):  # type: ignore[misc, unused-ignore]
    """What `emulate` returns: a context. `report`: which plan stood for which product so far, what was native, as a
    value; `str()` of the context shows it as a table."""

    supports_higher_order_operators = True

    def __init__(
        self, machine: Machine, unknown: Unknown = "error", backward: Backward = "emulated",
        listener: Callable[[Multiplied], None] | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.machine, self.unknown, self.backward = machine, unknown, backward
        self._tally = Tally(machine, f"PyTorch {torch.__version__}", listener)
        self._settings: list[ExitStack] = []
        self._refusal: UnsupportedProductError | IncompleteError | None = None  # the last product that was refused

    # -- the context

    def __enter__(self) -> Any:
        settings = ExitStack()
        settings.enter_context(_plain_attention())
        settings.enter_context(_without_onednn())
        settings.enter_context(followed(_here))
        settings.enter_context(torch.compiler.set_stance("force_eager"))  # compiled code dispatches no products
        self._settings.append(settings)
        return super().__enter__()

    def __exit__(self, *error: Any) -> Any:
        try:
            super().__exit__(*error)
        finally:
            self._settings.pop().close()
        if isinstance(error[1], RuntimeError) and "TorchScript" in str(error[1]) and self._refusal is not None:
            raise self._refusal from error[1]  # TorchScript does not keep the text of this error

    @contextmanager
    def again(self) -> Iterator[None]:
        """Within the block the context sees operators, in this thread, with the settings as they are."""
        super().__enter__()
        try:
            yield
        finally:
            super().__exit__(None, None, None)

    def sibling(self) -> Emulation:
        """The same context for another thread: its products are in the report of this context."""
        other = copy.copy(self)
        TorchDispatchMode.__init__(other)
        return other

    @property
    def report(self) -> Emulated:
        """Which plan computed each matrix product, and which operators PyTorch itself computed."""
        return self._tally.document

    def __str__(self) -> str:
        return str(self._tally)

    # -- operators

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not self._settings or _recorded() or _hidden(args, kwargs):  # `not`: the context has ended
            return func(*args, **kwargs)
        if isinstance(func, torch._ops.HigherOrderOperator):
            return self._of_functions(func, args, kwargs)
        if any(is_traceable_wrapper_subclass(x) for x in _flat(args, kwargs)):
            return NotImplemented  # jagged tensors, DTensor and their like: their own operators are seen here
        nested = any(x.is_nested for x in _flat(args, kwargs))
        if func.namespace == "aten" and not nested:
            known = _OPERATORS.get(func.overloadpacket._qualified_op_name.partition("::")[2].rstrip("_"))
            given = _bound(func, args, kwargs)
            if known is not None and not _of_integers((), given):
                return self._known(func, known, given, args, kwargs)
            if _composite(func):
                with self.again():
                    return func.decompose(*args, **kwargs)
        return self._other(func, args, kwargs)

    def _of_functions(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The result of an operator that calls functions, such as torch.cond: their operators are seen here."""
        name = func.name()
        if name not in _CALLS:
            self._refused(name)
            return func(*args, **kwargs)
        own = _CALLS[name] or func.py_kernels[torch._C.DispatchKey.CompositeExplicitAutograd]
        with self.again():
            return own(*args, **kwargs)

    def _refused(self, name: str) -> None:
        """Counts an operator that may multiply matrices. Raises UnsupportedProductError unless it is native by
        choice."""
        if self.unknown == "error":
            self._refusal = UnsupportedProductError(
                f"{name} may multiply matrices and is not emulated; unknown='native' computes it as it is"
            )
            raise self._refusal
        self._tally.unknown[name] += 1

    def _known(self, func: Any, known: Any, given: dict[str, Any], args: Any, kwargs: Any) -> Any:
        backward = torch._C._current_autograd_node() is not None
        name = str(func.overloadpacket)
        if backward and self.backward == "native":
            self._tally.native[f"{name} (gradient)"] += 1
            return _native(func, args, kwargs)

        try:
            if any(x.layout is not torch.strided for x in _flat(args, kwargs)):
                raise UnsupportedProductError("a tensor without strides: sparse ones are not known")
            result = known(Products(self, name, backward), given)
            if (out := given.get("out")) is not None and out.dtype is not result.dtype:
                raise ParameterError("out", f"numbers of {out.dtype}, where the result has {result.dtype}")
        except (UnsupportedProductError, IncompleteError) as error:
            if self.unknown == "error":
                hint = "; unknown='native' computes such products as they are"
                self._refusal = type(error)(f"{name}: {error}{hint}")
                raise self._refusal from None
            self._tally.unknown[name] += 1
            return _native(func, args, kwargs)
        except (ParameterError, RuntimeError, ValueError, IndexError):
            _native(
                func, *tree_map_only(torch.Tensor, torch.clone, (args, kwargs))
            )  # PyTorch's own error, if it has one
            raise
        if func._schema.name.endswith("_"):
            return args[0].copy_(result)
        if out is not None:
            if out.shape != result.shape:
                out.resize_(result.shape)
            return out.copy_(result)
        return result

    def multiplied(
        self, name: str, backward: bool, asked: ProductRequest, a: Any, b: Any, c: Any,
        scales: Mapping[str, Any] | None = None,
    ) -> Any:  # fmt: skip
        """The result of a product of blocks, which is counted."""
        found, after = product(self.machine, asked, a, b, c, scales)

        def arrays() -> dict[str, Any]:
            factors = scales and {key: patterns(side) for key, side in scales.items()}
            return {"a": patterns(a), "b": patterns(b), "c": None if c is None else numbers(c), "d": patterns(found),
                    "scales": factors}  # fmt: skip

        shape = (a.shape[0], a.shape[1], b.shape[2], a.shape[2])
        self._tally.add(name, backward, asked, shape, c is not None, after, arrays)
        return found

    def _other(self, func: Any, args: Any, kwargs: Any) -> Any:
        name = str(func.overloadpacket)
        if multiplies(func.namespace, func._schema.name.partition("::")[2]):
            if not _of_integers(args, kwargs):
                self._refused(name)
                return _native(func, args, kwargs)
            name = f"{name} (integers)"
        self._tally.native[name] += 1
        return _native(func, args, kwargs)


def multiplies(namespace: str, name: str) -> bool:
    """Whether an operator may multiply matrices, by its name: an operator of a user's own library may do anything."""
    if namespace not in _SPACES:
        return True
    return namespace == "aten" and bool(_MULTIPLIES.fullmatch(name)) and not _DO_NOT.fullmatch(name)


def _composite(func: Any) -> bool:
    """Whether an operator consists of others, by PyTorch's own definition."""
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), key))


def _flat(args: Any, kwargs: Any) -> Iterator[Any]:
    for one in (*args, *kwargs.values()):
        if isinstance(one, (list, tuple)):
            yield from (x for x in one if isinstance(x, torch.Tensor))
        elif isinstance(one, torch.Tensor):
            yield one


def _recorded() -> bool:
    """Whether operators are written into a graph, not computed: a product is computed when the graph runs."""
    kinds = torch._C._TorchDispatchModeKey.__members__.values()
    return any(torch._C._get_dispatch_mode(kind) is not None for kind in kinds)


def _hidden(args: Any, kwargs: Any) -> bool:
    """Whether tensors have no numbers: those of torch.compile and of the device meta."""
    fake = torch._subclasses.fake_tensor.FakeTensor
    return any(isinstance(x, fake) or x.device.type == "meta" for x in _flat(args, kwargs))


def _of_integers(args: Any, kwargs: Any) -> bool:
    """Whether all tensors are of integers, and there is one."""
    tensors = list(_flat(args, kwargs))
    return bool(tensors) and not any(x.is_floating_point() or x.is_complex() for x in tensors)


def _bound(func: Any, args: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of an operator by name, with its defaults."""
    arguments = {}
    for place, argument in enumerate(func._schema.arguments):
        if place < len(args):
            arguments[argument.name] = args[place]
        elif argument.name in kwargs:
            arguments[argument.name] = kwargs[argument.name]
        elif argument.has_default_value():
            arguments[argument.name] = argument.default_value
    return arguments


def _here() -> list[AbstractContextManager[None]]:
    """The contexts of this thread, for another thread."""
    return [one.sibling().again() for one in _get_current_dispatch_mode_stack() if isinstance(one, Emulation)]


_OUTSIDE: list[bool] = []  # whether oneDNN was enabled before each context that is open


@contextmanager
def _without_onednn() -> Iterator[None]:
    """Recurrent layers as products and sums of their steps, not as one operator of oneDNN."""
    _OUTSIDE.append(torch._C._get_mkldnn_enabled())
    torch._C._set_mkldnn_enabled(False)
    try:
        yield
    finally:
        torch._C._set_mkldnn_enabled(_OUTSIDE.pop())


def _native(func: Any, args: Any, kwargs: Any) -> Any:
    """The result of an operator as PyTorch computes it outside of all contexts, with oneDNN where PyTorch uses
    oneDNN."""
    torch._C._set_mkldnn_enabled(_OUTSIDE[0])
    try:
        return func(*args, **kwargs)
    finally:
        torch._C._set_mkldnn_enabled(False)


class _LaidAsFused(TorchFunctionMode):  # type: ignore[misc, unused-ignore]
    """Results of attention lie in memory as PyTorch's fused kernels lay them: like the query, whose heads are often
    views of the numbers of one place."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        found = func(*args, **kwargs)
        if func is torch.nn.functional.scaled_dot_product_attention and found.dim() == 4:
            query = args[0] if args else kwargs["query"]
            if query.stride(1) < query.stride(2):
                return found.transpose(1, 2).contiguous().transpose(1, 2)
        return found


@contextmanager
def _plain_attention() -> Iterator[None]:
    """Attention as products, a softmax and products, which keep the type of its inputs."""
    from torch.nn.attention import SDPBackend, sdpa_kernel

    flag = torch.backends.cuda.fp16_bf16_reduction_math_sdp_allowed()
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(True)
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH), _LaidAsFused():
            yield
    finally:
        torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp(flag)
        torch.backends.mha.set_fastpath_enabled(fast)


# -- operators that are products


def _out(given: Mapping[str, Any]) -> str | None:
    kind = given.get("out_dtype")
    return None if kind is None else FORMAT_OF[kind]


def _mm(multiply: Products, given: Mapping[str, Any]) -> Any:
    a, b = given["self"], given["mat2"]
    if a.dim() == 2:
        return multiply(a[None], b[None], d=_out(given))[0]
    return multiply(a, b, d=_out(given))


def _addmm(multiply: Products, given: Mapping[str, Any]) -> Any:
    two = "mat1" in given
    a, b = (given["mat1"], given["mat2"]) if two else (given["batch1"], given["batch2"])
    beta = float(given["beta"])
    given["self"].expand(*a.shape[:-1], b.shape[-1])  # raises PyTorch's error for a c of another shape
    c = None if beta == 0 else given["self"]
    result = multiply(a[None] if two else a, b[None] if two else b, c, float(given["alpha"]), beta, _out(given))
    return result[0] if two else result


def _mv(multiply: Products, given: Mapping[str, Any]) -> Any:
    return multiply(given["self"][None], given["vec"][None, :, None])[0, :, 0]


def _addmv(multiply: Products, given: Mapping[str, Any]) -> Any:
    beta = float(given["beta"])
    c = None if beta == 0 else given["self"][..., None]
    a, b = given["mat"][None], given["vec"][None, :, None]
    return multiply(a, b, c, float(given["alpha"]), beta)[0, :, 0]


def _dot(multiply: Products, given: Mapping[str, Any]) -> Any:
    a, b = given["self"], given.get("tensor", given.get("other"))
    return multiply(a[None, None], b[None, :, None])[0, 0, 0]


def _scaled(multiply: Products, given: Mapping[str, Any]) -> Any:
    """FP8 with f32 scale factors of whole matrices, or of rows of A and columns of B: the sum times both, in f32; or
    with factors of blocks, which units take."""
    a, b, scales = given["self"], given["mat2"], scales_of(given)
    if given.get("scale_result") is not None:
        raise UnsupportedProductError("a scale factor of the result is not known")
    if scales.recipe is not None:
        sums = multiply.blocks(blocked(a, b, *scales.blocks, scales.recipe, scales.swizzled))[0]
    elif packed(a) or packed(b):
        raise UnsupportedProductError("e2m1 has scale factors of blocks")
    else:
        sums = multiply(a[None], b[None], d="f32", fast=bool(given.get("use_fast_accum")))[0]
    return scaled_sums(sums, scales, given.get("bias"), given.get("out_dtype") or torch.bfloat16)


def _addbmm(multiply: Products, given: Mapping[str, Any]) -> Any:
    """The products of a batch one after another, each added to the sum so far, as PyTorch does it."""
    found, beta, alpha = given["self"], float(given["beta"]), float(given["alpha"])
    for a, b in zip(given["batch1"], given["batch2"], strict=True):
        found = multiply(a[None], b[None], None if beta == 0 else found, alpha, beta)[0]
        beta = 1.0
    if not len(given["batch1"]):
        found = torch.zeros_like(found) if beta == 0 else found * beta
    return found.expand(given["batch1"].shape[1], given["batch2"].shape[2]).clone()


def _grouped(multiply: Products, given: Mapping[str, Any]) -> Any:
    """Products of groups: of rows of a, of columns of b, or of parts of K, which end at `offs`; or of a batch."""
    a, b, ends = given["self"], given["mat2"], given.get("offs")
    if given.get("bias") is not None:
        raise UnsupportedProductError("grouped products with a bias are not known")
    d = _out(given)

    def one(x: Any, y: Any) -> Any:
        return multiply(x[None], y[None], d=d)[0]

    if ends is None:
        return multiply(a, b, d=d)
    spans = [slice(low, high) for low, high in pairwise([0, *ends.tolist()])]
    if a.dim() == 2 and b.dim() == 2:
        return torch.stack([one(a[:, span], b[span]) for span in spans])
    if a.dim() == 2:
        parts = [one(a[span], y) for span, y in zip(spans, b, strict=True)]
        return _filled(torch.cat(parts), (a.shape[0], b.shape[-1]))
    parts = [one(x, b[:, span]) for x, span in zip(a, spans, strict=True)]
    return _filled(torch.cat(parts, 1), (a.shape[1], b.shape[1]))


def _filled(found: Any, shape: tuple[int, int]) -> Any:
    """A matrix in the corner of a matrix of a shape; the other numbers, which belong to no group, are zeros."""
    whole = found.new_zeros(shape)
    whole[: found.shape[0], : found.shape[1]] = found
    return whole


def _trilinear(multiply: Products, given: Mapping[str, Any]) -> Any:
    """Sums of products of three factors, as PyTorch does it: the first two by pairs, then the third, for each place
    of the dimension that is unrolled."""
    sides, dims = [given["i1"], given["i2"], given["i3"]], 0
    expanded, unroll = [given[f"expand{n}"] for n in (1, 2, 3)], given["unroll_dim"]
    dims = sides[0].dim() + len(expanded[0])
    for n, places in enumerate(expanded):
        for place in sorted(places):
            sides[n] = sides[n].unsqueeze(place)
    summed = set(given["sumdim"])
    early = {place for place in summed if place in expanded[2] and place != unroll}
    late = {place for place in summed if place not in expanded[2] and place != unroll}
    count = max(side.shape[unroll] for side in sides)
    parts = []
    for k in range(count):
        x, y, z = (side.narrow(unroll, min(k, side.shape[unroll] - 1), 1) for side in sides)
        both = _pair(multiply, x, y, early, dims)
        parts.append(_pair(multiply, both, z, late, dims))
    if unroll in summed:
        found = parts[0]
        for part in parts[1:]:
            found = found + part
    else:
        found = torch.cat(parts, unroll)
    return found.squeeze(tuple(sorted(summed)))


def _pair(multiply: Products, x: Any, y: Any, summed: set[int], dims: int) -> Any:
    """The sum of the products of two tensors over some dimensions, which keep one place."""
    kinds: dict[str, list[int]] = {"batch": [], "row": [], "column": [], "both": []}
    for place in range(dims):
        one, other = x.shape[place] > 1, y.shape[place] > 1
        if place in summed:
            x = x.sum(place, keepdim=True) if one and not other else x
            y = y.sum(place, keepdim=True) if other and not one else y
            kinds["both"].append(place)
        else:
            kinds["batch" if one == other else "row" if one else "column"].append(place)
    order = [*kinds["batch"], *kinds["row"], *kinds["both"]], [*kinds["batch"], *kinds["both"], *kinds["column"]]

    def size(side: Any, kind: str) -> int:
        return prod(side.shape[place] for place in kinds[kind])

    a = x.permute(*order[0], *kinds["column"]).reshape(size(x, "batch"), size(x, "row"), size(x, "both"))
    b = y.permute(*order[1], *kinds["row"]).reshape(size(y, "batch"), size(y, "both"), size(y, "column"))
    found = multiply(a, b)
    shape = [x.shape[p] for p in (*kinds["batch"], *kinds["row"])] + [y.shape[p] for p in kinds["column"]]
    places = [*kinds["batch"], *kinds["row"], *kinds["column"], *kinds["both"]]
    return found.reshape(*shape, *[1] * len(kinds["both"])).permute([places.index(n) for n in range(dims)])


def _cond(pred: Any, yes: Any, no: Any, operands: Any) -> Any:
    return (yes if pred else no)(*operands)


def _scan(function: Any, start: Any, sides: Any, more: Any) -> Any:
    return generic_scan(function, start, sides, additional_inputs=more)


#: operators that call functions -> their computation, None where it is their own definition in terms of operators; the
#: definitions of torch.cond and scan refuse contexts
_CALLS: dict[str, Callable[..., Any] | None] = {
    "cond": _cond,
    "scan": _scan,
    **dict.fromkeys(("while_loop", "map_impl", "associative_scan", "flex_attention", "flex_attention_backward",
                     "invoke_subgraph", "hints_wrapper", "strict_mode")),
}  # fmt: skip

_OPERATORS: dict[str, Callable[[Products, Mapping[str, Any]], Any]] = {
    "mm": _mm,
    "bmm": _mm,
    "addmm": _addmm,
    "baddbmm": _addmm,
    "mv": _mv,
    "addmv": _addmv,
    "dot": _dot,
    "vdot": _dot,
    "addbmm": _addbmm,
    "_trilinear": _trilinear,
    "_grouped_mm": _grouped,
    "_scaled_mm": _scaled,
    "_scaled_mm_v2": _scaled,
    "convolution": convolution.forward,
    "convolution_backward": convolution.backward,
}


def emulate(
    machine: Any = None, *, unit: Any = None, plan: Any = None, convert: str | None = None,
    batched: Any = None, unknown: Unknown = "error", backward: Backward = "emulated",
    **formats: Any,
) -> Emulation:  # fmt: skip
    """A context in which every matrix product is computed as a machine does, by the formats of its factors.

    `machine`: a GPU ("H100", "MI300X"), or the path of a map that `identify --gemm --json` wrote, or a list of them; or
    `unit=` or `plan=` as for `mmaprobe.matmul`. `formats`: by a format, what stands for it instead:
    `emulate("H100", f32="plan:cublas/tf32")`. `batched`: a plan, a map or rules by hand for products of several
    matrices at once, for which libraries have kernels of their own.

    Shapes: any; K of a convolution is that of its channels and places.

    Units: products are rounded once to the type that PyTorch gives them. `convert` is a rounding of factors that the
    formats of `unit`, `plan` and `formats` do not hold. `unknown`: what is not known is an error, or native; `backward`
    native: products of gradients are native.

    Raises MmaprobeError: names that are not known; inside, UnsupportedProductError for a product without a rule or an
    operator that may multiply matrices and is not known.

    Source: what `report` says of each plan: recorded, inferred or given.
    """
    choice_of("unknown", unknown, ("error", "native"))
    choice_of("backward", backward, BACKWARD)
    return Emulation(
        machine_of(machine, unit=unit, plan=plan, convert=convert, batched=batched, **formats), unknown, backward
    )
